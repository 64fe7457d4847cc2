"""The server in memory: its real dispatch, host, sessions, journal and delivery, on a clock that only a test moves.

Only the sockets and the confined children are left out. A `Seat` takes the place of a connection: it pulls what its
subscriptions have when its client reads, and not before, so that a client can lag behind as long as a test likes. The
world runs in a thread of its own; `World.do` runs something in it and waits.
"""

from __future__ import annotations

import io
import itertools
import json
import shutil
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, TypeVarTuple

import pytest
import trio
import trio.testing

from hermes_ws.contract.errors import NotFound
from hermes_ws.contract.events import ServerInfo
from hermes_ws.contract.registry import Right
from hermes_ws.hosting.host import Host
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.journal.tail import LiveMarks, ThreadTail
from hermes_ws.methods.ports import ServerFacts
from hermes_ws.methods.table import HANDLERS
from hermes_ws.scope.environment import StartEnvironment
from hermes_ws.scope.home import HomesRoot
from hermes_ws.scope.identity import ProfileName
from hermes_ws.server.audience import Audience
from hermes_ws.server.delivery import Delivery, Subscription
from hermes_ws.server.dispatch import Dispatch
from hermes_ws.server.entry import Principal
from hermes_ws.server.ports import ReadPage
from hermes_ws.server.process_log import ProcessLog
from hermes_ws.warden.grants import Confinement
from hermes_ws.wire.cursor import Cursor
from hermes_ws.wire.frames import Frame
from hermes_ws.wire.negotiation import Negotiated
from hermes_ws.wire.peer import Request

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

OWNER = Principal("owner", profiles=None, rights=frozenset(Right))

THREAD_PAUSE_S = 0.0002
"""Real seconds between two looks at whether the threads that somebody waits for have come back."""


@contextmanager
def childless() -> Generator[None]:
    """Leave the confined children out: there is nothing to read in the sessions' directories, and nothing runs."""

    async def probe(**_: object) -> Confinement:
        return Confinement(0, False, False, False, ())

    async def read(*_: object, **__: object) -> object:
        raise NotFound("There is no such file.")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hermes_ws.hosting.host.probe", probe)
        patch.setattr("hermes_ws.session.hands.SessionHands.read", read)
        yield


@contextmanager
def world_in(directory: Path) -> Generator[World]:
    """A world of one home, which ends with the block."""
    with childless():
        world = World(directory)
        try:
            yield world
        finally:
            world.end()


