"""Agent definitions: `<home>/agents/<name>.md`, front matter and instructions.

`default` exists in every home, also without a file. Reading one reads a file of the home: call it with the home bound,
in a worker thread.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Final, Literal, cast, final

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from hermes_ws.contract.errors import NotFound, ProfileUnusable
from hermes_ws.scope.home import ProfileHome
from hermes_ws.scope.private_file import read_regular

DEFAULT: Final = "default"
"""The agent of a session that names none, in a profile that names none."""

DEFINITION_BYTES: Final = 262_144
"""Instructions longer than this would fill most models' context by themselves."""

DEFAULT_INSTRUCTIONS: Final = (
    "You are a careful assistant who works on the user's machine with the tools you are given. Look before you change "
    "anything, keep changes small, and say plainly what you did and what you could not do."
)

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)
_FENCE: Final = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)

Text = Annotated[str, Field(min_length=1, max_length=200)]


class FrontMatter(BaseModel):
    """What stands between the two lines of dashes. An unknown key is an error: a misspelt limit is no limit."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    name: Text | None = None
    description: Annotated[str, Field(max_length=2000)] = ""
    model: Text | None = None
    provider: Text | None = None
    reasoning: Literal["none", "low", "medium", "high"] | None = None
    toolsets: tuple[Text, ...] | None = None
    max_turns: Annotated[int, Field(ge=1, le=10_000)] | None = None
    approvals: Literal["ask", "auto", "deny"] | None = None
    subagents: tuple[Text, ...] | None = None


@final
@dataclass(frozen=True, slots=True)
class AgentDefinition:
    """One agent as its file describes it. What is None is left to the profile's settings."""

    name: str
    instructions: str = DEFAULT_INSTRUCTIONS
    description: str = ""
    model: str | None = None
    provider: str | None = None
    reasoning: Literal["none", "low", "medium", "high"] | None = None
    toolsets: tuple[str, ...] | None = None
    max_turns: int | None = None
    approvals: Literal["ask", "auto", "deny"] | None = None
    subagents: tuple[str, ...] | None = None


def list_names(home: ProfileHome) -> tuple[str, ...]:
    """The agents of a home, sorted, with `default` first. Files with other names than agents can have are left out."""
    found = {DEFAULT}
    if home.agents.is_dir():
        found.update(path.stem for path in home.agents.glob("*.md") if _NAME.fullmatch(path.stem))
    return tuple(sorted(found, key=lambda name: (name != DEFAULT, name)))


def load(home: ProfileHome, name: str) -> AgentDefinition:
    """Read one definition. Raises NotFound for a name that is not there, ProfileUnusable for a file to be mended."""
    if _NAME.fullmatch(name) is None:
        raise _unknown(home, name)
    path = home.agents / f"{name}.md"
    if not home.contains(path):
        raise _unknown(home, name)  # A link out of the home: whatever it shows, it is not this profile's.
    data = read_regular(path, limit=DEFINITION_BYTES)
    if data is None:
        if name == DEFAULT:
            return AgentDefinition(DEFAULT)
        raise _unknown(home, name)
    return parse(data, path)


def parse(data: bytes, path: Path) -> AgentDefinition:
    """Take a definition apart. The file's name is the agent's, whatever else the front matter calls it."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _unusable(path, f"the file is not UTF-8 (byte {error.start})") from None
    fenced = _FENCE.match(text)
    if fenced is None and text.startswith("---"):
        raise _unusable(path, "the front matter has no end: a line `---` is missing")
    matter = _front_matter(fenced.group(1), path) if fenced is not None else FrontMatter()
    instructions = (text[fenced.end() :] if fenced is not None else text).strip()
    return AgentDefinition(
        name=path.stem,
        instructions=instructions or DEFAULT_INSTRUCTIONS,
        description=matter.description,
        model=matter.model,
        provider=matter.provider,
        reasoning=matter.reasoning,
        toolsets=matter.toolsets,
        max_turns=matter.max_turns,
        approvals=matter.approvals,
        subagents=matter.subagents,
    )


def _front_matter(text: str, path: Path) -> FrontMatter:
    try:
        content: object = YAML(typ="safe", pure=True).load(text)  # pyright: ignore[reportUnknownMemberType]
    except (YAMLError, ValueError, TypeError, AttributeError, LookupError, RecursionError):
        raise _unusable(path, "the front matter is not YAML that can be read") from None
    if content is None:
        return FrontMatter()
    if not isinstance(content, dict):
        raise _unusable(path, "the front matter holds no settings; write `name: value` lines")
    try:
        return FrontMatter.model_validate(
            {str(key): each for key, each in cast("dict[object, object]", content).items()}
        )
    except ValidationError as error:
        detail = error.errors(include_url=False, include_input=False, include_context=False)[0]
        key = ".".join(str(part) for part in detail["loc"])
        if detail["type"] == "extra_forbidden":
            near = get_close_matches(key, FrontMatter.model_fields, n=1)
            raise _unusable(
                path, f"there is no setting {key}" + (f"; did you mean {near[0]}?" if near else "")
            ) from None
        raise _unusable(path, f"{key}: {detail['msg']}") from None


def _unusable(path: Path, problem: str) -> ProfileUnusable:
    return ProfileUnusable(
        f"agents/{path.name}: {problem}.", hint="Mend the file; it is read again with the next message.", file=str(path)
    )


def _unknown(home: ProfileHome, name: str) -> NotFound:
    names = list_names(home)
    near = get_close_matches(name, names, n=1)
    guess = f" Did you mean {near[0]}?" if near else ""
    return NotFound(
        f"This profile has no agent {name[:100]!r}.{guess}", hint=f"There are: {', '.join(names)}.", agent=name[:100]
    )
