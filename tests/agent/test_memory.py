"""The two small files that outlive sessions."""

from __future__ import annotations

from pathlib import Path
from threading import Thread

import pytest
import trio

from hermes_ws.agent import memory
from hermes_ws.agent.memory import CHARACTERS, MemoryFiles
from hermes_ws.contract.errors import InvalidParams, LimitReached, NotFound
from hermes_ws.scope.home import ProfileHome
from tests.agent.scene import Replies, Scene, call, done
from tests.agent.twins import request


@pytest.fixture
def home(tmp_path: Path) -> ProfileHome:
    return ProfileHome(tmp_path.resolve())


def test_entries_are_added_replaced_and_removed(home: ProfileHome) -> None:
    assert memory.read(home, "memory") == ""
    memory.change(home, "memory", "add", "Tests run with make.", "")
    memory.change(home, "memory", "add", "Tabs, not spaces.", "")
    assert memory.change(home, "memory", "replace", "Spaces, not tabs.", "Tabs") == (
        "Tests run with make.\n§\nSpaces, not tabs."
    )
    assert memory.change(home, "memory", "remove", "", "make") == "Spaces, not tabs."
    assert memory.read(home, "user") == ""
    assert oct((home.memories / "MEMORY.md").stat().st_mode)[-3:] == "600"


def test_the_same_entry_is_kept_once(home: ProfileHome) -> None:
    memory.change(home, "user", "add", "Likes tea.", "")
    assert memory.change(home, "user", "add", "Likes tea.", "") == "Likes tea."


def test_what_does_not_fit_is_refused_and_changes_nothing(home: ProfileHome) -> None:
    memory.change(home, "memory", "add", "one two", "")
    memory.change(home, "memory", "add", "one three", "")
    with pytest.raises(InvalidParams, match="2 entries hold"):
        memory.change(home, "memory", "remove", "", "one")
    with pytest.raises(NotFound):
        memory.change(home, "memory", "remove", "", "four")
    with pytest.raises(InvalidParams):
        memory.change(home, "memory", "add", "  ", "")
    with pytest.raises(InvalidParams):
        memory.change(home, "memory", "add", "a\n§\nb", "")
    with pytest.raises(LimitReached):
        memory.change(home, "memory", "add", "x" * CHARACTERS, "")
    assert memory.read(home, "memory") == "one two\n§\none three"


def test_two_that_write_at_once_lose_nothing(home: ProfileHome) -> None:
    def note(number: int) -> None:
        memory.change(home, "memory", "add", f"entry {number}.", "")

    threads = [Thread(target=note, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(memory.read(home, "memory").split(memory.DELIMITER)) == sorted(f"entry {n}." for n in range(12))


def test_a_link_out_of_the_home_is_not_followed(home: ProfileHome, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "MEMORY.md").write_text("foreign")
    home.memories.symlink_to(elsewhere)
    assert memory.read(home, "memory") == ""
    with pytest.raises(NotFound):
        memory.change(home, "memory", "add", "x", "")


async def test_an_agent_notes_and_reads_what_it_noted(home: ProfileHome) -> None:
    """GLOBAL-12."""
    scene = Scene(memory=MemoryFiles(home, trio.CapacityLimiter(1)))
    asked = request("note it", toolsets=("memory",))
    model = Replies(
        [call("memory", action="add", content="It rains on Mondays."), *done("tool_calls")],
        [call("memory", "c2", action="remove", old="nowhere"), *done("tool_calls")],
        done(),
    )
    await scene.run(asked, model)
    first, second = scene.narrator.outcomes
    assert "It rains on Mondays." in first.output
    assert second.is_error
    assert memory.read(home, "memory") == "It rains on Mondays."
