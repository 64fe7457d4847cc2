"""How a conversation ends where nobody typed that it should: an early interrupt, a server that is gone."""

from __future__ import annotations

import io
import json
import os
import signal
from pathlib import Path

import anyio
import anyio.to_thread
import click.testing
import pytest

from hermes_ws.cli import chat, line_mode
from hermes_ws.cli.environment import Surroundings
from hermes_ws.cli.line_mode import LineMode
from hermes_ws.cli.locating import Where
from hermes_ws.cli.main import hermes_ws
from hermes_ws.cli.opening import Wanted
from hermes_ws.cli.screen import Screen
from hermes_ws.journal.lock import OwnerLock
from tests.cli.test_line_mode import Conversation
from tests.client.peer import Peer


@pytest.mark.parametrize("arguments", [[], ["-q", "hi"]], ids=["a conversation", "one prompt"])
def test_the_interrupt_of_the_keyboard_leaves_before_there_is_a_session(home: Path, arguments: list[str]) -> None:
    """A server that starts is waited for; who does not want to wait leaves at once, and nothing was begun."""
    (home / "run").mkdir(mode=0o700)
    lock = OwnerLock.take(home / "run" / "owner.lock")
    conversation = Conversation(home, *arguments, NO_COLOR="1")
    try:
        conversation.see(r"Waiting for the server")
        conversation.process.send_signal(signal.SIGINT)
        assert conversation.end() == 130
        assert "Detached" in conversation.shown
        assert "Session" not in conversation.all
        assert "Traceback" not in conversation.all
    finally:
        conversation.close()
        lock.release()


def test_an_interrupt_while_all_is_loaded_still_gives_the_one_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(chat, "_say", interrupted)
    done = click.testing.CliRunner().invoke(hermes_ws, ["chat", "-q", "hi", "--format", "stream-json"])
    init, result = (json.loads(line) for line in done.stdout.splitlines())
    assert (done.exit_code, init["subtype"], result["exit_code"]) == (130, "init", 130)
    assert "before there was a session" in result["error"]


def test_lines_of_a_pipe_need_a_person_where_the_server_is_gone_for_good(
    peer: Peer, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What they started may have come to its end or not: that shows when a server runs again."""
    monkeypatch.setattr(line_mode, "GONE_SECONDS", 0.0)
    reading, writing = os.pipe()
    surroundings = Surroundings(home=home, columns=80)
    told = io.StringIO()
    wanted = Wanted(None, None, "cli", home)
    err = Screen(told, surroundings)
    lines = LineMode(
        Where(surroundings), wanted, Screen(io.StringIO(), surroundings), err, descriptor=reading, typed_by_hand=False
    )

    async def until_it_is_gone() -> int:
        status: list[int] = []

        async def converse() -> None:
            status.append(await lines.run())

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(converse)
                os.write(writing, b"hang\n")
                await anyio.to_thread.run_sync(
                    peer.wait_for, lambda: any(at.active for at in peer.conversations.values())
                )
                await anyio.to_thread.run_sync(peer.stop)
        return status[0]

    try:
        assert anyio.run(until_it_is_gone) == 3
    finally:
        os.close(reading)
        os.close(writing)
    assert "The server ended, and none runs any more: hermes-ws chat --resume s-1" in told.getvalue()
