"""Edits of a session: the order of their checks, and the one transaction that carries one out.

The checks come in this order, and the first that fails is the answer: the epoch, the stored answer of a repeated
request, the session and thread, the revision that the caller saw, the execution generation that it saw, whether the
thread is idle, and whether a person said yes. Then the operation is applied, the revision rises, the clients are told
and the answer is kept, all of it or nothing. What an operation does is a row of the table in `operations.py`.
"""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar, cast, final

import orjson
from pydantic import JsonValue

from hermes_ws.contract.errors import (
    ConsentRequired,
    InvalidParams,
    RevisionConflict,
    SessionBusy,
    SessionUnknown,
    StaleGeneration,
    ThreadUnknown,
    UnknownExecution,
)
from hermes_ws.contract.events import SessionInfo
from hermes_ws.contract.methods.mutations import PAYLOADS, Mutated, MutateParams
from hermes_ws.contract.model import Params
from hermes_ws.contract.validation import read_params
from hermes_ws.journal import admissions, receipts, sessions, threads
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.database import Transaction
from hermes_ws.journal.receipts import Request
from hermes_ws.journal.sessions import SessionRecord
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.session.info import session_info
from hermes_ws.session.launch import Keys
from hermes_ws.session.ports import Runtime

Q = TypeVar("Q", bound=Params)


@final
@dataclass(frozen=True, slots=True)
class Change:
    """What an operation works on, in the writer's thread. `columns` are those of the session that it wants changed;
    `prepared` is what its `prepare` gave."""

    tx: Transaction
    session: SessionRecord
    key: ThreadKey
    scope: ProfileScope
    principal: str
    prepared: object = None
    columns: dict[str, object] = field(default_factory=dict[str, object])


@final
@dataclass(frozen=True, slots=True)
class Preparation:
    """What an operation may look at before its transaction, where it may wait; nothing is changed yet."""

    runtime: Runtime
    session: SessionRecord
    key: ThreadKey
    keys: Keys


@final
@dataclass(frozen=True, slots=True)
class Operation(Generic[Q]):
    """One row of the table. `apply` changes something and gives the result; it may raise any error of the contract."""

    name: str
    apply: Callable[[Change, Q], dict[str, JsonValue]]
    idle: Literal["thread", "session"] | None = None
    """Which of the two must have nothing that runs, waits, or is lost."""
    consent: str = ""
    """What a person is asked to agree to; empty when nobody is."""
    deletes: bool = False
    prepare: Callable[[Preparation, Q], Awaitable[object]] | None = None
    """Done before the transaction, after all checks have passed a first time: a summary by a model, say."""


AnyOperation = Operation[Any]


@final
@dataclass(frozen=True, slots=True)
class Applied:
    """What became of a request. `record` is the session as it is now; None when it is gone or nothing was done now."""

    answer: Mutated
    record: SessionRecord | None = None
    gone: tuple[ThreadKey, ...] = ()


