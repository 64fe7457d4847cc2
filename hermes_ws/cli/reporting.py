"""What is served, for a person and for a program."""

from __future__ import annotations

import time
from typing import final

import orjson

from hermes_ws.cli import exits
from hermes_ws.cli.locating import Where
from hermes_ws.cli.sanitise import harmless, one_line
from hermes_ws.cli.screen import Screen, Style
from hermes_ws.client.connect import Abilities, connect_to
from hermes_ws.client.discovery import Endpoint
from hermes_ws.client.ensure import State
from hermes_ws.client.failures import ClientError, ConnectFailed
from hermes_ws.contract.methods.profiles import PROFILES_LIST, ProfileList, ProfileRow
from hermes_ws.contract.methods.runtime import RUNTIME_DESCRIBE, Description
from hermes_ws.contract.model import Empty


@final
class Report:
    """The state of the server that this terminal means."""

    def __init__(self, where: Where, out: Screen, err: Screen, *, as_json: bool) -> None:
        self._where = where
        self._out = out
        self._err = err
        self._as_json = as_json

    async def run(self) -> int:
        """Ask and print; the exit status tells whether there is a server."""
        found = await self._where.found()
        if found.endpoint is None or found.state is not State.READY:
            message = found.detail
            if found.state is State.ABSENT and not self._where.named:
                message = f"No server runs for {found.root}."
            return self._tell(found.state, ConnectFailed(message, retry=found.state is State.ABSENT))
        try:
            endpoint = found.endpoint
            async with connect_to(endpoint, Abilities("hermes-ws status", live="none")) as gateway:
                described = await gateway.call(RUNTIME_DESCRIBE, Empty())
                profiles = await gateway.call(PROFILES_LIST, Empty())
        except ClientError as error:
            return self._tell(State.INACCESSIBLE, error)
        if self._as_json:
            self._print_json(endpoint, described, profiles)
        else:
            self._print_text(endpoint, described, profiles)
        return exits.DONE

    def _tell(self, how: State, error: ClientError) -> int:
        if self._as_json:
            state = {
                "state": how.value,
                "message": error.message,
                "hint": self._where.hint(error),
            }
            self._out.line(orjson.dumps(state).decode())
        else:
            self._where.tell(self._err, error)
        return exits.FAILED

    def _print_json(self, endpoint: Endpoint, described: Description, profiles: ProfileList) -> None:
        state = {
            "state": "ready",
            "endpoint": str(endpoint),
            "server": described.model_dump(mode="json"),
            "profiles": [row.model_dump(mode="json") for row in profiles.profiles],
        }
        self._out.line(orjson.dumps(state).decode())

    def _print_text(self, endpoint: Endpoint, described: Description, profiles: ProfileList) -> None:
        server = described.server
        self._out.line(f"{harmless(server.name)} {harmless(server.version)}", Style.STRONG)
        self._out.line(f"at {harmless(str(endpoint))}")
        self._out.line(f"process {described.pid}, up {uptime(time.time() - described.started_at)}")
        self._out.line(f"durability: {harmless(described.durability)}")
        self._out.line()
        for row in profiles.profiles:
            self._out.line(one_line(profile_line(row, profiles.launch), self._out.columns))


def profile_line(row: ProfileRow, launch: str) -> str:
    """One profile: its name, whether it is open, and what is known of an open one."""
    told = [row.state]
    if row.sessions is not None:
        told.append(f"{row.sessions} session{'' if row.sessions == 1 else 's'}")
    if row.confinement is not None:
        told.append(f"confined by {row.confinement}")
    if row.name == launch:
        told.append("launch profile")
    return f"{row.name}: {', '.join(told)}"


def uptime(seconds: float) -> str:
    """The two largest units: `3 d 4 h`, `5 min 7 s`."""
    rest = max(int(seconds), 0)
    parts: list[str] = []
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, rest = divmod(rest, length)
        if count or (unit == "s" and not parts):
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2])
