"""The tripwire. It is armed inside of tests only, since pytest itself writes the process environment between them."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from hermes_ws.scope import guard
from hermes_ws.scope.current import Bound, bind, bound, in_thread
from hermes_ws.scope.guard import Guard, GuardTripped, permit, permit_process
from hermes_ws.scope.home import HomesRoot, ProfileHome
from hermes_ws.scope.profile_scope import ProfileScope

REACH: dict[str, Callable[[Path], object]] = {
    "open": lambda path: (path / ".env").open().close(),
    "os.open": lambda path: os.close(os.open(path / ".env", os.O_RDONLY)),
    "bytes": lambda path: open(os.fsencode(path / ".env")).close(),
    "write": lambda path: (path / "new").write_text("x"),
    "listdir": os.listdir,
    "scandir": lambda path: os.scandir(path).close(),
    "glob": lambda path: list(path.glob("*")),
    "mkdir": lambda path: (path / "made").mkdir(),
    "remove": lambda path: (path / ".env").unlink(),
    "rename": lambda path: (path / ".env").rename(path / "other"),
    "link": lambda path: os.link(path / ".env", path / "linked"),
    "symlink": lambda path: (path / "symlinked").symlink_to("/"),
    "chmod": lambda path: (path / ".env").chmod(0o600),
    "utime": lambda path: os.utime(path / ".env"),
    "truncate": lambda path: os.truncate(path / ".env", 0),
    "rmtree": lambda path: shutil.rmtree(path / "home"),
    "sqlite": lambda path: sqlite3.connect(path / "state" / "x.db").close(),
    "sqlite uri": lambda path: sqlite3.connect(f"file:{path}/state/x%2edb?mode=rwc", uri=True).close(),
    "sqlite uri with a host": lambda path: sqlite3.connect(f"file://{path}/state/x.db", uri=True).close(),
    "a path with dots": lambda path: (path / "home" / ".." / ".env").open().close(),
    "a link from outside": lambda path: (path.parent.parent / "link" / ".env").open().close(),
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Guard, Path]:
    """One hook for the whole module: a hook cannot be taken out again."""
    path = tmp_path_factory.mktemp("guarded") / "homes"
    path.mkdir()
    installed = guard.install(HomesRoot.directory(path))
    installed.disarm()
    return installed, path


@pytest.fixture
def root(installed: tuple[Guard, Path]) -> HomesRoot:
    path = installed[1]
    shutil.rmtree(path)
    path.mkdir()
    link = path.parent / "link"
    link.unlink(missing_ok=True)
    link.symlink_to(path / "b")
    return HomesRoot.directory(path)


@pytest.fixture
def wire(installed: tuple[Guard, Path]) -> Guard:
    return installed[0]


@pytest.mark.parametrize("reach", REACH)
def test_a_home_that_is_not_bound_is_closed(wire: Guard, a: ProfileScope, b: ProfileScope, reach: str) -> None:
    before = wire.tripped()
    tree = sorted(b.home.path.rglob("*"))
    with wire.armed():
        with pytest.raises(GuardTripped, match="no profile is bound"):
            REACH[reach](b.home.path)
        with bind(Bound(a)), pytest.raises(GuardTripped, match="profile a is bound"):
            REACH[reach](b.home.path)
    assert wire.tripped() == before + 2
    assert sorted(b.home.path.rglob("*")) == tree


@pytest.mark.parametrize("reach", REACH)
def test_the_bound_home_is_open(wire: Guard, b: ProfileScope, reach: str) -> None:
    before = wire.tripped()
    with wire.armed(), bind(Bound(b)):
        REACH[reach](b.home.path)
    assert wire.tripped() == before


def test_a_permitted_home_is_open_for_the_length_of_the_block(wire: Guard, a: ProfileScope, b: ProfileScope) -> None:
    with wire.armed(), bind(Bound(a)):
        with permit(b.home):
            a.home.env.read_text()
            b.home.env.read_text()
            assert bound() == Bound(a)
        with pytest.raises(GuardTripped):
            b.home.env.read_text()
    with wire.armed(), permit(a.home), permit(b.home), permit_process():
        a.home.env.read_text()
        b.home.env.read_text()


def test_binding_ends_a_permit(wire: Guard, a: ProfileScope, b: ProfileScope) -> None:
    with wire.armed(), permit(b.home), bind(Bound(a)), pytest.raises(GuardTripped):
        b.home.env.read_text()


def test_the_list_of_homes_and_what_lies_outside_are_nobodys(wire: Guard, b: ProfileScope, root: HomesRoot) -> None:
    with wire.armed():
        assert b.profile in root.names()
        assert os.listdir(root.path.parent)
        assert os.listdir() == os.listdir(".")
        os.close(os.open("/dev/null", os.O_RDONLY))
        sqlite3.connect(":memory:").close()
        sqlite3.connect("").close()
        with pytest.raises(ValueError, match="null"):
            open("a\0b")  # noqa: SIM115


def test_the_process_environment_is_not_written(wire: Guard, a: ProfileScope) -> None:
    """Cases ENV-01, TERM-01: not even for the profile that is bound, and nothing has changed."""
    before = dict(os.environ)
    with wire.armed(), bind(Bound(a)), permit(a.home), permit_process():
        with pytest.raises(GuardTripped, match="environment"):
            os.environ["SHARED"] = "x"
        with pytest.raises(GuardTripped, match="environment"):
            del os.environ["PATH"]
        with pytest.raises(GuardTripped, match="environment"):
            os.putenv("SHARED", "x")
    assert dict(os.environ) == before


@pytest.mark.parametrize(
    "start",
    [
        lambda: subprocess.Popen(["true"]),
        lambda: os.system("true"),
        lambda: os.posix_spawn("/bin/true", ["true"], {}),
        os.fork,
        lambda: os.spawnv(os.P_WAIT, "/bin/true", ["true"]),
    ],
)
def test_a_process_is_started_with_a_permit_only(wire: Guard, a: ProfileScope, start: Callable[[], object]) -> None:
    before = wire.tripped()
    with wire.armed(), bind(Bound(a)), permit(a.home), pytest.raises(GuardTripped, match="process"):
        start()
    assert wire.tripped() == before + 1


def test_a_permitted_process_starts(wire: Guard) -> None:
    with wire.armed(), permit_process():
        assert subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], check=False).returncode == 0


def test_a_raw_thread_is_refused_and_not_taken_for_the_launch_profile(wire: Guard, a: ProfileScope) -> None:
    """Cases CTX-01, CTX-05."""
    errors: list[BaseException] = []

    def work() -> None:
        try:
            a.home.env.read_text()
        except GuardTripped as error:
            errors.append(error)

    with wire.armed(), bind(Bound(a)):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert len(errors) == 1


async def test_a_worker_thread_is_bound_as_its_task_is(wire: Guard, a: ProfileScope, b: ProfileScope) -> None:
    limiter = trio.CapacityLimiter(1)
    with wire.armed(), bind(Bound(a)):
        assert await in_thread(limiter, a.home.env.read_text)
        with pytest.raises(GuardTripped):
            await in_thread(limiter, b.home.env.read_text)
        with permit(b.home):
            assert await in_thread(limiter, b.home.env.read_text)


def test_loading_a_scope_permits_itself_its_own_home_and_no_other(
    wire: Guard, make_home: Callable[..., ProfileHome], load: Callable[..., ProfileScope], b: ProfileScope
) -> None:
    home = make_home("fresh", env="K=1\n")
    with wire.armed():
        assert load(home).secrets.reveal("K") == "1"
    home.config.symlink_to(b.home.path / "config.yaml")
    with wire.armed(), pytest.raises(GuardTripped):
        load(home)


def test_a_library_does_not_take_it_for_weather(wire: Guard, b: ProfileScope) -> None:
    assert not issubclass(GuardTripped, OSError)
    with wire.armed(), pytest.raises(GuardTripped):
        shutil.rmtree(b.home.path, ignore_errors=True)
    assert b.home.path.is_dir()


def test_disarmed_it_lets_everything_pass(wire: Guard, a: ProfileScope, monkeypatch: pytest.MonkeyPatch) -> None:
    before = wire.tripped()
    a.home.env.read_text()
    monkeypatch.setenv("GUARDED", "no")
    assert wire.tripped() == before


def test_a_classic_root_is_guarded_as_a_home_of_its_own(tmp_path: Path) -> None:
    classic = Guard(HomesRoot.classic(tmp_path))
    with classic.armed():
        classic.hook("os.scandir", (str(tmp_path / "profiles"),))
        classic.hook("open", (3, "r", 0))
        for path in (tmp_path / ".env", tmp_path, tmp_path / "profiles" / "b" / ".env"):
            with pytest.raises(GuardTripped):
                classic.hook("open", (str(path), "r", 0))
    assert classic.tripped() == 3


@pytest.mark.parametrize(
    ("event", "arguments"),
    [
        *((event, (f"{{home}}/{at}", f"{{home}}/{at}")) for event, at in guard.PATH_ARGUMENTS.items()),
        ("os.rename", ("/elsewhere", "{home}/x")),
        ("os.symlink", ("/elsewhere", "{home}/x")),
        ("sqlite3.connect", ("file:{home}/x?mode=ro",)),
        ("sqlite3.connect", ("file://localhost{home}/x#y",)),
    ],
)
def test_every_event_that_reaches_a_path_is_watched(
    tmp_path: Path, a: ProfileScope, event: str, arguments: tuple[str, ...]
) -> None:
    """Asked directly, so that an event which this system's library never raises is covered as well."""
    there = Guard(HomesRoot.directory(a.home.path.parent))
    paths = tuple(path.replace("{home}", str(a.home.path)) for path in arguments)
    there.hook(event, paths)  # Not armed.
    there.arm()
    with pytest.raises(GuardTripped):
        there.hook(event, paths)
    with permit_process(), pytest.raises(GuardTripped):
        there.hook(event, paths)
    with permit_process(), permit(a.home):
        there.hook(event, paths)
    with bind(Bound(a)), permit_process():
        there.hook(event, paths)
    there.hook(event, (None, None))
    there.hook(event, ("a\0b", "a\0b"))
    there.hook(event, (str(tmp_path), str(tmp_path)))
    assert there.tripped() == 2