@final
class Mutations:
    """The edits of one open profile. `told` is called in the step in which an edit becomes visible."""

    def __init__(
        self, runtime: Runtime, operations: Mapping[str, AnyOperation], told: Callable[[Applied], None], keys: Keys
    ) -> None:
        self._runtime = runtime
        self._operations = operations
        self._told = told
        self._keys = keys
        self._key = secrets.token_bytes(32)

    async def mutate(self, params: MutateParams, principal: str) -> Mutated:
        """Carry an edit out, once per (principal, `request_id`). Raises what `SESSION_MUTATE` declares."""
        operation = self._operations.get(params.operation)
        if operation is None:
            known = ", ".join(sorted(self._operations))
            raise InvalidParams(
                f"There is no operation {params.operation}.", hint=f"There are: {known}.", path="operation"
            )
        payload = read_params(PAYLOADS[operation.name], params.payload, where="payload")
        request = Request(principal, params.request_id, _digest(params))
        journal = self._runtime.journal
        prepared: object = None
        if operation.prepare is not None:

            def checked(connection: sqlite3.Connection) -> dict[str, JsonValue] | SessionRecord:
                stored = receipts.find(connection, request)
                return stored if stored is not None else self._check(connection, params, operation, request)

            found = await journal.read(checked)
            if not isinstance(found, SessionRecord):
                return Mutated.model_validate(found)
            prepared = await operation.prepare(Preparation(self._runtime, found, _key(params), self._keys), payload)
        scope = self._runtime.scope

        def work(tx: Transaction) -> Applied:
            stored = receipts.find(tx.connection, request)
            if stored is not None:
                return Applied(Mutated.model_validate(stored))
            session = self._check(tx.connection, params, operation, request)
            change = Change(tx, session, _key(params), scope, principal, prepared)
            applied = _apply(change, operation, payload)
            receipts.store(tx, request, cast("dict[str, JsonValue]", applied.answer.model_dump(mode="json")))
            tx.after_commit(lambda: self._told(applied))
            return applied

        return (await journal.transact(work)).answer

    def _check(
        self, connection: sqlite3.Connection, params: MutateParams, operation: AnyOperation, request: Request
    ) -> SessionRecord:
        session = sessions.get(connection, params.session_id)
        if session is None:
            raise SessionUnknown(f"There is no session {params.session_id}.")
        thread = threads.get(connection, _key(params))
        if thread is None:
            raise ThreadUnknown(f"There is no thread {params.thread_id} in this session.")
        if session.revision != params.expected_revision:
            raise RevisionConflict(
                f"The session is at revision {session.revision}; it was edited meanwhile.", revision=session.revision
            )
        if params.expected_generation not in (None, thread.execution_generation):
            raise StaleGeneration(
                f"The thread is at execution {thread.execution_generation}.", active=thread.execution_generation
            )
        _see_idle(connection, _key(params), operation)
        if operation.consent and params.consent != self._token(request, session):
            raise ConsentRequired(operation.consent, consent=self._token(request, session))
        return session

    def _token(self, request: Request, session: SessionRecord) -> str:
        """Stands for this request on this state of the session, and for no other; good until the profile closes."""
        content = orjson.dumps([request.principal, request.digest, session.session_id, session.revision])
        return hashlib.blake2b(content, key=self._key, digest_size=16).hexdigest()


def _apply(change: Change, operation: AnyOperation, payload: Params) -> Applied:
    tx, session_id = change.tx, change.session.session_id
    gone = sessions.thread_keys(tx.connection, session_id) if operation.deletes else []
    result = operation.apply(change, payload)
    record: SessionRecord | None = None
    revision = change.session.revision
    if not operation.deletes:
        record = sessions.edit(tx, session_id, **change.columns)
        revision = record.revision
        told = SessionInfo(revision=revision, info=session_info(record, change.scope))
        for key in sessions.thread_keys(tx.connection, session_id):
            tx.append(key, "session.info", told)
    answer = Mutated(session_id=session_id, operation=operation.name, revision=revision, result=result)
    return Applied(answer, record, tuple(gone))


def _see_idle(connection: sqlite3.Connection, key: ThreadKey, operation: AnyOperation) -> None:
    if operation.idle is None:
        return
    keys = [key] if operation.idle == "thread" else sessions.thread_keys(connection, key.session_id)
    for each in keys:
        for row in admissions.pending(connection, each):
            if row.status == "unknown":
                raise UnknownExecution(
                    "An execution was lost, and nobody has said what became of it.", admission_id=row.admission_id
                )
            raise SessionBusy(
                "An execution is active or queued.",
                hint="Wait for it, or interrupt it and cancel what is queued.",
                admission_id=row.admission_id,
            )


def _key(params: MutateParams) -> ThreadKey:
    return ThreadKey(params.session_id, params.thread_id)


def _digest(params: MutateParams) -> str:
    """Tells whether two requests ask for the same. The consent that came later is no part of what is asked."""
    content = params.model_dump(mode="json", exclude={"request_id", "profile", "consent"})
    return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()
