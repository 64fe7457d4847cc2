"""Many connections that are idle: what each costs in memory, against the minimal server; and ten thousand of them."""

from __future__ import annotations

import resource
import time
from statistics import median

from bench import homes
from bench.figure import Figure
from bench.load import Peer, masked
from bench.serve import Served, resident, started_bare, started_server

ROUNDS = 5
"""Odd, so that the median was measured."""

WARM = 200
"""Connections before the first measurement: the first ones find memory that later ones have to ask for."""

MANY = 600
"""Connections whose memory is measured."""

VERY_MANY = 10_000

SETTLE = 1.0
"""Seconds in which handshakes are tidied up."""

_NEGOTIATE = (
    b'{"jsonrpc":"2.0","id":1,"method":"client.capabilities","params":'
    b'{"client":{"name":"bench"},"protocol":{"major":1,"minor":0},"server_requests":false}}'
)
_SUBSCRIBE = (
    b'{"jsonrpc":"2.0","id":2,"method":"thread.subscribe","params":{"session_id":"%s","messages":false}}'
    % homes.SESSION.encode()
)


def subscribed(served: Served) -> Peer:
    """An authenticated connection that has said what it can and follows the thread."""
    peer = Peer(served.port, served.token)
    peer.answer(_NEGOTIATE)
    if b'"error"' in peer.answer(_SUBSCRIBE)[:60]:
        raise RuntimeError("the subscription was refused")
    return peer


def _idle_ours(count: int) -> tuple[float, float]:
    """KiB of each connection, and how many were opened a second."""
    with started_server(lambda root: homes.write(root / "default", 10)) as served:
        kept = [subscribed(served) for _ in range(WARM)]
        time.sleep(SETTLE)
        before, began = resident(served.pid), time.perf_counter()
        kept += [subscribed(served) for _ in range(count)]
        rate = count / (time.perf_counter() - began)
        time.sleep(SETTLE)
        grown = resident(served.pid) - before
        kept[-1].socket.sendall(masked(b'{"jsonrpc":"2.0","id":9,"method":"gateway.ping"}'))
        kept[-1].read()
        for peer in kept:
            peer.socket.close()
        return grown / count / 1024, rate


def _idle_bare(count: int) -> tuple[float, float]:
    with started_bare() as served:
        kept = [Peer(served.port) for _ in range(WARM)]
        time.sleep(SETTLE)
        before, began = resident(served.pid), time.perf_counter()
        kept += [Peer(served.port) for _ in range(count)]
        rate = count / (time.perf_counter() - began)
        time.sleep(SETTLE)
        grown = resident(served.pid) - before
        for peer in kept:
            peer.socket.close()
        return grown / count / 1024, rate


def _room() -> bool:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < VERY_MANY + 500 <= hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= VERY_MANY + 1500


def figures() -> list[Figure]:
    """Memory of an idle connection, of one among ten thousand where the limits allow it, and how fast they come."""
    ours = [_idle_ours(MANY) for _ in range(ROUNDS)]
    bare = [_idle_bare(MANY) for _ in range(ROUNDS)]
    found = [
        Figure(
            "memory of an idle, subscribed connection",
            median(memory for memory, _ in ours),
            median(memory for memory, _ in bare),
            "KiB",
        ),
        Figure("connections opened and subscribed", median(rate for _, rate in ours), None, "/s"),
    ]
    if _room():
        memory, _ = _idle_ours(VERY_MANY - WARM)
        found.append(Figure(f"memory of each of {VERY_MANY:,} connections", memory, None, "KiB"))
    return found


if __name__ == "__main__":
    for figure in figures():
        print(figure.row())
