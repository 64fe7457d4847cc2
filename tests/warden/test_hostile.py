"""A warden that lies: whatever it sends, the server ends it, fails its orders, and takes no harm."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from hermes_ws.contract import errors
from hermes_ws.warden import descendants, hands, ordering
from hermes_ws.warden.grants import Command, Size
from hermes_ws.warden.hands import Warden

if TYPE_CHECKING:
    from tests.warden.conftest import Place

Liar = Callable[[str], str]

LIAR = """#!{python}
import json, os, signal, socket, sys, time
control = socket.socket(fileno=int(sys.argv[-1]))
def hear():
    data, given, _, _ = control.recvmsg(70000, 100)
    return json.loads(data)
def say(value):
    control.send(value if isinstance(value, bytes) else json.dumps(value).encode())
READY = {{"ready": {{"landlock_abi": 7, "seccomp": True, "dropped_capabilities": True,
  "namespaces": False, "counts_processes": False, "notes": []}}}}
hear()
{script}
time.sleep(1000)
"""


@pytest.fixture
def liar(tmp_path: Path) -> Liar:
    def make(script: str) -> str:
        path = tmp_path / "liar"
        path.write_text(LIAR.format(python=sys.executable, script=script))
        path.chmod(0o700)
        return str(path)

    return make


@pytest.mark.parametrize(
    "script",
    [
        "say(b'not json')",
        "say(b'[]')",
        "say({'ready': {}})",
        "say({'ready': 7})",
        "say({'ready': {**READY['ready'], 'landlock_abi': -1}})",
        "say({'ready': {**READY['ready'], 'landlock_abi': True}})",
        "say({'ready': {**READY['ready'], 'notes': [1]}})",
        "say(b'{' * 15000)",
        "say(b'x' * 60000)",
        "say({'fatal': 'x' * 9000})",
        "say({'fatal': 3})",
        "sys.exit(0)",
        "os.kill(os.getpid(), signal.SIGKILL)",
    ],
)
async def test_nonsense_instead_of_ready_is_a_failed_start(script: str, liar: Liar, place: Place) -> None:
    with pytest.raises(errors.WardenFailed) as caught:
        await Warden.start(place.grants, python=liar(script), namespaces=None)
    assert len(caught.value.message) < 1000
    assert descendants.below(os.getpid()) == []


@pytest.mark.parametrize(
    "answer",
    [
        "say(b'nonsense')",
        "say({'id': 999, 'exit': 0})",
        "say({'id': order['id'], 'exit': 4000})",
        "say({'id': order['id'], 'signal': 'nine'})",
        "say({'id': order['id'], 'stage': 'lunch', 'errno': 1})",
        "say({'id': order['id'], 'stage': 'cwd', 'errno': 10**30})",
        "say({'id': -1})",
        "say({'id': True})",
        "say({'id': order['id'], 'exit': 0, 'over': True})",
        "say({'id': order['id'], 'exit': 0, 'over': 'patience'})",
        "say(b'')",
        "control.close()",
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); say(b'x')",
    ],
)
async def test_a_nonsensical_answer_ends_the_warden_and_fails_the_order(answer: str, liar: Liar, place: Place) -> None:
    warden = await Warden.start(
        place.grants, python=liar(f"say(READY)\norder = hear()\n{answer}\nsys.exit(0)"), namespaces=None
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(warden.serve)
        with pytest.raises(errors.WardenFailed):
            await warden.run(place.command("true"))
    assert not warden.alive
    assert descendants.below(os.getpid()) == []


async def test_a_liar_that_does_not_leave_is_killed(liar: Liar, place: Place) -> None:
    script = "say(READY)\norder = hear()\nsay(b'nonsense')"
    warden = await Warden.start(place.grants, python=liar(script), namespaces=None)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(warden.serve)
        with pytest.raises(errors.WardenFailed):
            await warden.read_file(place.inside / "secret")
    assert descendants.below(os.getpid()) == []


async def test_descriptors_that_come_along_are_dropped(liar: Liar, place: Place) -> None:
    script = (
        "socket.send_fds(control, [json.dumps(READY).encode()], [0, 1, 2])\n"
        "order = hear()\nsocket.send_fds(control, [json.dumps({'id': order['id'], 'exit': 0}).encode()], [0, 1, 2])\n"
        "hear()\nsys.exit(0)"
    )
    before = len(os.listdir("/proc/self/fd"))
    warden = await Warden.start(place.grants, python=liar(script), namespaces=None)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(warden.serve)
        assert (await warden.run(place.command("true"))).exit_code == 0
        await warden.close()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    "sent",
    [
        "b''",
        "b'no line'",
        "b'x' * 9000 + b'\\n'",
        "b'{}\\n'",
        "b'[1]\\n'",
        "b'{\"size\": -4}\\n'",
        'b\'{"size": "four"}\\n\'',
        "b'{\"errno\": 99999}\\n'",
        'b\'{"errno": "ENOENT"}\\n\'',
    ],
)
async def test_a_file_s_header_is_not_believed(sent: str, liar: Liar, place: Place) -> None:
    script = (
        "import array\nsay(READY)\n"
        "data, given, _, _ = control.recvmsg(70000, 100)\n"
        f"os.write(array.array('i', given[0][2])[0], {sent})\n"
        "say({'id': json.loads(data)['id'], 'exit': 0})\ncontrol.recv(1)\nsys.exit(0)"
    )
    warden = await Warden.start(place.grants, python=liar(script), namespaces=None)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(warden.serve)
        with pytest.raises(errors.WardenFailed):
            await warden.read_file(place.inside / "secret")
        await warden.close()


async def test_a_warden_that_never_gets_ready_is_given_up(
    liar: Liar, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hands, "START_WITHIN_S", 0.2)
    with pytest.raises(errors.WardenFailed, match="was not ready"):
        await Warden.start(place.grants, python=liar(""), namespaces=None)
    assert descendants.below(os.getpid()) == []


async def test_a_warden_that_does_not_end_a_child_is_ended_itself(
    liar: Liar, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordering, "GRACE_S", 0.1)
    monkeypatch.setattr(ordering, "OBEY_WITHIN_S", 0.1)
    warden = await Warden.start(place.grants, python=liar("say(READY)"), namespaces=None)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(warden.serve)
        with pytest.raises(errors.WardenFailed):
            await warden.run(place.command("true", deadline_s=0.1))
        with pytest.raises(errors.WardenFailed):
            await warden.run(place.command("true"))
    assert descendants.below(os.getpid()) == []


async def test_a_warden_that_does_not_listen_holds_up_nobody_when_it_is_closed(
    liar: Liar, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Orders wait for room in the socket; closing wakes them, and nothing of them is left."""
    monkeypatch.setattr(hands, "LEAVE_WITHIN_S", 0.2)
    warden = await Warden.start(place.grants, python=liar("say(READY)"), namespaces=None)
    before = len(os.listdir("/proc/self/fd"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(warden.serve)
        async with trio.open_nursery() as callers:
            for _ in range(20):
                callers.start_soon(_expect_failure, warden, place.command("true", "x" * 50_000))
            await trio.testing.wait_all_tasks_blocked(0.1)
            assert warden.statistics().running == 20
            await warden.close()
    assert warden.statistics().running == 0
    assert len(os.listdir("/proc/self/fd")) == before - 2


async def _expect_failure(warden: Warden, command: Command) -> None:
    with pytest.raises(errors.WardenFailed):
        await warden.run(command)


ANSWERING = (
    "import array\nsay(READY)\n"
    "data, given, _, _ = control.recvmsg(70000, 100)\n"
    "os.write(array.array('i', given[0][2])[0], {sent})\n"
    "say({{'id': json.loads(data)['id'], 'exit': 0}})\ncontrol.recv(1)\nsys.exit(0)"
)


@pytest.mark.parametrize(
    "sent",
    [
        'b\'{}\\n{"name": 3, "kind": "file", "size": 1}\\n{"more": false}\\n\'',
        'b\'{}\\n{"name": "x", "kind": "door", "size": 1}\\n{"more": false}\\n\'',
        'b\'{}\\n{"name": "x", "kind": "file", "size": -1}\\n{"more": false}\\n\'',
        'b\'{}\\n{"name": "x"}\\n{"more": false}\\n\'',
        "b'nothing that ends'",
    ],
)
async def test_a_listing_is_not_believed(sent: str, liar: Liar, place: Place) -> None:
    warden = await Warden.start(place.grants, python=liar(ANSWERING.format(sent=sent)), namespaces=None)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(warden.serve)
        with pytest.raises(errors.WardenFailed):
            await warden.list_files(place.inside)
        await warden.close()


async def test_a_listing_of_a_liar_is_no_longer_than_what_was_asked_for(liar: Liar, place: Place) -> None:
    sent = 'b\'{}\\n\' + b\'{"name": "x", "kind": "file", "size": 1}\\n\' * 300'
    warden = await Warden.start(place.grants, python=liar(ANSWERING.format(sent=sent)), namespaces=None)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(warden.serve)
        listed = await warden.list_files(place.inside, limit=5)
        assert (len(listed.entries), listed.more) == (5, True)
        await warden.close()


@pytest.mark.parametrize(
    ("script", "ended"),
    [
        ("say({'id': order['id'], 'exit': 0})\ncontrol.recv(1)", True),
        ("sys.exit(0)", False),
        ("socket.send_fds(control, [b'{}'], [0, 1, 2])\ntime.sleep(1000)", False),
    ],
)
async def test_a_program_that_goes_on_ends_with_a_lie(script: str, ended: bool, liar: Liar, place: Place) -> None:
    """The pipes are the server's own: it neither waits for the warden nor takes a descriptor from it."""
    before = len(os.listdir("/proc/self/fd"))
    code = f"say(READY)\norder = hear()\n{script}\nsys.exit(0)"
    warden = await Warden.start(place.grants, python=liar(code), namespaces=None)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(warden.serve)
        async with await warden.open(place.command("true"), terminal=Size(24, 80)) as running:
            assert await running.receive() == b""
            if ended:
                assert (await running.wait()).exit_code == 0
            else:
                with pytest.raises(errors.WardenFailed):
                    await running.wait()
            with pytest.raises(errors.NotFound):
                await running.send(b"x" * 1_000_000)
        await warden.close()
    assert len(os.listdir("/proc/self/fd")) == before