def test_every_way_to_start_a_process_or_write_the_environment_is_watched(a: ProfileScope) -> None:
    there = Guard(HomesRoot.directory(a.home.path.parent))
    with there.armed(), bind(Bound(a)):
        for event in (*guard.PROCESS_EVENTS, *guard.ENVIRONMENT_EVENTS):
            with pytest.raises(GuardTripped, match=event):
                there.hook(event, ())
        with permit_process():
            for event in guard.PROCESS_EVENTS:
                there.hook(event, ())
        there.hook("import", ("x",))
        for database in ("", ":memory:", b":memory:", 7):
            there.hook("sqlite3.connect", (database,))


def test_a_socket_in_another_home_is_out_of_reach(wire: Guard, a: ProfileScope, b: ProfileScope) -> None:
    own, foreign = a.home.run / "s.sock", b.home.run / "s.sock"
    for path in (own, foreign):
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
    with wire.armed():
        with bind(Bound(a)):
            with socket.socket(socket.AF_UNIX) as client, pytest.raises(ConnectionRefusedError):
                client.connect(str(own))
            for attempt in ("connect", "bind"):
                with socket.socket(socket.AF_UNIX) as client, pytest.raises(GuardTripped, match=r"socket\."):
                    getattr(client, attempt)(str(foreign))
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client, pytest.raises(GuardTripped):
                client.sendto(b"x", str(foreign))
            with socket.socket(socket.AF_UNIX) as client, pytest.raises(ConnectionRefusedError):
                client.connect("\0nobody-listens-at-this-abstract-name")
        with socket.socket(socket.AF_UNIX) as client, pytest.raises(GuardTripped, match="no profile"):
            client.connect(str(own))


