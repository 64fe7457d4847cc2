"""Answering what the server asks through this connection.

A handler is given the question and returns the answer, or None to leave it open: then another client, or this one
later through `question.answer`, may answer. A kind that the contract of this client does not know is declined with
"method not found", so that the agent is told at once that nobody was asked (case ASK-15). A handler that fails leaves
the question open: a bug in a program is not a decision of a person.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar, final

from pydantic import JsonValue

from hermes_ws.client.incoming import Asked
from hermes_ws.contract.model import Params
from hermes_ws.contract.questions import QUESTIONS

Handler = Callable[[Asked], Awaitable[Params | None]]

H = TypeVar("H", bound=Handler)


@final
class Handlers:
    """The handlers of one client, by kind. The same object serves every connection that the client makes."""

    def __init__(self) -> None:
        self._by_kind: dict[str, Handler] = {}

    def answers(self, kind: str) -> Callable[[H], H]:
        """Decorator: this function answers questions of `kind`. A kind has one handler; the last one counts."""
        if kind not in QUESTIONS:
            raise ValueError(f"{kind} is no kind of question; there are {', '.join(sorted(QUESTIONS))}")

        def register(handler: H) -> H:
            self._by_kind[kind] = handler
            return handler

        return register

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds that have a handler."""
        return tuple(sorted(self._by_kind))

    def knows(self, asked: Asked) -> bool:
        """Whether the contract of this client has the kind at all."""
        return asked.kind in QUESTIONS

    async def answer(self, asked: Asked) -> Mapping[str, JsonValue] | None:
        """What the handler says, as JSON; None when there is none or it leaves the question open."""
        handler = self._by_kind.get(asked.kind)
        if handler is None:
            return None
        result = await handler(asked)
        return None if result is None else result.model_dump(mode="json")
