"""Edits of the session that is on the screen, fenced by what was last seen of it.

Nothing is sent again by itself. An edit whose reply was lost is kept as it was sent; the same command, typed next,
sends exactly that once more, and the server tells what became of it the first time. Any other command gives it up. What
was seen is never freshened silently: an edit that somebody else came before is refused, and the person decides.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Final, final

from pydantic import JsonValue

from hermes_ws.cli.opening import Opened
from hermes_ws.cli.view import View
from hermes_ws.client.failures import OutcomeUnknown, RemoteError
from hermes_ws.client.link import Link
from hermes_ws.contract.methods.mutations import SESSION_MUTATE, Mutated, MutateParams

SUMMARY_SECONDS: Final = 660.0
"""A summary is made by a model, which may take its time."""

EDIT_SECONDS: Final = 30.0
"""Any other edit is a transaction."""


@final
class Mutations:
    """The edits of one view. `kept` is the one whose outcome is not known."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._kept: tuple[str, MutateParams] | None = None

    def give_up(self, line: str) -> None:
        """Another command was typed: what is kept is not sent again."""
        if self._kept is not None and self._kept[0] != line:
            self._kept = None

    async def carry_out(
        self,
        link: Link,
        opened: Opened,
        line: str,
        operation: str,
        payload: Mapping[str, JsonValue],
        consent: str | None = None,
    ) -> Mutated:
        """Send the edit, or the one that is kept for this line. Raises ClientError."""
        if self._kept is not None and self._kept[0] == line and consent is None:
            params = self._kept[1]
        else:
            params = self._prepared(opened, operation, payload, consent)
        try:
            result = await link.call(
                SESSION_MUTATE,
                params,
                deadline_s=SUMMARY_SECONDS if operation == "compress" else EDIT_SECONDS,
            )
        except OutcomeUnknown as error:
            self._kept = (line, params)
            error.hint = "Type the same once more to learn what became of it; it is carried out once."
            raise
        except RemoteError:
            self._kept = None
            raise
        self._kept = None
        self._view.revision = max(self._view.revision, result.revision)
        return result

    def _prepared(
        self, opened: Opened, operation: str, payload: Mapping[str, JsonValue], consent: str | None
    ) -> MutateParams:
        fenced = operation != "rename" and self._view.generation is not None
        return MutateParams(
            session_id=opened.session_id,
            thread_id=opened.thread_id,
            request_id=uuid.uuid4().hex,
            expected_revision=self._view.revision,
            expected_generation=self._view.generation if fenced else None,
            operation=operation,
            payload=dict(payload),
            consent=consent,
        )
