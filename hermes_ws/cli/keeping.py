"""Finding, starting and ending the server of a home, and letting a browser in."""

from __future__ import annotations

from typing import Final, final

import anyio
import orjson

from hermes_ws.cli import exits
from hermes_ws.cli.locating import Where
from hermes_ws.cli.sanitise import harmless
from hermes_ws.cli.screen import Screen, Style
from hermes_ws.client.connect import Abilities, connect_to
from hermes_ws.client.ensure import Found, State
from hermes_ws.client.failures import ClientError
from hermes_ws.contract.methods.runtime import RUNTIME_DRAIN, DrainParams
from hermes_ws.contract.methods.tokens import TICKET_ISSUE, TicketParams
from hermes_ws.scope.home import ProfileHome

LOOK_SECONDS: Final = 0.1
"""Between looks at a server that ends; the kernel gives no event for a lock of another process."""

END_SECONDS: Final = 60.0
"""How long after its deadline a server may take to be gone."""

DRAIN_SECONDS: Final = 3600.0
"""The longest drain that a server agrees to."""

ADDRESS_BYTES: Final = 1000
"""The address of a server is much shorter."""


@final
class Keeper:
    """One visit. Each action gives the exit status."""

    def __init__(self, where: Where, out: Screen, err: Screen) -> None:
        self._where = where
        self._out = out
        self._err = err

    async def ensure(self, *, as_json: bool) -> int:
        """Find it or start it, and say how it stands."""
        found = await self._where.found(starting=self._err)
        if as_json:
            self._out.line(orjson.dumps(told(found)).decode())
        elif found.state is State.READY:
            self._out.line(f"ready: {harmless(str(found.endpoint))}")
        else:
            self._err.line(f"Error: {found.state.value}: {harmless(found.detail)}", Style.ERROR)
            self._err.line("hermes-ws doctor looks for the cause.")
        return exits.DONE if found.state is State.READY else exits.FAILED

    async def stop(self, within: float | None) -> int:
        """Ask it to end, and wait until it is gone."""
        found = await self._where.found()
        if found.state is State.ABSENT:
            self._err.line("No server runs.")
            return exits.DONE
        try:
            if found.state is not State.DRAINING:
                if found.endpoint is None:
                    raise ClientError(f"{found.state.value}: {found.detail}")
                async with connect_to(found.endpoint, Abilities("hermes-ws stop", live="none")) as gateway:
                    await gateway.call(RUNTIME_DRAIN, DrainParams(deadline_s=within))
                    self._err.line("The server ends; what runs gets its time.")
                    with anyio.move_on_after(DRAIN_SECONDS):
                        await gateway.wait_lost()
        except ClientError as error:
            self._where.tell(self._err, error)
            return exits.FAILED
        with anyio.move_on_after(END_SECONDS):
            while (await self._where.found()).state is not State.ABSENT:  # noqa: ASYNC110 - another process's lock
                await anyio.sleep(LOOK_SECONDS)
            return exits.DONE
        self._err.line("Error: the server still runs.", Style.ERROR)
        return exits.FAILED

    async def open(self, *, as_json: bool) -> int:
        """A link with a ticket for one browser. It is written nowhere but to standard output."""
        try:
            await self._where.ensured(self._err)
            endpoint = self._where.locate()
            address = endpoint.url.replace("ws", "http", 1).removesuffix("/ws")
            if endpoint.socket is not None:
                address = _address(ProfileHome(endpoint.socket.parent.parent))
            async with connect_to(endpoint, Abilities("hermes-ws open", live="none")) as gateway:
                ticket = await gateway.call(TICKET_ISSUE, TicketParams(purpose="browser"))
        except ClientError as error:
            self._where.tell(self._err, error)
            return exits.FAILED
        link = f"{address}/#ticket={ticket.ticket}"
        if as_json:
            self._out.line(orjson.dumps({"url": link, "expires_at": ticket.expires_at}).decode())
        else:
            self._out.line(link)
        return exits.DONE


def told(found: Found) -> dict[str, object]:
    """The state for a program."""
    return {
        "state": found.state.value,
        "root": str(found.root),
        "profile": found.profile,
        "endpoint": None if found.endpoint is None else str(found.endpoint),
        "detail": found.detail,
    }


def _address(home: ProfileHome) -> str:
    try:
        with home.address.open("rb") as file:
            return file.read(ADDRESS_BYTES).decode("ascii").strip()
    except (OSError, UnicodeDecodeError):
        raise ClientError(
            f"The server of {home.path} does not say where a browser finds it.", hint="Restart it, or use its --port."
        ) from None
