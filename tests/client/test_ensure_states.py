"""Each state that a home can be found in, by what makes it so; and that nothing is started where it is not absent."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest
import trio

from hermes_ws.client.connect import Abilities, connect_to
from hermes_ws.client.ensure import Found, State, ensure, find
from hermes_ws.contract.errors import ProtocolUnsupported
from hermes_ws.contract.methods.prompts import PROMPT_SUBMIT, SubmitParams
from hermes_ws.contract.methods.runtime import RUNTIME_DRAIN, DrainParams
from hermes_ws.contract.methods.sessions import SESSION_CREATE, CreateParams
from hermes_ws.journal.lock import OwnerLock
from tests.client.peer import home_with_peer
from tests.client.test_ensure import Root, environ, root

__all__ = ["environ", "root"]

SOON = 0.3
"""Seconds of patience where nothing is to come of it."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    made.mkdir(mode=0o700)
    return made


def ensured(home: Path, environ: dict[str, str]) -> Found:
    async def soon() -> Found:
        return await ensure(home, environ, patience=SOON)

    return anyio.run(soon, backend="trio")


def found(home: Path) -> Found:
    return anyio.run(find, home, backend="trio")


def started_nothing(home: Path) -> bool:
    """Whether no server was started for this home: one that is begins with its log."""
    return not (home / "logs" / "serve.log").exists()


def test_a_server_that_answers_is_ready(home: Path, environ: dict[str, str]) -> None:
    with home_with_peer(home):
        there = ensured(home, environ)
    assert (there.state, there.root, there.detail) == (State.READY, home, "")
    assert there.endpoint is not None
    assert started_nothing(home)


def test_a_lock_that_is_held_without_an_answer_is_starting_and_waited_for(home: Path, environ: dict[str, str]) -> None:
    lock = OwnerLock.take(home / "run" / "owner.lock")
    try:
        there = ensured(home, environ)
    finally:
        lock.release()
    assert there.state is State.STARTING
    assert "owns" in there.detail
    assert started_nothing(home)
    assert found(home).state is State.ABSENT


@pytest.mark.parametrize("left", ["nothing", "files of a dead server", "a pid of somebody else"])
def test_a_home_that_nobody_holds_is_absent_whatever_lies_there(home: Path, left: str) -> None:
    """PROC-01, PROC-02: found out by asking the kernel and by dialling, not by what files say."""
    if left != "nothing":
        run = home / "run"
        with home_with_peer(home):
            pass
        assert (run / "gateway.sock").exists()
        lock = OwnerLock.take(run / "owner.lock")
        lock.write("instance-1", 3)
        lock.release()
        if left == "a pid of somebody else":
            (run / "owner.lock").write_text(f'{{"pid":{os.getpid()},"start_time":1,"instance_id":"x","epoch":1}}')
    assert found(home).state is State.ABSENT


def test_a_server_that_ends_is_draining_and_no_second_one_is_started(root: Root) -> None:
    first = root.ensure()
    assert first.endpoint is not None
    log = (root.path / "logs" / "serve.log").read_bytes()
    endpoint = first.endpoint

    async def drained() -> tuple[State, State]:
        async with connect_to(endpoint, Abilities("tests", live="none")) as gateway:
            made = await gateway.call(SESSION_CREATE, CreateParams(subscribe=False))
            params = SubmitParams(session_id=made.session_id, input_id="i-1", text="/do wait 600")
            await gateway.call(PROMPT_SUBMIT, params)
            await gateway.call(RUNTIME_DRAIN, DrainParams(deadline_s=600))
            before = (await find(root.path)).state
            return before, (await ensure(root.path, root.environ, patience=SOON)).state

    assert anyio.run(drained, backend="trio") == (State.DRAINING, State.DRAINING)
    assert (root.path / "logs" / "serve.log").read_bytes().count(b"serving") == log.count(b"serving")


def test_a_server_that_does_not_serve_the_profile_is_a_conflict(home: Path, environ: dict[str, str]) -> None:
    with home_with_peer(home):
        there = ensured(home / "profiles" / "nobody", environ)
    assert there.state is State.CONFLICT
    assert "does not serve nobody" in there.detail
    assert started_nothing(home)


def test_a_server_of_another_major_version_is_incompatible(home: Path, environ: dict[str, str]) -> None:
    with home_with_peer(home) as peer:
        peer.major += 1
        there = ensured(home, environ)
    assert there.state is State.INCOMPATIBLE
    assert str(peer.major) in there.detail
    assert started_nothing(home)


def test_a_server_that_refuses_this_version_is_incompatible(home: Path, environ: dict[str, str]) -> None:
    with home_with_peer(home) as peer:
        peer.refuse["client.capabilities"] = ProtocolUnsupported("Version 1 is not spoken any more.")
        there = ensured(home, environ)
    assert there.state is State.INCOMPATIBLE
    assert "not spoken any more" in there.detail
    assert started_nothing(home)


