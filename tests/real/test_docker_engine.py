"""The docker backend against a real engine, with each client that there is: commands, files, terminals, and ends."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import trio

from hermes_ws.contract import errors
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.journal.address import ThreadKey
from hermes_ws.session import docker
from hermes_ws.session.backends import backend_for
from hermes_ws.session.hands import SessionHands
from hermes_ws.warden import descendants
from hermes_ws.warden.grants import Size
from tests.real import engine as engines
from tests.real.engine import Engine
from tests.session.house import House, eventually, new_session

pytestmark = pytest.mark.skipif(bool(engines.missing()), reason=engines.missing())

CANARY = "value-of-the-secret-1234"

WORK = Path("/work")

CONFIG = """terminal:
  backend: docker
  cwd: /work
  env: [TOKEN]
  network: deny
  memory_bytes: 200000000
  processes: 50
  container:
    image: {image}
    socket: {socket}
    volumes: ['{data}:/data:ro']
"""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with engines.served(tmp_path_factory.mktemp("engine")) as served:
        yield served


@pytest.fixture(params=engines.clients())
async def runtime(
    request: pytest.FixtureRequest, tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[ProfileRuntime]:
    monkeypatch.setattr(docker, "PROGRAMS", engines.CLIENTS[request.param])
    root, data = tmp_path / "homes", tmp_path / "data"
    root.mkdir()
    data.mkdir()
    (data / "given.txt").write_text("given\n")
    house = House(root)
    config = CONFIG.format(image=engines.IMAGE, socket=engine.socket, data=data)
    house.home("default", config=config, env=f"TOKEN={CANARY}\n")
    async with house.served():
        yield await house.runtime()
    await eventually(lambda: engine.containers() == [])


def hands_of(runtime: ProfileRuntime, session_id: str = "s1") -> SessionHands:
    return SessionHands(runtime, runtime.scope, WORK, ThreadKey(session_id, "main"))


async def run(
    hands: SessionHands, line: str, deadline_s: float = 60, cwd: Path | None = None
) -> tuple[int | None, str]:
    ran = await hands.run(line, cwd=cwd, deadline_s=deadline_s, on_output=lambda _text: None)
    return ran.exit_code, ran.output


async def test_a_real_engine_runs_commands(runtime: ProfileRuntime, engine: Engine) -> None:
    hands = hands_of(runtime)
    assert await run(hands, "cat /etc/os-release") == (0, "NAME=small\n")
    assert await run(hands, "pwd; echo $TOKEN; echo err >&2; exit 7") == (7, "/work\n«secret:TOKEN»\nerr\n")
    with pytest.raises(errors.NotFound, match="over there"):
        await run(hands, "pwd", cwd=Path("/missing"))
    assert len(engine.containers()) == 1


async def test_it_is_as_narrow_as_the_policy_says(runtime: ProfileRuntime, tmp_path: Path) -> None:
    """No network, no capability, no new privileges, nothing of the server's but the volume that was named."""
    hands = hands_of(runtime)
    _, links = await run(hands, "ls /sys/class/net 2>/dev/null; cat /proc/net/dev")
    assert "eth" not in links
    _, status = await run(hands, "grep -E 'Cap(Eff|Bnd)|NoNewPrivs' /proc/self/status")
    assert status.split() == ["CapEff:", "0" * 16, "CapBnd:", "0" * 16, "NoNewPrivs:", "1"]
    assert await run(hands, "cat /data/given.txt") == (0, "given\n")
    code, _ = await run(hands, "echo x > /data/given.txt")
    assert code != 0
    assert (tmp_path / "data" / "given.txt").read_text() == "given\n"
    code, _ = await run(hands, f"ls {runtime.home.path}")
    assert code != 0
    _, environment = await run(hands, "env; cat /proc/1/environ")
    assert "HERMES" not in environment
    assert CANARY not in environment


async def test_sessions_have_a_container_each_and_it_ends_with_the_session(
    runtime: ProfileRuntime, engine: Engine
) -> None:
    first, second = hands_of(runtime, "s1"), hands_of(runtime, "s2")
    await run(first, "echo one > /work/mine")
    assert (await run(second, "cat /work/mine"))[0] != 0
    assert await run(first, "cat /work/mine") == (0, "one\n")
    assert len(engine.containers()) == 2
    await runtime.ongoing.end_session("s1")
    await eventually(lambda: len(engine.containers()) == 1)


async def test_the_deadline_and_cancelling_end_what_runs_in_there(runtime: ProfileRuntime) -> None:
    hands = hands_of(runtime)
    await run(hands, "true")
    ran = await hands.run("sleep 1001 & sleep 1002", cwd=None, deadline_s=1.5, on_output=lambda _text: None)
    assert ran.timed_out
    with trio.CancelScope() as scope:
        await hands.run("echo up; sleep 1003", cwd=None, deadline_s=60, on_output=lambda _text: scope.cancel())
    assert scope.cancelled_caught
    await nothing_sleeps(hands)


