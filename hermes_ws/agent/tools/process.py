"""The tool for commands that go on in the background."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field, model_validator

from hermes_ws.agent.deeds import Background, ToolOutcome
from hermes_ws.agent.tools.output import fit
from hermes_ws.agent.tools.tool import Need, Subject, ToolContext, tool
from hermes_ws.contract.model import Params

TAIL_CHARACTERS: Final = 30_000
"""Of the output, from its end: what a model is shown of any call."""

_NEEDS: Final[frozenset[Need]] = frozenset({"runs"})
_OWN: Final[frozenset[Need]] = frozenset({"remembers"})
"""Looking at, and ending, what was started with an approval before needs no further one."""


class ProcessParams(Params):
    """What to do with which background process."""

    action: Literal["list", "tail", "write", "kill"]
    process_id: str | None = Field(default=None, min_length=1, max_length=100, description="Not for `list`.")
    text: str | None = Field(default=None, max_length=65_536, description="For `write`; end a line with a newline.")
    limit: int = Field(default=8000, ge=1, le=TAIL_CHARACTERS, description="For `tail`: characters, from the end.")

    @model_validator(mode="after")
    def _whole(self) -> ProcessParams:
        if self.action != "list" and self.process_id is None:
            raise ValueError(f"{self.action} needs process_id")
        if self.action == "write" and not self.text:
            raise ValueError("write needs text")
        return self


def _subject(params: ProcessParams) -> Subject:
    if params.action == "write":
        return Subject("process", f"Write to process {params.process_id}: {params.text}", _NEEDS, typed=params.text)
    return Subject("process", f"{params.action.capitalize()} {params.process_id or 'processes'}", _OWN)


async def _run(params: ProcessParams, context: ToolContext) -> ToolOutcome:
    hands, process_id = context.hands, params.process_id or ""
    match params.action:
        case "list":
            lines = [_line(each) for each in hands.processes()]
            return ToolOutcome("\n".join(lines) or "[there are no background processes]")
        case "tail":
            output = await hands.process_output(process_id, limit=params.limit)
            fitted = fit(output, context.redact, budget=params.limit)
            state = next((_state(each) for each in hands.processes() if each.process_id == process_id), "gone")
            return ToolOutcome(f"{fitted.text.rstrip(chr(10)) or '(no output yet)'}\n[{state}]", truncated=fitted.cut)
        case "write":
            await hands.process_write(process_id, params.text or "")
            return ToolOutcome("Written. Look at its output with `tail`.")
        case "kill":
            return ToolOutcome(_line(await hands.process_kill(process_id)))


def _line(process: Background) -> str:
    return f"{process.process_id}: {_state(process)}: {process.command}"


def _state(process: Background) -> str:
    if process.running:
        return "running"
    if process.signal is not None:
        return f"ended by signal {process.signal}"
    return "ended" if process.exit_code is None else f"ended with exit code {process.exit_code}"


PROCESS: Final = tool(
    "process",
    ProcessParams,
    toolset="terminal",
    needs=_NEEDS,
    doc="List background processes, see the end of one's output, write to its input, or end it.",
    subject=_subject,
    run=_run,
)
