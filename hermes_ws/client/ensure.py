"""Finding the server that owns a home, or starting one.

Whether a server is there is found out by speaking with it and by asking the kernel who holds the lock; files that a
crash left behind prove nothing (cases PROC-01, PROC-02). A server is started at most once, detached, for the root of
homes and never one per profile. Between several who start at the same time the lock decides: one server stays, the
others end, and everybody finds that one (case REAP-12).
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final, final

import anyio

from hermes_ws.client.connect import Abilities, connect_to
from hermes_ws.client.discovery import Endpoint, Reason, Unavailable, discover
from hermes_ws.client.failures import ClientError, ConnectFailed, ConnectionLost, Incompatible, RemoteError
from hermes_ws.contract.methods.profiles import PROFILES_LIST
from hermes_ws.contract.model import Empty
from hermes_ws.scope.home import HOMES, ProfileHome

PATIENCE: Final = 30.0
"""Seconds for a server to become ready: ten times what a slow machine needs."""

FIRST_LOOK: Final = 0.025
"""Seconds before the second look; a server that is there already is found at the first one."""

LONGEST_PAUSE: Final = 0.25
"""Seconds between looks in the long run."""

IDLE_EXIT: Final = 600
"""Seconds without use after which a server that was started by need ends by itself."""

REPORT_LINES: Final = 15
"""Last lines of its log that are shown when a server did not start: enough for a sentence and a stack."""

REPORT_BYTES: Final = 64 * 1024
"""How far back these lines are looked for."""

RECORD_BYTES: Final = 4096
"""What a server says of itself in a home is much shorter."""

SHELL: Final = "/bin/sh"

BASE_NAMES: Final = ("PATH", "HOME", "LANG", "TZ", "TMPDIR", "USER", "SHELL")
"""What a started server gets of the environment, besides `HERMES_HOME`: what it knows must not depend on who asked."""


@final
class State(Enum):
    """How it stands with the server of a home."""

    READY = "ready"
    STARTING = "starting"
    ABSENT = "absent"
    DRAINING = "draining"
    CONFLICT = "conflict"
    INCOMPATIBLE = "incompatible"
    INACCESSIBLE = "inaccessible"


@final
@dataclass(frozen=True, slots=True)
class Found:
    """The state, the endpoint when it is `READY`, and a sentence when it is not. `root` is where a server belongs."""

    state: State
    root: Path
    profile: str | None = None
    endpoint: Endpoint | None = None
    detail: str = ""


def places(home: Path) -> tuple[tuple[Path, str | None], ...]:
    """Where the owner of a home may listen, nearest to the root first, with the name of the profile there.

    A home `ROOT/profiles/NAME` may be served by the root's server; any home by a server of its own.
    """
    resolved = home.resolve()
    if resolved.parent.name == HOMES:
        return ((resolved.parent.parent, resolved.name), (resolved, None))
    return ((resolved, None),)


async def find(home: Path) -> Found:
    """How it stands with the server of this home. Starts nothing and changes nothing."""
    root = places(home)[0][0]
    best: Found | None = None
    for place, profile in places(home):
        found = await _look(root, place, profile)
        if found.state is State.READY:
            return found
        if best is None or best.state is State.ABSENT:
            best = found
    assert best is not None, "a home has at least one place"
    return best


async def ensure(home: Path, environ: Mapping[str, str], *, patience: float = PATIENCE) -> Found:
    """Find the server of this home, or start one and wait until it is ready; at most `patience` seconds.

    What comes back is `READY`, or the state that it stayed in and why.
    """
    started: Started | None = None
    until = anyio.current_time() + patience
    pause = FIRST_LOOK
    while True:
        found = await find(home)
        if found.state not in (State.ABSENT, State.STARTING, State.DRAINING):
            return found
        if found.state is State.ABSENT:
            if started is None:
                started = start(found.root, environ)
            elif started.ended:
                return Found(State.ABSENT, found.root, detail=started.report())
        if anyio.current_time() >= until:
            return found
        await anyio.sleep(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE)


@final
class Started:
    """A server that was started here, and the log that it writes to."""

    def __init__(self, pid: int, log: Path, offset: int) -> None:
        self._pid = pid
        self._status: int | None = None
        self._log = log
        self._offset = offset

    @property
    def ended(self) -> bool:
        """Whether it is gone again; also when another one was faster."""
        if self._status is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
        return self._status is not None

    def report(self) -> str:
        """Why it ended, as far as its log says: the last lines that it wrote itself."""
        lines: list[str] = []
        try:
            with self._log.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(self._offset, size - REPORT_BYTES))
                lines = file.read().decode("utf-8", "replace").splitlines()[-REPORT_LINES:]
        except OSError:
            pass
        said = "\n".join(lines) or "It said nothing."
        return f"The server ended with status {self._status}. {said}\nThe whole log: {self._log}"


def start(root: Path, environ: Mapping[str, str]) -> Started:
    """Start a server for the root of homes, detached from this terminal. Raises OSError."""
    home = ProfileHome(root)
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    home.logs.mkdir(mode=0o700, exist_ok=True)
    log = home.logs / "serve.log"
    environment = {name: value for name, value in environ.items() if name in BASE_NAMES or name.startswith("LC_")}
    environment["HERMES_HOME"] = str(root)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        offset = os.fstat(descriptor).st_size
        serve = (
            *(sys.executable, "-m", "hermes_ws.cli.main", "serve", "--port", "0", "--idle-exit", str(IDLE_EXIT)),
            *("--announce", "json"),  # what it says goes into its log, where no link to log in with belongs
        )
        # Through a shell for its cd alone: a server that outlives its terminal must not hold on to a directory there.
        pid = os.posix_spawn(
            SHELL,
            (SHELL, "-c", 'cd / && exec "$@"', "sh", *serve),
            environment,
            file_actions=(
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, descriptor, 1),
                (os.POSIX_SPAWN_DUP2, descriptor, 2),
            ),
            setsid=True,
        )
    finally:
        os.close(descriptor)
    return Started(pid, log, offset)


async def _look(root: Path, place: Path, profile: str | None) -> Found:
    refusal = _unsafe(place)
    if refusal:
        return Found(State.INACCESSIBLE, root, detail=refusal)
    found = discover(place)
    if isinstance(found, Unavailable):
        if found.reason is Reason.INACCESSIBLE:
            return Found(State.INACCESSIBLE, root, detail=found.detail)
        return _by_lock(root, place, found.detail)
    try:
        async with connect_to(found, Abilities("hermes-ws ensure", live="none")) as gateway:
            if gateway.draining is not None:
                return Found(State.DRAINING, root, detail=f"the server of {place} is shutting down")
            served = await gateway.call(PROFILES_LIST, Empty())
    except Incompatible as error:
        return Found(State.INCOMPATIBLE, root, detail=f"{error.message} {error.hint}")
    except ConnectFailed as error:
        if error.retry:
            return _by_lock(root, place, error.message)
        return Found(State.INACCESSIBLE, root, detail=error.message)
    except RemoteError as error:
        state = State.INCOMPATIBLE if error.type == "protocol_unsupported" else State.CONFLICT
        return Found(state, root, detail=error.message)
    except ConnectionLost:
        return _by_lock(root, place, "the server closed the connection")
    except ClientError as error:
        return Found(State.INCOMPATIBLE, root, detail=error.message)
    if profile is not None and all(row.name != profile for row in served.profiles):
        return Found(State.CONFLICT, root, detail=f"the server of {place} does not serve {profile}")
    return Found(State.READY, root, profile, found)


def _by_lock(root: Path, place: Path, detail: str) -> Found:
    """Nobody answers. Whoever holds the lock is about to answer, or about to end; else nobody is there."""
    home = ProfileHome(place)
    if held(home.lock):
        if _drains(home):
            return Found(State.DRAINING, root, detail=f"the server of {place} is shutting down")
        return Found(State.STARTING, root, detail=f"a server owns {place} and does not answer yet")
    return Found(State.ABSENT, root, detail=detail)


def _drains(home: ProfileHome) -> bool:
    """Whether the holder of the lock has said that it ends. What an earlier server left there names another one."""
    try:
        with home.draining.open("rb") as said, home.lock.open("rb") as lock:
            instance = said.read(RECORD_BYTES).decode("ascii")
            return bool(instance) and f'"instance_id":"{instance}"' in lock.read(RECORD_BYTES).decode("ascii")
    except (OSError, UnicodeDecodeError):
        return False


def held(lock: Path) -> bool:
    """Whether a process holds this lock now. Asks the kernel and does not try: trying could turn an owner away."""
    try:
        found = lock.stat()
        with Path("/proc/locks").open("r", encoding="ascii") as table:
            rows = [line.split() for line in table]
    except OSError:
        return False
    wanted = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    return any(len(row) > 5 and row[1] == "FLOCK" and row[5] == wanted for row in rows)


def _unsafe(place: Path) -> str:
    """Why this home is not spoken with: it, its run directory or its lock could have been prepared by somebody else."""
    for directory in (place, place / "run"):
        try:
            found = directory.stat()
        except FileNotFoundError:
            continue
        except OSError as error:
            return f"{directory} cannot be looked at: {error.strerror}"
        if found.st_uid != os.geteuid():
            return f"{directory} belongs to another user"
        if found.st_mode & 0o022:
            return f"{directory} can be written by others; chmod go-w {directory}"
    return _unsafe_lock(ProfileHome(place).lock)


def _unsafe_lock(lock: Path) -> str:
    try:
        found = lock.lstat()
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"{lock} cannot be looked at: {error.strerror}"
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        return f"{lock} is no file of its own; remove it when no server runs"
    if found.st_uid != os.geteuid():
        return f"{lock} belongs to another user"
    return f"{lock} can be written by others; chmod 600 {lock}" if found.st_mode & 0o022 else ""
