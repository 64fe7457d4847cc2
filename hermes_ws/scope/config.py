"""`config.yaml`: read, checked and explained. What it may hold stands in `sections.py`.

A key that a section of ours does not know is an error, since a misspelt limit is no limit. Sections that are not ours,
which existing Hermes homes have, are left alone and named in `foreign`. An error names the file and the key, guesses
what was meant, and never repeats a value that may be secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Literal, cast, final, get_args, get_origin

from pydantic import BaseModel, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, StreamMark, YAMLError

from hermes_ws.contract.errors import ProfileUnusable
from hermes_ws.scope.config_view import public_view
from hermes_ws.scope.private_file import read_regular
from hermes_ws.scope.sections import (
    AgentConfig,
    ApprovalsConfig,
    CompactionConfig,
    DisplayConfig,
    HooksConfig,
    LimitsConfig,
    ModelConfig,
    ProfilesConfig,
    ProviderConfig,
    QuestionsConfig,
    QuickCommandConfig,
    RetentionConfig,
    SecretsConfig,
    Section,
    ServerConfig,
    SessionsConfig,
    WardenConfig,
)
from hermes_ws.scope.server_sections import McpServerConfig, ServerName
from hermes_ws.scope.terminal_sections import TerminalConfig

__all__ = ("ProfileConfig", "load_config", "parse_config", "public_view")

CONFIG_BYTES = 262_144
"""A thousand rules fit; a larger file takes the parser seconds."""

PROBLEMS_SHOWN = 5
"""A person mends a few at a time; `problems` in the data has them all."""

BUILT_IN_PROVIDERS = ("loopback", "openai", "anthropic", "local")
"""Providers that need no entry under `providers`."""


NetworkFileSystem = Literal[
    "9P", "AFS", "BeeGFS", "CIFS", "Ceph", "Coda", "GFS2", "GPFS", "Lustre", "NFS", "OCFS2", "SMB"
]
"""Those that are told apart; the journal knows them by their numbers."""


@final
class ProfileConfig(Section):
    """The settings of one profile, as loaded at one moment; without a file, all at their defaults.

    `server`, `limits` and `profiles` count in the launch home only.
    """

    model: ModelConfig = ModelConfig()
    providers: Mapping[str, ProviderConfig] = {}
    """Where models answer, by a name of your own. `openai`, `anthropic` and `local` are known without an entry."""
    agent: AgentConfig = AgentConfig()
    terminal: TerminalConfig = TerminalConfig()
    approvals: ApprovalsConfig = ApprovalsConfig()
    compaction: CompactionConfig = CompactionConfig()
    mcp_servers: Mapping[ServerName, McpServerConfig] = {}
    """Servers of tools, by name; their tools are called `<name>__<tool>`, in the toolset `mcp:<name>`."""
    hooks: HooksConfig = HooksConfig()
    quick_commands: Mapping[str, QuickCommandConfig] = {}
    """Commands of your own behind a slash, by name."""
    questions: QuestionsConfig = QuestionsConfig()
    display: DisplayConfig = DisplayConfig()
    server: ServerConfig = ServerConfig()
    limits: LimitsConfig = LimitsConfig()
    profiles: ProfilesConfig = ProfilesConfig()
    sessions: SessionsConfig = SessionsConfig()
    retention: RetentionConfig = RetentionConfig()
    warden: WardenConfig = WardenConfig()
    secrets: SecretsConfig = SecretsConfig()
    durability: Literal["full", "normal"] = "full"
    """`full` syncs what is acknowledged to the disk; `normal` may lose the last moments in a power cut."""
    network_file_systems: tuple[NetworkFileSystem, ...] = ()
    """Network file systems on which this home may lie, by name; on any other it is refused. Whose locks do not hold
    between machines loses what two of them write."""
    foreign: tuple[str, ...] = ()
    """Filled in when the file is read: its sections that are not ours, which `config check` names."""

    @model_validator(mode="after")
    def _providers_are_known(self) -> ProfileConfig:
        known = (*BUILT_IN_PROVIDERS, *self.providers)
        for name in (self.model.provider, *(fallback.provider for fallback in self.model.fallbacks)):
            if name not in known:
                raise PydanticCustomError(
                    "provider_unknown",
                    "{text}",
                    {"text": f"model: there is no provider {name!r} under providers{_guess(name, known)}"},
                )
        for name, provider in self.providers.items():
            if provider.kind is None and name not in BUILT_IN_PROVIDERS:
                raise PydanticCustomError(
                    "provider_kind", "{text}", {"text": f"providers.{name}: `kind` is missing; write `kind: openai`"}
                )
        return self


def load_config(path: Path) -> ProfileConfig:
    """Read the settings of a home. Raises ProfileUnusable, with every problem that was found."""
    data = read_regular(path, limit=CONFIG_BYTES)
    return ProfileConfig() if data is None else parse_config(data, path)


def parse_config(data: bytes, path: Path) -> ProfileConfig:
    """Check the content of a `config.yaml`; `path` is what errors call it."""
    sections = _read_yaml(data, path)
    ours = {name: value for name, value in sections.items() if name in _OURS}
    foreign = tuple(sorted(name for name in sections if name not in _OURS))
    # A section of which all lines are comments reads as null, and means its defaults.
    present = {name: value for name, value in ours.items() if value is not None}
    try:
        return ProfileConfig.model_validate({**present, "foreign": foreign})
    except ValidationError as error:
        raise _unusable(path, list(_problems(error))) from None


_OURS = frozenset(ProfileConfig.model_fields) - {"foreign"}


def _read_yaml(data: bytes, path: Path) -> Mapping[str, object]:
    try:
        content: object = YAML(typ="safe", pure=True).load(data.decode("utf-8-sig"))  # pyright: ignore[reportUnknownMemberType]
    except UnicodeDecodeError as error:
        raise _unusable(path, [("", f"the file is not UTF-8 (byte {error.start})")]) from None
    except MarkedYAMLError as error:
        mark = cast("StreamMark | None", error.problem_mark)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        problem = _first_line(cast("str | None", error.problem)) or "this is not YAML"  # pyright: ignore[reportUnknownMemberType]
        raise _unusable(path, [("", where + problem)]) from None
    except (YAMLError, ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        # The parser's own limits: a date that does not exist, a key that is a list, endless nesting.
        raise _unusable(path, [("", f"this is not YAML that can be read ({type(error).__name__})")]) from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise _unusable(path, [("", "the file must hold sections, `name:` and indented settings")])
    return {str(name): value for name, value in cast("dict[object, object]", content).items()}


def _first_line(text: str | None) -> str:
    # What the parser quotes of the file may be a secret: only its own words are repeated.
    return re.sub(r"[\"'].*[\"']", "…", text.splitlines()[0]) if text else ""


def _unusable(path: Path, problems: Sequence[tuple[str, str]]) -> ProfileUnusable:
    shown = "; ".join(f"{key}: {text}" if key else text for key, text in problems[:PROBLEMS_SHOWN])
    more = f"; and {len(problems) - PROBLEMS_SHOWN} more" if len(problems) > PROBLEMS_SHOWN else ""
    return ProfileUnusable(
        f"{path}: {shown}{more}.",
        hint="Mend the file; nothing of it is used until it can be read as a whole.",
        file=str(path),
        problems=[{"key": key, "problem": text} for key, text in problems],
    )


def _problems(error: ValidationError) -> Iterator[tuple[str, str]]:
    details = error.errors(include_url=False)
    meant = {
        (detail["loc"][:-1], _closest_setting(detail)) for detail in details if detail["type"] == "extra_forbidden"
    }
    for detail in details:
        if detail["type"] == "missing" and (detail["loc"][:-1], detail["loc"][-1]) in meant:
            continue  # It is there, misspelt: one problem, told once.
        key = ""
        for part in detail["loc"]:
            key += f"[{part}]" if isinstance(part, int) else f".{part}" if key else part
        yield key, _explain(detail)


def _explain(detail: ErrorDetails) -> str:
    kind, found = detail["type"], detail["input"]
    if kind == "extra_forbidden":
        close = _closest_setting(detail)
        return f"there is no such setting; did you mean `{close}`?" if close else "there is no such setting"
    if kind == "literal_error":
        expected: str = detail["ctx"]["expected"] if "ctx" in detail else ""
        guess = _guess(found, re.findall(r"'([^']*)'", expected)) if isinstance(found, str) else ""
        return f"must be {expected}{guess}"
    if kind == "missing":
        return "is missing"
    if kind in ("model_type", "dict_type", "mapping_type", "model_attributes_type"):
        return "must hold settings, `name: value`"
    if kind == "tuple_type":
        return "must be a list"
    if kind == "string_type":
        return "must be text; put it in quotes"
    return detail["msg"].removeprefix("Input ").removeprefix("Value error, ")


def _closest_setting(detail: ErrorDetails) -> str | None:
    *above, key = detail["loc"]
    model = _model_at(above)
    return next(iter(get_close_matches(str(key), model.model_fields, n=1)), None) if model else None


def _guess(word: str, known: Sequence[str]) -> str:
    close = get_close_matches(word, known, n=1)
    return f"; did you mean `{close[0]}`?" if close else ""


def _model_at(path: Sequence[int | str]) -> type[BaseModel] | None:
    """The model that declares what lies at a path of an error."""
    model: type[BaseModel] | None = ProfileConfig
    annotation: object = ProfileConfig
    for part in path:
        if model is not None and isinstance(part, str) and part in model.model_fields:
            annotation = model.model_fields[part].annotation
        model = _model_in(annotation)
    return model


def _model_in(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and not get_origin(annotation) and issubclass(annotation, BaseModel):
        return annotation
    for inner in cast("tuple[object, ...]", get_args(annotation)):
        model = _model_in(inner)
        if model is not None:
            return model
    return None
