"""The life of a connection, as a table.

While a connection is *closing*, what was queued before the close frame is still sent, and nothing that arrives is
looked at. One that has *ended* has told its dispatcher, follows no thread and holds no descriptor. It ends at once
when its socket breaks, when nothing was heard since the last ping but one, and when the socket took nothing for the
send deadline; what it had not sent is in the journal, for the next connection.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final, final

from hermes_ws.server.delivery import DeliveryStatistics

RESUME: Final = 4400
"""Close code: reconnect and resume."""

SEND_STALLED: Final = 4412
"""Close code: nothing was taken for the send deadline; reconnect and resume."""

OVERLOADED: Final = 4429
"""Close code: the client asks and does not read; reconnect and resume."""


@final
class Life(Enum):
    """Where a connection is."""

    OPEN = "open"
    CLOSING = "closing"
    ENDED = "ended"


@final
class Turn(Enum):
    """What moves it on."""

    CLOSE_SENT = "we said goodbye, asked to or because a rule was broken"
    CLOSE_RECEIVED = "the client said goodbye"
    HUNG_UP = "the client's end of the socket is closed, or broke"
    DEADLINE = "a ping, a send or a goodbye was not answered in time"
    CUT = "the server ends"


ENDINGS: Final = (Turn.HUNG_UP, Turn.DEADLINE, Turn.CUT)
"""After these there is nobody left to say anything to, whatever was said before."""

TRANSITIONS: Final[Mapping[tuple[Life, Turn], Life]] = MappingProxyType(
    {
        (Life.OPEN, Turn.CLOSE_SENT): Life.CLOSING,
        (Life.OPEN, Turn.CLOSE_RECEIVED): Life.CLOSING,
        **{(life, turn): Life.ENDED for life in (Life.OPEN, Life.CLOSING) for turn in ENDINGS},
    }
)
"""A turn that is not here changes nothing: what has been said goodbye to cannot be said goodbye to again."""


@final
@dataclass(frozen=True, slots=True)
class ConnectionStatistics:
    """What a connection holds now. `owed` is the number of requests without an answer."""

    life: Life
    unread_frames: int
    unread_bytes: int
    owed: int
    delivery: DeliveryStatistics
