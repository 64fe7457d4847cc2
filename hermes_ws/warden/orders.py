"""What a server asks of a warden and what it is answered: one JSON object per datagram, read with suspicion.

Both sides import this module, so it stands on the standard library alone. Descriptors travel beside the object
(SCM_RIGHTS). An object above `INLINE_BYTES` goes through a memfd, which is then the first descriptor of a datagram
that only says how large it is. Text may hold the surrogates of `os.fsdecode`; JSON escapes carry them both ways.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, cast

INLINE_BYTES: Final = 64 * 1024
"""The largest datagram: it fits into any socket buffer at once, so that sending is all or nothing."""

ORDER_BYTES: Final = 16 * 1024 * 1024
"""The largest order through a memfd: the kernel takes 2 MiB of arguments, and JSON escapes make up to six of one."""

REPLY_BYTES: Final = 16 * 1024
"""The largest answer: a number and a few words, or the notes on the confinement."""

ORDER_DESCRIPTORS: Final = 4
"""Descriptors with one datagram: the memfd of a large order, the output, standard input, standard error."""

HEADER_BYTES: Final = 4096
"""The largest first line of a file operation's answer."""

LINES: Final = 10_000
"""The most lines that a listing or a search answers with."""

CONFINE: Final = "confine"
RUN: Final = "run"
READ: Final = "read"
WRITE: Final = "write"
LIST: Final = "list"
SEARCH: Final = "search"
RESIZE: Final = "resize"
END: Final = "end"

PROCESSES_OVER: Final = "processes"
DISK_OVER: Final = "disk"


class Malformed(ValueError):
    """The datagram is not what the other side would have sent."""


def encode(order: Mapping[str, object]) -> bytes:
    """One object as ASCII JSON without line breaks."""
    return json.dumps(order, separators=(",", ":")).encode("ascii")


def decode(data: bytes) -> dict[str, object]:
    """The object in `data`; raises `Malformed` for whatever is none."""
    try:
        value = cast("object", json.loads(data))
    except (ValueError, RecursionError) as error:
        raise Malformed("not JSON") from error
    if not isinstance(value, dict):
        raise Malformed("not an object")
    return cast("dict[str, object]", value)


def text(order: Mapping[str, object], key: str) -> str:
    """The string at `key`."""
    value = order.get(key)
    if not isinstance(value, str):
        raise Malformed(f"{key} is not a string")
    return value


def maybe_text(order: Mapping[str, object], key: str) -> str | None:
    """The string at `key`, or nothing when it is null or absent."""
    return None if order.get(key) is None else text(order, key)


def flag(order: Mapping[str, object], key: str) -> bool:
    """The boolean at `key`."""
    value = order.get(key)
    if not isinstance(value, bool):
        raise Malformed(f"{key} is not a boolean")
    return value


def integer(order: Mapping[str, object], key: str, *, low: int = 0, high: int = 2**53) -> int:
    """The whole number at `key`, which lies between `low` and `high`."""
    value = order.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise Malformed(f"{key} is not a number from {low} to {high}")
    return value


def maybe(order: Mapping[str, object], key: str, *, low: int = 0, high: int = 2**53) -> int | None:
    """The whole number at `key`, or nothing when it is null or absent."""
    return None if order.get(key) is None else integer(order, key, low=low, high=high)


def texts(order: Mapping[str, object], key: str) -> tuple[str, ...]:
    """The strings in the list at `key`."""
    value = order.get(key)
    if not isinstance(value, list):
        raise Malformed(f"{key} is not a list")
    items = cast("list[object]", value)
    words = tuple(item for item in items if isinstance(item, str))
    if len(words) != len(items):
        raise Malformed(f"{key} holds something else than strings")
    return words


def section(order: Mapping[str, object], key: str) -> dict[str, object]:
    """The object at `key`."""
    value = order.get(key)
    if not isinstance(value, dict):
        raise Malformed(f"{key} is not an object")
    return cast("dict[str, object]", value)


def pairs(order: Mapping[str, object], key: str) -> dict[str, str]:
    """The object at `key`, whose values are strings."""
    value = section(order, key)
    words = {name: item for name, item in value.items() if isinstance(item, str)}
    if len(words) != len(value):
        raise Malformed(f"{key} holds something else than strings")
    return words
