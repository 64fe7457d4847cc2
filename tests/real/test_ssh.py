"""The ssh backend against a real OpenSSH server: commands, files, terminals, ends; and only what the profile knows."""

from __future__ import annotations

import os
import pwd
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from hermes_ws.contract import errors
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.journal.address import ThreadKey
from hermes_ws.session.backends import backend_for
from hermes_ws.session.hands import SessionHands
from hermes_ws.warden import descendants
from hermes_ws.warden.grants import Size
from tests.real.conftest import SshServer
from tests.session.house import House, eventually, new_session

CANARY = "value-of-the-secret-1234"


@pytest.fixture
def house(tmp_path: Path, ssh_server: SshServer) -> House:
    root = tmp_path / "homes"
    root.mkdir()
    house = House(root)
    far = tmp_path / "far"
    far.mkdir()
    for name in ("default", "stranger"):
        home = house.home(
            name,
            config=(
                f"terminal:\n  backend: ssh\n  cwd: {far}\n  env: [TOKEN]\n"
                f"  remote:\n    host: 127.0.0.1\n    port: {ssh_server.port}\n"
            ),
            env=f"TOKEN={CANARY}\n",
        )
        own = home / "home" / ".ssh"
        own.mkdir(parents=True, mode=0o700)
        own.chmod(0o700)
        if name == "default":
            shutil.copy(ssh_server.user_key, own / "id_ed25519")
            (own / "known_hosts").write_text(ssh_server.known_hosts)
    return house


@pytest.fixture
async def runtime(house: House) -> AsyncIterator[ProfileRuntime]:
    async with house.served():
        yield await house.runtime()


def hands_of(runtime: ProfileRuntime, far: Path, session_id: str = "") -> SessionHands:
    key = ThreadKey(session_id, "main") if session_id else None
    return SessionHands(runtime, runtime.scope, far, key)


def has_ended(pid: str) -> bool:
    """Whether it is gone, or waits for nothing but its parent's asking."""
    seen = descendants.look(int(pid))
    return seen is None or seen.ended


async def test_commands_run_over_there_with_the_policys_secrets_and_end_codes(
    runtime: ProfileRuntime, tmp_path: Path
) -> None:
    hands = hands_of(runtime, tmp_path / "far")
    told: list[str] = []
    ran = await hands.run("pwd; echo $TOKEN; echo err >&2; exit 7", cwd=None, deadline_s=60, on_output=told.append)
    assert (ran.exit_code, ran.timed_out) == (7, False)
    assert ran.output.splitlines() == [str(tmp_path / "far"), "«secret:TOKEN»", "err"]
    assert "".join(told) == ran.output
    with pytest.raises(errors.NotFound, match="over there"):
        await hands.run("pwd", cwd=tmp_path / "missing", deadline_s=60, on_output=told.append)
    home = await hands.run("pwd", cwd=Path("~"), deadline_s=60, on_output=told.append)
    assert home.output.strip() == pwd.getpwuid(os.getuid()).pw_dir


async def test_the_deadline_and_cancelling_end_what_runs_over_there(runtime: ProfileRuntime, tmp_path: Path) -> None:
    hands = hands_of(runtime, tmp_path / "far")
    pids = tmp_path / "far" / "pids"
    ran = await hands.run(
        f"echo $$ >> {pids}; sleep 1000 & sleep 1000", cwd=None, deadline_s=1.5, on_output=lambda _text: None
    )
    assert ran.timed_out
    with trio.CancelScope() as scope:
        await hands.run(
            f"echo $$ >> {pids}; echo up; sleep 1000", cwd=None, deadline_s=60, on_output=lambda _text: scope.cancel()
        )
    assert scope.cancelled_caught
    behind_a_slash = await hands.slash(f"echo $$ >> {pids}; sleep 1000", deadline_s=1.5)
    assert behind_a_slash.timed_out
    assert (await hands.slash("pwd", deadline_s=60)).output.strip() == str(tmp_path / "far")
    assert runtime.ongoing.slash.count == 0, "what is elsewhere has no worker here (decision 8)"
    for pid in pids.read_text().split():
        await eventually(lambda pid=pid: has_ended(pid))


