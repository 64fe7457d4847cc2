"""What git runs at the word of the repository that it works in.

A clone brings no settings along, but a repository that was unpacked or copied brings its own: filters, drivers that
show differences, a monitor of the file system, a pager, hooks. Each is a program that even a `git status` runs, and
none of it shows in the command line. So where a git command is about to run without anybody being asked, git itself is
asked first what its repository, and those within it, name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from hermes_ws.agent.commandline import parse
from hermes_ws.agent.ports import Hands
from hermes_ws.agent.programs import program, reads_only
from hermes_ws.contract.errors import HermesError, StaleEpoch, StorageUnavailable

LOOKING_S: Final = 10.0
"""Seconds that looking may take; a repository whose settings cannot be read by then is asked about."""

DEPTH: Final = 4
"""Repositories within repositories that are looked into; one that lies deeper is asked about."""

SHOWN: Final = 3
"""Names that are told to the person."""

_ALWAYS: Final = (
    r"core\.(?:fsmonitor|pager)|pager\..*|diff\.external|diff\..*\.(?:command|textconv)|"
    r"filter\..*\.(?:clean|smudge|process)|gpg\.(?:.*\.)?program"
)
"""What also those git commands follow that only read."""

_FETCHING: Final = (
    r"core\.(?:sshcommand|gitproxy|askpass)|credential\.(?:.*\.)?helper|remote\..*\.(?:uploadpack|vcs)|"
    r"protocol\.(?:.*\.)?allow"
)
"""What is followed where something is fetched: in a repository that has only a part of itself, by any command."""

_PARTIAL: Final = r"extensions\.partialclone|remote\..*\.promisor"

_OTHERS: Final = (
    r"core\.(?:editor|alternaterefscommand)|sequence\.editor|interactive\.difffilter|merge\..*\.driver|"
    r"remote\..*\.receivepack|trailer\..*\.(?:command|cmd)|gc\.recentobjectshook"
)

_SEVERAL: Final = f"^({_ALWAYS}|{_FETCHING}|{_PARTIAL}|{_OTHERS})$".replace("(?:", "(")
_IN_READING: Final = re.compile(_ALWAYS, re.DOTALL)
_IN_FETCHING: Final = re.compile(_FETCHING, re.DOTALL)
_IS_PARTIAL: Final = re.compile(_PARTIAL, re.DOTALL)
_BOOLEAN: Final = frozenset({"", "true", "false", "yes", "no", "on", "off", "0", "1"})
"""Values that turn something of git's own on or off, and name no program."""

_EITHER: Final = re.compile(r"core\.fsmonitor|pager\..*|core\.pager", re.DOTALL)
"""Settings that may be one or the other."""

_READING_HOOKS: Final = frozenset({"post-index-change"})
"""Run when git has written down that a file has not changed, which `git status` does."""

_SCRIPT: Final = r"""
export GIT_OPTIONAL_LOCKS=0 LC_ALL=C
say() { printf '%s\0' "$1"; }
scan() {
  git config --includes --show-scope -z --get-regexp "$2" 2>/dev/null
  test $? -le 1 || say "unknown its settings"
  hooks=$(git rev-parse --git-path hooks 2>/dev/null) && for each in "$hooks"/*; do
    case $each in
      *.sample) ;;
      *) test -f "$each" && test -x "$each" && say "hook ${each##*/}" ;;
    esac
  done
  top=$(git rev-parse --show-cdup 2>/dev/null) || return 0
  test "$1" -gt 0 || { say "unknown what is in it"; return 0; }
  cd -- "./$top" && git -c core.fsmonitor=false -c core.quotePath=false ls-files --stage 2>/dev/null |
    sed -n 's/^160000 [^	]*	//p' | while IFS= read -r sub; do
      case $sub in '"'*) say "unknown what is in it" ;; esac
      test -e "$sub/.git" || continue
      (cd -P -- "./$sub" && scan $(($1 - 1)) "$2")
    done
}
command -v git >/dev/null && scan "$0" "$1"
say done
"""

_SCOPES: Final = frozenset({"system", "global", "local", "worktree", "command", "submodule", "unknown"})


@final
@dataclass(frozen=True, slots=True)
class RepositoryPrograms:
    """The settings and hooks by which git runs programs: those for commands that only read, and all of them."""

    reading: tuple[str, ...] = ()
    all: tuple[str, ...] = ()

    def problem(self, argv: Sequence[str]) -> str | None:
        """Why the words of a git command do not tell what runs here; None where they do."""
        named = self.reading if reads_only(argv) else self.all
        if not named:
            return None
        more = f" and {len(named) - SHOWN} more" if len(named) > SHOWN else ""
        return f"the repository itself names programs that git runs: {', '.join(named[:SHOWN])}{more}"


NONE_NAMED: Final = RepositoryPrograms()


def uses_git(command: str | None) -> bool:
    """Whether a command line runs git."""
    return command is not None and any(part.argv and program(part.argv) == "git" for part in parse(command).parts)


async def programs_of(hands: Hands, cwd: Path | None) -> RepositoryPrograms:
    """Ask git what its repository names. What cannot be found out counts as named."""
    words = f"exec /bin/sh -c {_quoted(_SCRIPT)} {DEPTH} {_quoted(_SEVERAL)}"
    try:
        ran = await hands.run(words, cwd=cwd, deadline_s=LOOKING_S, on_output=lambda piece: None)
    except (StorageUnavailable, StaleEpoch):
        raise
    except HermesError:
        return _unknown("its directory")
    if ran.exit_code != 0 or ran.truncated or ran.timed_out:
        return _unknown("its settings")
    return read(ran.output)


def read(told: str) -> RepositoryPrograms:
    """What the answers of git come to. Settings of the user, and of the machine, are not the repository's."""
    settings: dict[str, None] = {}
    hooks: dict[str, None] = {}
    unknown: dict[str, None] = {}
    *answers, end = told.removesuffix("\0").split("\0")
    if end != "done":
        return _unknown("its settings")
    pieces = iter(answers)
    for piece in pieces:
        if piece in _SCOPES:
            name, _, value = next(pieces, "").partition("\n")
            own = piece in ("local", "worktree")
            if own and not (_EITHER.fullmatch(name) and value.strip().lower() in _BOOLEAN):
                settings[name] = None
            continue
        kind, _, rest = piece.partition(" ")
        if kind == "hook":
            hooks[rest] = None
        elif kind == "unknown":
            unknown[f"{rest} cannot be told"] = None
    partial = any(_IS_PARTIAL.fullmatch(each) for each in settings)
    named = [each for each in settings if not _IS_PARTIAL.fullmatch(each)]
    reading = [
        *(each for each in named if _IN_READING.fullmatch(each) or (partial and _IN_FETCHING.fullmatch(each))),
        *(f"the hook {each}" for each in hooks if each in _READING_HOOKS),
        *unknown,
    ]
    return RepositoryPrograms(tuple(reading), (*named, *(f"the hook {each}" for each in hooks), *unknown))


def _unknown(what: str) -> RepositoryPrograms:
    said = (f"{what} cannot be told",)
    return RepositoryPrograms(said, said)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
