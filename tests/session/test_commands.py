"""What a profile's user has put behind a slash, and how what was typed finds it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from hermes_ws.agent.ports import Ran
from hermes_ws.contract.errors import NotFound
from hermes_ws.contract.methods.slash import CommandRow, Directive
from hermes_ws.scope.current import Bound, bind
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.scope.sections import QuickCommandConfig
from hermes_ws.session import commands
from tests.session.house import House

CONFIG = """\
quick_commands:
  gs: {type: exec, command: "git status {args}", description: "How the tree is"}
  ll: {type: exec, command: ls}
  t: {type: alias, target: /title}
  plan: {type: prompt, prompt: "Plan {args} first."}
  brief: {type: prompt, prompt: "Be brief."}
"""
SKILL = "---\nname: gardening\ndescription: What grows where.\n---\n# Beds\n"
DONE = Ran(exit_code=0, signal=None, timed_out=False, truncated=False, output="clean", duration_ms=1)


@pytest.fixture
async def scope(house: House) -> ProfileScope:
    home = house.home("default", config=CONFIG)
    place = home / "skills" / "gardening"
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text(SKILL)
    (home / "skills" / "broken").mkdir()
    (home / "skills" / "broken" / "SKILL.md").write_text("---\ndescription: [\n---\n")
    async with house.served():
        return (await house.runtime()).scope


def directive(scope: ProfileScope, name: str, arg: str = "") -> Directive:
    with bind(Bound(scope, None, None, None)):
        return commands.directive(scope, name, arg)


async def test_quick_commands_and_skills_are_listed_and_what_is_broken_is_not(scope: ProfileScope) -> None:
    with bind(Bound(scope, None, None, None)):
        found = {row.name: (row.kind, row.description) for row in commands.rows(scope)}
    assert found == {
        "/brief": ("quick", "Sends a prompt"),
        "/gs": ("quick", "How the tree is"),
        "/ll": ("quick", "Runs ls"),
        "/plan": ("quick", "Sends a prompt"),
        "/t": ("quick", "Stands for /title"),
        "/gardening": ("skill", "What grows where."),
    }


async def test_a_client_is_told_what_to_do(scope: ProfileScope) -> None:
    alias = directive(scope, "t", "Taxes")
    assert (alias.type, alias.target) == ("alias", "/title Taxes")
    placed = directive(scope, "plan", "the shed")
    assert (placed.type, placed.message, placed.display) == ("send", "Plan the shed first.", "/plan the shed")
    appended = directive(scope, "brief", "What is new?")
    assert appended.message == "Be brief.\n\nWhat is new?"
    assert directive(scope, "brief").message == "Be brief."
    left = directive(scope, "gs", "-s")
    assert (left.type, left.message) == ("prefill", "/gs -s")
    skill = directive(scope, "gardening", "Where do beans go?")
    assert (skill.type, skill.display) == ("skill", "/gardening Where do beans go?")
    assert "# Beds" in skill.message
    assert skill.message.endswith("\n\nThe user asks: Where do beans go?")
    assert "The user asks" not in directive(scope, "gardening").message
    with pytest.raises(NotFound):
        directive(scope, "nothing")


@dataclass
class Hands:
    ran: Ran = DONE
    asked: list[str] = field(default_factory=list)

    async def slash(self, command: str, *, deadline_s: float) -> Ran:
        assert deadline_s == commands.DEADLINE_S
        self.asked.append(command)
        return self.ran


@pytest.mark.parametrize(
    ("arg", "command"), [("", "git status "), ("-s", "git status -s"), ("a; rm -r b", "git status 'a; rm -r b'")]
)
async def test_what_was_typed_is_one_word_of_the_command(arg: str, command: str) -> None:
    hands = Hands()
    quick = QuickCommandConfig(type="exec", command="git status {args}")
    assert await commands.run(quick, arg, hands) == "clean"
    assert hands.asked == [command]


@pytest.mark.parametrize(
    ("ran", "told"),
    [
        (replace(DONE, exit_code=2), "clean\n[exit code 2]"),
        (replace(DONE, exit_code=None, signal=9), "clean\n[ended by signal 9]"),
        (replace(DONE, timed_out=True, signal=9, output=""), "[ended after 45 s, with all that it had started]"),
        (replace(DONE, explanation="Write elsewhere."), "clean\n[Write elsewhere.]"),
        (replace(DONE, output="x" * 70_000), "x" * commands.OUTPUT_CHARACTERS),
    ],
)
async def test_how_it_ended_is_told_where_it_did_not_end_well(ran: Ran, told: str) -> None:
    assert await commands.run(QuickCommandConfig(type="exec", command="true"), "", Hands(ran)) == told


@pytest.mark.parametrize(
    ("line", "found"), [("/title  My day ", ("title", "My day")), ("help", ("help", "")), (" /a b c", ("a", "b c"))]
)
def test_a_line_is_a_command_and_what_follows_it(line: str, found: tuple[str, str]) -> None:
    assert commands.split(line) == found


@pytest.mark.parametrize("line", ["", "/", "  "])
def test_a_line_without_a_command_is_refused(line: str) -> None:
    with pytest.raises(NotFound, match="no command"):
        commands.split(line)


def test_what_begins_alike_comes_before_what_is_in_it_and_that_before_what_is_like_it() -> None:
    rows = [
        CommandRow(name=name, description="", kind="built-in") for name in ("/subtitle", "/titles", "/title", "/tilte")
    ]

    def offered(typed: str, limit: int = 9) -> list[str]:
        return [row.name for row in commands.ranked(rows, typed, limit)]

    assert offered("/TITLE") == ["/title", "/titles", "/subtitle", "/tilte"]
    assert offered("title", 2) == ["/title", "/titles"]
    assert offered("xyz") == []
