"""A connection before it is one of ours: the bytes are looked at, and it becomes a WebSocket or gets HTTP answers.

One conversation may hold several HTTP requests and end with an upgrade. Everything is bounded: the size of a head, the
time until it is whole, the time between two requests, the size of a body.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Literal, cast, final

import h11
import trio
from websockets.http11 import Request
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from hermes_ws.contract.errors import HermesError
from hermes_ws.server import blob_http, events_http, login, rpc_http, sockets
from hermes_ws.server.entry import SUBPROTOCOL, Entry, Peer, Principal, Refusal, Visit
from hermes_ws.server.events_http import Listening, Wish
from hermes_ws.server.http import (
    WEBSOCKET_PATH,
    Answer,
    ContractTarget,
    ambiguous,
    contract_target,
    plain,
    respond,
    response_of,
    visit_of,
)
from hermes_ws.server.lateness import Lateness
from hermes_ws.server.limits import Limits
from hermes_ws.server.ports import Dispatcher, Pages
from hermes_ws.server.proxy import Proxies

Login = Callable[[bytes], Awaitable[Answer]]

NO_PROXIES: Final = Proxies()

LINGER: Final = 1.0
"""Seconds to read on after a last answer, so that it is not lost with what the client was still sending."""

READ_BYTES: Final = 16 * 1024
"""What is read at once; a head."""

NO_ROOM: Final = ("Retry-After", "5")
"""To whoever has shown a credential and finds no room: seconds after which a connection may have ended."""

_END_OF_HEAD: Final = b"\r\n\r\n"
_UPGRADE: Final = re.compile(rb"\r\nupgrade:[^\r\n]*websocket", re.IGNORECASE)

_SILENT: Final = logging.Logger("websocket", level=logging.CRITICAL + 1)
"""The log that `ServerProtocol` is given: its own prints headers, and with them tokens (AUTH-03)."""


@final
@dataclass(frozen=True, slots=True)
class Site:
    """What visitors find: who may come in, what there is to see, and which profiles there are."""

    entry: Entry
    pages: Pages
    limits: Limits
    lateness: Lateness
    own_name: Callable[[str], str | None]
    """The own name of the profile that a path names; None when there is none."""
    login: Login | None = None
    """Exchanges a browser's ticket; raises `Refusal`."""
    proxies: Proxies = NO_PROXIES
    """Who may say on whose behalf it calls."""


@final
@dataclass(frozen=True, slots=True)
class Upgraded:
    """A visitor that became a WebSocket. `early` is what it sent already."""

    protocol: ServerProtocol
    principal: Principal
    profile: str | None
    early: bytes


