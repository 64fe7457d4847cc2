"""Background processes."""

from __future__ import annotations

from hermes_ws.contract.methods.processes import (
    PROCESS_KILL,
    PROCESS_LIST,
    PROCESS_OUTPUT,
    ProcessKilled,
    ProcessList,
    ProcessListParams,
    ProcessOutput,
    ProcessOutputParams,
    ProcessParams,
)
from hermes_ws.methods.handler import handles
from hermes_ws.methods.ports import ProfileCall


@handles(PROCESS_LIST)
async def list_processes(call: ProfileCall, params: ProcessListParams) -> ProcessList:
    """Those of one session, or of all."""
    if params.session_id is not None:
        await call.runtime.sessions.get(params.session_id)
    return ProcessList(processes=call.runtime.ongoing.processes.rows(params.session_id))


@handles(PROCESS_OUTPUT)
async def output(call: ProfileCall, params: ProcessOutputParams) -> ProcessOutput:
    """The end of what one wrote."""
    kept = call.runtime.ongoing.processes.output(None, params.process_id)
    text = kept.text[-params.limit :]
    return kept.model_copy(update={"text": text, "offset": kept.offset + len(kept.text) - len(text)})


@handles(PROCESS_KILL)
async def kill(call: ProfileCall, params: ProcessParams) -> ProcessKilled:
    """End one."""
    ended = await call.runtime.ongoing.processes.kill(None, params.process_id)
    return ProcessKilled(process_id=ended.process_id, exit_code=ended.exit_code, signal=ended.signal)
