"""All profiles of one server: which are open, and the ways to one: by name, by id, by a session or question of it.

A profile opens at first use; those who ask at the same time share one opening. What goes wrong with one is that one's
answer and nobody else's. One without work closes after `profiles.idle_s`, and when `profiles.max_open` are open, the
one that was used longest ago makes room; those in use never do.
"""

from __future__ import annotations

import contextvars
import copy
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, final

import trio

from hermes_ws.contract.errors import (
    Draining,
    LimitReached,
    ProfileUnknown,
    WardenFailed,
)
from hermes_ws.contract.methods.profiles import ProfileRow
from hermes_ws.hosting.credentials import Credentials
from hermes_ws.hosting.identities import QUESTION, Identities, origin_of
from hermes_ws.hosting.profile_life import ProfileLife
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.hosting.runtime_life import State, Statistics, Surroundings
from hermes_ws.hosting.server_store import ServerStore
from hermes_ws.hosting.wakes import Wakes
from hermes_ws.scope import guard
from hermes_ws.scope.config import ProfileConfig, load_config
from hermes_ws.scope.current import in_thread
from hermes_ws.scope.environment import StartEnvironment
from hermes_ws.scope.home import HomesRoot, ProfileHome
from hermes_ws.scope.identity import Identity, ProfileName
from hermes_ws.session.ports import Audience
from hermes_ws.warden.check import refuse_granted_homes
from hermes_ws.warden.grants import Confinement
from hermes_ws.warden.hands import probe
from hermes_ws.warden.subreaper import Subreaper

IN_HAND_S = 1.0
"""Seconds after it was asked for in which a profile makes no room for others: whoever asked is about to use it."""

THREADS = 2
"""Threads that the host itself may occupy: it reads settings and identities, rarely and briefly."""

LOOKS_PER_IDLE = 4
"""How often profiles are looked at within their idle time: one closes at most a quarter late."""

_UP: Final = frozenset({State.OPENING, State.OPEN})

__all__ = ("QUESTION", "Host", "HostStatistics")


@final
@dataclass(frozen=True, slots=True)
class HostStatistics:
    """What a host holds now. `next_timer` is in seconds since 1970."""

    open: Mapping[str, Statistics]
    guard_tripped: int
    next_timer: float | None


