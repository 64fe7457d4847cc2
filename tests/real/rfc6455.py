"""A systematic table of what a WebSocket endpoint must do with what it is sent, after RFC 6455 and RFC 7692.

Autobahn's own cases run in `test_autobahn.py`, against a listener that is made an echo server for them. This one goes
over the same ground in the same order, framing, pings, reserved bits, opcodes, fragmentation, UTF-8, closing, limits,
compression, against the listener as it is: the echo is a JSON-RPC request that is answered with its own text, and
`test_raw_echo.py` has each text come back as it was sent. What differs from what Autobahn expects, and why:

- binary messages are refused with 1003: the contract is text (its groups 1.2, 5 and 9 with binary payloads);
- a message of more than 1 MiB is refused with 1009, and so are more than 1,000 fragments (its groups 9.1 to 9.4);
- invalid UTF-8 is refused at the end of the message, not at the byte (its group 6.4, where it is called non-strict);
- what arrives in one read with a violation may go unanswered (its groups 3, 4 and 5.15, also non-strict there);
- a length beyond 2^63 is one that is too large: 1009;
- a close within an unfinished message is answered with 1002, since the message will never be whole.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from tests.server.stage import RawClient

TEXT, BINARY, CONT, CLOSE, PING, PONG = 1, 2, 0, 8, 9, 10

frame = RawClient.frame

Outcome = tuple[str, str | bytes | int]
"""`echo` of a text, `pong` with a payload, `close` with a code (1005: without one), `error` with a code."""


@dataclass(frozen=True, slots=True)
class Case:
    """What is sent, in pieces, and what must come back, in order."""

    name: str
    pieces: tuple[bytes, ...]
    outcomes: tuple[Outcome, ...]


def request(text: str) -> bytes:
    message = {"jsonrpc": "2.0", "id": 1, "method": "echo", "params": {"text": text}}
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


def sized(size: int) -> tuple[str, bytes]:
    """A request of exactly so many bytes, and its text."""
    text = "x" * (size - len(request("")))
    return text, request(text)


def chopped(data: bytes, size: int) -> tuple[bytes, ...]:
    return tuple(data[start : start + size] for start in range(0, len(data), size))


def closing(code: int | None, reason: bytes = b"") -> bytes:
    return frame(CLOSE, b"" if code is None else struct.pack("!H", code) + reason)


PROOF = frame(TEXT, request("still there"))
ALIVE: Outcome = ("echo", "still there")


def framing() -> Iterator[Case]:
    for size in (80, 125, 126, 127, 128, 65535, 65536, 65537):
        text, payload = sized(size)
        yield Case(f"1.1 text of {size} bytes", (frame(TEXT, payload),), (("echo", text),))
    for size in (1, 3, 997):
        text, payload = sized(2000)
        yield Case(f"1.1 text in writes of {size}", chopped(frame(TEXT, payload), size), (("echo", text),))
    for size in (0, 125, 126, 65536):
        yield Case(f"1.2 binary of {size} bytes", (frame(BINARY, bytes(size)),), (("close", 1003),))
    yield Case("1.3 an empty text", (frame(TEXT), PROOF), (("error", -32700), ALIVE))
    yield Case("1.4 unmasked", (frame(TEXT, request("x"), masked=False),), (("close", 1002),))
    yield Case("1.5 a length with its highest bit", (b"\x81\xff" + b"\xff" * 8,), (("close", 1009),))


def pings() -> Iterator[Case]:
    for payload in (b"", b"hello", bytes(range(125)), b"\x00\xff\xfe"):
        yield Case(f"2.1 ping with {payload[:5]!r}", (frame(PING, payload),), (("pong", payload),))
    yield Case("2.5 ping of 126 bytes", (frame(PING, bytes(126)),), (("close", 1002),))
    yield Case("2.6 ping byte by byte", chopped(frame(PING, b"slow"), 1), (("pong", b"slow"),))
    yield Case("2.7 a pong that nobody asked for", (frame(PONG), PROOF), (ALIVE,))
    yield Case("2.9 a pong, then a ping", (frame(PONG, b"a") + frame(PING, b"b"),), (("pong", b"b"),))
    for count in (10,):
        sent = tuple(frame(PING, b"%d" % number) for number in range(count))
        yield Case("2.10 pings one by one", (*sent, PROOF), (ALIVE,))


def reserved_bits() -> Iterator[Case]:
    for bits in range(1, 8):
        for opcode, name in ((TEXT, "text"), (PING, "ping"), (CLOSE, "close")):
            sent = (PROOF, frame(opcode, b"" if opcode == CLOSE else b"x", rsv=bits))
            yield Case(f"3 reserved bits {bits:03b} in a {name}", sent, (ALIVE, ("close", 1002)))


def opcodes() -> Iterator[Case]:
    for opcode in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15):
        for payload in (b"", b"payload"):
            sent = (PROOF, frame(opcode, payload), PROOF)
            yield Case(f"4 opcode {opcode} with {len(payload)} bytes", sent, (ALIVE, ("close", 1002)))


def fragmentation() -> Iterator[Case]:
    whole = request("in pieces")
    a, b = whole[:20], whole[20:]
    two = (frame(TEXT, a, fin=False), frame(CONT, b))
    yield Case("5.3 two fragments", two, (("echo", "in pieces"),))
    yield Case("5.4 two fragments in one write", (b"".join(two),), (("echo", "in pieces"),))
    yield Case("5.5 two fragments byte by byte", chopped(b"".join(two), 1), (("echo", "in pieces"),))
    yield Case("5.6 a ping between", (two[0], frame(PING, b"p"), two[1]), (("pong", b"p"), ("echo", "in pieces")))
    yield Case("5.1 a ping in fragments", (frame(PING, b"a", fin=False), frame(CONT, b"b")), (("close", 1002),))
    yield Case("5.2 a pong in fragments", (frame(PONG, b"a", fin=False), frame(CONT, b"b")), (("close", 1002),))
    yield Case("5.9 a continuation of nothing", (frame(CONT, whole), PROOF), (("close", 1002),))
    yield Case("5.11 an unfinished continuation of nothing", (frame(CONT, b"", fin=False),), (("close", 1002),))
    yield Case("5.15 a continuation after the end", (*two, frame(CONT, b"x")), (("echo", "in pieces"), ("close", 1002)))
    yield Case("5.18 a text within a text", (two[0], PROOF), (("close", 1002),))
    yield Case("5.19 empty fragments", (frame(TEXT, b"", fin=False), *[frame(CONT, b"", fin=False)] * 50,
                                        frame(CONT, whole)), (("echo", "in pieces"),))  # fmt: skip
    octets = [frame(CONT, bytes((octet,)), fin=False) for octet in whole]
    one_each = (frame(TEXT, b"", fin=False), *octets, frame(CONT, b""))
    yield Case("5.20 a fragment for each byte", (b"".join(one_each),), (("echo", "in pieces"),))
    many = frame(TEXT, b"[", fin=False) + frame(CONT, b" ", fin=False) * 1001
    yield Case("5.21 a thousand and one fragments", (many,), (("close", 1009),))
    yield Case("5.22 binary in fragments", (frame(BINARY, b"a", fin=False), frame(CONT, b"b")), (("close", 1003),))


VALID = (
    "κόσμε", "\u0080", "\u07ff", "\u0800", "\uffff", "\U00010000", "\U0010ffff", "\ud7ff\ue000", "\ufffd", "\ufffe",
    "\ufdd0", "\U0001fffe", "Hello-µ@ßöäüàá-UTF-8!!", "\u0000\u001f", "日本語", "👩‍👩‍👧",
)  # fmt: skip

INVALID = (
    b"\x80", b"\xbf", b"\x80\xbf", b"\xc0", b"\xc0\x80", b"\xc1\xbf", b"\xe0\x80\x80", b"\xe0\x9f\xbf",
    b"\xf0\x80\x80\x80", b"\xf0\x8f\xbf\xbf", b"\xf8\x88\x80\x80\x80", b"\xfc\x84\x80\x80\x80\x80", b"\xfe", b"\xff",
    b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xed\xa0\x80\xed\xb0\x80", b"\xf4\x90\x80\x80", b"\xc2", b"\xe2\x82",
    b"\xf0\x9f\x98", b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80edited",
)  # fmt: skip


def utf8() -> Iterator[Case]:
    for text in VALID:
        yield Case(f"6.1 {text!a}", (frame(TEXT, request(text)),), (("echo", text),))
    for text in VALID[:7]:
        payload = request(text)
        parts = [frame(CONT, bytes((octet,)), fin=False) for octet in payload]
        sent = frame(TEXT, b"", fin=False) + b"".join(parts) + frame(CONT, b"")
        yield Case(f"6.2 {text!a}, a fragment for each byte", (sent,), (("echo", text),))
    for octets in INVALID:
        payload = request("MARK").replace(b"MARK", octets)
        yield Case(f"6.3 {octets!r}", (frame(TEXT, payload), PROOF), (("close", 1007),))
        split = (frame(TEXT, payload[:-20], fin=False), frame(CONT, payload[-20:]))
        yield Case(f"6.4 {octets!r} in fragments", split, (("close", 1007),))


def closes() -> Iterator[Case]:
    yield Case("7.1 an echo, then a close", (PROOF, closing(1000)), (ALIVE, ("close", 1000)))
    yield Case("7.1 two closes", (closing(1000) + closing(1000),), (("close", 1000),))
    yield Case("7.1 a ping after the close", (closing(1000) + frame(PING, b"x"),), (("close", 1000),))
    yield Case("7.1 a text after the close", (closing(1000) + PROOF,), (("close", 1000),))
    yield Case("7.1 a close within a text", (frame(TEXT, b"[", fin=False), closing(1000)), (("close", 1002),))
    yield Case("7.3 an empty close", (closing(None),), (("close", 1005),))
    yield Case("7.3 a close of one byte", (frame(CLOSE, b"\x03"),), (("close", 1002),))
    yield Case("7.3 with a reason", (closing(1000, b"so long"),), (("close", 1000),))
    yield Case("7.3 with the longest reason", (closing(1000, b"x" * 123),), (("close", 1000),))
    yield Case("7.3 with a reason that is too long", (closing(1000, b"x" * 124),), (("close", 1002),))
    yield Case("7.5 with a reason that is not UTF-8", (closing(1000, b"\xce\xba\xed\xa0\x80"),), (("close", 1007),))
    for code in (1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999):
        yield Case(f"7.7 code {code}", (closing(code),), (("close", code),))
    for code in (0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999, 5000, 65535):
        yield Case(f"7.9 code {code}", (closing(code),), (("close", 1002),))


MOST = 1024 * 1024


def limits() -> Iterator[Case]:
    for size in (64 * 1024, 256 * 1024, MOST):
        text, payload = sized(size)
        yield Case(f"9.1 text of {size} bytes", (frame(TEXT, payload),), (("echo", text),))
        parts = chopped(payload, 16 * 1024)
        sent = frame(TEXT, parts[0], fin=False) + b"".join(frame(CONT, part, fin=False) for part in parts[1:])
        yield Case(f"9.3 text of {size} bytes in fragments", (sent + frame(CONT),), (("echo", text),))
    _, payload = sized(MOST + 1)
    yield Case("9.7 one byte too many", (frame(TEXT, payload)[:4096],), (("close", 1009),))
    half = payload[: MOST // 2 + 1]
    yield Case(
        "9.8 one byte too many, in fragments",
        (frame(TEXT, half, fin=False), frame(CONT, half, fin=False)),
        (("close", 1009),),
    )


def deflated(payload: bytes, bits: int = 12) -> bytes:
    compress = zlib.compressobj(wbits=-bits)
    return (compress.compress(payload) + compress.flush(zlib.Z_SYNC_FLUSH)).removesuffix(b"\x00\x00\xff\xff")


def compression() -> Iterator[Case]:
    for size in (80, 1000, 70_000):
        text, payload = sized(size)
        sent = frame(TEXT, deflated(payload), rsv=4)
        yield Case(f"12.1 a deflated text of {size} bytes", (sent,), (("echo", text),))
        yield Case(f"12.1 the same in writes of 7 ({size})", (*chopped(sent, 7)[:400], sent[2800:]), (("echo", text),))
    data = deflated(request("pieces"))
    parts = (frame(TEXT, data[:9], rsv=4, fin=False), frame(CONT, data[9:]))
    yield Case("12.2 a deflated text in fragments", parts, (("echo", "pieces"),))
    yield Case("12.3 an uncompressed text", (PROOF,), (ALIVE,))
    marked = (frame(TEXT, data[:9], rsv=4, fin=False), frame(CONT, data[9:], rsv=4))
    yield Case("12.4 a continuation that is marked as well", marked, (("close", 1002),))
    yield Case("12.5 a ping that is marked", (frame(PING, b"", rsv=4),), (("close", 1002),))
    yield Case("12.6 what is no deflate stream", (frame(TEXT, b"\xff" * 40, rsv=4),), (("close", 1002),))
    bomb = deflated(b" " * (64 * MOST))
    yield Case("13.1 64 MiB in 64 KiB", (frame(TEXT, bomb, rsv=4),), (("close", 1009),))


PLAIN = tuple(
    case for group in (framing, pings, reserved_bits, opcodes, fragmentation, utf8, closes, limits) for case in group()
)
DEFLATED = tuple(compression())
