"""A tripwire in the server process: a bug that reaches into a home that is not bound fails instead of leaking.

It is an audit hook, so it sees what the interpreter is asked to do, whoever asks. It is no wall: ctypes, C extensions
and `dir_fd` pass it by; the warden and the kernel are the wall. While nothing is bound, every home is closed. What is
permitted besides is said with `with permit(home)` and `with permit_process()`; no stack is inspected.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast, final
from urllib.parse import unquote

from hermes_ws.scope.current import Binding, Bound, Permitted, standing

if TYPE_CHECKING:
    from hermes_ws.scope.home import HomesRoot, ProfileHome

PATH_ARGUMENTS: Final[Mapping[str, tuple[int, ...]]] = MappingProxyType({
    "open": (0,),
    "os.chdir": (0,),
    "os.chmod": (0,),
    "os.chown": (0,),
    "os.getxattr": (0,),
    "os.link": (0, 1),
    "os.listdir": (0,),
    "os.listxattr": (0,),
    "os.mkdir": (0,),
    "os.remove": (0,),
    "os.removexattr": (0,),
    "os.rename": (0, 1),
    "os.rmdir": (0,),
    "os.scandir": (0,),
    "os.setxattr": (0,),
    "os.symlink": (1,),
    "os.truncate": (0,),
    "os.utime": (0,),
    "shutil.rmtree": (0,),
    "sqlite3.connect": (0,),
})  # fmt: skip
"""Events that open, change or list a path, and which of their arguments are paths."""

ENVIRONMENT_EVENTS: Final = frozenset({"os.putenv", "os.unsetenv"})

SOCKET_EVENTS: Final = frozenset({"socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg"})
"""Events whose last argument is an address, which for a Unix socket is a path."""

PROCESS_EVENTS: Final = frozenset(
    {"os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "pty.spawn", "subprocess.Popen"}
)


Handler = Callable[[str, tuple[object, ...]], None]
Report = Callable[[str, str], None]
"""Told what tripped it, and the stack. It must not reach into a home itself."""

STACK_FRAMES = 20
"""From the one who asked to the interpreter; the event loop below that is always the same."""


class GuardTripped(Exception):
    """A bug of ours: code acted for no profile, or for another one than is bound.

    Not an OSError, because libraries take those for weather and go on.
    """


def permit(home: ProfileHome) -> Binding:
    """Let the code in the `with` block open this home as well. What is bound stays bound; a bind inside ends it."""
    here = standing()
    if isinstance(here, Permitted):
        return Binding(Permitted(here.bound, (*here.homes, home), processes=here.processes))
    return Binding(Permitted(here, (home,), processes=False))


def permit_process() -> Binding:
    """Let the code in the `with` block start processes: `warden/hands.py`, `client/ensure.py` and `cli/editor.py`."""
    here = standing()
    if isinstance(here, Permitted):
        return Binding(Permitted(here.bound, here.homes, processes=True))
    return Binding(Permitted(here, (), processes=True))


@final
class Guard:
    """One tripwire for the homes under one root. Its hook stays in the interpreter for good; disarmed, it is idle."""

    def __init__(self, root: HomesRoot, report: Report | None = None) -> None:
        self._root = root
        self._report = report
        self._armed = False
        self._tripped = 0
        self._handlers: Mapping[str, Handler] = MappingProxyType(
            dict.fromkeys(PATH_ARGUMENTS, self._check_paths)
            | dict.fromkeys(ENVIRONMENT_EVENTS, self._refuse_environment)
            | dict.fromkeys(PROCESS_EVENTS, self._check_process)
            | dict.fromkeys(SOCKET_EVENTS, self._check_socket)
        )

    def arm(self) -> None:
        """From now on, trip."""
        self._armed = True

    def disarm(self) -> None:
        """From now on, let everything pass."""
        self._armed = False

    @contextmanager
    def armed(self) -> Generator[Guard]:
        """Armed for the length of a `with` block."""
        self.arm()
        try:
            yield self
        finally:
            self.disarm()

    def tripped(self) -> int:
        """How often it has tripped: zero, in a server without bugs."""
        return self._tripped

    def hook(self, event: str, arguments: tuple[object, ...]) -> None:
        """The audit hook. Raises GuardTripped; called for every event of the interpreter, most of which end here."""
        handler = self._handlers.get(event)
        if handler is not None and self._armed:
            handler(event, arguments)

    def _check_paths(self, event: str, arguments: tuple[object, ...]) -> None:
        for index in PATH_ARGUMENTS[event]:
            path = _real_path(event, arguments[index])
            owner = None if path is None else self._root.owner_of(path)
            if owner is not None and not _may_open(owner):
                self._trip(f"{event} reached into {owner}, and {_who()} is bound here")

    def _check_socket(self, event: str, arguments: tuple[object, ...]) -> None:
        address = arguments[-1]
        path = address if isinstance(address, (str, bytes)) else None
        if path and path[:1] not in ("\0", b"\0"):
            owner = self._root.owner_of(_real_path(event, path) or "")
            if owner is not None and not _may_open(owner):
                self._trip(f"{event} reached a socket in {owner}, and {_who()} is bound here")

    def _check_process(self, event: str, arguments: tuple[object, ...]) -> None:
        here = standing()
        if not (isinstance(here, Permitted) and here.processes):
            self._trip(f"{event}: a process was started outside of the warden's side of the server")

    def _refuse_environment(self, event: str, arguments: tuple[object, ...]) -> None:
        self._trip(f"{event}: the process environment was written, which every profile would see")

    def _trip(self, what: str) -> None:
        self._tripped += 1
        if self._report is not None:
            # Here, and not where it is caught: what is swallowed on its way up has been told all the same.
            self._report(what, "".join(traceback.format_stack(limit=STACK_FRAMES)))
        raise GuardTripped(what)


def _may_open(owner: str) -> bool:
    here = standing()
    if isinstance(here, Permitted):
        if any(str(home.path) == owner for home in here.homes):
            return True
        here = here.bound
    return here is not None and str(here.scope.home.path) == owner


def _who() -> str:
    here = standing()
    bound = here.bound if isinstance(here, Permitted) else here
    return f"profile {bound.scope.profile}" if isinstance(bound, Bound) else "no profile"


def _real_path(event: str, argument: object) -> str | None:
    """The path that an event is about, links resolved; None when it is about none."""
    if argument is None:
        argument = "."  # os.listdir() and os.scandir() without a path.
    if not isinstance(argument, (str, bytes, os.PathLike)):
        return None
    path = os.fsdecode(cast("str | bytes | os.PathLike[str]", argument))
    if event == "sqlite3.connect":
        if path in ("", ":memory:"):
            return None
        if path.startswith("file:"):
            path = _path_of_uri(path)
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return None  # No such path can be opened either.


def _path_of_uri(uri: str) -> str:
    """The file that SQLite opens for a `file:` address: what follows the authority, if there is one."""
    path = uri.removeprefix("file:").split("?", 1)[0].split("#", 1)[0]
    if path.startswith("//"):
        path = "/" + path[2:].partition("/")[2]
    return unquote(path)


def install(root: HomesRoot, report: Report | None = None) -> Guard:
    """Put an armed guard into this interpreter, once at start; the hook cannot be taken out again, only disarmed."""
    guard = Guard(root, report)
    sys.addaudithook(guard.hook)
    guard.arm()
    return guard
