"""The life of a subscription, as a table.

It is *following* while its client has been given all that the thread has, *ready* from the moment in which there is
more than the socket took at once until its turn comes, and *reading* while a page of what is older than the tail comes
from the database. It has *ended* with `unsubscribe`, with its connection, or when another one took its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, final


@final
class Phase(Enum):
    """Where a subscription stands."""

    FOLLOWING = "following"
    READY = "ready"
    READING = "reading"
    ENDED = "ended"


@final
class Happened(Enum):
    """What moves it on."""

    NEWS = "the thread has what could not be given at once"
    GIVEN = "its turn came, and there is no more"
    ELSEWHERE = "its turn came, and what follows is in the database alone"
    READ = "a page was read"
    UNSUBSCRIBED = "the client follows the thread no longer, or the connection ends"


TRANSITIONS: Final[Mapping[tuple[Phase, Happened], Phase]] = MappingProxyType(
    {
        (Phase.FOLLOWING, Happened.NEWS): Phase.READY,
        (Phase.READY, Happened.GIVEN): Phase.FOLLOWING,
        (Phase.READY, Happened.ELSEWHERE): Phase.READING,
        (Phase.READING, Happened.READ): Phase.FOLLOWING,
        **{(phase, Happened.UNSUBSCRIBED): Phase.ENDED for phase in (Phase.FOLLOWING, Phase.READY, Phase.READING)},
    }
)
"""What happens to one that has ended changes nothing, nor does a turn that found it elsewhere."""
