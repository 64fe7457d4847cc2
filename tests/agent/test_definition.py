"""Agent definitions: read, listed, and explained when they are wrong."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_ws.agent import definition
from hermes_ws.agent.definition import DEFAULT_INSTRUCTIONS, AgentDefinition, list_names, load, parse
from hermes_ws.contract.errors import InvalidParams, NotFound, ProfileUnusable
from hermes_ws.scope.home import ProfileHome


@pytest.fixture
def home(tmp_path: Path) -> ProfileHome:
    (tmp_path / "agents").mkdir()
    return ProfileHome(tmp_path.resolve())


def write(home: ProfileHome, name: str, text: str) -> None:
    (home.agents / f"{name}.md").write_text(text)


def test_front_matter_and_instructions_are_read(home: ProfileHome) -> None:
    write(
        home,
        "writer",
        "---\nname: Writer\ndescription: Writes.\nmodel: m\nprovider: p\nreasoning: low\ntoolsets: [files, ask]\n"
        "max_turns: 7\napprovals: deny\nsubagents: [reader]\n---\n\nWrite well.\n\n---\nA line is no fence.\n",
    )
    assert load(home, "writer") == AgentDefinition(
        name="writer",
        instructions="Write well.\n\n---\nA line is no fence.",
        description="Writes.",
        model="m",
        provider="p",
        reasoning="low",
        toolsets=("files", "ask"),
        max_turns=7,
        approvals="deny",
        subagents=("reader",),
    )


def test_instructions_alone_are_a_definition(home: ProfileHome) -> None:
    write(home, "plain", "Just this.\n")
    assert load(home, "plain") == AgentDefinition("plain", instructions="Just this.")


def test_an_empty_definition_has_the_instructions_of_the_default(home: ProfileHome) -> None:
    write(home, "empty", "---\n---\n")
    assert load(home, "empty").instructions == DEFAULT_INSTRUCTIONS


def test_the_default_exists_without_a_file_and_may_have_one(home: ProfileHome) -> None:
    assert load(home, "default") == AgentDefinition("default")
    write(home, "default", "Mine.")
    assert load(home, "default").instructions == "Mine."


def test_the_default_exists_in_a_home_without_agents(tmp_path: Path) -> None:
    home = ProfileHome(tmp_path.resolve())
    assert list_names(home) == ("default",)
    assert load(home, "default").name == "default"


def test_agents_are_listed_with_the_default_first(home: ProfileHome) -> None:
    for name in ("zoe", "adam", ".hidden"):
        write(home, name, "x")
    (home.agents / "notes.txt").write_text("x")
    assert list_names(home) == ("default", "adam", "zoe")


@pytest.mark.parametrize("name", ["writr", "../../etc/passwd", "", "a/b", "x" * 100, ".env", "a\0"])
def test_an_agent_that_is_not_there_is_said(home: ProfileHome, name: str) -> None:
    write(home, "writer", "x")
    with pytest.raises(NotFound) as raised:
        load(home, name)
    assert "writer" in raised.value.hint
    if name == "writr":
        assert "Did you mean writer?" in raised.value.message


def test_a_link_out_of_the_home_is_no_agent(home: ProfileHome, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside") / "x.md"
    outside.write_text("secret")
    (home.agents / "link.md").symlink_to(outside)
    with pytest.raises(NotFound):
        load(home, "link")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("---\nmax_turn: 3\n---\n", "there is no setting max_turn; did you mean max_turns?"),
        ("---\nmax_turns: many\n---\n", "max_turns: "),
        ("---\napprovals: yolo\n---\n", "approvals: "),
        ("---\n- a\n---\n", "holds no settings"),
        ("---\na: [\n---\n", "is not YAML"),
        ("---\nname: x\n", "has no end"),
    ],
)
def test_what_is_wrong_in_a_file_is_said_with_the_file(home: ProfileHome, text: str, said: str) -> None:
    write(home, "bad", text)
    with pytest.raises(ProfileUnusable) as raised:
        load(home, "bad")
    assert raised.value.message.startswith("agents/bad.md: ")
    assert said in raised.value.message


def test_a_file_that_is_not_utf8_is_said(home: ProfileHome) -> None:
    (home.agents / "bad.md").write_bytes(b"\xff\xfe")
    with pytest.raises(ProfileUnusable, match="UTF-8"):
        load(home, "bad")


@given(st.binary(max_size=200))
def test_any_bytes_are_a_definition_or_an_error_that_is_documented(data: bytes) -> None:
    for content in (data, b"---\n" + data + b"\n---\n"):
        with suppress(ProfileUnusable):
            assert parse(content, Path("x.md")).instructions


def test_a_definition_is_written_once_it_has_proved_to_be_one(tmp_path: Path) -> None:
    home = ProfileHome(tmp_path.resolve())
    text = "---\ndescription: Looks\nmax_turns: 3\n---\nOnly look.\n"
    assert definition.put(home, "scout", text).max_turns == 3
    assert definition.text_of(home, "scout") == text
    assert definition.load(home, "scout").instructions == "Only look."
    with pytest.raises(InvalidParams, match="max_turns"):
        definition.put(home, "scout", "---\nmax_turn: 3\n---\n")
    with pytest.raises(InvalidParams):
        definition.put(home, "../scout", text)
    assert definition.text_of(home, "scout") == text, "what was there stays"
    assert definition.delete(home, "scout")
    assert not definition.delete(home, "scout")
    assert not definition.delete(home, "../scout")
    assert definition.text_of(home, "default") == ""


def test_agents_are_not_written_through_a_link_out_of_the_home(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = ProfileHome(tmp_path.resolve())
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    home.agents.symlink_to(elsewhere)
    with pytest.raises(ProfileUnusable):
        definition.put(home, "scout", "Look.")
    assert list(elsewhere.iterdir()) == []
    (elsewhere / "scout.md").write_text("foreign")
    assert not definition.delete(home, "scout")
