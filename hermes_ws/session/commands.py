"""What a profile's user has put behind a slash: quick commands, and skills.

A quick command is an alias of another command, a prompt, or a command line that is run in the session's directory by
its slash worker, confined like any other: one that dies or hangs takes at most that worker with it.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final, Protocol

from hermes_ws.agent import skills
from hermes_ws.agent.ports import Ran
from hermes_ws.contract.errors import NotFound
from hermes_ws.contract.methods.slash import CommandRow, Directive
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.scope.sections import QuickCommandConfig

DEADLINE_S: Final = 45.0
"""Seconds that a quick command may take: a person waits for it."""

OUTPUT_CHARACTERS: Final = 60_000
"""Of a quick command's output: what fits into an answer beside everything else."""

LIKE: Final = 0.6
"""How alike a name must be to what was typed to be offered, from 0 to 1; below this it is a guess at random."""


def rows(scope: ProfileScope) -> list[CommandRow]:
    """The quick commands and skills of a profile. Reads files of the home: call it in a thread, with it bound."""
    found = [
        CommandRow(name=f"/{name}", description=each.description or _described(each), kind="quick")
        for name, each in sorted(scope.config.quick_commands.items())
    ]
    found += [
        CommandRow(name=f"/{each.name}", description=each.description, kind="skill", usage="[what to do]")
        for each in skills.list(scope.home)
        if not each.problem
    ]
    return found


def directive(scope: ProfileScope, name: str, arg: str) -> Directive:
    """What a client is to do for a command that runs nothing. Reads files of the home. Raises NotFound."""
    quick = scope.config.quick_commands.get(name)
    if quick is not None and quick.type == "alias":
        return Directive(type="alias", name=name, target=f"{quick.target} {arg}".strip())
    if quick is not None and quick.type == "prompt":
        text = quick.prompt or ""
        message = text.replace("{args}", arg) if "{args}" in text else f"{text}\n\n{arg}".strip()
        return Directive(type="send", name=name, message=message, display=f"/{name} {arg}".strip())
    if quick is not None:
        return Directive(type="prefill", name=name, message=f"/{name} {arg}".strip(), notice="Runs in a session.")
    skill = skills.view(scope.home, name)
    asked = f"\n\nThe user asks: {arg}" if arg else ""
    message = f"{skills.rendered(skill)}{asked}"
    return Directive(type="skill", name=name, message=message, display=f"/{name} {arg}".strip())


class Slashing(Protocol):
    """The hands of a session, as far as commands behind a slash need them."""

    async def slash(self, command: str, *, deadline_s: float) -> Ran:
        """Run a command line in the session's slash worker."""
        ...


async def run(quick: QuickCommandConfig, arg: str, hands: Slashing) -> str:
    """Run a quick command of type `exec`; {args} in it stands for what was typed behind it, as one word."""
    command = (quick.command or "").replace("{args}", shlex.quote(arg) if arg else "")
    ran = await hands.slash(command, deadline_s=DEADLINE_S)
    notes: list[str] = []
    if ran.timed_out:
        notes.append(f"[ended after {DEADLINE_S:g} s, with all that it had started]")
    elif ran.signal is not None:
        notes.append(f"[ended by signal {ran.signal}]")
    elif ran.exit_code:
        notes.append(f"[exit code {ran.exit_code}]")
    if ran.explanation is not None:
        notes.append(f"[{ran.explanation}]")
    return "\n".join([ran.output[-OUTPUT_CHARACTERS:], *notes]).strip() if notes else ran.output[-OUTPUT_CHARACTERS:]


def split(line: str) -> tuple[str, str]:
    """The name of a command without its slash, and what follows it. Raises NotFound for a line that is none."""
    name, _, arg = line.strip().removeprefix("/").partition(" ")
    if not name:
        raise NotFound("There is no command in this line.", hint="/help lists the commands.")
    return name, arg.strip()


def ranked(known: Sequence[CommandRow], typed: str, limit: int) -> list[CommandRow]:
    """The commands that fit what was typed: those that begin with it, that have it in them, that are like it."""
    word = typed.removeprefix("/").lower()

    def rank(row: CommandRow) -> tuple[int, float, str]:
        name = row.name.removeprefix("/").lower()
        if name.startswith(word):
            return 0, len(name), name
        if word in name:
            return 1, len(name), name
        likeness = SequenceMatcher(None, word, name).ratio()
        return (2, -likeness, name) if likeness >= LIKE else (3, 0.0, name)

    fitting = sorted(((rank(row), row) for row in known), key=lambda each: each[0])
    return [row for ranking, row in fitting if ranking[0] < 3][:limit]


def _described(quick: QuickCommandConfig) -> str:
    match quick.type:
        case "alias":
            return f"Stands for {quick.target}"
        case "prompt":
            return "Sends a prompt"
        case "exec":
            return f"Runs {quick.command}"
