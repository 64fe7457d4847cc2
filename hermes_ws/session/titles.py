"""A title for a session that has none, from the first words that were said in it."""

from __future__ import annotations

from typing import Final

from hermes_ws.contract.events import SessionInfo
from hermes_ws.journal import sessions
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.database import Database, Transaction
from hermes_ws.journal.sessions import SessionRecord
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.session.info import session_info

TITLE: Final = 60
"""Characters: what a list shows on one line."""


async def give_title(journal: Database, key: ThreadKey, session: SessionRecord, text: str, scope: ProfileScope) -> None:
    """Name a session after its first input, unless somebody has named it. It is no edit: the revision stays."""
    title = title_of(scope.secrets.redact(text))
    if session.title is not None or not title:
        return

    def work(tx: Transaction) -> None:
        named = tx.connection.execute(
            "UPDATE session SET title = ? WHERE session_id = ? AND title IS NULL AND revision = ?",
            (title, key.session_id, session.revision),
        )
        record = sessions.get(tx.connection, key.session_id)
        if named.rowcount and record is not None:
            tx.append(key, "session.info", SessionInfo(revision=record.revision, info=session_info(record, scope)))

    await journal.transact(work)


def title_of(text: str) -> str:
    """The first line of words, cut at a word; lines of a script are passed over where there are others."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    line = next((each for each in lines if not each.startswith("/")), lines[0] if lines else "")
    if len(line) <= TITLE:
        return line
    return line[: TITLE - 1].rsplit(" ", 1)[0].rstrip(" ,.;:") + "…"
