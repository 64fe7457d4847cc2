"""Threads beside `main`: made once per request, and removed when they have nothing to do."""

from __future__ import annotations

import pytest

from hermes_ws.contract.errors import InvalidParams, SessionBusy, ThreadUnknown, UnknownExecution
from hermes_ws.contract.methods.thread_life import CreateThreadParams
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.journal import recovery
from hermes_ws.session import thread_life
from tests.session.house import Viewer, new_session, say


def asked(session_id: str, **more: str) -> CreateThreadParams:
    return CreateThreadParams(session_id=session_id, title="Beside", **more)


async def test_a_repeated_request_makes_no_second_thread(runtime: ProfileRuntime) -> None:
    session, _, _ = await new_session(runtime)

    async def made(principal: str = "owner", **more: str) -> str:
        return (await thread_life.create(runtime, session, asked(session.session_id, **more), principal)).key.thread_id

    first = await made(request_id="r-1")
    assert await made(request_id="r-1") == first
    assert len({first, await made(request_id="r-2"), await made("guest", request_id="r-1"), await made()}) == 4


async def test_whoever_listens_is_told_that_it_is_gone(runtime: ProfileRuntime) -> None:
    session, _, _ = await new_session(runtime)
    key = (await thread_life.create(runtime, session, asked(session.session_id), "owner")).key
    tail = (await session.thread(key.thread_id)).tail
    woken: list[bool] = []
    tail.attach(lambda: woken.append(True))
    await thread_life.delete(runtime, session, key.thread_id)
    assert woken
    farewell = tail.farewell
    assert farewell is not None
    assert farewell.type == "session.closed"
    with pytest.raises(ThreadUnknown):
        await session.thread(key.thread_id)


async def test_main_and_what_is_busy_stay(runtime: ProfileRuntime) -> None:
    session, _, _ = await new_session(runtime)
    with pytest.raises(InvalidParams, match="main"):
        await thread_life.delete(runtime, session, "main")
    key = (await thread_life.create(runtime, session, asked(session.session_id), "owner")).key
    thread = await session.thread(key.thread_id)
    viewer = await Viewer.of(thread)
    await say(thread, "/do wait 3000", "one")
    await viewer.until("execution.started")
    with pytest.raises(SessionBusy):
        await thread_life.delete(runtime, session, key.thread_id)
    await runtime.journal.transact(lambda tx: tx.connection.execute("UPDATE execution SET epoch = 0"))
    await runtime.journal.transact(lambda tx: recovery.recover(tx, resume=False))
    with pytest.raises(UnknownExecution):
        await thread_life.delete(runtime, session, key.thread_id)
