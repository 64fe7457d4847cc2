"""Skills: folders of a home with a `SKILL.md`, which an agent reads when a task calls for one.

`<home>/skills/<name>/SKILL.md`, or one folder deeper, below a category. The front matter has a description, by which
the skill is chosen. Everything here reads files of the home: call it with the home bound, in a worker thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final, final

from hermes_ws.agent import front_matter
from hermes_ws.contract.errors import NotFound, ProfileUnusable
from hermes_ws.scope.home import ProfileHome
from hermes_ws.scope.private_file import read_regular

FILE: Final = "SKILL.md"

SKILL_BYTES: Final = 262_144
"""A longer text belongs into files beside the SKILL.md, which are read when they are needed."""

HEAD_BYTES: Final = 262_144
"""Read of each skill for a list: all of one, since a file that is cut could not be told from a broken one."""

SKILLS: Final = 500
"""Skills of one home that are looked at; more than anybody chooses from."""

FILES: Final = 200
"""Files beside a SKILL.md that are named."""

DESCRIPTION: Final = 500
"""Characters of a description that a list shows."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)


@final
@dataclass(frozen=True, slots=True)
class Skill:
    """A skill in a list. `problem` says what is wrong with one that cannot be used."""

    name: str
    description: str
    category: str | None
    path: Path
    problem: str = ""


@final
@dataclass(frozen=True, slots=True)
class SkillText:
    """A skill in full. `files` are those beside its SKILL.md, by their path below it."""

    skill: Skill
    text: str
    files: tuple[str, ...]


def list(home: ProfileHome) -> tuple[Skill, ...]:
    """The skills of a home, by name. Of two of one name, the one without a category counts."""
    found: dict[str, Skill] = {}
    for category, folder in _folders(home):
        if folder.name not in found:
            skill = _read(home, category, folder)
            if skill is not None:
                found[folder.name] = skill[0]
    return tuple(found[name] for name in sorted(found))


def view(home: ProfileHome, name: str, file: str | None = None) -> SkillText:
    """A skill with its text, or one of its files. Raises NotFound; ProfileUnusable for one that is to be mended."""
    if _NAME.fullmatch(name) is not None:
        for category, folder in _folders(home):
            if folder.name == name:
                read = _read(home, category, folder)
                if read is not None:
                    return _in_full(home, *read, file)
    names = [each.name for each in list(home)]
    near = get_close_matches(name, names, n=1)
    guess = f" Did you mean {near[0]}?" if near else ""
    raise NotFound(f"This profile has no skill {name[:100]!r}.{guess}", hint=f"There are: {_listed(names)}.")


def rendered(skill: SkillText) -> str:
    """A skill as a model is given it: what it is called, its text, and the files that it may read."""
    beside = f"\n\nFiles of this skill, below {skill.skill.path}: {', '.join(skill.files)}" if skill.files else ""
    return f"Skill “{skill.skill.name}”:\n\n{skill.text}{beside}"


def _folders(home: ProfileHome) -> Iterator[tuple[str | None, Path]]:
    """Folders that may be skills: first those of no category, each in alphabetical order, and at most SKILLS."""
    if not home.skills.is_dir() or not home.contains(home.skills):
        return
    names = sorted(path for path in home.skills.iterdir() if _NAME.fullmatch(path.name) and path.is_dir())
    count = 0
    for path in names:
        if (path / FILE).is_file():
            count += 1
            if count > SKILLS:
                return
            yield None, path
    for category in names:
        if (category / FILE).is_file():
            continue
        for path in sorted(category.iterdir()):
            if _NAME.fullmatch(path.name) and (path / FILE).is_file():
                count += 1
                if count > SKILLS:
                    return
                yield category.name, path


def _read(home: ProfileHome, category: str | None, folder: Path) -> tuple[Skill, str] | None:
    path = folder / FILE
    if not home.contains(path):
        return None  # A link out of the home: what it shows is not this profile's.
    try:
        data = read_regular(path, limit=HEAD_BYTES)
    except ProfileUnusable as problem:
        return Skill(folder.name, "", category, folder, problem.message), ""
    text = "" if data is None else data.decode("utf-8-sig", errors="replace")
    try:
        matter, words = front_matter.split(text)
        settings = front_matter.settings(matter)
    except ValueError as problem:
        return Skill(folder.name, "", category, folder, f"{path.name}: {problem}."), ""
    described = settings.get("description")
    description = described if isinstance(described, str) else _first_line(words)
    return Skill(folder.name, " ".join(description.split())[:DESCRIPTION], category, folder), words.strip()


def _in_full(home: ProfileHome, skill: Skill, text: str, file: str | None) -> SkillText:
    if skill.problem:
        raise ProfileUnusable(skill.problem, hint="Mend the file; it is read again at the next use.")
    files = tuple(_beside(home, skill.path))
    if file is None:
        return SkillText(skill, text, files)
    if file not in files:
        raise NotFound(f"Skill {skill.name} has no file {file[:200]!r}.", hint=f"There are: {_listed(files)}.")
    data = read_regular(skill.path / file, limit=SKILL_BYTES) or b""
    return SkillText(skill, data.decode("utf-8-sig", errors="replace"), files)


def _beside(home: ProfileHome, folder: Path) -> Iterator[str]:
    count = 0
    for path in sorted(folder.rglob("*")):
        below = path.relative_to(folder).as_posix()
        if below == FILE or not path.is_file() or not home.contains(path):
            continue
        count += 1
        if count > FILES:
            return
        yield below


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _first_line(text: str) -> str:
    return next((line.strip("# \t") for line in text.splitlines() if line.strip()), "")
