"""`hermes-ws stdio --standalone`: a server whose one client is the process that started it.

No socket is opened and no token written: the pipes were given by the parent, who is the owner. Standard output carries
frames and nothing else; whatever else the process prints goes to standard error.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import AsyncIterator
from functools import partial
from typing import Final, final

import trio

from hermes_ws.contract.errors import HermesError
from hermes_ws.contract.events import DrainingNotice
from hermes_ws.contract.registry import Right
from hermes_ws.hosting.credentials import OWNER
from hermes_ws.hosting.host import Host
from hermes_ws.methods.ports import ServerFacts
from hermes_ws.methods.table import HANDLERS
from hermes_ws.server.audience import Audience
from hermes_ws.server.dispatch import Dispatch
from hermes_ws.server.ending import Ending
from hermes_ws.server.entry import Principal
from hermes_ws.server.limits import Limits
from hermes_ws.server.pipes import PipeConnection
from hermes_ws.server.process_log import ProcessLog
from hermes_ws.server.welcome import Greeting
from hermes_ws.wire.frames import event_frame

GOING_AWAY: Final = 1001
"""What `$/closed` says when the server is told to end (RFC 6455, section 7.4.1)."""

GOODBYE: Final = 5.0
"""Seconds that the parent has to read the last lines."""


@final
class Pipes:
    """The pipes to the parent, taken away from everything else in this process."""

    def __init__(self) -> None:
        incoming, outgoing = os.dup(0), os.dup(1)
        nowhere = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        os.dup2(nowhere, 0)
        os.close(nowhere)
        os.dup2(2, 1)
        self.incoming: Final = trio.lowlevel.FdStream(incoming)
        self.outgoing: Final = trio.lowlevel.FdStream(outgoing)


async def serve(
    host: Host,
    facts: ServerFacts,
    audience: Audience,
    log: ProcessLog,
    told: AsyncIterator[int],
    nursery: trio.Nursery,
    *,
    profile: str | None,
) -> None:
    """Serve the parent until its pipe ends or a signal comes; then what runs gets its time, as at any shutdown.

    `profile` is the one that the client is bound to.
    """
    config = host.launch_config
    skin = partial(audience.skin_of, host.launch.text, config.display.skin)
    sys.stdout.flush()
    pipes = Pipes()
    await host.open(host.launch)
    limits = config.limits
    ending = Ending(config.server.drain_s)
    dispatch = Dispatch(
        host,
        facts,
        HANDLERS,
        audience,
        log,
        width=limits.in_flight,
        frame_bytes=limits.frame_bytes,
        end=ending.ask,
    )
    await nursery.start(dispatch.run)
    client = PipeConnection(
        pipes.incoming,
        pipes.outgoing,
        principal=Principal(OWNER, profiles=None, rights=frozenset(Right)),
        profile=profile,
        dispatcher=dispatch,
        limits=Limits(frame_bytes=limits.frame_bytes, send_deadline=limits.send_deadline_s),
    )
    audience.follow(lambda: (client,))
    async with pipes.incoming, pipes.outgoing, trio.open_nursery() as serving:
        serving.start_soon(ending.hear, told, lambda: _reload(host, log))
        serving.start_soon(_end, ending, host, client)
        await client.run(Greeting(host, facts, limits, skin))
        serving.cancel_scope.cancel()
    await host.drain(ending.deadline_s)


async def _reload(host: Host, log: ProcessLog) -> None:
    for runtime in host.open_runtimes():
        try:
            await runtime.reload()
        except HermesError as error:
            log.warning("reload refused", type=error.type)


async def _end(ending: Ending, host: Host, client: PipeConnection) -> None:
    """Once the end is asked for: give what runs its time, or less when it is asked for again, and say goodbye."""
    await ending.asked()
    notice = DrainingNotice(deadline=time.time() + ending.deadline_s).model_dump()
    client.notify(event_frame({"type": "gateway.draining", "ts": time.time(), "payload": notice}))
    async with trio.open_nursery() as nursery:

        async def hurry() -> None:
            await ending.hurried()
            await host.drain(0)

        nursery.start_soon(hurry)
        await host.drain(ending.deadline_s)
        nursery.cancel_scope.cancel()
    client.close(GOING_AWAY, "the server is shutting down")
    with trio.move_on_after(GOODBYE):
        await client.wait_ended()
    client.cut()
