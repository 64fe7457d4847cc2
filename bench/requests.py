"""What a request costs: authenticated, validated, scoped and dispatched, against the minimal server.

Rounds alternate between ours and bare, with the same client; each figure is the median of its rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from bench.figure import Figure
from bench.load import Load, Peer, parallel, serial
from bench.quiet import first_in_line
from bench.serve import Served, started_bare, started_server

ROUNDS = 5
"""Odd, so that the median was measured."""

SERIAL_CALLS = 3000
"""Calls of a round, one after the other: about half a second."""

PARALLEL_CALLS = 20_000
"""Calls of a round, many at once: about a second."""

CONNECTIONS, OUTSTANDING = 8, 16

_PARAMS = b'{"key":"model.provider"}'


def request(id: int) -> bytes:
    """A call that is bound to a profile and reads a setting: all layers, and next to no work behind them."""
    return b'{"jsonrpc":"2.0","id":%d,"method":"config.get","params":%s}' % (id, _PARAMS)


def figures() -> list[Figure]:
    """CPU per serial call, the median of its time, and the rate with many outstanding."""
    with first_in_line(), started_bare() as bare, started_server() as ours:
        one = {served: Peer(served.port, served.token) for served in (ours, bare)}
        many = {served: [Peer(served.port, served.token) for _ in range(CONNECTIONS)] for served in (ours, bare)}
        for served in (ours, bare):
            answer = one[served].answer(request(0))
            if b'"error"' in answer:
                raise RuntimeError(answer.decode())
        texts = [request(id) for id in range(OUTSTANDING)]
        alone: dict[Served, list[Load]] = {ours: [], bare: []}
        together: dict[Served, list[Load]] = {ours: [], bare: []}
        for _ in range(ROUNDS):
            for served in (ours, bare):
                alone[served].append(serial(one[served], request(0), SERIAL_CALLS, served.pid))
            for served in (ours, bare):
                together[served].append(parallel(many[served], texts, PARALLEL_CALLS, served.pid))
        return [
            Figure("request, CPU per call, serial", _cpu(alone[ours]), _cpu(alone[bare]), "µs"),
            Figure("request, p50, serial", _p50(alone[ours]), _p50(alone[bare]), "µs"),
            Figure("requests, 8 × 16 outstanding", _rate(together[ours]), _rate(together[bare]), "/s"),
            Figure("request, CPU per call, 8 × 16", _cpu(together[ours]), _cpu(together[bare]), "µs"),
        ]


def _cpu(loads: Sequence[Load]) -> float:
    return median(load.cpu_us for load in loads)


def _p50(loads: Sequence[Load]) -> float:
    return median(load.p50_us for load in loads)


def _rate(loads: Sequence[Load]) -> float:
    return median(load.rate for load in loads)


if __name__ == "__main__":
    for figure in figures():
        print(figure.row())
