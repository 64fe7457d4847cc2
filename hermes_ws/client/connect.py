"""Opening a connection: dial, wait for `gateway.ready`, say what this client can do."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

import anyio
from pydantic import ValidationError

from hermes_ws import __version__
from hermes_ws.client.discovery import SOCKET_URL, Endpoint, remote
from hermes_ws.client.failures import (
    ConnectFailed,
    ConnectionLost,
    Incompatible,
    NotSent,
    OutcomeUnknown,
    RemoteError,
    ReplyRefused,
)
from hermes_ws.client.gateway import Gateway
from hermes_ws.client.incoming import first_problem, read
from hermes_ws.client.questions import Handlers
from hermes_ws.client.sockets import OPEN_SECONDS, Socket, open_socket
from hermes_ws.contract.events import Envelope, Protocol, Ready
from hermes_ws.contract.methods.connection import CLIENT_CAPABILITIES, CapabilitiesParams, ClientInfo, LiveLevel
from hermes_ws.contract.version import PROTOCOL_MAJOR, PROTOCOL_MINOR


@final
@dataclass(frozen=True, slots=True)
class Abilities:
    """What a client says about itself. `server_requests` are the kinds of questions that it shows to somebody, be it
    by a handler or in a way of its own; kinds that have a handler need not be named."""

    client_name: str = "hermes-ws-python"
    server_requests: tuple[str, ...] = ()
    live: LiveLevel = "full"
    opt_out: tuple[str, ...] = ()
    handlers: Handlers = field(default_factory=Handlers)


@asynccontextmanager
async def connect(
    url: str | None = None,
    *,
    socket: Path | None = None,
    token: str,
    client_name: str = "hermes-ws-python",
    server_requests: Sequence[str] = (),
    live: LiveLevel = "full",
    opt_out: Sequence[str] = (),
    handlers: Handlers | None = None,
) -> AsyncGenerator[Gateway]:
    """A negotiated connection to the server at `url`, or on its Unix `socket`; closed with the block.

    Raises ConnectFailed; ValueError for a URL that cannot be one. What the block raises comes out as it is.
    """
    if (url is None) == (socket is None):
        raise ValueError("give either a url or a socket")
    endpoint = Endpoint(SOCKET_URL, token, socket) if url is None else remote(url, token)
    abilities = Abilities(client_name, tuple(server_requests), live, tuple(opt_out), handlers or Handlers())
    async with connect_to(endpoint, abilities) as gateway:
        yield gateway


@asynccontextmanager
async def connect_to(endpoint: Endpoint, abilities: Abilities) -> AsyncGenerator[Gateway]:
    """As `connect`, for those who have an endpoint already."""
    failure: Exception | None = None
    async with open_socket(endpoint) as socket:
        ready = await _greeting(socket, endpoint)
        async with anyio.create_task_group() as tasks:
            gateway = Gateway(socket, ready, abilities.handlers, tasks)
            tasks.start_soon(gateway.read, name="read")
            tasks.start_soon(gateway.write, name="write")
            try:
                await _negotiate(gateway, endpoint, abilities)
                yield gateway
            except Exception as error:
                failure = error  # raised below, so that no exception group is put around it
            finally:
                with anyio.CancelScope(shield=True):
                    await gateway.close()
                tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _greeting(socket: Socket, endpoint: Endpoint) -> Ready:
    try:
        with anyio.fail_after(OPEN_SECONDS):
            first = read(await socket.receive())
        if not isinstance(first, Envelope) or first.type != "gateway.ready":
            raise ConnectFailed(f"What answers at {endpoint} is no such server.", retry=False)
        ready = Ready.model_validate(first.payload)
    except TimeoutError:
        raise ConnectFailed(f"The server at {endpoint} did not greet in time.", retry=True) from None
    except ConnectionLost as error:
        raise ConnectFailed(f"The server at {endpoint} hung up: {error.message}", retry=error.retry) from None
    except ReplyRefused as error:
        raise ConnectFailed(error.message, retry=False) from None
    except ValidationError as error:
        message = f"The greeting of {endpoint} cannot be read: {first_problem(error)}."
        raise ConnectFailed(message, retry=False) from None
    if ready.protocol.major != PROTOCOL_MAJOR:
        message = (
            f"The server at {endpoint} speaks version {ready.protocol.major} of the protocol, not {PROTOCOL_MAJOR}."
        )
        older = "server" if ready.protocol.major < PROTOCOL_MAJOR else "client"
        raise Incompatible(message, hint=f"Upgrade the {older}.")
    return ready


async def _negotiate(gateway: Gateway, endpoint: Endpoint, abilities: Abilities) -> None:
    params = CapabilitiesParams(
        client=ClientInfo(name=abilities.client_name, version=__version__),
        protocol=Protocol(major=PROTOCOL_MAJOR, minor=PROTOCOL_MINOR),
        server_requests=sorted({*abilities.server_requests, *abilities.handlers.kinds}),
        live=abilities.live,
        opt_out=list(abilities.opt_out),
    )
    try:
        await gateway.call(CLIENT_CAPABILITIES, params)
    except RemoteError as error:
        if error.type == "protocol_unsupported":
            raise Incompatible(f"{endpoint} refuses this client: {error.message}", hint=error.hint) from error
        raise ConnectFailed(f"{endpoint} refuses this client: {error.message}", retry=False, hint=error.hint) from error
    except (NotSent, OutcomeUnknown) as error:
        raise ConnectFailed(f"{endpoint} ended the connection at its beginning.", retry=True) from error
