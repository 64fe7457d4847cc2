"""Which session a conversation is in: found or made once, edited from the view, remembered by its terminal."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.e2e.gateway_client import PATIENCE, Refused
from tests.e2e.older_server import older_server
from tests.e2e.process import Server
from tests.e2e.terminal import COMMAND, Terminal
from tests.e2e.test_command_line import command, session_of


@pytest.fixture
def environment(shared_server: Server, base_environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    own = {"HERMES_HOME": str(shared_server.homes / "default"), "XDG_STATE_HOME": str(tmp_path / "state")}
    return {**base_environment, **own, "NO_COLOR": "1"}


def test_a_session_is_made_where_it_is_missing_and_once(shared_server: Server) -> None:
    """The server decides, in one transaction: nobody can come between looking and making."""
    client = shared_server.connect()
    asked = {"title": "Made once", "if_missing": True}
    first = client.call("session.create", **asked, model="one")
    second = client.call("session.create", **asked, model="two")
    assert (first["existing"], second["existing"]) == (False, True)
    assert second["session_id"] == first["session_id"]
    assert client.call("session.info", session_id=first["session_id"])["launch"]["model"] == "one"
    other = client.call("session.create", title="Made once")
    assert other["session_id"] != first["session_id"], "who does not ask for that gets a new one"
    with pytest.raises(Refused) as refused:
        client.call("session.create", if_missing=True)
    assert refused.value.type == "invalid_params"
    client.close()


def test_racing_starters_end_in_one_session(environment: dict[str, str], shared_server: Server) -> None:
    """Each has looked and found none before any of them makes it: they are held at the door until all are there."""
    with older_server(shared_server, together=3) as door:
        named = {"HERMES_TUI_GATEWAY_URL": door.url, "HERMES_TUI_GATEWAY_TOKEN": shared_server.token}
        racers = [
            subprocess.Popen(
                [*COMMAND, "chat", "-Q", "-q", f"/do say {number}", "-c", "Raced", "--create-if-missing"],
                env={**environment, **named},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for number in range(3)
        ]
        ended = [(each.communicate(timeout=PATIENCE * 2), each.returncode) for each in racers]
    assert [method for method, _ in door.asked].count("session.create") == 3, "each asked for it to be made"
    assert [status for _, status in ended] == [0] * 3, ended
    assert sorted(out for (out, _), _ in ended) == [f"{number}\n" for number in range(3)]
    assert len({session_of(errors) for (_, errors), _ in ended}) == 1
    listed = json.loads(command(environment, "session", "list", "--json").stdout)["sessions"]
    assert [row["title"] for row in listed].count("Raced") == 1


def test_a_terminal_remembers_its_own_session_and_no_other_terminals(environment: dict[str, str]) -> None:
    """`-c` alone: the breadcrumb of this terminal before the newest session; a fresh terminal takes the newest."""
    shell = (
        f"{' '.join(COMMAND)} chat -q '/do say mine'; read line; {' '.join(COMMAND)} chat -c -q '/do say again'; read"
    )
    mine = Terminal(environment, program=("/bin/sh", "-c", shell))
    other = None
    try:
        session = mine.session()
        mine.see(r"session_id: \S+\n")
        newer = command(environment, "chat", "-Q", "-q", "/do say newer")
        assert session_of(newer.stderr) != session
        other = Terminal(environment, "chat", "-c")
        assert other.session() == session_of(newer.stderr), "no other terminal's, but the newest"
        mine.type("")
        assert mine.session() == session, "this terminal's, though there is a newer one"
        mine.see(r"user: /do say mine(.|\n)*\nagain\n")
        gone = command(environment, "session", "delete", session, "--yes")
        assert gone.returncode == 0, gone.stderr
    finally:
        mine.close()
        if other is not None:
            other.close()
    crumbs = list(Path(environment["XDG_STATE_HOME"], "hermes-ws", "terminals").iterdir())
    assert {each.read_text().strip() for each in crumbs} == {session, session_of(newer.stderr)}
    assert all(each.stat().st_mode & 0o077 == 0 for each in (crumbs[0].parent, *crumbs))


def test_a_remembered_session_that_is_gone_is_no_error(environment: dict[str, str]) -> None:
    kept = command(environment, "chat", "-Q", "-q", "/do say kept")
    shell = (
        f"{' '.join(COMMAND)} chat -Q -q '/do say gone'; read line; {' '.join(COMMAND)} chat -c -q '/do say on'; read"
    )
    terminal = Terminal(environment, program=("/bin/sh", "-c", shell))
    try:
        session = terminal.session()
        terminal.see(r"session_id: \S+\n")
        assert command(environment, "session", "delete", session, "--yes").returncode == 0
        terminal.type("")
        assert terminal.session() == session_of(kept.stderr), "the newest there is"
    finally:
        terminal.close()


def test_the_model_is_changed_from_the_view_for_what_comes_next(environment: dict[str, str]) -> None:
    typed = "/model\n/do say one\n/model other-model --provider loopback\n/model\n/do say two\n/model --provider x\n"
    done = command(environment, "chat", typed=typed)
    assert done.returncode == 0, done.stderr
    assert "From the next turn on: other-model\n" in done.stdout
    assert done.stdout.index("one\n") < done.stdout.index("other-model") < done.stdout.index("two\n")
    assert "Type /model NAME, or /model NAME --provider NAME." in done.stderr
    told = json.loads(command(environment, "session", "show", session_of(done.stderr), "--json").stdout)
    assert told["info"]["model"] == "other-model"


def test_what_is_old_is_summarised_from_the_view(environment: dict[str, str]) -> None:
    """A preview changes nothing; then the summary takes the place of what it covers."""
    words = "\n".join(f"/do say number {number}" for number in range(6))
    typed = f"/compress\n{words}\n/compress here 2 --preview\n/context\n/compress here 2\n/context\n/compress --hard\n"
    done = command(environment, "chat", typed=typed)
    assert done.returncode == 0, done.stderr
    assert "There is nothing to summarise yet." in done.stdout
    assert "messages would be summarised:" in done.stdout
    assert "messages were summarised:" in done.stdout
    before, after = (
        int(line.rsplit("in ", 1)[1].split()[0]) for line in done.stdout.splitlines() if " tokens (" in line
    )
    assert after < before
    assert "/compress takes --preview and no other option." in done.stderr