def test_what_trips_is_told_where_it_trips_also_when_it_is_swallowed(
    root: HomesRoot, a: ProfileScope, b: ProfileScope
) -> None:
    told: list[tuple[str, str]] = []
    watch = Guard(root, lambda what, stack: told.append((what, stack)))
    with watch.armed(), bind(Bound(a)), contextlib.suppress(Exception):
        watch.hook("open", (str(b.home.config), "r", 0))
    ((what, stack),) = told
    assert str(b.home.path) in what
    assert "test_what_trips_is_told" in stack
    assert watch.tripped() == 1


@pytest.mark.parametrize("event", sorted(guard.SOCKET_EVENTS))
def test_a_socket_in_a_home_is_watched_and_no_other(a: ProfileScope, event: str) -> None:
    there = Guard(HomesRoot.directory(a.home.path.parent))
    there.arm()
    inside = f"{a.home.path}/run/gateway.sock"
    for address in (inside, inside.encode()):
        with pytest.raises(GuardTripped, match="reached a socket"):
            there.hook(event, (None, address))
        with permit(a.home):
            there.hook(event, (None, address))
        with bind(Bound(a)):
            there.hook(event, (None, address))
    for address in (("127.0.0.1", 80), "\0abstract", b"\0abstract", "/run/elsewhere.sock", "", None):
        there.hook(event, (None, address))
    assert there.tripped() == 2
