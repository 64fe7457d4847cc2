"""A dispatcher over real homes, and callers with any rights; what a handler would do is only noted, or really done."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import trio

from hermes_ws.contract.catalog import METHODS, AnyMethod
from hermes_ws.contract.events import ServerInfo
from hermes_ws.contract.methods.sessions import CreateParams
from hermes_ws.contract.model import Params, Result
from hermes_ws.contract.questions import CLARIFY, ClarifyItem, ClarifyParams
from hermes_ws.contract.registry import Right
from hermes_ws.methods.handler import Handler
from hermes_ws.methods.ports import ConnectionCall, ServerFacts
from hermes_ws.methods.table import HANDLERS
from hermes_ws.server.audience import Audience
from hermes_ws.server.dispatch import Dispatch
from hermes_ws.server.entry import Principal
from hermes_ws.server.process_log import ProcessLog
from hermes_ws.session.questions import Asking
from hermes_ws.wire.frames import Frame
from hermes_ws.wire.negotiation import UNSPOKEN, Negotiated
from hermes_ws.wire.peer import Request
from tests.permissions.examples import example
from tests.session.house import OWNER, House

OWN, FOREIGN = "second", "third"
REACHED = "reached"


@dataclass
class Visitor:
    """A caller that keeps its answer."""

    principal: Principal
    profile: str | None = None
    id: str = "c-1"
    lasting: bool = True
    askable: bool = True
    negotiated: Negotiated = UNSPOKEN
    answer: dict[str, Any] = field(default_factory=dict)
    answered: trio.Event = field(default_factory=trio.Event)
    closed: list[int] = field(default_factory=list)

    def may_address(self, profile: str) -> bool:
        return self.profile in (None, profile) and self.principal.may_address(profile)

    def reply(self, frame: Frame) -> None:
        self.answer = json.loads(frame.json)
        self.answered.set()

    def notify(self, frame: Frame) -> None: ...

    def subscribe(self, *args: object) -> None: ...

    def unsubscribe(self, address: object) -> bool:
        return False

    def close(self, code: int, reason: str = "") -> None:
        self.closed.append(code)


def noting(handler: Handler) -> Handler:
    """The same method; its handler does nothing but tell that it was reached."""

    async def run(call: ConnectionCall, params: Params) -> Result:
        return {"reached": handler.method.name}  # type: ignore[return-value]

    def answer(call: ConnectionCall, params: Params) -> Result:
        return {"reached": handler.method.name}  # type: ignore[return-value]

    return replace(handler, run=run, answer=None if handler.answer is None else answer)


@dataclass
class Place:
    """What there is in one profile: an id of each kind that a request may carry."""

    profile: str
    ids: dict[str, str]


@dataclass
class Counter:
    """Where requests are made."""

    real: Dispatch
    noted: Dispatch
    own: Place
    foreign: Place
    house: House

    async def ask(
        self,
        method: AnyMethod,
        params: dict[str, Any],
        principal: Principal,
        *,
        real: bool = False,
        path: str | None = None,
    ) -> dict[str, Any]:
        """The answer to one request: an error, or that the handler was reached."""
        visitor = Visitor(principal, path)
        dispatch = self.real if real else self.noted
        dispatch.accept(visitor, Request(1, method.name, params), 100)
        with trio.fail_after(30):
            await visitor.answered.wait()
        dispatch.gone(visitor)
        return visitor.answer

    def params(self, method: AnyMethod, place: Place) -> dict[str, Any]:
        """Parameters of a method that are about this place."""
        fields = method.params.model_fields
        params = example(method)
        if "profile" in fields:
            params["profile"] = place.profile
        for name in ("session_id", "op_id"):
            if name in fields:
                params[name] = place.ids[name]
        for name in params.keys() - {"session_id", "op_id", "profile"}:
            # Whatever else tells the profile: the id of a question, or of a thing whose ids begin like a session's.
            if isinstance(params[name], str) and _located(method, {**params, name: "unlike-any"}) == "unlike-any":
                question = method.name.startswith("question.") or method.name.endswith(".respond")
                params[name] = place.ids["op_id" if question else "session_id"]
        return params


def principal(*rights: Right, profile: str | None = OWN) -> Principal:
    """Somebody with these rights in one profile."""
    return Principal("somebody", None if profile is None else frozenset({profile}), frozenset(rights))


@asynccontextmanager
async def counter(house: House) -> AsyncIterator[Counter]:
    """Three homes that are served, a session and an open question in two of them."""
    for name in ("default", OWN, FOREIGN):
        house.home(name)
    async with house.served() as host, trio.open_nursery() as nursery:
        facts = ServerFacts(ServerInfo(name="t", version="0"), "i-1", "b-1", 1, 0.0)
        log = ProcessLog(io.StringIO())
        dispatches = []
        for handlers in (HANDLERS, {name: noting(each) for name, each in HANDLERS.items()}):
            dispatch = Dispatch(
                host, facts, handlers, Audience(lambda: 0.0), log, width=64, frame_bytes=1 << 20, end=lambda *args: None
            )
            await nursery.start(dispatch.run)
            dispatches.append(dispatch)
        places = [await _place(house, name, nursery) for name in (OWN, FOREIGN)]
        yield Counter(dispatches[0], dispatches[1], *places, house)
        nursery.cancel_scope.cancel()


async def _place(house: House, name: str, nursery: trio.Nursery) -> Place:
    runtime = await house.runtime(name)
    _, created = await runtime.sessions.create(CreateParams(title=f"of {name}"), OWNER)
    asked = len(house.people.asked)
    asking = Asking((await (await runtime.sessions.get(created.session_id)).thread("main")).key, 1, "adm-1")
    params = ClarifyParams(
        session_id=created.session_id, thread_id="main", questions=[ClarifyItem(qid="q", question="Which?")]
    )
    nursery.start_soon(runtime.sessions.questions.ask, asking, CLARIFY, params)
    question = await house.people.question(asked)
    return Place(name, {"session_id": created.session_id, "op_id": question.id})


def missing(place: Place) -> Place:
    """Ids that begin like those of a place, of things that are not there."""
    session = place.ids["session_id"].partition("-")[0]
    return Place(place.profile, {"session_id": f"{session}-missing", "op_id": f"srq-{session}-999999"})


NOWHERE = Place("nowhere", {"session_id": "zzzzzz-missing", "op_id": "srq-zzzzzz-999999"})

EVERY = tuple(METHODS.values())


def _located(method: AnyMethod, params: dict[str, Any]) -> str | None:
    return method.params.model_construct(**params).located_by()
