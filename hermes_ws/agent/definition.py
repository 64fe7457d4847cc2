"""Agent definitions: `<home>/agents/<name>.md`, front matter and instructions.

`default` exists in every home, also without a file. Reading one reads a file of the home: call it with the home bound,
in a worker thread.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Final, Literal, final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hermes_ws.agent import front_matter
from hermes_ws.contract.errors import InvalidParams, NotFound, ProfileUnusable
from hermes_ws.scope.home import ProfileHome
from hermes_ws.scope.private_file import read_regular, write_private

DEFAULT: Final = "default"
"""The agent of a session that names none, in a profile that names none."""

DEFINITION_BYTES: Final = 262_144
"""Instructions longer than this would fill most models' context by themselves."""

DEFAULT_INSTRUCTIONS: Final = (
    "You are a careful assistant who works on the user's machine with the tools you are given. Look before you change "
    "anything, keep changes small, and say plainly what you did and what you could not do."
)

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)

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
    try:
        fenced, words = front_matter.split(text)
        content = front_matter.settings(fenced)
    except ValueError as problem:
        raise _unusable(path, str(problem)) from None
    matter = _front_matter(content, path)
    instructions = words.strip()
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


def check(home: ProfileHome, name: str, text: str) -> AgentDefinition:
    """What a text would be as the definition of that name. Raises InvalidParams for a name or a text that is none."""
    if _NAME.fullmatch(name) is None:
        raise InvalidParams("An agent's name is letters, digits, `_`, `.` and `-`, at most 64.", path="name")
    data = text.encode()
    if len(data) > DEFINITION_BYTES:
        raise InvalidParams(f"A definition has at most {DEFINITION_BYTES:,} bytes.", path="text")
    try:
        return parse(data, home.agents / f"{name}.md")
    except ProfileUnusable as problem:
        raise InvalidParams(problem.message, path="text") from None


def put(home: ProfileHome, name: str, text: str) -> AgentDefinition:
    """Write a definition, once it has proved to be one; a running execution keeps what it began with.

    Raises as `check` does.
    """
    parsed = check(home, name, text)
    path = home.agents / f"{name}.md"
    home.agents.mkdir(mode=0o700, exist_ok=True)
    if not home.contains(home.agents):
        raise _unusable(path, "the directory leads out of the home")
    write_private(path, text.encode())
    return parsed


def delete(home: ProfileHome, name: str) -> bool:
    """Remove a definition; false when there was none. `default` is there without a file as well."""
    if _NAME.fullmatch(name) is None:
        return False
    path = home.agents / f"{name}.md"
    if not path.is_symlink() and not home.contains(path):
        return False
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True


def text_of(home: ProfileHome, name: str) -> str:
    """A definition as it is written; empty for a `default` that has no file. Raises NotFound, ProfileUnusable."""
    load(home, name)
    data = read_regular(home.agents / f"{name}.md", limit=DEFINITION_BYTES)
    return "" if data is None else data.decode("utf-8-sig", errors="replace")


def _front_matter(content: Mapping[str, object], path: Path) -> FrontMatter:
    try:
        return FrontMatter.model_validate(dict(content))
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
