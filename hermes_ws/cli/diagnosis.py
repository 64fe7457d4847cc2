"""What the doctor looks at, in order, and how it is said."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Final, final

import orjson
import trio

from hermes_ws import __version__
from hermes_ws.cli import exits
from hermes_ws.cli.environment import Surroundings
from hermes_ws.cli.sanitise import harmless
from hermes_ws.cli.screen import Screen, Style
from hermes_ws.client.connect import Abilities, connect_to
from hermes_ws.client.discovery import Endpoint, discover
from hermes_ws.client.failures import ClientError
from hermes_ws.contract.errors import HermesError
from hermes_ws.contract.methods.runtime import RUNTIME_DESCRIBE, RUNTIME_STATISTICS
from hermes_ws.contract.model import Empty
from hermes_ws.contract.version import PROTOCOL_MAJOR
from hermes_ws.hosting.doctor.finding import Finding, Level, worst
from hermes_ws.hosting.doctor.homes import look_at_homes
from hermes_ws.hosting.doctor.leak_proof import prove
from hermes_ws.hosting.doctor.machine import look_at_kernel, look_at_machine
from hermes_ws.hosting.doctor.models import look_at_models
from hermes_ws.scope.home import HomesRoot
from hermes_ws.warden.hands import probe

SIGNS: Final[tuple[tuple[Level, str, Style], ...]] = (
    ("ok", "ok     ", Style.PLAIN),
    ("info", "note   ", Style.PLAIN),
    ("warning", "warning", Style.WARNING),
    ("error", "error  ", Style.ERROR),
)

NAME: Final = "hermes-ws doctor"
"""What this command calls itself at the server."""

BASE_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
"""Where the commands of the proof are found: those of the system, whatever this terminal has."""


@final
class Diagnosis:
    """One visit. It reads homes and starts confined children, and changes nothing."""

    def __init__(self, surroundings: Surroundings, screen: Screen, *, leaks: bool, as_json: bool) -> None:
        self._surroundings = surroundings
        self._screen = screen
        self._leaks = leaks
        self._as_json = as_json

    async def run(self) -> int:
        """Look, and print; the exit status tells whether anything is wrong."""
        findings: list[Finding] = []
        async for finding in self._look():
            findings.append(finding)
            if not self._as_json:
                self._tell(finding)
        level = worst(tuple(findings))
        if self._as_json:
            report = {"version": __version__, "level": level, "findings": [asdict(each) for each in findings]}
            self._screen.line(orjson.dumps(report).decode())
        elif level == "ok":
            self._screen.line("Nothing is wrong.")
        return exits.FAILED if level == "error" else exits.DONE

    async def _look(self) -> AsyncIterator[Finding]:
        for finding in look_at_machine():
            yield finding
        try:
            for finding in look_at_kernel(await probe()):
                yield finding
        except HermesError as error:
            yield Finding("confinement", "warden", "error", error.message, error.hint or "Look at the lines above.")
        if self._leaks:
            with tempfile.TemporaryDirectory(prefix="hermes-ws-doctor-") as place:
                real = Path(os.path.realpath(place))  # noqa: ASYNC240 - nothing else runs here
                for finding in await prove(real, {"PATH": BASE_PATH, "LANG": "C.UTF-8"}):
                    yield finding
            return
        root = HomesRoot.classic(self._surroundings.home, None)
        for finding in look_at_homes(root):
            yield finding
        async for finding in look_at_models(root):
            yield finding
        for finding in await self._look_at_server():
            yield finding

    async def _look_at_server(self) -> list[Finding]:
        """The server, and who is connected to it."""
        found = discover(self._surroundings.home)
        if not isinstance(found, Endpoint):
            return [Finding("server", str(self._surroundings.home), "info", f"No server is used: {found.detail}.")]
        try:
            with trio.fail_after(10):
                async with connect_to(found, Abilities(NAME, live="none")) as gateway:
                    said = await gateway.call(RUNTIME_DESCRIBE, Empty())
                    connected = (await gateway.call(RUNTIME_STATISTICS, Empty())).connected
        except (ClientError, trio.TooSlowError) as error:
            reason = f"It does not answer: {error}."
            return [Finding("server", str(found), "error", reason, "Look into its log, restart it.")]
        version = said.server.version
        if said.protocol.major != PROTOCOL_MAJOR or version != __version__:
            server = Finding(
                "server", str(found), "warning",
                f"It is hermes-ws {version}, and this command is {__version__}.",
                "Restart the server, so that both are of one version.",
            )  # fmt: skip
        else:
            server = Finding("server", str(found), "ok", f"hermes-ws {version} answers.")
        return [server, *_clients((row.client for row in connected), version)]

    def _tell(self, finding: Finding) -> None:
        for level, sign, style in SIGNS:
            if finding.level == level:
                self._screen.line(f"{sign}  {finding.check}: {harmless(finding.message)}", style)
        if finding.remedy:
            self._screen.line(f"         {harmless(finding.remedy)}")


def _clients(connected: Iterable[str], version: str) -> Iterator[Finding]:
    """Who is connected, by name and version as each says of itself. Of ours that are of another version, a warning."""
    for client, count in sorted(Counter(connected).items()):
        if client.startswith(NAME):
            continue
        connections = "one connection" if count == 1 else f"{count} connections"
        said = harmless(client) or "A client without a name"
        if client.startswith("hermes-ws") and not client.endswith(f" {version}"):
            yield Finding(
                "client", said, "warning", f"{said} is of another version than the server ({connections}).",
                "Start it again, so that both are of one version.",
            )  # fmt: skip
        else:
            yield Finding("client", said, "ok", f"{said} is connected ({connections}).")