class Seat:
    """A connection without a socket. `inbox` is what its client has been sent and has not read."""

    profile = None
    lasting = True
    askable = True
    principal = OWNER

    def __init__(self, world: World, name: str) -> None:
        self.id = name
        self.inbox: list[dict[str, Any]] = []
        self.lost: str | None = None
        self._world = world
        self._numbers = itertools.count(1)
        self._delivery = Delivery(
            outbox=None,
            wake=lambda: None,
            alarm=lambda: None,
            start=lambda subscription: world.server.nursery.start_soon(self._fill, subscription),
            failed=self._failed,
        )

    # --- what the server uses

    @property
    def negotiated(self) -> Negotiated:
        return self._delivery.negotiated

    @negotiated.setter
    def negotiated(self, value: Negotiated) -> None:
        self._delivery.negotiated = value

    def may_address(self, profile: str) -> bool:
        return True

    def reply(self, frame: Frame) -> None:
        self.inbox.append(json.loads(frame.json))

    def notify(self, frame: Frame) -> None:
        self.inbox.append(json.loads(frame.json))

    def subscribe(self, tail: ThreadTail, start: Cursor, marks: LiveMarks, read: ReadPage) -> None:
        self._delivery.subscribe(tail, start, marks, read)

    def unsubscribe(self, address: Any) -> bool:
        return self._delivery.unsubscribe(address)

    def close(self, code: int, reason: str = "") -> None:
        self.lost = reason

    async def _fill(self, subscription: Subscription) -> None:
        await self._delivery.fill(subscription)

    def _failed(self, why: str) -> None:
        self.lost = why

    # --- what its client does

    def send(self, method: str, **params: Any) -> int:
        number = next(self._numbers)
        self._world.server.dispatch.accept(self, Request(number, method, params), 100)
        return number

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The whole answer: with `result`, or with `error`. Whatever it brings about has come to rest by then."""
        number = self.send(method, **params)
        await self._world.rest()
        for at, frame in enumerate(self.inbox):
            if frame.get("id") == number and "method" not in frame:
                return self.inbox.pop(at)
        raise AssertionError(f"{method} was not answered")

    async def hello(self, live: str = "full") -> None:
        said = {"client": {"name": self.id}, "protocol": {"major": 1, "minor": 0}, "server_requests": True}
        assert "result" in await self.call("client.capabilities", live=live, **said)

    async def read(self) -> list[dict[str, Any]]:
        """Everything that there is for it now, in order."""
        while self._delivery.ready:
            while self._delivery.ready:
                self.inbox += [json.loads(frame.json) for frame in self._delivery.gather()]
            await self._world.rest()
        taken, self.inbox = self.inbox, []
        assert self.lost is None, self.lost
        return taken

    def leave(self) -> None:
        self._delivery.end()
        self._world.server.seats.remove(self)
        self._world.server.dispatch.gone(self)


class Server:
    """One life of the server."""

    def __init__(self, root: Path, number: int) -> None:
        self.seats: list[Seat] = []
        self.log = io.StringIO()
        audience = Audience(time.time)
        start = StartEnvironment({"PATH": "/usr/bin:/bin"}, {}, {})
        self.host = Host(HomesRoot.directory(root), start, instance_id=f"life-{number}", audience=audience)
        facts = ServerFacts(ServerInfo(name="hermes-ws", version="0"), f"life-{number}", "boot", 1, 1.0)
        self.dispatch = Dispatch(
            self.host,
            facts,
            HANDLERS,
            audience,
            ProcessLog(self.log),
            width=64,
            frame_bytes=1 << 20,
            end=lambda reason, deadline_s: None,
        )
        audience.follow(lambda: tuple(self.seats))
        self.nursery: trio.Nursery
        self.ended = trio.Event()

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        try:
            async with trio.open_nursery() as nursery:
                self.nursery = nursery
                await nursery.start(self.host.run)
                await nursery.start(self.dispatch.run)
                task_status.started()
        finally:
            self.ended.set()


class World:
    """Homes on disk, and the server over them, through all its lives."""

    def __init__(self, directory: Path) -> None:
        self.root = directory / "homes"
        self.root.mkdir(mode=0o700)
        (self.root / "default").mkdir(mode=0o700)
        self.clock = trio.testing.MockClock()
        self.lives = 0
        self.server: Server
        self._nursery: trio.Nursery
        self._token: trio.lowlevel.TrioToken
        self._up = threading.Event()
        self._thread = threading.Thread(target=self._run, name="world", daemon=True)
        self._thread.start()
        self._up.wait()

    def _run(self) -> None:
        async def live() -> None:
            async with trio.open_nursery() as self._nursery:
                self._token = trio.lowlevel.current_trio_token()
                await self._begin()
                self._up.set()
                await trio.sleep_forever()

        try:
            trio.run(live, clock=self.clock)
        finally:
            self._up.set()

    def do(self, fn: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
        """Run something in the world, and wait for it."""
        return trio.from_thread.run(fn, *args, trio_token=self._token)

    def end(self) -> None:
        """End it all."""

        async def over() -> None:
            self._nursery.cancel_scope.cancel()

        self.do(over)
        self._thread.join()

    # --- lives -------------------------------------------------------------------------------------------------------

    async def _begin(self) -> None:
        self.lives += 1
        self.server = Server(self.root, self.lives)
        await self._nursery.start(self.server.run)

    async def _stop(self) -> None:
        self.server.nursery.cancel_scope.cancel()
        await self.server.ended.wait()

    async def restart(self) -> None:
        """End in order, and begin again."""
        await self.rest()
        done = trio.Event()

        async def drain() -> None:
            await self.server.host.drain(0)
            done.set()

        self._nursery.start_soon(drain)
        while not done.is_set():
            await self.rest()
            if not done.is_set():
                self.clock.jump(1.0)
        await self._stop()
        await self._begin()

    async def crash(self) -> None:
        """Go on from what is on the disk now, as after `kill -9`. What the old life does from here on, nobody sees."""
        while any(name.startswith("journal") for name in self._threads_waited_for()):
            await trio.to_thread.run_sync(time.sleep, THREAD_PAUSE_S)
        kept = self.root.with_name("kept")
        shutil.copytree(self.root, kept, symlinks=True, ignore=shutil.ignore_patterns("*.sock"))
        await self._stop()
        shutil.rmtree(self.root)
        kept.rename(self.root)
        await self._begin()

    async def runtime(self) -> ProfileRuntime:
        return await self.server.host.open(ProfileName("default"))

    # --- rest --------------------------------------------------------------------------------------------------------

    async def rest(self) -> None:
        """Return when nothing moves any more: every task waits for the clock, for a person, or for a client."""
        while True:
            await trio.testing.wait_all_tasks_blocked()
            if not any(self._threads_waited_for()):
                return
            await trio.to_thread.run_sync(time.sleep, THREAD_PAUSE_S)

    def _threads_waited_for(self) -> Iterator[str]:
        """What tasks wait for that happens in another thread."""
        root = trio.lowlevel.current_root_task()
        assert root is not None
        me = trio.lowlevel.current_task()
        waiting = [root]
        while waiting:
            task = waiting.pop()
            for nursery in task.child_nurseries:
                waiting += nursery.child_tasks
            if task is me:
                continue
            for frame, _ in task.iter_await_frames():
                if frame.f_code.co_filename.endswith("journal/writer.py"):
                    yield "journal"
                elif frame.f_code.co_name == "to_thread_run_sync":
                    yield "thread"
