"""Files as they were before an agent's tools wrote them."""

from __future__ import annotations

from hermes_ws.contract.errors import NotFound
from hermes_ws.contract.methods.rollback import (
    ROLLBACK_DIFF,
    ROLLBACK_LIST,
    ROLLBACK_RESTORE,
    CheckpointList,
    CheckpointParams,
    CheckpointRow,
    Difference,
    RestoreParams,
    RestoreResult,
)
from hermes_ws.contract.methods.threads import ThreadParams
from hermes_ws.methods.handler import handles
from hermes_ws.methods.ports import ThreadCall
from hermes_ws.session import checkpoints
from hermes_ws.session.briefing import ground_of
from hermes_ws.session.checkpoints import Files
from hermes_ws.session.launch import Launch


@handles(ROLLBACK_LIST)
async def list_checkpoints(call: ThreadCall, params: ThreadParams) -> CheckpointList:
    """What there is to go back to."""
    found = await checkpoints.list_checkpoints(call.runtime.journal, call.thread.key)
    return CheckpointList(
        enabled=Launch.read(call.session.record.launch).checkpoints,
        checkpoints=[
            CheckpointRow(
                hash=each.hash,
                execution_generation=each.execution_generation,
                made_at=each.made_at,
                files=[str(kept.path) for kept in each.files],
            )
            for each in found
        ],
    )


@handles(ROLLBACK_DIFF)
async def diff(call: ThreadCall, params: CheckpointParams) -> Difference:
    """Between then and now."""
    newer = await checkpoints.find(call.runtime.journal, call.thread.key, params.hash)
    stat, text = await checkpoints.difference(call.runtime.journal, await _files(call), checkpoints.originals(newer))
    return Difference(stat=stat, diff=call.runtime.scope.secrets.redact(text))


@handles(ROLLBACK_RESTORE)
async def restore(call: ThreadCall, params: RestoreParams) -> RestoreResult:
    """Back to before that execution, file by file."""
    newer = await checkpoints.find(call.runtime.journal, call.thread.key, params.hash)
    files = await _files(call)
    wanted = checkpoints.originals(newer)
    if params.file_path is not None:
        wanted = {path: kept for path, kept in wanted.items() if str(path) == params.file_path}
        if not wanted:
            raise NotFound(f"Nothing was written to {params.file_path} since then.")
    done = await checkpoints.restore(call.runtime.journal, files, wanted)
    return RestoreResult(
        success=not done.failed,
        restored_files=list(done.restored),
        skipped_user_edits=list(done.skipped_edits),
        skipped_oversize=list(done.skipped_oversize),
        failed=dict(done.failed),
    )


async def _files(call: ThreadCall) -> Files:
    runtime = call.runtime
    found = await ground_of(runtime, runtime.sessions.keys, call.session.record, call.thread.key)
    return Files(runtime, found.scope, found.cwd)
