"""A command line that calls sudo: the person is asked for their password, and it goes to sudo's standard input.

The agent does not see it, nor does anything else that the command runs: it is in no argument, no environment and no
file, and is hidden in the output.
"""

from __future__ import annotations

from typing import Final

from hermes_ws.agent.commandline import parse
from hermes_ws.agent.deeds import Ran, ToolOutcome
from hermes_ws.agent.ports import NoAnswerer, QuestionExpired
from hermes_ws.agent.programs import program
from hermes_ws.agent.tools.tool import ToolContext
from hermes_ws.contract.questions import SUDO, SudoParams, ValueResult

PROBE: Final = "command -v sudo >/dev/null 2>&1 && ! sudo -n -k true >/dev/null 2>&1"
"""Succeeds where there is a sudo that wants a password."""

PROBE_S: Final = 20.0
"""Seconds for the probe: a connection elsewhere may have to be made first."""

CANNOT: Final = (
    "It calls sudo. Commands of this profile are confined and can gain no rights, so nobody was asked for a password:"
    " that needs terminal.backend ssh or docker, or terminal.confine: off."
)


def calls_sudo(command: str) -> bool:
    """Whether one of its commands is sudo, as far as it can be taken apart."""
    return any(part.argv and program(part.argv) == "sudo" for part in parse(command).parts)


async def password_for(command: str, context: ToolContext) -> str | ToolOutcome | None:
    """What the person typed in; None when no password is needed, or none can be used; or why nothing is run."""
    if not context.hands.gains_rights or not calls_sudo(command):
        return None
    probe: Ran = await context.hands.run(PROBE, cwd=None, deadline_s=PROBE_S, on_output=lambda piece: None)
    if probe.exit_code != 0:
        return None
    asked = SudoParams(session_id=context.session_id, thread_id=context.thread_id, command=context.redact(command))
    try:
        result = await context.asker.ask(SUDO, asked)
    except NoAnswerer:
        return ToolOutcome(
            "Not run: it needs the person's password, and nobody who is connected can give it. This is no refusal.",
            is_error=True,
        )
    except QuestionExpired:
        return ToolOutcome("Not run: the password was not given in time. This is no refusal.", is_error=True)
    if not isinstance(result, ValueResult):
        raise TypeError(f"an answer to sudo is a ValueResult, not {type(result).__name__}")
    if result.value is None or "\n" in result.value:
        return ToolOutcome("Not run: the person would not give their password.", is_error=True)
    return result.value