def opened(path: str, mode: int) -> Callable[[Path], None]:
    return lambda home: (home / path).chmod(mode)


def linked(path: str) -> Callable[[Path], None]:
    def link(home: Path) -> None:
        (home / path).unlink(missing_ok=True)
        (home / path).symlink_to(home / "run" / "token")

    return link


def twice(home: Path) -> None:
    (home / "run" / "owner.lock").touch(mode=0o600)
    (home / "other").hardlink_to(home / "run" / "owner.lock")


UNSAFE = [
    ("a home that others may write", opened(".", 0o777), "chmod go-w"),
    ("a run directory that its group may write", opened("run", 0o770), "chmod go-w"),
    ("a socket that others may use", opened("run/gateway.sock", 0o666), "chmod 600"),
    ("a token that others may read", opened("run/token", 0o644), "chmod 600"),
    ("a socket that is a link", linked("run/gateway.sock"), "is no socket"),
    ("a token that is a link", linked("run/token"), "is no file"),
    ("a lock that is a link", linked("run/owner.lock"), "is no file of its own"),
    ("a lock under two names", twice, "is no file of its own"),
    ("a lock that others may write", lambda home: (home / "run" / "owner.lock").write_text("{}"), "chmod 600"),
]


@pytest.mark.parametrize(("spoil", "told"), [each[1:] for each in UNSAFE], ids=[each[0] for each in UNSAFE])
def test_what_somebody_else_could_have_prepared_is_inaccessible(
    home: Path, environ: dict[str, str], spoil: Callable[[Path], None], told: str
) -> None:
    with home_with_peer(home) as peer, writable():
        spoil(home)
        there = ensured(home, environ)
        home.chmod(0o700)
        assert peer.declared == [], "it is not spoken with"
    assert there.state is State.INACCESSIBLE
    assert told in there.detail
    assert started_nothing(home)


@contextmanager
def writable() -> Iterator[None]:
    """Files are made so that everybody may write them, as a careless umask has it."""
    before = os.umask(0)
    try:
        yield
    finally:
        os.umask(before)


@pytest.mark.parametrize("name", ["", "run", "run/owner.lock"])
def test_what_belongs_to_somebody_else_is_inaccessible(
    home: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Told by the owner that the file system has: where the tests are not root, everything here is their own."""
    with home_with_peer(home) as peer:
        (home / "run" / "owner.lock").touch(mode=0o600)
        if os.geteuid() == 0:
            os.chown(home / name, 65534, -1)
        else:
            real = Path.lstat if name.endswith("lock") else Path.stat
            strange = os.stat_result((*real(home / name)[:4], 65534, *real(home / name)[5:]))
            monkeypatch.setattr(Path, real.__name__, lambda self, **_: strange if self == home / name else real(self))
        there = ensured(home, environ)
        assert peer.declared == []
    assert (there.state, "belongs to another user" in there.detail) == (State.INACCESSIBLE, True)


def test_starters_of_several_processes_end_with_one_server(root: Root) -> None:
    """The lock decides; who loses finds the one who won (REAP-12)."""
    script = (
        "import sys, anyio\nfrom pathlib import Path\nfrom hermes_ws.client.ensure import ensure\n"
        "environ = {'PATH': '/usr/bin:/bin', 'HOME': '/nonexistent'}\n"
        "found = anyio.run(ensure, Path(sys.argv[1]), environ, backend='trio')\n"
        "print(found.state.value, found.detail)\n"
    )

    async def race() -> list[bytes]:
        ended: list[bytes] = []

        async def one() -> None:
            import subprocess
            import sys

            command = [sys.executable, "-c", script, str(root.path)]
            done = await trio.run_process(command, capture_stdout=True, stdin=subprocess.DEVNULL)
            ended.append(done.stdout)

        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(one)
        return ended

    assert trio.run(race) == [b"ready \n"] * 4
    log = (root.path / "logs" / "serve.log").read_text()
    root.ensure()
    assert len(root.pids) == 1
    assert log.count("serving") == 1, "one came to serve; the others ended before"


def test_a_server_that_was_started_by_need_ends_by_itself_one_day(root: Root) -> None:
    root.ensure()
    (pid,) = root.pids
    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    assert words[words.index(b"serve") :][:5] == [b"serve", b"--port", b"0", b"--idle-exit", b"600"]
    assert os.getsid(pid) == pid, "it is no child of this terminal"
    log = (root.path / "logs" / "serve.log").read_text()
    assert "gateway.sock" in log
    assert "ticket=" not in log, "nobody watches it: it hands out no link to log in with"
    assert os.readlink(f"/proc/{pid}/cwd") == "/", "it holds on to no directory"