@final
class Visitor:
    """One accepted stream, until it is upgraded or done."""

    __slots__ = ("_accepted", "_admitted", "_buffer", "_compress", "_dispatcher", "_peer", "_site", "_stream")

    def __init__(
        self,
        stream: trio.SocketStream,
        site: Site,
        peer: Peer,
        *,
        compress: bool,
        dispatcher: Dispatcher,
        admitted: Callable[[], bool],
    ) -> None:
        self._stream = stream
        self._site = site
        self._accepted = peer
        self._peer = peer
        self._compress = compress
        self._dispatcher = dispatcher
        self._admitted = admitted
        self._buffer = bytearray()

    async def receive(self) -> Upgraded | Listening | None:
        """Serve it. What it became when it stays; None when it is done and the stream is to be closed.

        `admitted` is called when it has shown a credential: whether there is room for one more who is no stranger.
        """
        if not self._site.proxies.admits(self._accepted):
            await self._last(plain(403))
            return None
        first = True
        while True:
            head = await self._head(first=first)
            if head is None:
                return None
            first = False
            self._peer = self._site.proxies.behind(self._accepted, head)
            if _UPGRADE.search(head):
                return await self._upgrade(head)
            following = await self._http(head)
            if following is not True:
                return following or None

    # --- reading a head ----------------------------------------------------------------------------------------------

    async def _head(self, *, first: bool) -> bytes | None:
        limits = self._site.limits
        if not first and not self._buffer:
            with trio.move_on_after(limits.keep_alive) as rest:
                if not await self._more():
                    return None
            if rest.cancelled_caught:
                return None
        with trio.move_on_after(limits.handshake_deadline):
            while True:
                while self._buffer.startswith(b"\r\n"):
                    del self._buffer[:2]
                if self._buffer and not 0x41 <= self._buffer[0] <= 0x5A:
                    # No HTTP method begins like this: a TLS hello, or noise.
                    await self._last(plain(400))
                    return None
                end = self._buffer.find(_END_OF_HEAD)
                if end > limits.head_bytes or (end < 0 and len(self._buffer) > limits.head_bytes):
                    await self._last(plain(431))
                    return None
                if end >= 0:
                    head = bytes(self._buffer[: end + len(_END_OF_HEAD)])
                    del self._buffer[: len(head)]
                    if ambiguous(head):
                        await self._last(plain(400))
                        return None
                    return head
                if not await self._more():
                    return None
        if self._buffer:
            await self._last(plain(408))
        return None

    async def _more(self) -> bool:
        try:
            data = await self._stream.receive_some(READ_BYTES)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return False
        self._buffer += data
        return bool(data)

    # --- plain HTTP --------------------------------------------------------------------------------------------------

    async def _http(self, head: bytes) -> Listening | bool:
        """Answer one request. Whether there may be another one; or what follows events from here on."""
        site = self._site
        h11_connection = h11.Connection(h11.SERVER, max_incomplete_event_size=site.limits.head_bytes)
        h11_connection.receive_data(head)
        try:
            request = h11_connection.next_event()
            if not isinstance(request, h11.Request):
                raise h11.RemoteProtocolError("no request")
            target = contract_target(request.target)
            if request.target.partition(b"?")[0] == login.PATH.encode() and site.login is not None:
                signed_in = await self._login(h11_connection, request, site.login)
                if signed_in is None:
                    return False
                answer = signed_in
            elif target is None:
                answer = respond(request, self._peer, site.entry, site.pages)
                if await self._body(h11_connection, site.limits.body_bytes) is None:
                    answer = plain(413)
            else:
                spoken = await self._contract(h11_connection, request, target)
                if not isinstance(spoken, Answer):
                    return spoken
                answer = spoken
        except h11.RemoteProtocolError as error:
            await self._last(plain(error.error_status_hint))
            return False
        except trio.BrokenResourceError:
            return False
        unfinished = h11_connection.their_state is h11.SEND_BODY
        data = _written(h11_connection, answer, body=request.method != b"HEAD", close=unfinished)
        if not await self._send(data):
            return False
        if unfinished:
            await self._linger()
        if h11_connection.our_state is not h11.DONE or h11_connection.their_state is not h11.DONE:
            return False
        self._buffer[:0] = h11_connection.trailing_data[0]
        return True

    async def _contract(
        self, h11_connection: h11.Connection, request: h11.Request, target: ContractTarget
    ) -> Answer | Listening | Literal[False]:
        """Let one in who speaks the contract. Its answer; or what follows events; False to hang up without a word."""
        site = self._site
        try:
            principal = await site.entry.check(visit_of(request, self._peer))
        except Refusal as refusal:
            if refusal.credential and not await site.lateness.wait(self._peer.address):
                return False
            return _refused(refusal.status)
        profile = self._reached(principal, target.profile)
        if target.profile is not None and profile is None:
            return plain(404)
        if request.method != target.method.encode():
            return plain(405, ("Allow", target.method))
        if not self._admitted():
            return plain(503, NO_ROOM)
        if h11_connection.they_are_waiting_for_100_continue:
            go_on = h11_connection.send(h11.InformationalResponse(status_code=100, headers=[]))
            if not await self._send(go_on or b""):
                return False
        body = await self._body(h11_connection, site.limits.frame_bytes)
        if body is None:
            return plain(413)
        if target.blob is not None:
            whole = (self._dispatcher, principal, profile, target.blob, h11_connection, self._send)
            return await blob_http.serve(*whole) or False
        if not target.events:
            return await rpc_http.call(self._dispatcher, principal, profile, body)
        _, _, query = request.target.decode("latin-1").partition("?")
        last = [value.decode("latin-1") for name, value in request.headers if name == b"last-event-id"]
        try:
            return Listening(principal, profile, Wish.read(query, last[0] if last else None), h11_connection)
        except HermesError as error:
            return events_http.refused(error)

    def _reached(self, principal: Principal, named: str | None) -> str | None:
        """The own name of the profile that a path names; None when it names none that may be addressed."""
        profile = None if named is None or not principal.may_name(named) else self._site.own_name(named)
        return profile if profile is not None and principal.may_address(profile) else None

    async def _login(self, h11_connection: h11.Connection, request: h11.Request, exchange: Login) -> Answer | None:
        """Let a browser sign in. None to hang up without a word."""
        site = self._site
        body: bytes | None = None
        try:
            site.entry.check_page(visit_of(request, self._peer))
            if request.method != b"POST":
                return plain(405, ("Allow", "POST"))
            body = await self._body(h11_connection, site.limits.body_bytes)
            return plain(413) if body is None else await exchange(body)
        except Refusal as refusal:
            if refusal.credential and not await site.lateness.wait(self._peer.address):
                return None
            return plain(refusal.status)

    async def _body(self, h11_connection: h11.Connection, most: int) -> bytes | None:
        """Read the request to its end. None when that is more than is read here."""
        parts: list[bytes] = []
        size = 0
        with trio.move_on_after(self._site.limits.handshake_deadline):
            while True:
                event = h11_connection.next_event()
                if event is h11.NEED_DATA:
                    if h11_connection.they_are_waiting_for_100_continue:
                        return None
                    if not self._buffer and not await self._more():
                        raise trio.BrokenResourceError
                    h11_connection.receive_data(bytes(self._buffer))
                    self._buffer.clear()
                elif isinstance(event, h11.Data):
                    size += len(event.data)
                    if size > most:
                        return None
                    parts.append(bytes(event.data))
                else:
                    return b"".join(parts)
        return None

    # --- the upgrade -------------------------------------------------------------------------------------------------

    async def _upgrade(self, head: bytes) -> Upgraded | None:
        site = self._site
        protocol = ServerProtocol(
            extensions=sockets.deflate() if self._compress else None,
            select_subprotocol=_select,
            max_size=site.limits.frame_bytes,
            logger=_SILENT,
        )
        protocol.receive_data(head)
        events = protocol.events_received()
        if not events:
            await self._last(plain(400))
            return None
        request = cast("Request", events[0])
        try:
            principal = await site.entry.check(_visit(request, self._peer))
        except Refusal as refusal:
            if refusal.credential and not await site.lateness.wait(self._peer.address):
                return None
            await self._last(_refused(refusal.status))
            return None
        matched = WEBSOCKET_PATH.fullmatch(request.path.partition("?")[0])
        named = None if matched is None else cast("str | None", matched[1])
        profile = self._reached(principal, named)
        if matched is None or (named is not None and profile is None):
            await self._last(plain(404))
            return None
        response = protocol.accept(request)
        protocol.send_response(response)
        if not await self._send(b"".join(protocol.data_to_send())):
            return None
        if response.status_code != HTTPStatus.SWITCHING_PROTOCOLS:
            await self._linger()
            return None
        return Upgraded(protocol, principal, profile, bytes(self._buffer))

    # --- sending -----------------------------------------------------------------------------------------------------

    async def _send(self, data: bytes) -> bool:
        """Send all of it, within the send deadline. False when that failed; the stream is then of no more use."""
        with trio.move_on_after(self._site.limits.send_deadline):
            try:
                await self._stream.send_all(data)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return False
            return True
        return False

    async def _last(self, answer: Answer) -> None:
        """Send an answer that ends the connection, to a request that was not understood or not let in."""
        h11_connection = h11.Connection(h11.SERVER)
        if await self._send(_written(h11_connection, answer, body=True, close=True)):
            await self._linger()

    async def _linger(self) -> None:
        with (
            trio.move_on_after(LINGER),
            contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError, OSError),
        ):
            await self._stream.send_eof()
            while await self._stream.receive_some(READ_BYTES):
                pass


def _written(h11_connection: h11.Connection, answer: Answer, *, body: bool, close: bool) -> bytes:
    parts = [h11_connection.send(response_of(answer, close=close))]
    if body:
        parts.append(h11_connection.send(h11.Data(data=answer.body)))
    parts.append(h11_connection.send(h11.EndOfMessage()))
    return b"".join(part for part in parts if part)


def _refused(status: int) -> Answer:
    return plain(status, ("WWW-Authenticate", "Bearer")) if status == HTTPStatus.UNAUTHORIZED else plain(status)


def _visit(request: Request, peer: Peer) -> Visit:
    headers = request.headers
    offered = ",".join(headers.get_all("Sec-WebSocket-Protocol"))
    return Visit(
        peer,
        tuple(headers.get_all("Host")),
        tuple(headers.get_all("Origin")),
        tuple(headers.get_all("Authorization")),
        tuple(each.strip() for each in offered.split(",") if each.strip()),
    )


def _select(protocol: ServerProtocol, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    return Subprotocol(SUBPROTOCOL) if SUBPROTOCOL in offered else None
