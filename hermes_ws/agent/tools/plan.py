"""The plan that a model keeps of its work. It is what its last call said, so it needs no storage of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, final

from pydantic import Field, JsonValue

from hermes_ws.agent.history import calls_of
from hermes_ws.contract.content import Message
from hermes_ws.contract.errors import InvalidParams
from hermes_ws.contract.model import Params
from hermes_ws.contract.validation import read_params

ITEMS: Final = 100
"""Items of one plan; a longer one is no plan."""

_MARKS: Final = (("pending", "[ ]"), ("in_progress", "[>]"), ("completed", "[x]"), ("cancelled", "[-]"))


class Item(Params):
    """One thing to do."""

    text: str = Field(min_length=1, max_length=500)
    status: Literal["pending", "in_progress", "completed", "cancelled"] = "pending"


class TodoParams(Params):
    """The whole plan, or nothing to read it."""

    items: list[Item] | None = Field(
        default=None, max_length=ITEMS, description="The whole plan, in order; leave it out to read it."
    )


@final
class Plan:
    """The plan of a thread, as the turn knows it."""

    def __init__(self) -> None:
        self.items: Sequence[Item] = ()

    def recall(self, history: Sequence[Message]) -> None:
        """Take it from what was said before."""
        self.items = _last(history)

    def shown(self) -> str:
        """One item a line, with a mark for its status."""
        marks = dict(_MARKS)
        return "\n".join(f"{marks[each.status]} {each.text}" for each in self.items) or "(the plan is empty)"


def _last(history: Sequence[Message]) -> Sequence[Item]:
    for message in reversed(history):
        for call in reversed(calls_of(message)):
            if call.name == "todo" and call.arguments.get("items") is not None:
                try:
                    return read_params(TodoParams, dict[str, JsonValue](call.arguments)).items or ()
                except InvalidParams:
                    continue  # It was refused then as well.
    return ()
