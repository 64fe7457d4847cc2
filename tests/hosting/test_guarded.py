"""The whole life of a profile under the tripwire: nothing of ours reaches into a home that is not bound."""

from __future__ import annotations

import sys

import trio

from hermes_ws.contract.methods.sessions import ListParams
from hermes_ws.scope.current import Bound, bind
from hermes_ws.scope.guard import Guard
from hermes_ws.scope.home import HomesRoot
from hermes_ws.scope.identity import ProfileName
from tests.session.house import House, new_session, say


async def test_a_conversation_in_two_homes_trips_no_guard(house: House) -> None:
    for name in ("default", "work"):
        house.home(name, config="approvals:\n  mode: auto\n", env=f"TOKEN=value-of-{name}-1\n")
    guard = Guard(HomesRoot.directory(house.root))
    sys.addaudithook(guard.hook)
    with guard.armed():
        async with house.served() as host:

            async def talk(name: str) -> None:
                runtime = await host.open(ProfileName(name))
                # As the dispatcher binds for the handler of a request.
                with bind(Bound(runtime.scope, "connection")):
                    _, thread, viewer = await new_session(runtime)
                    await say(thread, "/do run echo hello\n\n/do write a.txt words\n\n/do read a.txt", "one")
                    await viewer.until("execution.finished", outcome="completed")
                    ended = [event["payload"] for event in viewer.events if event["type"] == "tool.complete"]
                    assert [each["is_error"] for each in ended] == [False, False, False]
                    await runtime.sessions.list(ListParams())
                await runtime.reload()
                runtime.log.write("info", "talked")

            async with trio.open_nursery() as nursery:
                nursery.start_soon(talk, "default")
                nursery.start_soon(talk, "work")
            assert await host.owner_of("zzzzzzzz-1") is None
    assert guard.tripped() == 0
    assert "talked" in (house.root / "work" / "logs" / "profile.log").read_text()
