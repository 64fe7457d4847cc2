"""What is served, as text and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Run
from tests.client.peer import Peer


def test_it_shows_the_server_and_its_profiles(peer: Peer, run: Run, home: Path) -> None:
    done = run("status")
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "hermes-ws 9.9",
        f"at {home}/run/gateway.sock",
        "process 4242, up 1 h 1 min",
        "durability: full",
        "",
        "default: open, 1 session, confined by kernel, launch profile",
        "research: closed",
    ]
    narrow = run("status", COLUMNS="40")
    assert all(len(line) <= 40 for line in narrow.stdout.splitlines()[5:])


def test_it_is_one_json_object_for_programs(peer: Peer, run: Run) -> None:
    done = run("status", "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["state"], told["server"]["pid"]) == (0, "ready", 4242)
    assert [row["name"] for row in told["profiles"]] == ["default", "research"]


def test_the_absence_of_a_server_is_json_as_well(run: Run) -> None:
    done = run("status", "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["state"], done.stderr) == (1, "absent", "")
    assert "hermes-ws ensure starts one" in told["hint"]


def test_a_socket_that_others_may_open_is_not_spoken_to(peer: Peer, run: Run, home: Path) -> None:
    (home / "run" / "token").chmod(0o644)
    done = run("status", "--json")
    assert (done.returncode, json.loads(done.stdout)["state"]) == (1, "inaccessible")
    assert peer.requests == []


def test_a_token_of_an_earlier_server_is_told_as_such(peer: Peer, run: Run) -> None:
    peer.token = "of-another-start"
    done = run("status")
    assert done.returncode == 1
    assert "does not accept the token" in done.stderr


def test_a_socket_that_a_dead_server_left_is_no_server(peer: Peer, run: Run, home: Path) -> None:
    """Case PROC-01."""
    peer.stop()
    done = run("status")
    assert done.returncode == 1
    assert "hermes-ws ensure starts one" in done.stderr
