"""Finding what was said: full-text search over the messages of one home.

The index is SQLite's FTS5, kept by triggers in the transaction that stores or removes a message, so that it can neither
lag nor find what is gone. Words match whole, whatever their case and accents; the last one also as a beginning, so that
a search can be typed. A home is searched by itself: there is no search over several.
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from typing import Final, final

SNIPPET_WORDS: Final = 24
"""Words of a message that a hit shows: two lines."""

QUERY_WORDS: Final = 16
"""Words of a query that are looked for; more is a text, not a question."""

_WORD: Final = re.compile(r"\w+")
_BEGIN, _END = "\x02", "\x03"
"""Around a match within a snippet. Control characters, so that a message that has brackets cannot be mistaken."""


@final
@dataclass(frozen=True, slots=True)
class Hit:
    """One message that matches. `matches` are the ranges of `snippet` that do, in code points."""

    session_id: str
    thread_id: str
    message_id: str
    role: str
    title: str | None
    archived: bool
    updated_at: float
    snippet: str
    matches: tuple[tuple[int, int], ...]


def search(connection: sqlite3.Connection, query: str, limit: int) -> list[Hit]:
    """The messages that have all words of the query, the best match first. Nothing for a query without words."""
    wanted = _expression(query)
    if not wanted:
        return []
    rows = connection.execute(
        "SELECT t.session_id, t.thread_id, m.message_id, m.role, s.title, s.archived, s.updated_at,"
        " snippet(message_search, 0, ?, ?, '…', ?)"
        " FROM message_search JOIN message m ON m.id = message_search.rowid JOIN thread t ON t.id = m.thread"
        " JOIN session s ON s.session_id = t.session_id WHERE message_search MATCH ? ORDER BY rank, m.id DESC LIMIT ?",
        (_BEGIN, _END, SNIPPET_WORDS, wanted, limit),
    )
    found: list[Hit] = []
    for session_id, thread_id, message_id, role, title, archived, updated_at, text in rows:
        snippet, matches = _marked(text)
        found.append(Hit(session_id, thread_id, message_id, role, title, bool(archived), updated_at, snippet, matches))
    return found


def _expression(query: str) -> str:
    """The query as FTS5 reads it: every word quoted, so that nothing in it is an operator."""
    words = [f'"{word}"' for word in _WORD.findall(query)[:QUERY_WORDS]]
    return " ".join(words) + "*" if words else ""


def _marked(snippet: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    text, ranges = "", list[tuple[int, int]]()
    for number, part in enumerate(re.split(f"[{_BEGIN}{_END}]", snippet)):
        if number % 2:
            ranges.append((len(text), len(text) + len(part)))
        text += part
    return text, tuple(ranges)
