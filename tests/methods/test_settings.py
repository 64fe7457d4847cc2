"""Settings and secrets over the wire: written into the profile's own files, with what stood around them kept."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.gateway_client import Client, Refused
from tests.e2e.process import Server


def text(server: Server, name: str, profile: str = "default") -> str:
    return (server.homes / profile / name).read_text()


def test_a_setting_is_changed_in_its_file_and_the_comments_stay(server: Server, client: Client) -> None:
    answer = client.call("config.set", key="agent.max_turns", value=31)
    assert (answer["value"], answer["scope"]) == (31, "profile")
    assert client.call("config.get", key="agent.max_turns")["value"] == 31
    written = text(server, "config.yaml")
    assert "# how I like it" in written
    assert "provider: loopback   # free" in written
    assert "  # long runs\n  max_turns: 31" in written
    assert "max_turns: 30" in text(server, "config.yaml", "second")


def test_null_brings_the_default_back(client: Client) -> None:
    client.call("config.set", key="terminal.deadline_s", value=7)
    assert client.call("config.get", key="terminal.deadline_s")["value"] == 7
    assert client.call("config.set", key="terminal.deadline_s", value=None)["value"] == 120


@pytest.mark.parametrize(
    ("key", "value", "type"),
    [
        ("agent.max_turns", "many", "invalid_params"),
        ("agent.max_turn", 3, "invalid_params"),
        ("nothing.at_all", 3, "not_found"),
        ("model.provider", "nobody", "invalid_params"),
        ("model..name", "x", "invalid_params"),
        ("durability.deep", "x", "invalid_params"),
    ],
)
def test_a_change_that_would_break_the_profile_is_refused_and_nothing_is_written(
    server: Server, client: Client, key: str, value: Any, type: str
) -> None:
    before = text(server, "config.yaml")
    with pytest.raises(Refused) as refused:
        client.call("config.set", key=key, value=value)
    assert refused.value.type == type
    assert text(server, "config.yaml") == before


def test_what_costs_money_wants_a_yes(client: Client) -> None:
    described = {"kind": "openai", "base_url": "https://models.example/v1"}
    client.call("config.set", key="providers.paid", value=described)
    with pytest.raises(Refused) as refused:
        client.call("config.set", key="model", value={"provider": "paid", "name": "large"})
    assert refused.value.code == 4022
    consent = refused.value.data["consent"]
    with pytest.raises(Refused):
        client.call("config.set", key="model", value={"provider": "paid", "name": "other"}, consent=consent)
    client.call("config.set", key="model", value={"provider": "paid", "name": "large"}, consent=consent)
    status = client.call("setup.status")
    assert (status["inference_provider"], status["model"]) == ("paid", "large")
    client.call("config.set", key="model", value={"provider": "loopback", "name": "loopback"})
    assert client.call("setup.status")["ready"]


def test_a_session_has_settings_of_its_own(client: Client, session: str) -> None:
    client.call("config.set", key="agent.max_turns", value=5, scope="session", session_id=session)
    assert client.call("session.info", session_id=session)["launch"]["max_turns"] == 5
    assert client.call("config.get", key="agent.max_turns")["value"] != 5
    client.call("config.set", key="agent.max_turns", value=None, scope="session", session_id=session)
    assert "max_turns" not in client.call("session.info", session_id=session)["launch"]
    with pytest.raises(Refused) as refused:
        client.call("config.set", key="terminal.network", value="deny", scope="session", session_id=session)
    assert refused.value.type == "invalid_params"


def test_all_settings_are_shown_with_what_they_are_for(client: Client) -> None:
    shown = client.call("config.show")
    rows = {row["key"]: row for section in shown["sections"] for row in section["settings"]}
    assert rows["terminal.deadline_s"]["default"]
    assert rows["terminal.deadline_s"]["doc"]
    assert rows["durability"]["value"] == "full"
    assert rows["terminal.deadline_s"]["usual"] == 120
    assert (rows["agent.max_turns"]["written"], rows["terminal.cwd"]["written"]) == (True, False)
    assert rows["terminal.deadline_s"]["shape"]["unit"] == "seconds"
    assert rows["durability"]["shape"]["enum"] == ["full", "normal"]
    assert rows["providers"]["shape"]["additionalProperties"]["properties"]["api_key"]["secret"]
    assert "$ref" not in str(shown)
    for section in shown["sections"]:
        assert section["doc"], section["name"]
        for row in section["settings"]:
            assert row["doc"], row["key"]
            assert "title" not in row["shape"]
    assert shown["foreign"] == []


def test_a_secret_is_written_and_never_told(server: Server, client: Client) -> None:
    value = 'line one\n"quoted" $and\\more'
    assert client.call("secrets.set", name="NEW_KEY", value=value, profile="second")["set"]
    names = client.call("secrets.names", profile="second")["names"]
    assert {"FIRST", "NEW_KEY"} <= set(names)
    assert "NEW_KEY" not in client.call("secrets.names")["names"]
    assert "FIRST" in text(server, ".env", "second")
    assert (server.homes / "second" / ".env").stat().st_mode & 0o777 == 0o600
    asked = client.call("session.create", profile="second")["session_id"]
    assert value not in str(client.call("session.info", session_id=asked))
    client.call("secrets.set", name="NEW_KEY", value="other", profile="second")
    assert text(server, ".env", "second").count("NEW_KEY") == 1
    assert not client.call("secrets.set", name="NEW_KEY", value=None, profile="second")["set"]
    assert "NEW_KEY" not in text(server, ".env", "second")


@pytest.mark.parametrize(("name", "value"), [("bad-name", "x"), ("", "x"), ("GOOD", "nul\0")])
def test_what_no_environment_can_hold_is_no_secret(client: Client, name: str, value: str) -> None:
    with pytest.raises(Refused) as refused:
        client.call("secrets.set", name=name, value=value)
    assert refused.value.type == "invalid_params"


def test_a_file_that_changed_is_loaded_when_it_is_asked_for(server: Server, client: Client) -> None:
    path = server.homes / "second" / ".env"
    path.write_text(path.read_text() + "BY_HAND=by-hand-value\nno line\n")
    loaded = client.call("reload.env", profile="second")
    assert loaded["updated"] == 1
    assert loaded["problems"]
    assert "BY_HAND" in client.call("secrets.names", profile="second")["names"]


def test_a_key_is_saved_used_and_forgotten(server: Server, client: Client) -> None:
    before = {each["slug"]: each for each in client.call("model.options")["providers"]}
    assert before["loopback"]["is_current"]
    assert not before["openai"]["authenticated"]
    saved = client.call("model.save_key", slug="mine", api_key="key-that-is-secret", base_url="http://127.0.0.1:9/v1")[
        "provider"
    ]
    assert saved == {**saved, "slug": "mine", "kind": "openai", "authenticated": True, "key_env": "MINE_API_KEY"}
    assert "key-that-is-secret" not in text(server, "config.yaml")
    assert "${MINE_API_KEY}" in text(server, "config.yaml")
    checked = client.call("model.check", slug="mine")
    assert not checked["ok"]
    assert "127.0.0.1" in checked["error"]
    assert client.call("model.disconnect", slug="mine")["disconnected"]
    assert "MINE_API_KEY" not in text(server, ".env")
    with pytest.raises(Refused) as refused:
        client.call("model.check", slug="nobody")
    assert refused.value.type == "not_found"
    assert client.call("model.check") == {**client.call("model.check"), "slug": "loopback", "ok": True}
