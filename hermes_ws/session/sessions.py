"""All sessions of one open profile: making, finding and listing them, and which of them stay in memory."""

from __future__ import annotations

import hashlib
import sqlite3
import time
from pathlib import Path
from typing import Final, Literal, final
from weakref import WeakValueDictionary

import orjson
import trio

from hermes_ws.agent import definition, skills
from hermes_ws.contract.errors import Draining, SessionBusy, SessionUnknown
from hermes_ws.contract.events import SessionClosed
from hermes_ws.contract.methods.mutations import Mutated, MutateParams
from hermes_ws.contract.methods.questions import Answered, AnswerParams
from hermes_ws.contract.methods.sessions import Closed, Created, CreateParams, ListParams, SessionList, SessionRow
from hermes_ws.contract.questions import OpenQuestion
from hermes_ws.contract.registry import Question
from hermes_ws.journal import admissions
from hermes_ws.journal import questions as question_rows
from hermes_ws.journal import sessions as rows
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.database import Transaction
from hermes_ws.journal.sessions import CreatedSession, NewSession, SessionRecord, SessionSummary
from hermes_ws.scope.current import in_thread
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.session import ending, identifiers
from hermes_ws.session.announcing import Announcer, Overheard
from hermes_ws.session.info import session_info
from hermes_ws.session.launch import Keys, Launch
from hermes_ws.session.mutations import Applied, Mutations
from hermes_ws.session.operations import OPERATIONS
from hermes_ws.session.ports import Runtime
from hermes_ws.session.questions import Questions
from hermes_ws.session.session import Session
from hermes_ws.wire.frames import event_frame

DEFAULT_AGENT = "default"
"""The agent of a session that names none, in a profile that names none."""