async def nothing_sleeps(hands: SessionHands) -> None:
    with trio.fail_after(30):
        while "sleep 100" in (await run(hands, "ps -o args | grep '[s]leep 100'"))[1]:  # noqa: ASYNC110
            await trio.sleep(0.1)


async def test_file_tools_and_completion_are_of_the_container(runtime: ProfileRuntime) -> None:
    hands = hands_of(runtime)
    name = Path("notes/it's a file.txt")
    assert (await hands.write(name, "first\nsecond änd\n")).created
    assert not (await hands.write(name, "first\nsecond\n")).created
    assert (await hands.read(name, offset=6, limit=3)).text == "sec"
    await hands.edit(name, lambda text: text.replace("first", "1st"))
    listing = await hands.list_files(Path("."), depth=2, limit=10)
    assert [(entry.name, entry.kind, entry.size) for entry in listing.entries if entry.kind == "file"] == [
        ("notes/it's a file.txt", "file", 11)
    ]
    found = await hands.search_files(Path("."), "sec.nd")
    assert [(match.name, match.line, match.text) for match in found.matches] == [("notes/it's a file.txt", 2, "second")]
    assert await hands.complete("no") == ("notes/",)
    with pytest.raises(errors.NotFound):
        await hands.read(Path("missing"), limit=10)
    with pytest.raises(errors.InvalidParams):
        await hands.read(Path("notes"), limit=10)


async def test_background_processes_live_in_there_and_end(runtime: ProfileRuntime) -> None:
    session, _, viewer = await new_session(runtime)
    hands = hands_of(runtime, session.session_id)
    started = await hands.start("echo up; read line; echo got $line; sleep 1004", cwd=None)
    await hands.process_write(started.process_id, "words\n")
    with trio.fail_after(60):
        while "got words" not in await hands.process_output(started.process_id, limit=100):  # noqa: ASYNC110
            await trio.sleep(0.05)
    await hands.process_kill(started.process_id)
    assert (await viewer.until("process.exited"))["payload"]["process_id"] == started.process_id
    await nothing_sleeps(hands)
    quick = await hands.start("exit 5", cwd=None)
    told = (await viewer.until("process.exited"))["payload"]
    assert (told["process_id"], told["exit_code"]) == (quick.process_id, 5)


async def test_terminals_live_in_there_and_end(runtime: ProfileRuntime) -> None:
    backend = backend_for(runtime, runtime.scope, WORK, "s1")
    async with await backend.open(("/bin/sh",), WORK, terminal=Size(30, 100)) as terminal:
        # A client tells the size once the shell runs.
        until = b'until [ "$(stty size 2>/dev/null)" = "30 100" ]; do sleep 0.05; done; '
        await terminal.send(until + b"stty size; tty; echo $TOKEN; exit 3\n")
        shown = b""
        while piece := await terminal.receive():
            shown += piece
        assert b"30 100" in shown
        assert b"/dev/pts/" in shown
        assert CANARY.encode() in shown
        assert (await terminal.wait()).exit_code == 3
    async with await backend.open(("/bin/sh",), WORK, terminal=Size(30, 100)) as terminal:
        await terminal.send(b"echo r'e'ady; sleep 1005\n")
        shown = b""
        while b"ready" not in shown:
            shown += await terminal.receive()
    await nothing_sleeps(hands_of(runtime))


async def test_a_container_does_not_outlive_its_policy(runtime: ProfileRuntime, engine: Engine) -> None:
    await run(hands_of(runtime), "true")
    assert len(engine.containers()) == 1
    runtime.home.config.write_text("terminal:\n  network: deny\n")
    await runtime.reload()
    await eventually(lambda: engine.containers() == [])


async def test_an_image_that_is_not_there_is_told(runtime: ProfileRuntime) -> None:
    config = runtime.home.config.read_text().replace("small:1", "localhost/missing:1")
    runtime.home.config.write_text(config)
    await runtime.reload()
    with pytest.raises(errors.WardenFailed, match="missing"):
        await run(hands_of(runtime), "true")


async def test_a_killed_warden_takes_the_container_along(runtime: ProfileRuntime, engine: Engine) -> None:
    """As when the server is killed: the client goes, and with its input the container."""
    hands = hands_of(runtime)
    await run(hands, "true")
    (container,) = engine.containers()
    client = runtime.ongoing.containers.get(runtime.scope, "s1", lambda _name: pytest.fail("there is one"))
    granted = await client.granted()
    for seen in descendants.below(granted.warden.statistics().pid):
        descendants.send(seen, signal.SIGKILL)
    await eventually(lambda: container not in engine.containers())
