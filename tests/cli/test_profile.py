"""Making a profile from the command line: who does it, what is told, and the command that it gets."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from hermes_ws.contract.errors import AlreadyExists, InvalidParams
from hermes_ws.contract.methods.profile_life import ProfileConfirmed, ProfileDeleted, ProfileMade
from hermes_ws.scope.home import ProfileHome
from hermes_ws.scope.identity import ProfileName, mint_identity
from tests.cli.conftest import PATIENCE, Run, environment
from tests.client.peer import Peer

FOREIGN = "#!/bin/sh\necho something else\n"


def command_of(home: Path, name: str) -> Path:
    """Where the command of a profile lies: below the user's home, which is the directory that the tests' home is in."""
    return home.parent / ".local" / "bin" / name


def test_a_profile_that_is_made_here_gets_a_command_that_selects_it(run: Run, home: Path) -> None:
    made = run("profile", "create", "work")
    assert made.returncode == 0, made.stderr
    place = home / "profiles" / "work"
    assert made.stdout == f"The profile work is made: {place}\n"
    wrapper = command_of(home, "work")
    assert f"Its command: work ({wrapper})" in made.stderr
    assert f"{wrapper.parent} is not in your PATH yet" in made.stderr
    assert wrapper.stat().st_mode & 0o777 == 0o755
    assert [each.name for each in wrapper.parent.iterdir()] == ["work"], "nothing is left beside it"
    (place / "config.yaml").write_text("agent:\n  max_turns: 7\n")
    own = {name: value for name, value in environment(home).items() if name != "HERMES_HOME"}
    checked = subprocess.run(
        [str(wrapper), "config", "check"], env=own, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert checked.stdout == f"{place / 'config.yaml'} can be used.\n"
    assert run("-p", "work", "config", "check").stdout == checked.stdout
    assert run("config", "check", "-p", "work").stdout == checked.stdout
    nobody = run("-p", "nobody", "config", "check")
    assert (nobody.stdout, nobody.returncode) == ("", 1)


def test_the_command_goes_where_its_profile_goes(run: Run, home: Path) -> None:
    assert run("profile", "create", "work").returncode == 0
    renamed = run("profile", "rename", "work", "office")
    assert renamed.returncode == 0, renamed.stderr
    assert not command_of(home, "work").exists()
    assert "-p office" in command_of(home, "office").read_text()
    deleted = run("profile", "delete", "office", "--yes")
    assert deleted.stdout == "The profile office is removed, with all that was in it.\n"
    assert deleted.returncode == 0, deleted.stderr
    assert not command_of(home, "office").exists()


@pytest.mark.parametrize("what", ["a file", "a link", "the command of another home"])
def test_what_is_not_ours_is_never_overwritten(run: Run, home: Path, tmp_path: Path, what: str) -> None:
    wrapper = command_of(home, "work")
    wrapper.parent.mkdir(parents=True)
    if what == "a link":
        (tmp_path / "aim").write_text(FOREIGN)
        wrapper.symlink_to(tmp_path / "aim")
    else:
        wrapper.write_text(FOREIGN if what == "a file" else "#!/bin/sh\n# The command of the hermes-ws profile /x\n")
    before = wrapper.read_text()
    made = run("profile", "create", "work")
    assert made.returncode == 0, made.stderr
    assert (wrapper.read_text(), wrapper.is_symlink()) == (before, what == "a link")
    assert "is there already and not of this profile; it was left as it is. hermes-ws -p work does" in made.stderr
    run("profile", "delete", "work", "--yes")
    assert wrapper.read_text() == before


def test_a_command_of_that_name_is_not_hidden(run: Run, home: Path, tmp_path: Path) -> None:
    other = tmp_path / "bin" / "work"
    other.parent.mkdir()
    other.write_text(FOREIGN)
    other.chmod(0o755)
    made = run("profile", "create", "work", PATH=f"{other.parent}:{os.environ['PATH']}")
    assert made.returncode == 0, made.stderr
    assert f"There is a command work already ({other})" in made.stderr
    assert not command_of(home, "work").exists()


def test_a_directory_that_cannot_be_written_costs_the_command_alone(run: Run, home: Path) -> None:
    (home.parent / ".local").write_text("a file where a directory should be")
    made = run("profile", "create", "work")
    assert (made.returncode, (home / "profiles" / "work").is_dir()) == (0, True)
    assert "No command was made for the profile" in made.stderr


def test_the_receipt_of_the_server_is_printed_and_its_home_elsewhere_gets_no_command(
    peer: Peer, run: Run, home: Path
) -> None:
    """A tunnel or a container may have the same path; the identity in the home tells."""
    there = home / "profiles" / "work"
    there.mkdir(parents=True)
    assert mint_identity(ProfileHome(there), ProfileName("work")).id != "of-another-machine"
    peer.answers["profiles.create"] = ProfileMade(
        id="of-another-machine",
        name="work",
        home=str(there),
        skipped=[],
        confirm=False,
        report=["The profile work is made.", "It is \x1b[31mred."],
    )
    made = run("profile", "create", "work")
    assert (made.stdout, made.stderr, made.returncode) == ("The profile work is made.\nIt is ␛[31mred.\n", "", 0)
    assert not command_of(home, "work").exists()


@pytest.mark.parametrize("refusal", [None, InvalidParams("there is no git_identity", path="git_identity")])
def test_what_an_older_server_of_this_machine_cannot_do_is_done_here(
    peer: Peer, run: Run, home: Path, refusal: InvalidParams | None
) -> None:
    """-32601 and 4000: it does not know the method, or not all of its fields."""
    if refusal is not None:
        peer.refuse["profiles.create"] = refusal
    made = run("profile", "create", "work", "--model", "m", "--provider", "loopback")
    assert made.returncode == 0, made.stderr
    place = home / "profiles" / "work"
    assert (place / "config.yaml").read_text() == 'model:\n  provider: "loopback"\n  name: "m"\n'
    assert json.loads((place / "profile.json").read_text())["name"] == "work"
    assert command_of(home, "work").exists()
    assert len(peer.asked("profiles.create")) == 1
    again = run("profile", "create", "work", "--json")
    assert again.returncode == 1
    assert json.loads(again.stdout)["error"]["type"] == "already_exists"
    bad = run("profile", "create", "../work")
    assert (bad.stdout, bad.returncode) == ("", 1)
    assert "is not a profile name" in bad.stderr


def test_a_server_that_a_url_names_is_never_gone_around(peer: Peer, run: Run, home: Path) -> None:
    with_url = {"HERMES_TUI_GATEWAY_URL": "ws://127.0.0.1:9/ws", "HERMES_TUI_GATEWAY_TOKEN": "t"}
    nobody = run("profile", "create", "work", **with_url)
    assert (nobody.stdout, nobody.returncode) == ("", 1)
    assert not (home / "profiles").exists()


def test_an_older_server_that_a_url_names_is_an_error(run: Run, home: Path) -> None:
    from tests.client.peer import peer_at

    with peer_at() as elsewhere:
        told = run(
            "profile",
            "create",
            "work",
            HERMES_TUI_GATEWAY_URL=elsewhere.url,
            HERMES_TUI_GATEWAY_TOKEN=elsewhere.token,
        )
    assert (told.stdout, told.returncode) == ("", 1)
    assert not (home / "profiles").exists()
    assert not command_of(home, "work").exists()


def test_a_refusal_keeps_its_type(peer: Peer, run: Run, home: Path) -> None:
    peer.refuse["profiles.create"] = AlreadyExists("There is a profile work already.", profile="work")
    told = run("profile", "create", "work", "--json")
    assert told.returncode == 1
    assert json.loads(told.stdout)["error"]["type"] == "already_exists"
    assert "Error: There is a profile work already." in told.stderr
    assert not (home / "profiles").exists()


def test_a_lost_answer_is_an_unknown_outcome_and_nothing_is_sent_again(peer: Peer, run: Run, home: Path) -> None:
    peer.lose_reply_of = {"profiles.create"}
    told = run("profile", "create", "work", "--json")
    assert told.returncode == 1
    assert json.loads(told.stdout)["error"]["type"] == "outcome_unknown"
    assert "It is not known whether profiles.create was carried out" in told.stderr
    assert len(peer.asked("profiles.create")) == 1
    assert not (home / "profiles").exists()


def test_an_answer_without_a_complete_receipt_is_an_unknown_outcome(peer: Peer, run: Run, home: Path) -> None:
    peer.answers["profiles.create"] = ProfileDeleted(name="work")
    told = run("profile", "create", "work")
    assert (told.stdout, told.returncode) == ("", 1)
    assert "It is not known whether profiles.create was carried out" in told.stderr
    assert "hermes-ws profile list shows what is there." in told.stderr
    assert len(peer.asked("profiles.create")) == 1
    assert not command_of(home, "work").exists()


@pytest.mark.parametrize(("confirmed", "told"), [(True, "Confirmed: what it starts"), (False, "Nothing had been off.")])
def test_a_profile_that_came_from_elsewhere_is_confirmed(peer: Peer, run: Run, confirmed: bool, told: str) -> None:
    peer.answers["profiles.confirm"] = ProfileConfirmed(confirmed=confirmed)
    done = run("profile", "confirm", "office")
    assert (done.returncode, told in done.stdout) == (0, True), done.stderr
    assert peer.asked("profiles.confirm") == [{"profile": "office"}]
