"""One committed event, and the forms in which it leaves: a frame for the socket, an envelope for a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import orjson

from hermes_ws.contract.events import Envelope
from hermes_ws.journal.address import Address
from hermes_ws.wire.cursor import Cursor
from hermes_ws.wire.frames import Frame, event_frame


@final
@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event as it is stored. `payload` is its JSON, encoded when it was appended; `ts` is seconds since 1970."""

    generation: int
    seq: int
    type: str
    ts: float
    payload: bytes
    execution_generation: int | None = None
    admission_id: str | None = None

    @property
    def cursor(self) -> Cursor:
        """Where a client stands that has applied this event."""
        return Cursor(self.generation, self.seq)

    def frame(self, address: Address) -> Frame:
        """The notification of this event. The payload's bytes go in as they are; fields that are null are left out."""
        return event_frame(
            {
                "type": self.type,
                "profile": address.profile,
                "session_id": address.session_id,
                "thread_id": address.thread_id,
                "cursor": f"{self.generation}:{self.seq}",
                "seq": self.seq,
                "execution_generation": self.execution_generation,
                "admission_id": self.admission_id,
                "ts": self.ts,
                "payload": orjson.Fragment(self.payload),
            }
        )

    def envelope(self, address: Address) -> Envelope:
        """The same as a value, for `session.events.since`."""
        return Envelope(
            type=self.type,
            profile=address.profile,
            session_id=address.session_id,
            thread_id=address.thread_id,
            cursor=str(self.cursor),
            seq=self.seq,
            execution_generation=self.execution_generation,
            admission_id=self.admission_id,
            ts=self.ts,
            payload=orjson.loads(self.payload),
        )
