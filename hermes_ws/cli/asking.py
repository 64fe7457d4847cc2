"""Asking a server for one thing and showing the answer: what the commands that look after things have in common.

A refusal is told as a refusal. A reply that was lost is told as an outcome that is not known; nothing is sent
again.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, Protocol, TypeVar

import anyio
import orjson
from pydantic import ValidationError

from hermes_ws.cli import exits
from hermes_ws.cli.alone import alone
from hermes_ws.cli.environment import Surroundings, read_environment
from hermes_ws.cli.locating import Where
from hermes_ws.cli.sanitise import harmless
from hermes_ws.cli.screen import Screen, Style
from hermes_ws.client.connect import Abilities, connect_to
from hermes_ws.client.ensure import State
from hermes_ws.client.failures import ClientError, ConnectFailed
from hermes_ws.client.incoming import first_problem
from hermes_ws.contract.model import Params, Result
from hermes_ws.contract.registry import Method

P = TypeVar("P", bound=Params)
R = TypeVar("R", bound=Result)
T = TypeVar("T", bound=Result)

PATIENCE: Final = 3600.0
"""Seconds for an answer: an archive of a large home takes its time, and a person can interrupt."""


class Caller(Protocol):
    """A server that can be asked."""

    async def call(self, method: Method[P, R], params: P, *, deadline_s: float) -> R:
        """The answer. Raises ClientError."""
        ...


Ask = Callable[[Caller, str | None], Awaitable[T]]
"""Asks for what is wanted, given the server and the name of this terminal's profile there, if it has one."""


def run(ask: Ask[T], show: Callable[[T, Screen], None], *, as_json: bool, by_itself: bool = False) -> int:
    """Ask, print, and give the exit status.

    Where no server runs one is started; with `by_itself` none is: a process that serves this one request and ends does
    it, under the lock that a server would hold.
    """
    surroundings = read_environment()
    out = Screen(sys.stdout, surroundings)
    err = Screen(sys.stderr, surroundings, beside=out)

    async def ask_once() -> int:
        where = Where(surroundings)
        try:
            async with _caller(where, surroundings, err, by_itself=by_itself) as caller:
                answer = await ask(caller, where.profile)
        except ClientError as error:
            where.tell(err, error)
            return exits.FAILED
        except ValidationError as error:
            err.line(f"Error: {harmless(first_problem(error))}", Style.ERROR)
            return exits.REFUSED
        if as_json:
            out.line(orjson.dumps(answer.model_dump(mode="json")).decode())
        else:
            show(answer, out)
        return exits.DONE

    return anyio.run(ask_once, backend="trio")


@asynccontextmanager
async def _caller(where: Where, surroundings: Surroundings, err: Screen, *, by_itself: bool) -> AsyncGenerator[Caller]:
    if by_itself and not where.named:
        found = await where.found()
        if found.state is State.ABSENT:
            async with alone(found.root, surroundings.environ) as caller:
                where.profile = found.profile
                yield caller
            return
        if found.state is not State.READY:
            raise ConnectFailed(f"{found.state.value}: {found.detail}", retry=False)
    else:
        await where.ensured(err)
    async with connect_to(where.locate(), Abilities("hermes-ws", live="none")) as gateway:
        yield gateway