@final
class Host:
    """Owner of all runtimes. `run` is awaited by the server for as long as it serves."""

    def __init__(
        self,
        root: HomesRoot,
        start: StartEnvironment,
        *,
        instance_id: str,
        audience: Audience,
        subreaper: Subreaper | None = None,
        tripped: Callable[[], int] = lambda: 0,
    ) -> None:
        self.launch: Final = root.launch
        self.root: Final = root
        self.draining = False
        self._root = root
        self._subreaper = subreaper
        self._around = Surroundings(
            root=root,
            instance_id=instance_id,
            base_environment=start.base,
            parameters=start.parameters,
            launch_secrets=start.launch_secrets,
            audience=audience,
            subreaper=subreaper,
            probe=self._probe,
            admit=self._admit,
            wake=self._wake,
        )
        self._store = ServerStore(root.find(root.launch))
        self._runtimes: dict[str, ProfileRuntime] = {}
        self._nursery: trio.Nursery | None = None
        self._context = contextvars.Context()
        self._config: ProfileConfig | None = None
        self._limiter = trio.CapacityLimiter(THREADS)
        self._probing = trio.Lock()
        self._making_room = trio.Lock()
        self._confinement: Confinement | None = None
        self._identities = Identities(root, self._limiter)
        self._wakes = Wakes(self._store, self._open_due)
        self._changing: dict[str, trio.Event] = {}
        self._tripped = tripped
        self._followers: tuple[Callable[[str, bool], None], ...] = ()
        self.credentials: Final = Credentials(self._store, time.time)
        """Who may come in besides whoever started the server."""
        self.life: Final = ProfileLife(self, self._store, self._limiter)
        """Making, renaming and deleting profiles."""

    @property
    def launch_config(self) -> ProfileConfig:
        """The settings of the launch home, as read at start: those that count for the whole server."""
        if self._config is None:
            raise RuntimeError("the host does not run; probably it was asked before nursery.start(host.run) returned")
        return self._config

    # --- life --------------------------------------------------------------------------------------------------------

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Own the runtimes until cancelled. Started when profiles can be opened.

        Raises `ProfileUnusable` for a launch home whose settings cannot be read, `StorageUnavailable`.
        """
        refuse_granted_homes(self._root.homes_paths())
        self._config = await in_thread(self._limiter, self._load_launch_config)
        await self._store.open()
        try:
            await self.credentials.load()
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                self._start_soon("idle profiles", self._close_idle)
                self._start_soon("timers of closed profiles", self._wakes.run)
                self._start_soon("expired tokens", self.credentials.run)
                self._start_soon("leftovers", self.life.clear_leftovers)
                self._start_soon("probe", self._probe)
                task_status.started()
                await trio.sleep_forever()
        finally:
            self._nursery = None
            with trio.CancelScope(shield=True):
                await self._store.close()

    async def drain(self, deadline_s: float) -> None:
        """Begin nothing new, give what runs `deadline_s` seconds, interrupt the rest, and close all profiles.

        Returns when everything is committed and no child is left.
        """
        self.draining = True
        runtimes = tuple(self._runtimes.values())
        for runtime in runtimes:
            runtime.draining = True
        with trio.move_on_after(deadline_s):
            for runtime in runtimes:
                if runtime.state is State.OPEN:
                    await runtime.sessions.wait_until_idle()
        for runtime in runtimes:
            runtime.close()
        for runtime in runtimes:
            await runtime.ended.wait()

    # --- ways to a profile -------------------------------------------------------------------------------------------

    def opened(self, name: str) -> ProfileRuntime | None:
        """The runtime of the profile with this own name, if it is open; to be used at once, since it may close at the
        next moment. Waits for nothing and opens nothing.
        """
        runtime = self._runtimes.get(name)
        if runtime is None or runtime.state is not State.OPEN or name in self._changing:
            return None
        return runtime

    async def open(self, name: ProfileName) -> ProfileRuntime:
        """The runtime of a profile, opened when it is not open. Raises `ProfileUnknown`, `ProfileUnusable`,
        `LimitReached` when as many as may be are in use, `Draining`, `StorageUnavailable`.
        """
        own = self._root.resolve(name)
        while True:
            changing = self._changing.get(own.text)
            if changing is not None:
                await changing.wait()
                continue
            runtime = self._runtimes.get(own.text)
            if runtime is not None and runtime.state is State.OPEN:
                runtime.asked = trio.current_time()
                return runtime
            if self.draining:
                raise Draining("The server is shutting down and opens no profile.")
            if runtime is None or runtime.ended.is_set():
                runtime = await self._begin(own)
            if runtime.state is State.CLOSING:
                await runtime.ended.wait()
                continue
            await runtime.settled.wait()
            if runtime.failure is not None:
                # A copy for each of those who wait: a raised exception collects the stack of whoever raises it.
                raise copy.copy(runtime.failure)

    def own_name(self, text: str) -> str | None:
        """The own name of the profile with this name, if it is on disk now. Opens nothing."""
        try:
            own = self._root.resolve(ProfileName.parse(text))
            self._root.find(own)
        except ProfileUnknown:
            return None
        return own.text

    async def named(self, text: str) -> ProfileName:
        """The own name of the profile with this name or, where there is none, with this id. Opens nothing.

        Raises `ProfileUnknown`.
        """
        try:
            own = self._root.resolve(ProfileName.parse(text))
            self._root.find(own)
        except ProfileUnknown:
            with_id = await self._identities.with_id(text)
            if with_id is None:
                # The same words as for one that the caller may not see.
                raise ProfileUnknown(f"There is no profile {text}.") from None
            return with_id
        return own

    async def owner_of(self, id: str) -> ProfileName | None:
        """The profile that a session id (`<origin>-…`) or a question id (`srq-<origin>-…`) belongs to; None when it is
        no profile's. Opens nothing.
        """
        origin = origin_of(id)
        for runtime in self.open_runtimes():
            if runtime.scope.identity.origin == origin:
                return runtime.name
        return await self._identities.with_origin(origin)

    async def names_of(self, ids: frozenset[str]) -> frozenset[str]:
        """The names that the profiles with these ids have now; one that is gone has none."""
        return frozenset(name.text for name, each in (await self._identities.all()).items() if each.id in ids)

    def follow(self, tell: Callable[[str, bool], None]) -> None:
        """Have `tell` called with the name of a profile that came, changed or (then with true) is gone."""
        self._followers = (*self._followers, tell)

    def changed(self, name: ProfileName, *, gone: bool) -> None:
        """Tell those who want to know that a profile came, changed or is gone."""
        self._identities.forget()
        for tell in self._followers:
            tell(name.text, gone)

    # --- looking -----------------------------------------------------------------------------------------------------

    def listing(self) -> list[ProfileRow]:
        """Every profile on disk and how it stands. Opens none; one look at one directory."""
        rows: list[ProfileRow] = []
        for name in self._root.names():
            runtime = self._runtimes.get(name.text)
            if runtime is not None and runtime.state is State.OPEN:
                rows.append(
                    ProfileRow(
                        id=runtime.scope.identity.id,
                        name=name.text,
                        state="open" if runtime.journal.trouble is None else "read_only",
                        confinement=runtime.confinement.level,
                        sessions=runtime.sessions.stored,
                    )
                )
            else:
                failed = runtime is not None and runtime.state is State.FAILED
                state = "failed" if failed else "closed"
                rows.append(ProfileRow(id=None, name=name.text, state=state, confinement=None, sessions=None))
        return rows

    def open_runtimes(self) -> tuple[ProfileRuntime, ...]:
        """Those that are open now."""
        return tuple(runtime for runtime in self._runtimes.values() if runtime.state is State.OPEN)

    def statistics(self) -> HostStatistics:
        """Counts of what is open, profile by profile, and how often the guard has tripped: never, without bugs."""
        return HostStatistics(
            open={runtime.name.text: runtime.statistics() for runtime in self.open_runtimes()},
            guard_tripped=self._tripped(),
            next_timer=self._wakes.next,
        )

    # --- opening and closing -----------------------------------------------------------------------------------------

    async def _begin(self, name: ProfileName) -> ProfileRuntime:
        """Start a runtime, unless somebody did while room was made."""
        home = self._root.find(name)
        async with self._making_room:
            existing = self._runtimes.get(name.text)
            if existing is not None and not existing.ended.is_set():
                return existing
            await self._make_room()
            runtime = self._runtimes[name.text] = ProfileRuntime(name, home, self._around)
            self._start_soon(f"profile {name}", runtime.run)
            return runtime

    @asynccontextmanager
    async def closed(self, name: ProfileName, wait_s: float) -> AsyncGenerator[None]:
        """A profile, closed for the length of a block. What runs in it gets `wait_s` seconds and is then interrupted;
        whoever asks for the profile meanwhile waits. Afterwards it opens at the next use, if it is still there.
        """
        own = self._root.resolve(name)
        while (before := self._changing.get(own.text)) is not None:
            await before.wait()
        changed = self._changing[own.text] = trio.Event()
        try:
            runtime = self._runtimes.get(own.text)
            if runtime is not None:
                await runtime.settled.wait()
                await runtime.finish(wait_s)
                self._runtimes.pop(own.text, None)
            yield
        finally:
            del self._changing[own.text]
            self._identities.forget()
            changed.set()

    async def _make_room(self) -> None:
        most = self.launch_config.profiles.max_open
        while True:
            up = [runtime for runtime in self._runtimes.values() if not runtime.ended.is_set()]
            if len(up) < most:
                return
            idle = [runtime for runtime in up if runtime.state is State.OPEN and not runtime.in_use]
            if not idle and all(runtime.state in _UP for runtime in up):
                raise LimitReached(
                    f"{most} profiles are open and in use, which is as many as may be.",
                    hint="Wait until one has finished, or raise profiles.max_open in the launch profile.",
                    retry_after_s=IN_HAND_S,
                )
            if idle:
                oldest = min(idle, key=lambda runtime: runtime.touched)
                in_hand = oldest.asked + IN_HAND_S - trio.current_time()
                if in_hand > 0:
                    await trio.sleep(in_hand)
                    continue
                oldest.close()
                await oldest.ended.wait()
            else:
                closing = next(runtime for runtime in up if runtime.state is State.CLOSING)
                await closing.ended.wait()

    async def _close_idle(self) -> None:
        idle_s = self.launch_config.profiles.idle_s
        while True:
            await trio.sleep(idle_s / LOOKS_PER_IDLE)
            for name, runtime in tuple(self._runtimes.items()):
                if runtime.in_use:
                    runtime.touch()
                elif runtime.state is State.OPEN and trio.current_time() - runtime.touched >= idle_s:
                    runtime.close()
                elif runtime.state is State.CLOSED:
                    del self._runtimes[name]

    def _start_soon(self, name: str, fn: Callable[[], Awaitable[object]]) -> None:
        """Start a task of the host: bound to nobody, whoever asked for it."""
        nursery = self._nursery
        if nursery is None:
            raise Draining("The server does not run.")
        self._context.copy().run(lambda: nursery.start_soon(fn, name=name))

    # --- within ------------------------------------------------------------------------------------------------------

    async def _admit(self, name: ProfileName, home: ProfileHome, identity: Identity) -> None:
        await self._store.claim(name, home, identity)
        self._identities.learn(name, identity)

    async def _wake(self, name: ProfileName, origin: str, due: float | None) -> None:
        await self._wakes.set(origin, due)

    async def _open_due(self, origin: str) -> None:
        name = await self._identities.with_origin(origin)
        if name is not None:
            await self.open(name)

    def _load_launch_config(self) -> ProfileConfig:
        home = self._root.find(self._root.launch)
        with guard.permit(home):
            return load_config(home.config)

    async def _probe(self) -> Confinement:
        """What this machine confines, tried once by a warden that does nothing else."""
        async with self._probing:
            if self._confinement is None:
                try:
                    self._confinement = await probe(subreaper=self._subreaper)
                except WardenFailed as failed:
                    return Confinement(0, False, False, False, (failed.message,))
            return self._confinement
