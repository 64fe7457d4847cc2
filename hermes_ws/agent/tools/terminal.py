"""The tool that runs a command line."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pydantic import Field

from hermes_ws.agent.deeds import Ran, ToolOutcome
from hermes_ws.agent.tools.output import fit
from hermes_ws.agent.tools.sudo import CANNOT, calls_sudo, password_for
from hermes_ws.agent.tools.tool import Need, Subject, ToolContext, tool
from hermes_ws.contract.model import Params

COMMAND_CHARACTERS: Final = 65_536
"""Longest command line. Longer scripts belong in a file, and the kernel takes 128 KiB for one argument."""

LONGEST_DEADLINE_S: Final = 3600.0
"""Longest time that a model may give a foreground command: an hour of build."""

_NEEDS: Final[frozenset[Need]] = frozenset({"runs"})


class TerminalParams(Params):
    """A command line for the shell."""

    command: str = Field(min_length=1, max_length=COMMAND_CHARACTERS, description="A command line for the shell.")
    cwd: str | None = Field(
        default=None, min_length=1, max_length=4096, description="Directory to run in; the session's when left out."
    )
    deadline_s: float | None = Field(
        default=None, gt=0, le=LONGEST_DEADLINE_S, description="Seconds after which the command is ended."
    )
    background: bool = Field(
        default=False, description="Let it go on, and look after it with the tool `process`: servers, watchers."
    )


def _subject(params: TerminalParams) -> Subject:
    verb = "Start in the background" if params.background else "Run"
    return Subject("terminal", f"{verb}: {params.command}", _NEEDS, command=params.command, cwd=params.cwd)


async def _run(params: TerminalParams, context: ToolContext) -> ToolOutcome:
    deadline = params.deadline_s if params.deadline_s is not None else context.deadline_s
    cwd: Path | None = context.hands.cwd / params.cwd if params.cwd is not None else None
    if params.background:
        started = await context.hands.start(params.command, cwd=cwd)
        return ToolOutcome(f"Started in the background as {started.process_id}; see it with the tool `process`.")
    password = await password_for(params.command, context)
    if isinstance(password, ToolOutcome):
        return password
    ran = await context.hands.run(
        params.command, cwd=cwd, deadline_s=deadline, on_output=context.progress, password=password
    )
    fitted = fit(ran.output, context.redact)
    lines = [fitted.text.rstrip("\n") or "(no output)", *_ending(ran, deadline)]
    failed = ran.exit_code != 0
    if failed and not context.hands.gains_rights and calls_sudo(params.command):
        lines.append(f"[{CANNOT}]")
    return ToolOutcome("\n".join(lines), failed, ran.truncated or fitted.cut, ran.duration_ms, fitted.whole)


def _ending(ran: Ran, deadline_s: float) -> list[str]:
    """What the model must know besides the output; nothing after a plain success."""
    said: list[str] = []
    if ran.truncated:
        said.append("[there was more output than is kept; its middle is missing]")
    if ran.timed_out:
        said.append(f"[ended after its deadline of {deadline_s:g} s; what it had started was ended with it]")
    elif ran.signal is not None:
        said.append(f"[ended by signal {ran.signal}]")
    elif ran.exit_code != 0:
        said.append(f"[exit code {ran.exit_code}]")
    if ran.explanation:
        said.append(f"[{ran.explanation}]")
    return said


TERMINAL: Final = tool(
    "terminal",
    TerminalParams,
    toolset="terminal",
    needs=_NEEDS,
    doc=(
        "Run a command line in the session's directory and wait for its end, or let it go on in the background. "
        "Returns standard output and error in order, and the exit code when it is not 0. Each call is a new shell: "
        "directories and variables do not last."
    ),
    subject=_subject,
    run=_run,
)