@final
class Sessions:
    """The sessions of one profile while it is open.

    A session is one object for as long as anybody holds it: two objects would be two queues for one thread. Those in
    use, and those used within `sessions.idle_s`, are held here; the others stay stored and are opened when asked for.
    """

    def __init__(self, runtime: Runtime) -> None:
        scope = runtime.scope
        self._runtime = runtime
        self._announcer = Announcer(runtime)
        heard = Overheard(runtime.audience, self._announcer)
        self._questions = Questions(runtime.journal, heard, profile=scope.profile.text, origin=scope.identity.origin)
        self._known: WeakValueDictionary[str, Session] = WeakValueDictionary()
        self._used: dict[str, tuple[Session, float]] = {}
        self._forgotten: dict[str, tuple[ThreadKey, ...]] = {}
        self.keys: Final = Keys()
        self._mutations = Mutations(runtime, OPERATIONS, self._edited, self.keys)
        self._stored = 0
        self._rested = trio.Event()

    # --- state -------------------------------------------------------------------------------------------------------

    @property
    def running(self) -> int:
        """How many sessions have an execution, or are about to claim one."""
        return sum(1 for session in self._known.values() if session.busy)

    @property
    def in_use(self) -> bool:
        """Whether anything runs, or anybody listens, or something was asked that waits for somebody to come."""
        return self._questions.posted > 0 or any(session.busy or session.watched for session in self._known.values())

    @property
    def open(self) -> int:
        """How many are in memory."""
        return len(self._known)

    @property
    def stored(self) -> int:
        """How many the journal holds."""
        return self._stored

    def forget_idle(self, idle_s: float) -> None:
        """Let go of sessions without viewers and work that were not used for `idle_s` seconds. It ends nothing."""
        now = trio.current_time()
        for session_id, keys in tuple(self._forgotten.items()):
            # Somebody may hold a session that is forgotten here. Its tails go when it is gone, at the next look.
            gone = session_id not in self._known and all(map(self._runtime.journal.close_tail, keys))
            if gone or session_id in self._used:
                del self._forgotten[session_id]
        for session_id, (session, used) in tuple(self._used.items()):
            if session.busy or session.watched:
                self._used[session_id] = (session, now)
            elif now - used >= idle_s:
                del self._used[session_id]
                if session.worked and self._runtime.scope.config.hooks.session_end:
                    self._runtime.start_soon(self._end_idle, session, name=f"end of {session_id}")
                else:
                    self._runtime.ongoing.rest(session_id)
                self._forgotten[session_id] = tuple(thread.key for thread in session.threads)

    async def begin(self) -> None:
        """Go on with what was queued when the last owner of the home ended. Lost executions hold their queue back."""
        self._stored = await self._runtime.journal.read(rows.count)
        for key in await self._runtime.journal.read(admissions.queued_threads):
            session = await self.get(key.session_id)
            (await session.thread(key.thread_id)).wake()

    async def wait_until_idle(self) -> None:
        """Return when nothing runs and nothing is about to."""
        while self.running:
            await self._rested.wait()

    def interrupt_all(self) -> None:
        """End all executions, as when the profile closes."""
        for session in tuple(self._known.values()):
            for thread in session.threads:
                if thread.active is not None:
                    thread.active.interrupt()

    async def _end_idle(self, session: Session) -> None:
        """The hooks first, then what served it, unless somebody has come back to the session meanwhile."""
        await ending.run_hooks(self._runtime, self.keys, session)
        if session.session_id not in self._used:
            self._runtime.ongoing.rest(session.session_id)

    async def end_all(self) -> None:
        """Do what sessions want done at their end, side by side, as when the profile closes."""
        async with trio.open_nursery() as nursery:
            for session in tuple(self._known.values()):
                nursery.start_soon(ending.run_hooks, self._runtime, self.keys, session)

    # --- making and finding ------------------------------------------------------------------------------------------

    async def create(self, params: CreateParams, principal: str) -> tuple[Session, Created]:
        """Make a session with its thread `main`, once per (principal, `request_id`).

        Raises `DirectoryRefused` for a directory that is missing or not granted, `NotFound` for an unknown agent,
        `AdmissionConflict` for a `request_id` that was used with other content, `Draining`, `StorageUnavailable`.
        """
        if self._runtime.draining:
            raise Draining("The server is shutting down and makes no new sessions.")
        # Taken once: what the session is made with is of one load, also when the profile is loaded again meanwhile.
        scope = self._runtime.scope
        agent = params.agent or scope.config.agent.default or DEFAULT_AGENT
        cwd, frozen = await in_thread(self._runtime.limiter, self._checked, scope, agent, params)
        new = NewSession(
            session_id=identifiers.session_id(scope.identity.origin),
            principal=principal,
            request_id=params.request_id,
            digest=_digest(params),
            title=params.title,
            if_missing=params.if_missing,
            agent=agent,
            cwd=str(cwd),
            source=params.source,
            launch=Launch.of(params, frozen).overrides(),
        )

        def work(tx: Transaction) -> CreatedSession:
            made = rows.create(tx, new)
            if made.new:
                tx.after_commit(lambda: self._made(new.session_id))
            return made

        made = await self._runtime.journal.transact(work)
        record = made.record
        if not made.existing:
            self.keys.keep(record.session_id, params.api_key)
        created = Created(
            session_id=record.session_id,
            thread_id=made.thread.key.thread_id,
            profile=scope.profile.text,
            revision=record.revision,
            cursor=str(made.thread.cursor),
            info=session_info(record, scope),
            existing=made.existing,
        )
        return self._hold(record), created

    async def get(self, session_id: str) -> Session:
        """The session of this id, opened from disk when it is not open. Raises `SessionUnknown`."""
        session = self._known.get(session_id)
        if session is not None:
            self._used[session_id] = (session, trio.current_time())
            return session
        record = await self._runtime.journal.read(lambda connection: rows.get(connection, session_id))
        if record is None:
            raise SessionUnknown(f"There is no session {session_id}.")
        return self._hold(record)

    async def find(self, *, title: str | None = None, latest: bool | str | None = None) -> Session:
        """The session with this title, or the latest one (of the source it names). Raises `SessionUnknown`."""
        if title is not None:
            record = await self._runtime.journal.read(lambda connection: rows.by_title(connection, title))
            missing = f"There is no session called {title!r}."
        else:
            source = latest if isinstance(latest, str) else None
            record = await self._runtime.journal.read(lambda connection: rows.latest(connection, source))
            missing = "There is no session yet." if source is None else f"There is no session from {source} yet."
        if record is None:
            raise SessionUnknown(missing)
        return self._hold(record)

    async def most_recent(self, source: str | None) -> SessionRow | None:
        """The session that was used last, of all or of one source; None when there is none."""

        def query(connection: sqlite3.Connection) -> SessionSummary | None:
            record = rows.latest(connection, source)
            return None if record is None else rows.summary(connection, record)

        line = await self._runtime.journal.read(query)
        return None if line is None else _row(line, self._runtime.scope.profile.text)

    def held(self) -> tuple[Session, ...]:
        """Those that are in memory."""
        return tuple(self._known.values())

    async def list(self, params: ListParams) -> SessionList:
        """A page of sessions, the one that was used last first."""
        profile = self._runtime.scope.profile.text
        found, following = await self._runtime.journal.read(
            lambda connection: rows.page(
                connection,
                params.limit,
                params.before,
                params.query,
                params.state,
                archived=params.archived,
                source=params.source,
                agent=params.agent,
            )
        )
        return SessionList(
            sessions=[_row(line, profile) for line in found],
            next=following,
        )

    # --- editing -----------------------------------------------------------------------------------------------------

    async def mutate(self, params: MutateParams, principal: str) -> Mutated:
        """Edit a session, once per (principal, `request_id`). See `Mutations.mutate`."""
        done = await self._mutations.mutate(params, principal)
        if "admission_id" in done.result:
            (await (await self.get(done.session_id)).thread(params.thread_id)).wake()
        return done

    async def close(self, session_id: str) -> Closed:
        """Put a session away: viewers are told, approvals are forgotten. Raises `SessionUnknown`, `SessionBusy`."""
        session = self._known.get(session_id)
        if session is None:
            await self.get(session_id)
            del self._used[session_id]
            return Closed(closed=False)
        if session.busy:
            raise SessionBusy("An execution is active or queued.", hint="Wait for it, or interrupt it.")
        await ending.run_hooks(self._runtime, self.keys, session)
        self._let_go(session_id, tuple(thread.key for thread in session.threads), "closed")
        self._end_ongoing(session_id)
        return Closed(closed=True)

    def _end_ongoing(self, session_id: str) -> None:
        """What the session left in the background ends with it, unless the profile keeps it."""
        runtime = self._runtime
        runtime.ongoing.close(session_id)
        if runtime.scope.terminal.background == "end" and (runtime.ongoing.count or runtime.ongoing.containers.count):
            runtime.start_soon(runtime.ongoing.end_session, session_id, name=f"what {session_id} left running")

    def _edited(self, applied: Applied) -> None:
        """An edit has become visible."""
        answer = applied.answer
        self._announcer.changed(answer.session_id)
        if applied.gone:
            self._stored -= 1
            self._let_go(answer.session_id, applied.gone, "deleted")
            self.keys.forget(answer.session_id)
            self._end_ongoing(answer.session_id)
            return
        made = answer.result.get("session_id")
        if isinstance(made, str):
            self._stored += 1
            self.keys.hand_on(answer.session_id, made)
        session = self._known.get(answer.session_id)
        if session is not None and applied.record is not None:
            session.adopt(applied.record)

    def _let_go(self, session_id: str, keys: tuple[ThreadKey, ...], reason: Literal["closed", "deleted"]) -> None:
        """Tell those who listen, and forget the object: whoever comes next gets another one, or none."""
        profile = self._runtime.scope.profile.text
        payload = SessionClosed(reason=reason).model_dump(mode="json")
        for key in keys:
            named = {"profile": profile, "session_id": key.session_id, "thread_id": key.thread_id}
            farewell = event_frame({"type": "session.closed", **named, "ts": time.time(), "payload": payload})
            self._runtime.journal.end_tail(key, farewell)
        self._known.pop(session_id, None)
        self._used.pop(session_id, None)

    def in_memory(self, session_id: str) -> bool:
        """Whether anybody holds it, or did a moment ago."""
        return session_id in self._known

    def removed(self, session_id: str, keys: tuple[ThreadKey, ...]) -> None:
        """Retention removed a session. Called in the step in which that becomes visible."""
        self._stored -= 1
        self._announcer.changed(session_id)
        self._let_go(session_id, keys, "deleted")

    def let_go_all(self) -> None:
        """The profile goes away: tell all who listen, after what was committed, and forget all sessions."""
        for session_id, session in tuple(self._known.items()):
            self._let_go(session_id, tuple(thread.key for thread in session.threads), "closed")

    # --- questions ---------------------------------------------------------------------------------------------------

    async def answer(self, params: AnswerParams, principal: str, *, kind: Question | None = None) -> Answered:
        """Settle a question of this profile; the first valid answer counts, once. See `Questions.answer`."""
        return await self._questions.answer(params, kind)

    @property
    def questions(self) -> Questions:
        """The questions of this profile."""
        return self._questions

    async def open_questions(self) -> tuple[OpenQuestion, ...]:
        """All questions of this profile that wait for an answer, for a client that has just come."""
        found = await self._runtime.journal.read(lambda connection: question_rows.open_questions(connection))
        return tuple(found)

    # --- within ------------------------------------------------------------------------------------------------------

    def _hold(self, record: SessionRecord) -> Session:
        session = self._known.get(record.session_id)
        if session is None:
            session = Session(self._runtime, self._questions, record, self._rest, self.keys, self._announcer.changed)
            self._known[record.session_id] = session
        self._used[record.session_id] = (session, trio.current_time())
        return session

    def _rest(self) -> None:
        self._rested.set()
        self._rested = trio.Event()

    def _made(self, session_id: str) -> None:
        self._stored += 1
        self._announcer.changed(session_id)

    async def directory(self, scope: ProfileScope, asked: str | None) -> Path:
        """The directory to work in: the one that was asked for, the profile's, or the home's own home/.

        A missing one is an error, never a fall-back. Raises `DirectoryRefused`.
        """
        return await in_thread(self._runtime.limiter, self._chosen, scope, asked)

    def _checked(self, scope: ProfileScope, agent: str, params: CreateParams) -> tuple[Path, str]:
        """See that there is such an agent, and choose the directory; in a thread, since it looks at the disk.

        In this order: the request's, the profile's, the home's own home/. A missing one is an error. The skills that
        the request names are read now, and stay as they are now.
        """
        definition.load(scope.home, agent)
        skilled = [skills.rendered(skills.view(scope.home, name)) for name in params.skills or ()]
        return self._chosen(scope, params.cwd), "\n\n".join(skilled)

    def _chosen(self, scope: ProfileScope, asked: str | None) -> Path:
        chosen = Path(asked) if asked is not None else scope.terminal.cwd or scope.home.user
        return scope.terminal.check_directory(chosen, home=scope.home, homes=self._runtime.homes())


def _row(line: SessionSummary, profile: str) -> SessionRow:
    record = line.record
    return SessionRow(
        session_id=record.session_id,
        profile=profile,
        title=record.title,
        state=line.state,
        source=record.source,
        agent=record.agent,
        cwd=record.cwd,
        created_at=record.created_at,
        updated_at=record.updated_at,
        revision=record.revision,
        preview=line.preview,
        pinned=record.pinned,
        archived=record.archived,
    )


def _digest(params: CreateParams) -> str:
    """Tells whether two requests ask for the same session."""
    content = params.model_dump(mode="json", exclude={"request_id", "profile", "subscribe", "api_key"})
    return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()
