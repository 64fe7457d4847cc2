"""A server that is named by a URL is that server or an error; and how a server that nobody needs ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.gateway_client import PATIENCE
from tests.e2e.process import Server
from tests.e2e.test_command_line import command

ASKING = [
    ["chat", "-q", "hi"], ["chat", "--resume", "latest"], ["ensure"], ["status"], ["open"], ["stop"], ["stdio"],
    ["session", "list"], ["profile", "list"], ["profile", "create", "work"], ["token", "list"],
    ["config", "get"], ["config", "set", "agent.max_turns", "3"],
]  # fmt: skip
"""Every way to need a server."""


@pytest.mark.parametrize("arguments", ASKING, ids=" ".join)
@pytest.mark.parametrize("url", ["ws://127.0.0.1:9/ws", "http://127.0.0.1/ws", "wss://"], ids=["nobody", "http", "bad"])
def test_no_server_of_this_machine_takes_the_place_of_one_that_is_named(
    base_environment: dict[str, str], tmp_path: Path, arguments: list[str], url: str
) -> None:
    home = tmp_path / "home"
    own = {**base_environment, "HOME": str(tmp_path), "HERMES_HOME": str(home), "HERMES_TUI_GATEWAY_URL": url}
    done = command(own, *arguments)
    stopped = arguments == ["stop"] and url.startswith("ws://")
    assert (done.stdout, done.returncode) == ("", 0 if stopped else 1), "of a server that is not there nothing runs"
    assert done.stderr.strip()
    assert "Traceback" not in done.stderr
    assert not home.exists(), "nothing was started or made here"


def test_a_server_ends_when_nobody_needs_it_and_not_before(
    serve: Callable[..., Server], base_environment: dict[str, str]
) -> None:
    """What runs without anybody watching is need enough; after it the server ends by itself, with status 0."""
    server = serve("--idle-exit", "1")
    client = server.connect()
    session = client.call("session.create")["session_id"]
    admitted = client.submit(session, "/do stream 40 100")["admission_id"]
    client.close()
    server.process.wait(PATIENCE)
    assert server.stop() == 0
    again = serve()
    later = again.connect()
    receipt = later.call("prompt.receipt", session_id=session, admission_id=admitted)
    assert receipt["outcome"] == "completed", "it was not cut off by the end"
    later.close()


def test_why_a_start_failed_is_told_with_the_last_lines_of_the_log(
    base_environment: dict[str, str], tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "config.yaml").write_text("model:\n  nmae: x\n")
    own = {**base_environment, "HOME": str(tmp_path), "HERMES_HOME": str(home)}
    for arguments in (["chat", "-q", "hi"], ["ensure"]):
        done = command(own, *arguments)
        assert (done.stdout, done.returncode) == ("", 1)
        assert "The server ended with status 1." in done.stderr
        assert "nmae" in done.stderr
        assert f"The whole log: {home / 'logs' / 'serve.log'}" in done.stderr
        assert "hermes-ws doctor" in done.stderr
    told = json.loads(command(own, "ensure", "--json").stdout)
    assert (told["state"], told["endpoint"]) == ("absent", None)
    assert "nmae" in told["detail"]


def test_the_log_is_followed_over_its_rotation(base_environment: dict[str, str], tmp_path: Path) -> None:
    """`logs --follow` goes on in the file that takes the name, and ends with an interrupt."""
    import signal
    import subprocess

    from tests.e2e.terminal import COMMAND

    home = tmp_path / "home"
    log = home / "logs" / "serve.log"
    log.parent.mkdir(parents=True, mode=0o700)
    log.write_text("".join(f"line {number}\n" for number in range(100)))
    own = {**base_environment, "HERMES_HOME": str(home)}
    last = command(own, "logs", "-n", "2")
    assert last.stdout == "line 98\nline 99\n"
    # Who has started the tests may have had the signal ignored.
    followed = ["/usr/bin/env", "--default-signal=INT", *COMMAND, "logs", "--follow", "-n", "1"]
    with subprocess.Popen(followed, env=own, stdout=subprocess.PIPE, text=True) as tail:
        assert tail.stdout is not None
        try:
            assert tail.stdout.readline() == "line 99\n"
            with log.open("a") as file:
                file.write("appended\n")
            assert tail.stdout.readline() == "appended\n"
            with log.open("a") as file:
                file.write("the last of the old one\n")
            log.rename(log.with_suffix(".1"))
            log.write_text("the first of the new one\n")
            assert tail.stdout.readline() == "the last of the old one\n"
            assert tail.stdout.readline() == "the first of the new one\n"
            tail.send_signal(signal.SIGINT)
            assert tail.wait(PATIENCE) == 0
        finally:
            tail.kill()
    nobody = command(own, "logs", "--profile", "nobody")
    assert (nobody.stdout, nobody.returncode) == ("", 1)
    assert command({**own, "HERMES_HOME": str(tmp_path / "none")}, "logs").returncode == 1
