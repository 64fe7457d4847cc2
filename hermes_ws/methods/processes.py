"""Background processes."""

from __future__ import annotations

from typing import Final

import trio

from hermes_ws.contract.errors import LimitReached
from hermes_ws.contract.methods.processes import (
    PROCESS_FOLLOW,
    PROCESS_INPUT,
    PROCESS_KILL,
    PROCESS_LIST,
    PROCESS_OUTPUT,
    ProcessFollowed,
    ProcessFollowParams,
    ProcessInputParams,
    ProcessKilled,
    ProcessList,
    ProcessListParams,
    ProcessOutput,
    ProcessOutputParams,
    ProcessParams,
    ProcessWritten,
)
from hermes_ws.methods.handler import handles
from hermes_ws.methods.ports import ProfileCall

READS_WITHIN_S: Final = 5.0
"""Seconds in which a process has to take its input: a busy one comes back to it, one that never reads does not."""


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


@handles(PROCESS_FOLLOW)
async def follow(call: ProfileCall, params: ProcessFollowParams) -> ProcessFollowed:
    """The reply comes before the first output."""
    tail = call.runtime.ongoing.processes.tail(params.process_id)
    if params.follow:
        call.after_reply(lambda: call.attachment.look(tail))
    else:
        call.attachment.look_away(tail)
    return ProcessFollowed(process_id=params.process_id, following=params.follow)


@handles(PROCESS_INPUT)
async def write(call: ProfileCall, params: ProcessInputParams) -> ProcessWritten:
    """Write to one's input; one that reads nothing does not hold up what the caller asks for next."""
    with trio.move_on_after(READS_WITHIN_S) as waiting:
        await call.runtime.ongoing.processes.write(None, params.process_id, params.text)
    if waiting.cancelled_caught:
        raise LimitReached(
            f"Process {params.process_id} does not read its input, and no more fits in.",
            hint="A part of the text may have been taken. Wait until the process reads, or end it.",
        )
    return ProcessWritten(process_id=params.process_id)


@handles(PROCESS_KILL)
async def kill(call: ProfileCall, params: ProcessParams) -> ProcessKilled:
    """End one."""
    ended = await call.runtime.ongoing.processes.kill(None, params.process_id)
    return ProcessKilled(process_id=ended.process_id, exit_code=ended.exit_code, signal=ended.signal)
