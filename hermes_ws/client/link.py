"""A connection that comes back: dials again with growing, jittered pauses, and lets work go on over it.

The life of a link: *opening* until the first connection stands (a failure there is told at once, not tried again);
*up* while there is a connection; *down* while it is dialled again; *over* when its block ends or the server says that
coming back is useless. The endpoint is looked up before each dial, because a restarted server has a new token.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import TypeVar, final

import anyio

from hermes_ws.client.connect import Abilities, connect_to
from hermes_ws.client.discovery import Endpoint
from hermes_ws.client.failures import ClientError, ConnectFailed, ConnectionLost, NotSent, OutcomeUnknown
from hermes_ws.client.gateway import CALL_SECONDS, Gateway
from hermes_ws.contract.methods.prompts import SubmitParams
from hermes_ws.contract.methods.sessions import CreateParams
from hermes_ws.contract.model import Params, Result
from hermes_ws.contract.registry import Method

P = TypeVar("P", bound=Params)
R = TypeVar("R", bound=Result)

FIRST_PAUSE = 0.1
"""Seconds before the first dial after a loss: short, for most losses are restarts of something nearby."""

LONGEST_PAUSE = 10.0
"""Seconds between dials in the long run: a thousand clients of one server are then a hundred dials a second."""

STEADY_SECONDS = 10.0
"""How long a connection must have stood for the pauses to begin anew; one that breaks at once is no success."""

PATIENCE_SECONDS = 60.0
"""How long a call waits for the connection to come back before it gives up."""

Locate = Callable[[], Endpoint]
"""Looks the endpoint up. Raises ConnectFailed when there is none; `retry` tells whether one may appear."""


def pauses(chance: random.Random) -> Iterator[float]:
    """Seconds to wait before each dial: doubling to LONGEST_PAUSE, each between half and all of its value."""
    pause = FIRST_PAUSE
    while True:
        yield pause * chance.uniform(0.5, 1.0)
        pause = min(pause * 2, LONGEST_PAUSE)


@final
class Link:
    """The connection there is, or will be again. `linked` makes it, and ends it with its block."""

    def __init__(self, locate: Locate, abilities: Abilities, chance: random.Random) -> None:
        self._locate = locate
        self._abilities = abilities
        self._chance = chance
        self._gateway: Gateway | None = None
        self._failure: ClientError | None = None
        self._changed = anyio.Event()
        self.opened = 0

    @property
    def current(self) -> Gateway | None:
        """The connection, while there is one."""
        return self._gateway

    async def gateway(self) -> Gateway:
        """The connection, as soon as there is one. Raises ConnectFailed or ConnectionLost where waiting is useless."""
        while True:
            if self._failure is not None:
                raise self._failure
            if self._gateway is not None and self._gateway.lost is None:
                return self._gateway
            await self._changed.wait()

    async def call(
        self,
        method: Method[P, R],
        params: P,
        *,
        deadline_s: float = CALL_SECONDS,
        patience_s: float = PATIENCE_SECONDS,
    ) -> R:
        """As `Gateway.call`, waiting for the connection to come back where that is safe.

        A request that never left is sent on the next connection. One whose reply was lost is sent again only when it
        carries an id by which the server knows it (`input_id`, `request_id`); else OutcomeUnknown is raised.
        """
        failure: ClientError = NotSent(method.name, f"there was no connection for {patience_s:g} s")
        until = anyio.current_time() + patience_s
        while True:
            gateway = await self._gateway_until(until)
            if gateway is None:
                raise failure
            try:
                return await gateway.call(method, params, deadline_s=deadline_s)
            except (NotSent, OutcomeUnknown) as error:
                if gateway.lost is None or (isinstance(error, OutcomeUnknown) and not has_key(params)):
                    raise
                failure = error

    async def _gateway_until(self, deadline: float) -> Gateway | None:
        with anyio.CancelScope(deadline=deadline):
            return await self.gateway()
        return None

    async def run(self) -> None:
        """Keep a connection, until cancelled or until there is no use in it."""
        delays = pauses(self._chance)
        while True:
            stood_since: float | None = None
            endpoint: Endpoint | None = None
            try:
                endpoint = self._locate()
                async with connect_to(endpoint, self._abilities) as gateway:
                    stood_since = anyio.current_time()
                    self.opened += 1
                    self._tell(gateway, None)
                    reason = await gateway.wait_lost()
            except ConnectFailed as error:
                reason = error
            useless = isinstance(reason, ConnectFailed | ConnectionLost) and not reason.retry
            if useless and self.opened and endpoint is not None and self._moved(endpoint):
                useless = False  # it was looked up before the server that answered wrote its own token
            if useless or not self.opened:
                self._tell(None, reason)
                return
            self._tell(None, None)
            if stood_since is not None and anyio.current_time() - stood_since >= STEADY_SECONDS:
                delays = pauses(self._chance)
            await anyio.sleep(next(delays))

    def _moved(self, endpoint: Endpoint) -> bool:
        try:
            return self._locate() != endpoint
        except ConnectFailed:
            return False

    def _tell(self, gateway: Gateway | None, failure: ClientError | None) -> None:
        self._gateway, self._failure = gateway, failure
        self._changed.set()
        self._changed = anyio.Event()


def has_key(params: Params) -> bool:
    """Whether the server would know this request again, and answer it with what the first one got."""
    return isinstance(params, SubmitParams) or (isinstance(params, CreateParams) and params.request_id is not None)


@asynccontextmanager
async def linked(
    locate: Locate, abilities: Abilities | None = None, *, chance: random.Random | None = None
) -> AsyncGenerator[Link]:
    """A link whose first connection stands. Raises ConnectFailed when it does not come about."""
    link = Link(locate, abilities or Abilities(), chance or random.Random())
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(link.run, name="link")
        try:
            await link.gateway()
            yield link
        except Exception as error:
            failure = error  # raised below, so that no exception group is put around it
        finally:
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
