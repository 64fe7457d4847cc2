"""Text from elsewhere, made harmless for a terminal.

A terminal obeys what it is sent: a model, a file or a command's output could move the cursor over a question, rename
the window, or answer in the user's place. So control characters are shown as pictures of themselves, and the marks
that turn the direction of writing around are left out. Works on any piece of a text; nothing is remembered.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from types import MappingProxyType

KEPT = frozenset("\n\t")
"""The control characters that a text needs."""


def _table() -> Mapping[int, str | None]:
    table: dict[int, str | None] = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in KEPT}
    table[0x7F] = "\u2421"
    table.update(dict.fromkeys(range(0x80, 0xA0), "\ufffd"))
    table.update(dict.fromkeys((0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))))
    table.update({0x0D: None, 0x2028: "\n", 0x2029: "\n"})
    return MappingProxyType(table)


_TABLE = _table()


def harmless(text: str) -> str:
    """The text, with lines and tabs kept and every other control character made visible or left out."""
    return text.translate(_TABLE)


def one_line(text: str, columns: int) -> str:
    """The beginning of the text as one harmless line that takes at most `columns` columns of a terminal."""
    flat = " ".join(harmless(text).split())
    if len(flat) <= columns and (flat.isascii() or sum(map(width, flat)) <= columns):
        return flat
    room = max(columns - 3, 0)
    for count, letter in enumerate(flat):
        room -= width(letter)
        if room < 0:
            return flat[:count] + "..."
    return flat


def width(letter: str) -> int:
    """How many columns of a terminal a character takes: two for wide ones, none for marks on the one before."""
    if letter.isascii():
        return 1
    if unicodedata.east_asian_width(letter) in "WF":
        return 2
    return 0 if unicodedata.combining(letter) else 1


def readable(text: str) -> str:
    """What was typed as an argument, without the bytes that are no text: they cannot be said to anybody."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
