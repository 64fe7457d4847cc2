"""Wrong credentials are answered late, so that guessing is slow; right ones never are, whoever else fails.

Each address has a delay that grows with its failures and is forgotten when it has been quiet. What waits is bounded per
address: the next failure beyond that is not answered at all.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from typing import Final, final

import trio

SHORTEST: Final = 0.2
"""Seconds before the first refusal: not noticed by somebody who mistyped."""

LONGEST: Final = 2.0
"""Seconds before any further one: below the time-outs of clients, so that they learn that they are refused."""

WAITING: Final = 32
"""Refusals that wait per address; a person with several programs stays below it."""

FORGOTTEN_AFTER: Final = 60.0
"""Seconds without a failure after which an address begins anew."""

ADDRESSES: Final = 1024
"""Addresses that are remembered; beyond it the one that was quiet longest is forgotten."""


@final
class _Record:
    __slots__ = ("delay", "last", "waiting")

    def __init__(self) -> None:
        self.delay = SHORTEST
        self.last = 0.0
        self.waiting = 0


@final
class Lateness:
    """The failures of all addresses."""

    __slots__ = ("_records",)

    def __init__(self) -> None:
        self._records: OrderedDict[str, _Record] = OrderedDict()

    async def wait(self, address: str) -> bool:
        """Wait as long as a failure of this address is to wait. False at once when too many of it wait already."""
        record = self._record(_network(address))
        if record.waiting >= WAITING:
            return False
        now = trio.current_time()
        if now - record.last > FORGOTTEN_AFTER:
            record.delay = SHORTEST
        record.last = now
        delay = record.delay
        record.delay = min(delay * 2, LONGEST)
        record.waiting += 1
        try:
            await trio.sleep(delay)
        finally:
            record.waiting -= 1
        return True

    def waiting(self, address: str) -> int:
        """How many failures of an address wait now."""
        record = self._records.get(_network(address))
        return 0 if record is None else record.waiting

    def _record(self, address: str) -> _Record:
        record = self._records.get(address)
        if record is None:
            record = self._records[address] = _Record()
            while len(self._records) > ADDRESSES:
                self._records.popitem(last=False)
        self._records.move_to_end(address)
        return record


def _network(address: str) -> str:
    """What one guesser can choose from freely counts as one: with IPv6 that is at least a /64."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.version == 6:
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return address
