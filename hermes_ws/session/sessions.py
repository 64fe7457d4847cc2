"""All sessions of one open profile: making, finding and listing them, and which of them stay in memory."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from typing import Literal, final
from weakref import WeakValueDictionary

import orjson
import trio

from hermes_ws.agent import definition
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
from hermes_ws.journal.sessions import CreatedSession, NewSession, SessionRecord
from hermes_ws.scope.current import in_thread
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.session import identifiers
from hermes_ws.session.info import session_info
from hermes_ws.session.launch import Launch
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
        self._questions = Questions(
            runtime.journal, runtime.audience, profile=scope.profile.text, origin=scope.identity.origin
        )
        self._known: WeakValueDictionary[str, Session] = WeakValueDictionary()
        self._used: dict[str, tuple[Session, float]] = {}
        self._forgotten: dict[str, tuple[ThreadKey, ...]] = {}
        self._mutations = Mutations(runtime, OPERATIONS, self._edited)
        self._stored = 0
        self._rested = trio.Event()

    # --- state -------------------------------------------------------------------------------------------------------

    @property
    def running(self) -> int:
        """How many sessions have an execution, or are about to claim one."""
        return sum(1 for session in self._known.values() if session.busy)

    @property
    def in_use(self) -> bool:
        """Whether anything runs, or anybody listens."""
        return any(session.busy or session.watched for session in self._known.values())

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
        cwd = await in_thread(self._runtime.limiter, self._checked, scope, agent, params.cwd)
        new = NewSession(
            session_id=identifiers.session_id(scope.identity.origin),
            principal=principal,
            request_id=params.request_id,
            digest=_digest(params),
            title=params.title,
            agent=agent,
            cwd=str(cwd),
            source=params.source,
            launch=Launch.of(params).overrides(),
        )

        def work(tx: Transaction) -> CreatedSession:
            made = rows.create(tx, new)
            if made.new:
                tx.after_commit(self._count)
            return made

        made = await self._runtime.journal.transact(work)
        record = made.record
        created = Created(
            session_id=record.session_id,
            thread_id=made.thread.key.thread_id,
            profile=scope.profile.text,
            revision=record.revision,
            cursor=str(made.thread.cursor),
            info=session_info(record, scope),
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

    async def list(self, params: ListParams) -> SessionList:
        """A page of sessions, the one that was used last first."""
        profile = self._runtime.scope.profile.text
        found, following = await self._runtime.journal.read(
            lambda connection: rows.page(
                connection, params.limit, params.before, params.query, params.state, archived=params.archived
            )
        )
        return SessionList(
            sessions=[
                SessionRow(
                    session_id=line.record.session_id,
                    profile=profile,
                    title=line.record.title,
                    state=line.state,
                    source=line.record.source,
                    agent=line.record.agent,
                    cwd=line.record.cwd,
                    created_at=line.record.created_at,
                    updated_at=line.record.updated_at,
                    revision=line.record.revision,
                    preview=line.preview,
                    pinned=bool(line.record.pinned),
                    archived=line.record.archived,
                )
                for line in found
            ],
            next=following,
        )

    # --- editing -----------------------------------------------------------------------------------------------------

    async def mutate(self, params: MutateParams, principal: str) -> Mutated:
        """Edit a session, once per (principal, `request_id`). See `Mutations.mutate`."""
        return await self._mutations.mutate(params, principal)

    async def close(self, session_id: str) -> Closed:
        """Put a session away: viewers are told, approvals are forgotten. Raises `SessionUnknown`, `SessionBusy`."""
        session = self._known.get(session_id)
        if session is None:
            await self.get(session_id)
            del self._used[session_id]
            return Closed(closed=False)
        if session.busy:
            raise SessionBusy("An execution is active or queued.", hint="Wait for it, or interrupt it.")
        self._let_go(session_id, tuple(thread.key for thread in session.threads), "closed")
        return Closed(closed=True)

    def _edited(self, applied: Applied) -> None:
        """An edit has become visible."""
        answer = applied.answer
        if applied.gone:
            self._stored -= 1
            self._let_go(answer.session_id, applied.gone, "deleted")
            return
        if "session_id" in answer.result:
            self._stored += 1
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
            session = Session(self._runtime, self._questions, record, self._rest)
            self._known[record.session_id] = session
        self._used[record.session_id] = (session, trio.current_time())
        return session

    def _rest(self) -> None:
        self._rested.set()
        self._rested = trio.Event()

    def _count(self) -> None:
        self._stored += 1

    def _checked(self, scope: ProfileScope, agent: str, asked: str | None) -> Path:
        """See that there is such an agent, and choose the directory; in a thread, since it looks at the disk.

        In this order: the request's, the profile's, the home's own home/. A missing one is an error.
        """
        definition.load(scope.home, agent)
        chosen = Path(asked) if asked is not None else scope.terminal.cwd or scope.home.user
        return scope.terminal.check_directory(chosen, home=scope.home, homes=self._runtime.homes())


def _digest(params: CreateParams) -> str:
    """Tells whether two requests ask for the same session."""
    content = params.model_dump(mode="json", exclude={"request_id", "profile", "subscribe"})
    return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()
