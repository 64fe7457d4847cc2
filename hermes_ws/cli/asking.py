"""Asking a server for one thing and showing the answer: what the commands that look after things have in common.

A refusal is told as a refusal. A reply that was lost is told as an outcome that is not known; nothing is sent
again.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Final, Protocol, TypeVar

import anyio
import orjson
from pydantic import ValidationError

from hermes_ws.cli import exits
from hermes_ws.cli.alone import alone
from hermes_ws.cli.environment import Surroundings, read_environment
from hermes_ws.cli.locating import QUIET_SECONDS, Where
from hermes_ws.cli.sanitise import harmless
from hermes_ws.cli.screen import Screen, Style
from hermes_ws.client.connect import Abilities, connect_to
from hermes_ws.client.ensure import State
from hermes_ws.client.failures import ClientError, ConnectFailed, OutcomeUnknown, RemoteError
from hermes_ws.client.incoming import first_problem
from hermes_ws.contract.errors import HermesError
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

Here = Callable[[Path], T]
"""Does without a server what one of this machine, the owner of the root that is given, is too old to do."""

TOO_OLD: Final = (-32601, 4000)
"""A server answers so that does not know the method, or not all of its parameters."""


def run(
    ask: Ask[T],
    show: Callable[[T, Screen], None],
    *,
    as_json: bool,
    by_itself: bool = False,
    here: Here[T] | None = None,
    after: Callable[[T, Surroundings], list[str]] | None = None,
) -> int:
    """Ask, print, and give the exit status.

    Where no server runs one is started; with `by_itself` none is: a process that serves this one request and ends does
    it, under the lock that a server would hold. What an older server of this machine cannot do is done by `here`; a
    server that is named by a URL is never gone around. `after` does what is left to do on this side, and tells of it.
    """
    surroundings = read_environment()
    out = Screen(sys.stdout, surroundings)
    err = Screen(sys.stderr, surroundings, beside=out)

    where = Where(surroundings)

    def tell(error: ClientError) -> int:
        where.tell(err, error)
        if as_json:
            type = error.type if isinstance(error, RemoteError) else _type_of(error)
            told = {"type": type, "message": error.message, "hint": where.hint(error)}
            out.line(orjson.dumps({"error": told}).decode())
        return exits.FAILED

    async def ask_once() -> int:
        try:
            # Where a server is waited for, that is told; a process that does it alone is part of the answer's time.
            async with (
                _patience(err) if by_itself else nullcontext(),
                _caller(where, surroundings, err, by_itself=by_itself) as caller,
                nullcontext() if by_itself else _patience(err),
            ):
                answer = await ask(caller, where.profile)
        except ClientError as error:
            older = here is not None and isinstance(error, RemoteError) and error.code in TOO_OLD and not where.named
            if here is None or not older:
                return tell(error)
            try:
                answer = here((await where.found()).root)
            except HermesError as refusal:
                return tell(RemoteError(refusal.code, refusal.message, {"type": refusal.type, "hint": refusal.hint}))
        except ValidationError as error:
            err.line(f"Error: {harmless(first_problem(error))}", Style.ERROR)
            return exits.REFUSED
        if as_json:
            out.line(orjson.dumps(answer.model_dump(mode="json")).decode())
        else:
            show(answer, out)
        for line in after(answer, surroundings) if after is not None else ():
            err.line(harmless(line))
        return exits.DONE

    return anyio.run(ask_once, backend="trio")


def _type_of(error: ClientError) -> str:
    """What a program is told of an error that no server gave a type."""
    return "outcome_unknown" if isinstance(error, OutcomeUnknown) else "not_reached"


@asynccontextmanager
async def _patience(err: Screen) -> AsyncGenerator[None]:
    """Tell a person, once, that an answer takes its time. A program has no use for it."""

    async def tell() -> None:
        await anyio.sleep(QUIET_SECONDS)
        if err.interactive:
            err.line("This takes a moment ...", Style.DIM)

    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tell, name="patience")
        try:
            yield
        except Exception as error:
            failure = error  # raised below, so that no exception group is put around it
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


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
