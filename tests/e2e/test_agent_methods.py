"""What a client sees of agents, skills, memory, commands and completion, over a real connection."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.gateway_client import Client, Refused
from tests.e2e.process import Server, write_home

CONFIG = """
quick_commands:
  where: {type: exec, command: 'pwd; echo {args}', description: Where commands run}
  broken: {type: exec, command: 'echo oh; exit 3'}
  w: {type: alias, target: /where}
  review: {type: prompt, prompt: 'Review this: {args}'}
"""

SKILL = "---\ndescription: How to brew tea\n---\nUse clean water.\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, base_environment: dict[str, str]) -> Iterator[Server]:
    root = tmp_path_factory.mktemp("methods")
    write_home(root / "homes" / "default", env={}, config=CONFIG)
    write_home(root / "homes" / "second", env={}, config="")
    skill = root / "homes" / "default" / "skills" / "brew"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(SKILL)
    (skill / "times.md").write_text("Three minutes.")
    server = Server(root / "homes", root / "server.log", base_environment)
    yield server
    assert server.stop() == 0


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    made = server.connect()
    yield made
    made.close()


@pytest.fixture
def session(client: Client) -> str:
    made: str = client.call("session.create")["session_id"]
    return made


def refused(client: Client, method: str, **params: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        client.call(method, **params)
    return caught.value


def test_an_agent_is_written_used_and_deleted(client: Client) -> None:
    text = "---\ndescription: Looks around\ntoolsets: []\nmax_turns: 3\n---\nYou only look.\n"
    made = client.call("agent.put", name="scout", text=text)
    assert (made["description"], made["max_turns"], made["text"]) == ("Looks around", 3, text)
    assert [row["name"] for row in client.call("agent.list")["agents"]] == ["default", "scout"]
    assert [row["name"] for row in client.call("agent.list", profile="second")["agents"]] == ["default"]
    session = client.call("session.create", agent="scout")["session_id"]
    admitted = client.submit(session, "hello")
    client.finished(admitted["admission_id"])
    said = [e["payload"]["text"] for e in client.events if e["type"] == "message.complete"]
    assert "I have no tools in this conversation." in said[-1]
    assert client.call("agent.get", name="scout")["instructions"] == "You only look."
    assert client.call("agent.delete", name="scout")["deleted"]
    assert not client.call("agent.delete", name="scout")["deleted"]
    assert refused(client, "agent.get", name="scout").type == "not_found"
    assert client.call("agent.get", name="default")["text"] == ""


@pytest.mark.parametrize(
    ("name", "text"),
    [("../x", "x"), ("ok", "---\nmax_turn: 3\n---\n"), ("ok", "---\nname: [\n---\n"), ("ok", "---\nname: x\n")],
)
def test_a_definition_that_is_none_is_not_written(client: Client, name: str, text: str) -> None:
    assert refused(client, "agent.put", name=name, text=text).code == 4000
    assert [row["name"] for row in client.call("agent.list")["agents"]] == ["default"]


def test_skills_are_listed_and_read(client: Client) -> None:
    (row,) = client.call("skills.list")["skills"]
    assert (row["name"], row["description"], row["problem"]) == ("brew", "How to brew tea", "")
    found = client.call("skills.view", name="brew")
    assert (found["text"], found["files"]) == ("Use clean water.", ["times.md"])
    assert client.call("skills.view", name="brew", file="times.md")["text"] == "Three minutes."
    assert refused(client, "skills.view", name="brew", file="../../config.yaml").type == "not_found"
    assert client.call("skills.list", profile="second")["skills"] == []


def test_memory_is_read_and_set_and_is_each_profiles_own(client: Client) -> None:
    assert client.call("memory.set", target="user", text="Likes tea.")["user"] == "Likes tea."
    assert client.call("memory.get")["user"] == "Likes tea."
    assert client.call("memory.get", profile="second")["user"] == ""
    assert refused(client, "memory.set", target="memory", text="x" * 9000).type == "limit_reached"
    assert client.call("memory.set", target="user", text="")["user"] == ""


def test_the_catalog_has_built_in_quick_and_skill_commands(client: Client) -> None:
    catalog = client.call("commands.catalog")
    kinds = {row["name"]: row["kind"] for row in catalog["commands"]}
    assert (kinds["/help"], kinds["/where"], kinds["/brew"]) == ("built-in", "quick", "skill")
    assert catalog["skill_count"] == 1
    assert ["/brew", "How to brew tea"] in catalog["pairs"]


def test_commands_become_what_the_client_is_to_do(client: Client) -> None:
    alias = client.call("command.dispatch", name="w", arg="now")
    assert (alias["type"], alias["target"]) == ("alias", "/where now")
    prompt = client.call("command.dispatch", name="review", arg="the diff")
    assert (prompt["type"], prompt["message"]) == ("send", "Review this: the diff")
    skill = client.call("command.dispatch", name="brew", arg="green tea")
    assert skill["type"] == "skill"
    assert "Use clean water." in skill["message"]
    assert skill["message"].endswith("The user asks: green tea")
    assert client.call("command.dispatch", name="help")["type"] == "prefill"
    unknown = refused(client, "command.dispatch", name="wher")
    assert unknown.type == "not_found"
    assert "Did you mean /where?" in str(unknown)


def test_commands_are_carried_out_in_the_session(client: Client, session: str) -> None:
    done = client.call("slash.exec", session_id=session, command="/where it's me")
    assert done["type"] == "exec"
    assert done["output"].splitlines()[0].endswith("/default/home")
    assert done["output"].splitlines()[1] == "it's me"
    assert client.call("slash.exec", session_id=session, command="broken")["output"] == "oh\n\n[exit code 3]"
    assert client.call("slash.exec", session_id=session, command="/w")["type"] == "alias"
    assert "session:" in client.call("slash.exec", session_id=session, command="/status")["output"]
    assert "/compress" in client.call("slash.exec", session_id=session, command="/help")["output"]
    nothing = client.call("slash.exec", session_id=session, command="/schedules")["output"]
    assert nothing == "Nothing is scheduled in this profile."
    made = client.call("schedule.create", prompt="look\nround", cron="0 9 1 1 *", timezone="UTC")["schedule_id"]
    row = client.call("slash.exec", session_id=session, command="/schedules")["output"]
    assert row.startswith(f"{made} (0 9 1 1 *, next ")
    assert row.endswith("-01-01 09:00 UTC): look round")
    client.call("schedule.pause", schedule_id=made)
    assert "(0 9 1 1 *, paused)" in client.call("slash.exec", session_id=session, command="/schedules")["output"]
    client.call("schedule.delete", schedule_id=made)
    for name in ("context", "usage", "model", "memory", "skills", "agents", "subagents", "profile", "version"):
        assert client.call("slash.exec", session_id=session, command=f"/{name}")["output"], name
    assert "Tea" in client.call("slash.exec", session_id=session, command="/title Tea time")["output"]
    assert client.call("session.info", session_id=session)["title"] == "Tea time"
    nothing = client.call("slash.exec", session_id=session, command="/compress")
    assert nothing["output"] == "There is nothing to summarise yet."


def test_a_session_in_safe_mode_has_nothing_of_the_profiles_behind_a_slash(client: Client) -> None:
    session = client.call("session.create", safe_mode=True)["session_id"]
    for line in ("/where here", "/w", "/brew tea"):
        told = refused(client, "slash.exec", session_id=session, command=line)
        assert (told.type, "safe mode" in str(told)) == ("not_found", True)
    assert "session:" in client.call("slash.exec", session_id=session, command="/status")["output"]
    opened = client.call("terminal.open", session_id=session, command=["/bin/pwd"])
    assert "/cache/safe/" in opened["cwd"]


def test_slashes_are_completed_with_the_best_first(client: Client) -> None:
    def names(text: str) -> list[str]:
        return [item["text"] for item in client.call("complete.slash", text=text)["items"]]

    assert names("/s")[:2] == ["/skills", "/status"]
    assert "/brew" in names("/bre")
    assert names("/zzzz") == []
    assert names("/where now") == []


def test_paths_are_completed_as_the_sessions_commands_see_them(client: Client, session: str, server: Server) -> None:
    home = server.homes / "default" / "home"
    (home / "notes").mkdir(exist_ok=True)
    (home / "notes.txt").write_text("x")
    items = client.call("complete.path", session_id=session, word="no")["items"]
    assert [(item["text"], item["kind"]) for item in items] == [("notes/", "directory"), ("notes.txt", "file")]
    marked = client.call("complete.path", session_id=session, word="@no")
    assert (marked["replace_from"], len(marked["items"])) == (1, 2)
    other = server.homes / "second"
    assert client.call("complete.path", session_id=session, word=f"{other}/")["items"] == []


def test_schedules_over_the_wire(client: Client) -> None:
    made = client.call("schedule.create", prompt="/do say hi", cron="0 8 * * 1-5", timezone="Europe/Berlin")
    (row,) = client.call("schedule.list")["schedules"]
    assert (row["schedule_id"], row["state"]) == (made["schedule_id"], "active")
    assert client.call("schedule.list", profile="second")["schedules"] == []
    which = {"schedule_id": made["schedule_id"]}
    assert client.call("schedule.pause", **which)["state"] == "paused"
    assert client.call("schedule.resume", **which)["state"] == "active"
    assert client.call("schedule.run", **which)["runs"] == 1
    assert client.call("schedule.delete", **which)["deleted"]
    assert refused(client, "schedule.create", prompt="x", cron="never at all x x").code == 4000


def test_all_launch_options_are_advertised_and_shown(client: Client) -> None:
    offered = client.call("runtime.describe")["session_create"]["parameters"]
    wanted = {
        "model", "provider", "base_url", "api_key", "reasoning", "toolsets", "max_turns", "skills", "checkpoints",
        "yolo",
        "accept_hooks", "pass_session_id", "cwd", "ignore_rules", "ignore_user_config", "safe_mode", "source", "title",
        "agent",
    }  # fmt: skip
    assert wanted <= set(offered)
    made = client.call("session.create", yolo=True, checkpoints=True, skills=["brew"])
    assert made["info"]["options"] == {"checkpoints": True, "yolo": True}
    assert refused(client, "session.create", skills=["nothing"]).type == "not_found"
    assert refused(client, "session.create", base_url="https://x.example").code == 4000


def test_nothing_of_a_key_that_a_session_came_with_is_on_disk_or_told(client: Client, server: Server) -> None:
    key = "sk-launch-key-0123456789"
    made = client.call("session.create", api_key=key, request_id="with-key")
    assert key not in str(made)
    again = client.call("session.create", api_key=key, request_id="with-key")
    assert again["session_id"] == made["session_id"]
    assert key not in str(client.call("session.info", session_id=made["session_id"]))
    for path in Path(server.homes).rglob("*"):
        if path.is_file():
            assert key.encode() not in path.read_bytes(), path


def test_bypasses_need_the_rights_that_they_take_the_place_of(client: Client, server: Server) -> None:
    """Who may only submit makes no session that asks nobody, drops the rules or works elsewhere."""
    made = client.call("token.create", name="narrow", profiles=["default"], rights=["observe", "submit"])
    narrow = Client(server.url, made["token"])
    options: tuple[dict[str, Any], ...] = (
        {"yolo": True},
        {"accept_hooks": True},
        {"ignore_rules": True},
        {"cwd": str(server.homes.parent)},
    )
    for each in options:
        assert refused(narrow, "session.create", **each).type == "permission_denied", each
    inside = server.homes / "default" / "home" / "inside"
    inside.mkdir()
    link = server.homes / "default" / "home" / "link"
    link.symlink_to(server.homes.parent.parent)
    assert refused(narrow, "session.create", cwd=str(link)).type == "permission_denied"
    session = narrow.call("session.create", cwd=str(inside))["session_id"]
    assert narrow.call("slash.exec", session_id=session, command="/status")["output"]
    assert refused(narrow, "slash.exec", session_id=session, command="/title Mine").type == "permission_denied"
    assert refused(narrow, "agent.put", name="x", text="Look.").type == "permission_denied"
    narrow.close()
    wide = client.call("token.create", name="wide", profiles=["default"], rights=["observe", "submit", "control"])
    other = Client(server.url, wide["token"])
    text = "---\napprovals: auto\n---\nDo as you like.\n"
    assert refused(other, "agent.put", name="x", text=text).type == "permission_denied"
    assert other.call("agent.put", name="x", text="Look.")["name"] == "x"
    other.call("agent.delete", name="x")
    other.close()
