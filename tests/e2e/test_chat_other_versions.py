"""The command line against an earlier server, and an earlier command line against this one: real effects on disk.

Each run says what it has verified (`caller_cwd_effect_verified`): that a command ran in the directory that the caller
asked for, or that it was refused and nothing ran. The latter is no proof of the former.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.older_server import Older, older_server
from tests.e2e.process import Server
from tests.e2e.test_command_line import command

RECEIPT = "/do run pwd > receipt"

Record = Callable[[str, object], None]


@pytest.fixture
def place(shared_server: Server, tmp_path: Path) -> Path:
    """A directory that the profile's commands may write to, and that the caller stands in."""
    made = shared_server.homes / "default" / "home" / tmp_path.name
    made.mkdir()
    return made


@pytest.fixture
def older(shared_server: Server) -> Iterator[Older]:
    with older_server(shared_server, "cwd", "if_missing") as earlier:
        yield earlier


@pytest.fixture
def environment(shared_server: Server, base_environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    own = {"HERMES_HOME": str(tmp_path / "nothing"), "XDG_STATE_HOME": str(tmp_path / "state")}
    return {**base_environment, **own, "HERMES_TUI_GATEWAY_TOKEN": shared_server.token}


def test_this_server_works_in_the_directory_of_the_caller(
    shared_server: Server, environment: dict[str, str], place: Path, record_property: Record
) -> None:
    own = {**environment, "HERMES_TUI_GATEWAY_URL": shared_server.url}
    done = command(own, "chat", "-Q", "-q", RECEIPT, "--yolo", cwd=place)
    assert done.returncode == 0, done.stderr
    assert (place / "receipt").read_text() == f"{place}\n"
    record_property("caller_cwd_effect_verified", True)


def test_an_earlier_server_that_takes_no_directory_is_a_warning(
    older: Older, environment: dict[str, str], place: Path, shared_server: Server, record_property: Record
) -> None:
    """Without --in the work is done where that server is configured to, and nobody is left to guess it."""
    own = {**environment, "HERMES_TUI_GATEWAY_URL": older.url}
    configured = shared_server.homes / "default" / "home" / "receipt"
    configured.unlink(missing_ok=True)
    done = command(own, "chat", "-Q", "-q", RECEIPT, "--yolo", cwd=place)
    assert done.returncode == 0, done.stderr
    assert "The server does not take a directory" in done.stderr
    assert configured.read_text() == f"{configured.parent}\n"
    assert list(place.iterdir()) == []
    record_property("caller_cwd_effect_verified", False)


def test_an_earlier_server_and_in_is_a_refusal_and_nothing_is_written(
    older: Older, environment: dict[str, str], place: Path, shared_server: Server, record_property: Record
) -> None:
    own = {**environment, "HERMES_TUI_GATEWAY_URL": older.url}
    configured = shared_server.homes / "default" / "home" / "receipt"
    configured.unlink(missing_ok=True)
    done = command(own, "chat", "-Q", "-q", RECEIPT, "--yolo", "--in", str(place))
    assert (done.stdout, done.returncode) == ("", 1)
    assert "does not support creation options: --in. No session was made." in done.stderr
    assert (list(place.iterdir()), configured.exists()) == ([], False)
    assert {method for method, _ in older.asked} <= {"client.capabilities", "runtime.describe"}
    record_property("caller_cwd_effect_verified", False)


def test_an_earlier_server_makes_a_missing_session_by_title(older: Older, environment: dict[str, str]) -> None:
    """It is not asked to look once more while it makes it, which it would refuse: the title is all that it is told."""
    own = {**environment, "HERMES_TUI_GATEWAY_URL": older.url}
    for words in ("one", "two"):
        done = command(own, "chat", "-Q", "-q", f"/do say {words}", "-c", "By an earlier one", "--create-if-missing")
        assert (done.stdout, done.returncode) == (f"{words}\n", 0), done.stderr
    (asked,) = [params for method, params in older.asked if method == "session.create"]
    assert asked["title"] == "By an earlier one"
    assert "if_missing" not in asked
