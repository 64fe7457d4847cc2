"""Secrets that do not lie in `.env`: printed by a command, or handed to the server by the service manager.

A command runs in a warden of its own profile, with that profile's environment and the names that it was given, so a
helper sees what is its profile's and nothing else (case ENV-06). A source that fails is named and tried again at the
next use; it is never taken for one that has nothing (case GLOBAL-08). What a source says is never logged.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

import trio

from hermes_ws.contract.errors import HermesError
from hermes_ws.hosting.runtime_life import Surroundings
from hermes_ws.hosting.wardens import grants_of
from hermes_ws.scope import dotenv
from hermes_ws.scope.current import Bound, bind, in_thread
from hermes_ws.scope.environment import child_environment, is_steering
from hermes_ws.scope.identity import ProfileName
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.scope.sections import SourceConfig
from hermes_ws.warden.grants import Command, Grants
from hermes_ws.warden.hands import Warden

OUTPUT_BYTES = 262_144
"""What a command may print: as much as a `.env` may hold."""

CREDENTIAL_BYTES = 65_536
"""One credential: a key, a certificate with its chain."""

CREDENTIALS_PARAMETER: Final = "CREDENTIALS_DIRECTORY"

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)

_SILENT: Final = ("/bin/sh", "-c", 'exec "$@" 2>/dev/null', "sh")
"""Runs what follows without its complaints, which would stand between the lines."""


@final
@dataclass(frozen=True, slots=True, repr=False)
class Gathered:
    """What the sources gave. `failed` says of each that gave nothing why, without a value."""

    values: Mapping[str, str]
    failed: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True)
class Surrounds:
    """What the sources of a profile are asked with."""

    base_environment: Mapping[str, str]
    credentials: Path | None
    """Where the service manager put them; they are the launch profile's, and those with another's name that one's."""
    launch: bool
    limiter: trio.CapacityLimiter
    start: Callable[[Grants], Awaitable[Warden]]


def surrounds(around: Surroundings, profile: ProfileName, limiter: trio.CapacityLimiter) -> Surrounds:
    """What the sources of this profile are asked with, on this server."""
    credentials = around.parameters.get(CREDENTIALS_PARAMETER)
    return Surrounds(
        base_environment=around.base_environment,
        credentials=None if credentials is None else Path(credentials),
        launch=profile == around.root.launch,
        limiter=limiter,
        start=lambda grants: Warden.start(grants, subreaper=around.subreaper),
    )


async def gather(scope: ProfileScope, around: Surrounds) -> Gathered:
    """Ask all sources of a profile, in order; of a name that two define, the first holds. Raises nothing foreseen."""
    values: dict[str, str] = {}
    failed: list[str] = []
    for number, source in enumerate(scope.config.secrets.sources):
        try:
            with bind(Bound(scope)):
                if source.kind == "command":
                    found = await _from_command(scope, source, around)
                else:
                    found = await in_thread(around.limiter, _from_credentials, scope, around)
        except (Failed, HermesError, OSError) as error:
            reason = error.message if isinstance(error, HermesError) else str(error)
            failed.append(f"secrets.sources[{number}]: {reason}")
            continue
        for name, value in found.items():
            if not is_steering(name):
                values.setdefault(name, value)
    return Gathered(values, tuple(failed))


class Failed(Exception):
    """A source that gave nothing, and why, in words that hold no value."""


async def _from_command(scope: ProfileScope, source: SourceConfig, around: Surrounds) -> Mapping[str, str]:
    missing = [name for name in source.env if scope.secrets.get(name) is None]
    if missing:
        raise Failed(f"{missing[0]} is named in its env, and .env does not define it")
    command = Command(
        argv=(*_SILENT, *source.command),
        cwd=scope.home.user,
        env=child_environment(around.base_environment, scope=scope, secrets=source.env),
        deadline_s=source.deadline_s,
        output_bytes=OUTPUT_BYTES,
    )
    warden = await around.start(grants_of(scope, (scope.home.user,)))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(warden.serve)
        try:
            finished = await warden.run(command)
        finally:
            await warden.close()
    if finished.timed_out:
        raise Failed(f"the command took longer than {source.deadline_s:g} s")
    if finished.exit_code != 0:
        how = f"status {finished.exit_code}" if finished.signal is None else f"signal {finished.signal}"
        raise Failed(f"the command ended with {how}")
    if finished.truncated:
        raise Failed(f"the command printed more than {OUTPUT_BYTES} bytes")
    parsed = dotenv.parse(finished.output.decode(errors="surrogateescape"))
    if parsed.problems and not parsed.values:
        raise Failed(f"line {parsed.problems[0].line} of what the command printed is not NAME=value")
    return parsed.values


def _from_credentials(scope: ProfileScope, around: Surrounds) -> Mapping[str, str]:
    """The files that are this profile's: `<profile>.NAME`, and for the launch profile also `NAME`."""
    if around.credentials is None:
        raise Failed(f"the server was started without {CREDENTIALS_PARAMETER}")
    own = f"{scope.profile}."
    found: dict[str, str] = {}
    for entry in sorted(os.listdir(around.credentials)):
        name = entry.removeprefix(own) if entry.startswith(own) else entry if around.launch else ""
        if _NAME.fullmatch(name) is None:
            continue
        with open(around.credentials / entry, "rb") as file:
            data = file.read(CREDENTIAL_BYTES + 1)
        if len(data) > CREDENTIAL_BYTES:
            raise Failed(f"the credential {entry} is larger than {CREDENTIAL_BYTES} bytes")
        try:
            found[name] = data.decode().removesuffix("\n")
        except UnicodeDecodeError:
            raise Failed(f"the credential {entry} is not text") from None
    return found
