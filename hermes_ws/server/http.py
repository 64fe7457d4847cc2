"""The plain HTTP side of the port: a few pages that anybody past the Host check may see, and the way to the contract.

One request at a time, read and answered with h11. The pages take no body; one that comes is read to its end, within
bounds, so that the answer arrives. No answer carries CORS headers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus
from types import MappingProxyType
from typing import Final, final

import h11

from hermes_ws.server.entry import Entry, Peer, Refusal, Visit
from hermes_ws.server.ports import Pages

WEBSOCKET_PATH: Final = re.compile(r"/ws|/p/([A-Za-z0-9][A-Za-z0-9._-]{0,63})/ws")
"""Where a WebSocket is: all profiles, or one."""

CONTRACT_PATH: Final = re.compile(r"(?:/p/([A-Za-z0-9][A-Za-z0-9._-]{0,63}))?/(?:rpc|(events)|blob/([0-9a-f]{64}))")
"""Where the contract is spoken without a WebSocket: requests, the events of a thread, and whole contents."""

_HALF_LINE_END: Final = re.compile(rb"(?<!\r)\n|\r(?!\n)")
_BODY_END: Final = re.compile(rb"\n(content-length|transfer-encoding):", re.IGNORECASE)

DASHBOARD_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What the page may load and do: its own files and this server, and nothing of any other host."""

_POLICY: Final = "Content-Security-Policy"

SECURITY_HEADERS: Final = (
    ("X-Content-Type-Options", "nosniff"),
    (_POLICY, "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Frame-Options", "DENY"),
    ("Cache-Control", "no-store"),
)


@final
@dataclass(frozen=True, slots=True)
class Answer:
    """What a request gets."""

    status: int
    body: bytes
    type: str = "text/plain; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()


Page = Callable[[Pages], Answer]


def _alive(pages: Pages) -> Answer:
    return Answer(200, b"ok\n")


def _ready(pages: Pages) -> Answer:
    return Answer(200, b"ready\n") if pages.ready() else Answer(503, b"not ready\n")


def _openrpc(pages: Pages) -> Answer:
    return Answer(200, pages.openrpc(), "application/json")


def _asyncapi(pages: Pages) -> Answer:
    return Answer(200, pages.asyncapi(), "application/json")


_PAGES: Mapping[str, Page] = MappingProxyType(
    {
        "/healthz": _alive,
        "/readyz": _ready,
        "/openrpc.json": _openrpc,
        "/asyncapi.json": _asyncapi,
    }
)


@final
@dataclass(frozen=True, slots=True)
class ContractTarget:
    """A request that speaks the contract: `POST /rpc`, `GET /events` or `GET /blob/<hash>`, on all profiles or the one
    that it names."""

    events: bool
    profile: str | None
    blob: str | None = None

    @property
    def method(self) -> str:
        """The HTTP method that it takes."""
        return "POST" if self.blob is None and not self.events else "GET"


def contract_target(target: bytes) -> ContractTarget | None:
    """Whether an address is one at which the contract is spoken."""
    matched = CONTRACT_PATH.fullmatch(target.decode("latin-1").partition("?")[0])
    return None if matched is None else ContractTarget(matched[2] is not None, matched[1], matched[3])


def ambiguous(head: bytes) -> bool:
    """Whether another program, such as a proxy in front of the server, may read another request out of this head: some
    take half a line end for a whole one, and of two ways to tell where the body ends each takes its own (RFC 9112,
    section 6.3). What follows would then be somebody else's request.
    """
    return _HALF_LINE_END.search(head) is not None or len({each.lower() for each in _BODY_END.findall(head)}) > 1


def plain(status: int, *headers: tuple[str, str]) -> Answer:
    """A status and its standard words."""
    return Answer(status, f"{HTTPStatus(status).phrase}\n".encode(), headers=headers)


def respond(request: h11.Request, peer: Peer, entry: Entry, pages: Pages) -> Answer:
    """What this request gets. Waits for nothing."""
    try:
        entry.check_host(visit_of(request, peer))
    except Refusal as refusal:
        return plain(refusal.status)
    path = request.target.decode("latin-1").partition("?")[0]
    page = _PAGES.get(path)
    file = pages.files.get(path)
    if page is None and file is None:
        return plain(404) if WEBSOCKET_PATH.fullmatch(path) is None else plain(426, ("Upgrade", "websocket"))
    if request.method not in (b"GET", b"HEAD"):
        return plain(405, ("Allow", "GET, HEAD"))
    if page is not None:
        return page(pages)
    assert file is not None, "one of the two is there"
    return Answer(200, file.body, file.type, ((_POLICY, DASHBOARD_POLICY),))


def visit_of(request: h11.Request, peer: Peer) -> Visit:
    """What a request shows at the door."""

    def values(name: bytes) -> tuple[str, ...]:
        return tuple(value.decode("latin-1") for each, value in request.headers if each == name)

    return Visit(peer, values(b"host"), values(b"origin"), values(b"authorization"))


def response_of(answer: Answer, *, close: bool) -> h11.Response:
    """The head of the answer. `close` tells that the connection ends with it."""
    own = {name for name, _ in answer.headers}
    headers = [
        ("Date", formatdate(usegmt=True)),
        ("Content-Type", answer.type),
        *(() if "Content-Length" in own else (("Content-Length", str(len(answer.body))),)),
        # Two policies would both hold: an answer that brings its own has no other.
        *(header for header in SECURITY_HEADERS if header[0] not in own),
        *answer.headers,
    ]
    if close:
        headers.append(("Connection", "close"))
    return h11.Response(status_code=answer.status, headers=headers, reason=HTTPStatus(answer.status).phrase)


def stream_head() -> h11.Response:
    """The head of an answer that goes on until somebody hangs up."""
    headers = [
        ("Date", formatdate(usegmt=True)),
        ("Content-Type", "text/event-stream; charset=utf-8"),
        # Asks nginx not to hold events back until it has a buffer full of them.
        ("X-Accel-Buffering", "no"),
        *SECURITY_HEADERS,
        ("Connection", "close"),
    ]
    return h11.Response(status_code=200, headers=headers, reason="OK")
