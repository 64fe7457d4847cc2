"""What subagents do, told in passing in the thread that waits for them.

It is read from a subagent's own thread, where all of it stands, and is live only: a line for each step that is
committed there. Whoever wants more opens that thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, final

import orjson

from hermes_ws.journal.tail import ThreadTail
from hermes_ws.wire.cursor import Cursor

LINE_CHARACTERS: Final = 500
"""Of one step: enough to see what it is about, and a fraction of a live piece."""

_LOOK_BYTES: Final = 256 * 1024
"""Of events that are looked at in one go."""

_TOLD: Final = frozenset(("tool.start", "tool.complete", "message.complete", "request.opened"))
"""Events that are a step. The others follow from these, or are of no interest elsewhere."""


@final
class Progress:
    """The progress of one subagent, from now until `end`. It listens, and keeps nobody waiting."""

    def __init__(
        self, told_in: ThreadTail, subagent_id: str, tail: ThreadTail, *, execution_generation: int, admission_id: str
    ) -> None:
        self._told_in = told_in
        self._id = subagent_id
        self._tail = tail
        self._place = Cursor(tail.generation, tail.head)
        told_in.live_begin(
            "subagent.progress", subagent_id, execution_generation=execution_generation, admission_id=admission_id
        )
        tail.attach(self._look)

    def end(self) -> None:
        """Forget what was told. Called in the step in which the result becomes visible; a second time does nothing."""
        self._tail.detach(self._look)
        self._told_in.live_end("subagent.progress", self._id)

    def _look(self) -> None:
        while True:
            taken = self._tail.take(self._place, None, _LOOK_BYTES)
            if taken.missing:
                # Replaced, or further on than what is kept: go on from what happens next.
                self._place = Cursor(self._tail.generation, self._tail.head)
                return
            self._place = taken.cursor
            lines = [line(orjson.loads(each.json)["params"]) for each in taken.frames if each.type in _TOLD]
            self._told_in.live_append("subagent.progress", self._id, "".join(lines))
            if not taken.more:
                return


def line(event: Mapping[str, Any]) -> str:
    """The line that an event is told with, with its end; empty for one that is no step."""
    payload = event["payload"]
    match event["type"]:
        case "tool.start":
            said = f"{payload['name']} {orjson.dumps(payload['arguments']).decode()}"
        case "tool.complete" if payload["is_error"]:
            said = f"{payload['name']} failed: {payload['output']}"
        case "message.complete" if payload["role"] == "assistant":
            said = payload["text"]
        case "request.opened":
            said = f"waits for an answer: {payload['kind']}"
        case _:
            said = ""
    said = " ".join(said[: 2 * LINE_CHARACTERS].split())[:LINE_CHARACTERS]
    return f"{said}\n" if said else ""
