"""A title for a session that has none: the first words that were said in it, and then what a model calls it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, final

import trio

from hermes_ws.agent.models.model import Model
from hermes_ws.agent.request import TurnSettings
from hermes_ws.agent.titling import first_words, suggest
from hermes_ws.contract.content import Message, Usage
from hermes_ws.contract.errors import HermesError, StaleEpoch
from hermes_ws.contract.events import SessionInfo
from hermes_ws.journal import messages, sessions, spending
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.sessions import SessionRecord
from hermes_ws.journal.transaction import Transaction
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.session.info import session_info
from hermes_ws.session.ports import Runtime

DEADLINE_S: Final = 30.0
"""Seconds that a model has for a title. A small one needs one or two; nobody waits: the first words stand there."""

LOCAL: Final = "local"
"""The provider whose small models keep this machine busy for a title that is worse than the first words."""

CLOSING_S: Final = 2.0
"""Seconds that closing the connections of a model may take; it only has to say goodbye."""


async def give_title(
    runtime: Runtime, key: ThreadKey, session: SessionRecord, text: str, scope: ProfileScope
) -> SessionRecord | None:
    """Name a session after its first input, unless somebody has named it; the session with that title.

    It is no edit: the revision stays.
    """
    title = first_words(scope.secrets.redact(text))
    if session.title is not None or not title:
        return None
    return await _put(runtime, key, None, title, scope)


@final
@dataclass(frozen=True, slots=True)
class Naming:
    """A session that bears its first words as a title, and what a better one is asked of."""

    runtime: Runtime
    key: ThreadKey
    session: SessionRecord
    scope: ProfileScope
    settings: TurnSettings
    model: Callable[[], Model]
    titled: Callable[[SessionRecord], None]

    async def run(self) -> None:
        """Have a model name the session, for as long as it bears the title that it has.

        What was consumed is counted for the session, whatever becomes of the title. What goes wrong changes nothing and
        is not told: the session has a title. Raises StaleEpoch.
        """
        try:
            await self._run()
        except StaleEpoch:
            raise
        except HermesError:
            return

    async def _run(self) -> None:
        found: tuple[str, Usage] | None = None
        history = await self.runtime.journal.read(lambda connection: messages.stored(connection, self.key))
        with trio.move_on_after(DEADLINE_S):
            model = self.model()
            try:
                if model.provider == LOCAL:
                    return
                found = await suggest(
                    model, *_beginning(history), redaction=self.scope.secrets, prices=self.settings.prices
                )
            finally:
                with trio.move_on_after(CLOSING_S, shield=True):
                    await model.aclose()
        if found is None:
            return
        title, usage = found
        if usage.input_tokens or usage.output_tokens:
            await self.runtime.journal.transact(lambda tx: spending.keep(tx, self.key, usage))
        if title and title != self.session.title:
            named = await _put(self.runtime, self.key, self.session, title, self.scope)
            if named is not None:
                self.titled(named)


async def _put(
    runtime: Runtime, key: ThreadKey, standing: SessionRecord | None, title: str, scope: ProfileScope
) -> SessionRecord | None:
    """Give a title to a session that has none, or that nobody has edited since it was `standing`; it, if it got it."""
    known = (
        ("title IS NULL", ())
        if standing is None
        else ("title IS ? AND revision = ?", (standing.title, standing.revision))
    )

    def work(tx: Transaction) -> SessionRecord | None:
        statement = f"UPDATE session SET title = ? WHERE session_id = ? AND {known[0]}"
        named = tx.connection.execute(statement, (title, key.session_id, *known[1]))
        record = sessions.get(tx.connection, key.session_id)
        if not named.rowcount or record is None:
            return None
        tx.append(key, "session.info", SessionInfo(revision=record.revision, info=session_info(record, scope)))
        return record

    return await runtime.journal.transact(work)


def _beginning(history: Sequence[Message]) -> tuple[str, str]:
    """The first question, and the last words of what it was answered with."""
    asked = next((each.text for each in history if each.role == "user"), "")
    answered = next((each.text for each in reversed(history) if each.role == "assistant" and each.text.strip()), "")
    return asked, answered
