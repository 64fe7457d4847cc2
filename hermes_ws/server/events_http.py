"""The events of one thread as Server-Sent Events (https://html.spec.whatwg.org/multipage/server-sent-events.html).

Each event is the JSON text that a WebSocket would carry; `id` is the cursor of a committed one, so that a client that
reconnects says with `Last-Event-ID` where it was, and gets what it missed. A cursor that this journal does not have, or
has no more, is answered with `thread.rebased` and the events of the new generation. When nothing happens a comment says
every 15 seconds that the line stands.

The stream is subscribed by the same method as any other subscriber, so that who may listen is decided in one place.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final, cast, final
from urllib.parse import parse_qsl

import h11
import orjson
import trio
from pydantic import JsonValue

from hermes_ws.contract.errors import HermesError, InvalidParams, UnknownParameter
from hermes_ws.contract.methods.connection import CapabilitiesParams
from hermes_ws.contract.methods.runtime import Transport
from hermes_ws.contract.methods.threads import THREAD_SUBSCRIBE
from hermes_ws.contract.validation import read_params
from hermes_ws.contract.version import PROTOCOL_MAJOR, PROTOCOL_MINOR
from hermes_ws.server.apart import Apart
from hermes_ws.server.entry import Principal
from hermes_ws.server.http import Answer, response_of, stream_head
from hermes_ws.server.limits import Limits
from hermes_ws.server.output import Output
from hermes_ws.server.ports import Dispatcher
from hermes_ws.server.rpc_http import JSON
from hermes_ws.wire.frames import Frame, event_frame
from hermes_ws.wire.negotiation import Negotiated, negotiate
from hermes_ws.wire.peer import Request

HEARTBEAT: Final = 15.0
"""Seconds without an event after which a comment is sent; below the idle time-outs of proxies (30 and more)."""

RETRY_MS: Final = 1000
"""After which a browser connects again by itself."""

QUERY_FIELDS: Final = 16
"""Parameters of an address that are looked at; there are seven."""

_THREAD: Final = frozenset(("session_id", "thread_id", "profile", "after"))
_ABILITIES: Final = frozenset(("live", "opt_out", "server_requests"))

_STATUS: Final[Mapping[int, int]] = MappingProxyType(
    {4000: 400, 4001: 404, 4003: 403, 4004: 404, 4029: 429, 4064: 404, 5001: 503, 5035: 503, -32602: 400}
)


@final
@dataclass(frozen=True, slots=True)
class Wish:
    """What a stream is asked to carry: parameters of `thread.subscribe`, and what its client can do."""

    thread: Mapping[str, JsonValue]
    abilities: Negotiated

    @classmethod
    def read(cls, query: str, last_event_id: str | None) -> Wish:
        """From the query of the address and the header. Raises `InvalidParams`, `UnknownParameter`."""
        try:
            given = parse_qsl(query, keep_blank_values=True, max_num_fields=QUERY_FIELDS, errors="strict")
        except ValueError:
            raise InvalidParams("The query cannot be read.") from None
        thread: dict[str, JsonValue] = {}
        abilities: dict[str, JsonValue] = {}
        for name, value in given:
            if name in _THREAD and name not in thread:
                thread[name] = value
            elif name in _ABILITIES and name not in abilities:
                abilities[name] = value if name == "live" else _names(value)
            else:
                raise UnknownParameter(f"There is no parameter {name}, or it is there twice.", path=name)
        if last_event_id:
            thread["after"] = last_event_id
        client: JsonValue = {"name": "event stream"}
        protocol: JsonValue = {"major": PROTOCOL_MAJOR, "minor": PROTOCOL_MINOR}
        said = {"client": client, "protocol": protocol, **abilities}
        return cls(thread, negotiate(read_params(CapabilitiesParams, said)))


def _names(value: str) -> JsonValue:
    return True if value == "true" else [each for each in value.split(",") if each]


@final
@dataclass(frozen=True, slots=True)
class Listening:
    """A visitor that follows a thread from here on. `http` has read its request."""

    principal: Principal
    profile: str | None
    wish: Wish
    http: h11.Connection


@final
class EventStream(Apart):
    """One stream, from its subscription to its end. A caller like any other, for the dispatcher."""

    def __init__(self, stream: trio.abc.Stream, listening: Listening, limits: Limits) -> None:
        id = f"e-{secrets.token_hex(8)}"
        super().__init__(id, listening.principal, listening.profile, Output(limits, listening.wish.abilities, id))
        self._stream = stream
        self._wish = listening.wish
        self._http = listening.http
        self._limits = limits
        self._answered = trio.Event()
        self._answer: Frame | None = None

    # --- what the dispatcher uses ------------------------------------------------------------------------------------

    @property
    def lasting(self) -> bool:
        """It stays until its client hangs up."""
        return True

    @property
    def transport(self) -> Transport:
        """How it came in."""
        return "events"

    @property
    def askable(self) -> bool:
        """Only one that says which questions it shows; it answers them with `question.answer`."""
        return bool(self.negotiated.server_requests)

    def reply(self, frame: Frame) -> None:
        """The answer to its one request: the subscription."""
        self._answer = frame
        self._answered.set()

    # --- life --------------------------------------------------------------------------------------------------------

    async def run(self, dispatcher: Dispatcher) -> None:
        """Serve it to its end; the stream is closed by whoever opened it."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                dispatcher.accept(self, Request("subscribe", THREAD_SUBSCRIBE.name, self._wish.thread), 0)
                nursery.start_soon(self._watch)
                with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                    await self._write(nursery)
                nursery.cancel_scope.cancel()
        finally:
            self._output.end()
            self._ended.set()
            dispatcher.gone(self)

    async def _watch(self) -> None:
        """Notice that the client has hung up. What it sends is of no interest."""
        with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while await self._stream.receive_some(1024):
                pass
        self.cut("the client hung up")

    async def _write(self, nursery: trio.Nursery) -> None:
        await self._answered.wait()
        assert self._answer is not None
        answer = cast("dict[str, Any]", orjson.loads(self._answer.json))
        if "error" in answer:
            refused = refusal(answer["error"])
            await self._send((self._http.send(response_of(refused, close=True)) or b"") + self._chunk(refused.body))
        else:
            head = self._http.send(stream_head()) or b""
            await self._send(head + self._chunk(self._opening(answer["result"])))
            code, reason = await self._output.run(
                nursery,
                lambda data: self._send(self._chunk(data)),
                event_text,
                beat_s=HEARTBEAT,
                beat=b": heartbeat\n\n",
                follows=True,
            )
            said = orjson.dumps({"code": code, "reason": reason})
            await self._send(self._chunk(b"event: closed\ndata: " + said + b"\n\n"))
        await self._send(self._http.send(h11.EndOfMessage()) or b"")

    def _opening(self, snapshot: dict[str, Any]) -> bytes:
        """Where the stream begins; and that everything before is void, when the client's place is no more."""
        start = snapshot["cursor"]
        if snapshot["position"] in ("rebased", "ahead"):
            start = f"{snapshot['generation']}:0"
            rebased = {key: snapshot[key] for key in ("profile", "session_id", "thread_id")}
            rebased |= {"type": "thread.rebased", "cursor": start, "ts": time.time()}
            rebased["payload"] = {"generation": snapshot["generation"]}
            return b"retry: %d\n" % RETRY_MS + event_text(event_frame(rebased))
        after = self._wish.thread.get("after", start)
        return b"retry: %d\nid: %s\n\n" % (RETRY_MS, str(after).encode())

    def _chunk(self, data: bytes) -> bytes:
        return self._http.send(h11.Data(data=data)) or b""

    async def _send(self, data: bytes) -> None:
        """Send all of it, within the send deadline. Raises `BrokenResourceError` when that failed."""
        with trio.move_on_after(self._limits.send_deadline):
            await self._stream.send_all(data)
            return
        raise trio.BrokenResourceError("nothing was read for too long")


def event_text(frame: Frame) -> bytes:
    """A frame as one event. JSON has no bare line ends, so that it is one line of data."""
    if frame.type:
        cursor = cast("dict[str, Any]", orjson.loads(frame.json))["params"].get("cursor")
        if cursor is not None:
            return b"id: %s\ndata: %s\n\n" % (str(cursor).encode(), frame.json)
    return b"data: %s\n\n" % frame.json


def refusal(error: Mapping[str, Any]) -> Answer:
    """An error of the contract as an HTTP answer."""
    status = _STATUS.get(cast("int", error["code"]), int(HTTPStatus.INTERNAL_SERVER_ERROR))
    return Answer(status, orjson.dumps({"error": error}), JSON)


def refused(error: HermesError) -> Answer:
    """The same, for an error that has not travelled."""
    return refusal(error.to_wire())
