"""The life of an open profile.

A runtime is made when a profile is first used, and opens once: it takes the home's lock, loads the scope, opens the
journal and reports what the last owner lost. While it is open it owns everything that lives for the profile: tasks,
wardens, sessions, log. Closing ends all of it, commits what was under way, and gives the home free. A runtime that
failed is not mended: the next use makes another.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeVar, TypeVarTuple, final

import trio

from hermes_ws.contract.errors import Draining, HermesError, ProfileUnusable
from hermes_ws.hosting.audit import AuditLog
from hermes_ws.hosting.housekeeping import Housekeeping
from hermes_ws.hosting.loading import Loading
from hermes_ws.hosting.profile_log import ProfileLog, report_failure
from hermes_ws.hosting.reaper import Reaper
from hermes_ws.hosting.runtime_life import TRANSITIONS, Happened, State, Statistics, Surroundings, prepare
from hermes_ws.hosting.schedules import Schedules
from hermes_ws.hosting.timers import Timers
from hermes_ws.hosting.vault import FileVault
from hermes_ws.hosting.wardens import Wardens
from hermes_ws.journal import recovery
from hermes_ws.journal.database import Database
from hermes_ws.scope.current import in_thread
from hermes_ws.scope.home import ProfileHome
from hermes_ws.scope.identity import ProfileName
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.session.ongoing import Ongoing
from hermes_ws.session.ports import Granted
from hermes_ws.session.sessions import Sessions
from hermes_ws.warden.grants import Confinement, Grants

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

THREADS = 4
"""Threads that one profile may occupy at once: a slow disk under one home leaves threads for the others."""

FINISH_WITHIN_S = 10.0
"""Seconds for interrupted executions to end: a command has 6 of them, and the commits take milliseconds."""


@final
class ProfileRuntime:
    """One hosted profile while it is open. `run` is its whole life; the host awaits it in a task of its own."""

    def __init__(self, name: ProfileName, home: ProfileHome, around: Surroundings) -> None:
        self.name: Final = name
        self.home: Final = home
        self.audience: Final = around.audience
        self.limiter: Final = trio.CapacityLimiter(THREADS)
        self.base_environment: Final = around.base_environment
        self.vault: Final = FileVault(home)
        """Where the profile's logins lie; closed until somebody opens it."""
        self.draining = False
        self.state = State.OPENING
        self.failure: HermesError | None = None
        self.settled: Final = trio.Event()
        """Set when opening has come to an end, well or not."""
        self.ended: Final = trio.Event()
        """Set when nothing of it lives any more."""
        self.touched = trio.current_time()
        self.asked = self.touched
        self._around = around
        self._close_asked = trio.Event()
        self._loading = Loading(name, home, around, self.limiter, self._loaded_again)
        self._nursery: trio.Nursery | None = None
        self._journal: Database | None = None
        self._sessions: Sessions | None = None
        self._log: ProfileLog | None = None
        self._wardens: Wardens | None = None
        self._confinement: Confinement | None = None
        self._ongoing: Ongoing | None = None
        self._timers: Timers | None = None
        self._reaper: Reaper | None = None
        self._schedules: Schedules | None = None
        self._audit: AuditLog | None = None
        self._goes_away = False

    # --- what it holds -----------------------------------------------------------------------------------------------

    @property
    def scope(self) -> ProfileScope:
        """The scope as it was loaded last."""
        return self._loading.scope

    @property
    def journal(self) -> Database:
        """The store of the profile."""
        return _open(self._journal)

    @property
    def sessions(self) -> Sessions:
        """The conversations of the profile."""
        return _open(self._sessions)

    @property
    def ongoing(self) -> Ongoing:
        """Background processes and terminals."""
        return _open(self._ongoing)

    @property
    def log(self) -> ProfileLog:
        """The profile's own log."""
        return _open(self._log)

    @property
    def timers(self) -> Timers:
        """What is to happen later, also after a restart."""
        return _open(self._timers)

    @property
    def audit(self) -> AuditLog:
        """Who did what."""
        return _open(self._audit)

    @property
    def schedules(self) -> Schedules:
        """The prompts that are submitted at their time."""
        return _open(self._schedules)

    @property
    def reaper(self) -> Reaper:
        """What ends by itself."""
        return _open(self._reaper)

    @property
    def confinement(self) -> Confinement:
        """What confines the profile's children: as its last warden reported, or as the server's probe found."""
        return _open(self._wardens).confinement or _open(self._confinement)

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong with the profile's files without keeping it from work. Names no values."""
        scope = self.scope
        lines = [f".env, line {problem.line}: {problem.text}" for problem in scope.problems]
        off = [f"config.yaml: {key} is off, because the home was imported; confirm it first" for key in scope.off]
        trouble = self.journal.trouble
        stored = () if trouble is None else (f"read-only: {trouble.message}",)
        return (*stored, *lines, *self._loading.failed_sources, *off)

    @property
    def in_use(self) -> bool:
        """Whether anything runs in it or anybody listens to it."""
        ongoing = self._ongoing is not None and self._ongoing.count > 0
        return self.state is State.OPENING or ongoing or (self._sessions is not None and self._sessions.in_use)

    @property
    def closing(self) -> bool:
        """Whether what runs is to end now."""
        return self.state is not State.OPEN

    @property
    def running(self) -> int:
        """How many of its sessions work."""
        return self._sessions.running if self._sessions is not None else 0

    def touch(self) -> None:
        """Somebody works with it: it is not idle from now on for `profiles.idle_s`. Looking at it is not work."""
        self.touched = self.asked = trio.current_time()

    def homes(self) -> tuple[Path, ...]:
        """What no working directory may contain or lie in."""
        return self._around.root.homes_paths()

    def statistics(self) -> Statistics:
        """Counts of what lives in it."""
        return Statistics(
            state=self.state.value,
            sessions_open=self._sessions.open if self._sessions is not None else 0,
            running=self.running,
            wardens=self._wardens.count if self._wardens is not None else 0,
            tasks=len(self._nursery.child_tasks) if self._nursery is not None else 0,
            threads=self.limiter.borrowed_tokens,
            timers=self._timers.waiting if self._timers is not None else 0,
        )

    # --- tasks and scope ---------------------------------------------------------------------------------------------

    def start_soon(self, fn: Callable[[*Ts], Awaitable[object]], *args: *Ts, name: str) -> None:
        """Start a task of the profile: bound to the profile whoever asks for it, and ended with it (case CTX-12).

        Raises `Draining` when the runtime is closing or closed.
        """
        if self._nursery is None or self.state is not State.OPEN:
            raise Draining(f"Profile {self.name} is closing.", hint="Try again: it opens at the next use.")
        label = f"{self.name}: {name}"
        # A plain start_soon would copy the caller's context, and bind the task to whatever the caller acts for.
        self._loading.context.copy().run(lambda: _open(self._nursery).start_soon(fn, *args, name=label))

    def after(self, delay_s: float, fn: Callable[[*Ts], Awaitable[object]], *args: *Ts, name: str) -> trio.CancelScope:
        """Do something in `delay_s` seconds, as a task of the profile: bound to it, and gone with it (case CTX-08).

        Cancelling the scope that is returned takes it back. What must survive a restart is a `timers` matter.
        """
        scope = trio.CancelScope()

        async def later() -> None:
            with scope:
                await trio.sleep(delay_s)
                await fn(*args)

        self.start_soon(later, name=name)
        return scope

    async def fresh_scope(self) -> ProfileScope:
        """The scope, loaded again when config.yaml or .env changed, or a secret source has failed.

        Raises `ProfileUnusable` when they are unusable now: nothing goes on with settings that are no longer there.
        """
        return await self._loading.fresh()

    async def reload(self) -> ProfileScope:
        """Load the scope again, whether it changed or not. Executions that run keep the one they began with."""
        return await self._loading.again()

    async def warden_for(self, scope: ProfileScope, directory: Path) -> Granted:
        """A running warden for this load of the profile and this directory. Raises `WardenFailed`."""
        return await _open(self._wardens).get(scope, directory)

    async def warden_for_client(self, scope: ProfileScope, grants: Grants) -> Granted:
        """A running warden for the client of a remote terminal. Raises `WardenFailed`."""
        return await _open(self._wardens).get_for_client(scope, grants)

    # --- life --------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Ask it to close; `ended` says when it has. What runs is interrupted and committed as such."""
        if self.state in (State.OPENING, State.OPEN):
            self._become(Happened.CLOSE_ASKED)
        self.draining = True
        self._close_asked.set()

    async def finish(self, wait_s: float) -> None:
        """Take nothing new, give what runs `wait_s` seconds, then close, and return when nothing of it lives.

        Cancelled while it waits, it goes on as if nothing had been asked.
        """
        if self.state is State.OPEN:
            self.draining = True
            try:
                with trio.move_on_after(wait_s):
                    await self.sessions.wait_until_idle()
            except trio.Cancelled:
                self.draining = False
                raise
        self._goes_away = True
        with trio.CancelScope(shield=True):
            self.close()
            await self.ended.wait()

    async def run(self) -> None:
        """Open, live until `close` or until cancelled, and end. Raises nothing of its own: a failure is in `failure`,
        and harms no other profile.
        """
        try:
            try:
                await self._live()
            except Exception as error:
                report_failure(self.name, self._log, error)
                raise
            finally:
                with trio.CancelScope(shield=True):
                    await self._give_free()
        except HermesError as error:
            self._fail(error)
        except Exception:  # A bug of ours ends this profile, and no other.
            self._fail(ProfileUnusable(f"Profile {self.name} failed; its log says why.", profile=self.name.text))
        finally:
            if self.state in (State.OPEN, State.CLOSING):
                self._become(Happened.ENDED)
            self.settled.set()
            self.ended.set()

    async def _live(self) -> None:
        try:
            await self._open_home()
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                if self.state is State.OPENING:
                    self._become(Happened.OPENED)
                if self.state is State.OPEN:
                    self.start_soon(self.log.run, name="log")
                    self.start_soon(self.reaper.run, name="reaper")
                    self.start_soon(self.audit.run, name="audit")
                    self.start_soon(self.timers.run, name="timers")
                    await self.sessions.begin()
                self.settled.set()
                await self._close_asked.wait()
                await self._finish_work()
                await self.audit.flush()
                if self._goes_away:
                    self.sessions.let_go_all()
                nursery.cancel_scope.cancel()
        finally:
            self._nursery = None

    async def _open_home(self) -> None:
        await in_thread(self.limiter, prepare, self.name, self.home)
        scope = await self._loading.again()
        self._log = ProfileLog(self.home.logs / "profile.log", scope.secrets.redact, self.limiter)
        await self._around.admit(self.name, self.home, scope.identity)
        self._confinement = await self._around.probe()
        self._journal = await Database.open(
            self.home.path,
            self.home.database,
            self.home.lock,
            profile=self.name.text,
            instance_id=self._around.instance_id,
            durability=scope.config.durability,
            network_file_systems=scope.config.network_file_systems,
            context=self._loading.context.copy(),
        )
        self._wardens = Wardens(
            lambda fn, name: self.start_soon(fn, name=name),
            self._around.subreaper,
            probed=self._confinement,
            path=self.base_environment.get("PATH", ""),
        )
        self._ongoing = Ongoing(self)
        self._timers = Timers(
            self._journal,
            lambda fn, name: self.start_soon(fn, name=name),
            lambda due: self._around.wake(self.name, scope.identity.origin, due),
        )
        self._audit = AuditLog(self._journal, self._log)
        self._reaper = Reaper(self._log)
        self._reaper.add("home", self._see_home)
        self._reaper.add("sessions", self._forget_sessions)
        resume = scope.config.agent.after_crash == "resume"
        for lost in await self._journal.transact(lambda tx: recovery.recover(tx, resume=resume)):
            told = {"session_id": lost.admission.session_id, "admission_id": lost.admission.admission_id}
            self._log.write("warning", "execution.lost", resumes=lost.resumes, **told)
        self._sessions = Sessions(self)
        self._schedules = Schedules(self._journal, self._timers, lambda: self.sessions)
        tidy = Housekeeping(self._journal, self._sessions, self._log, lambda: self.scope.config.retention)
        self._reaper.add("store", tidy.look)

    def _loaded_again(self, before: ProfileScope, scope: ProfileScope) -> None:
        if scope.config.display.skin != before.config.display.skin:
            self.audience.skin_changed(self.name.text, scope.config.display.skin)
        if self._log is not None:
            self._log.redact_with(scope.secrets.redact)
        if self._ongoing is not None and self.state is State.OPEN:
            self._ongoing.loaded(scope)

    async def _see_home(self) -> None:
        """A home that was taken away under us is given up, and nothing of it is made again."""
        if not await in_thread(self.limiter, self.home.path.is_dir):
            self.log.write("error", "home.gone")
            self.close()

    async def _forget_sessions(self) -> None:
        self.sessions.forget_idle(self.scope.config.sessions.idle_s)

    async def _finish_work(self) -> None:
        """Interrupt what runs, and give it the time to end its commands and to commit how far it came."""
        self.sessions.interrupt_all()
        with trio.move_on_after(FINISH_WITHIN_S):
            await self.sessions.wait_until_idle()
            await self._bound(self.sessions.end_all, "end of sessions")

    async def _give_free(self) -> None:
        """Everything that is not a task. Each part is tried, whatever became of the others."""
        if self._log is not None:
            await self._bound(self._log.flush, "last lines of the log")
        if self._journal is not None:
            with contextlib.suppress(HermesError):
                await self._journal.close()

    async def _bound(self, fn: Callable[[], Awaitable[object]], name: str) -> None:
        """Await something of the profile, bound to it, when no task of it can be started any more."""
        async with trio.open_nursery() as nursery:
            self._loading.context.copy().run(lambda: nursery.start_soon(fn, name=f"{self.name}: {name}"))

    def _fail(self, error: HermesError) -> None:
        self.failure = error
        self._become(Happened.FAILED)

    def _become(self, happened: Happened) -> None:
        self.state = TRANSITIONS[self.state, happened]


def _open(part: T | None) -> T:
    if part is None:
        raise Draining("The profile is not open.", hint="Try again: it opens at the next use.")
    return part