async def test_file_tools_and_completion_follow_the_backend(runtime: ProfileRuntime, tmp_path: Path) -> None:
    far = tmp_path / "far"
    hands = hands_of(runtime, far)
    written = await hands.write(Path("notes/it's a file.txt"), "first\nsecond änd\n")
    assert written.created
    assert (far / "notes" / "it's a file.txt").read_text() == "first\nsecond änd\n"
    assert not (await hands.write(Path("notes/it's a file.txt"), "first\nsecond\n")).created
    assert (await hands.read(Path("notes/it's a file.txt"), offset=6, limit=3)).text == "sec"
    await hands.edit(Path("notes/it's a file.txt"), lambda text: text.replace("first", "1st"))
    listing = await hands.list_files(Path("."), depth=2, limit=10)
    assert [(entry.name, entry.kind, entry.size) for entry in listing.entries][1:] == [
        ("notes/it's a file.txt", "file", 11)
    ]
    found = await hands.search_files(Path("."), "sec.nd")
    assert [(match.name, match.line, match.text) for match in found.matches] == [("notes/it's a file.txt", 2, "second")]
    assert await hands.complete("no") == ("notes/",)
    assert await hands.complete(f"{far}/notes/it") == (f"{far}/notes/it's a file.txt",)
    with pytest.raises(errors.NotFound):
        await hands.read(Path("missing"), limit=10)
    with pytest.raises(errors.InvalidParams):
        await hands.read(Path("notes"), limit=10)


async def test_background_processes_and_terminals_live_over_there(runtime: ProfileRuntime, tmp_path: Path) -> None:
    far = tmp_path / "far"
    session, _, viewer = await new_session(runtime, cwd=str(far))
    hands = hands_of(runtime, far, session.session_id)
    started = await hands.start("echo $$ > pid; echo up; read line; echo got $line; sleep 1000", cwd=None)
    await hands.process_write(started.process_id, "words\n")
    with trio.fail_after(30):
        while "got words" not in await hands.process_output(started.process_id, limit=100):  # noqa: ASYNC110
            await trio.sleep(0.02)
    await hands.process_kill(started.process_id)
    assert (await viewer.until("process.exited"))["payload"]["process_id"] == started.process_id
    pid = (far / "pid").read_text().strip()
    await eventually(lambda: has_ended(pid))

    backend = backend_for(runtime, runtime.scope, far)
    async with await backend.open(("/bin/sh",), far, terminal=Size(30, 100)) as terminal:
        await terminal.send(b"stty size; tty; echo $TOKEN; exit 3\n")
        shown = b""
        while piece := await terminal.receive():
            shown += piece
        assert b"30 100" in shown
        assert b"/dev/pts/" in shown
        assert CANARY.encode() in shown
        assert (await terminal.wait()).exit_code == 3


async def test_a_profile_without_key_or_known_host_is_refused_and_no_other_files_help(
    house: House, tmp_path: Path
) -> None:
    """TERM-01: keys and known hosts of one profile, or of the server's user, open nothing for another."""
    async with house.served():
        stranger = await house.runtime("stranger")
        hands = hands_of(stranger, tmp_path / "far")
        with pytest.raises(errors.WardenFailed, match="known_hosts"):
            await hands.run("true", cwd=None, deadline_s=60, on_output=lambda _text: None)
        own = house.root / "stranger" / "home" / ".ssh"
        shutil.copy(house.root / "default" / "home" / ".ssh" / "known_hosts", own / "known_hosts")
        with pytest.raises(errors.WardenFailed, match="Permission denied"):
            await hands.run("true", cwd=None, deadline_s=60, on_output=lambda _text: None)


async def test_nothing_secret_stands_in_an_argument(runtime: ProfileRuntime, tmp_path: Path) -> None:
    hands = hands_of(runtime, tmp_path / "far")
    ran = await hands.run("sleep 0.2; cat /proc/[0-9]*/cmdline", cwd=None, deadline_s=60, on_output=lambda _text: None)
    assert CANARY not in ran.output
    assert "«secret" not in ran.output
