"""Changing config.yaml and .env: what is asked for, and nothing else."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue
from ruamel.yaml import YAML

from hermes_ws.contract.errors import InvalidParams, ProfileUnusable
from hermes_ws.scope import dotenv
from hermes_ws.scope.config import load_config
from hermes_ws.scope.config_edit import edited, preview, set_secret, set_setting

COMMENTED = b"""\
# the top
model:
  provider: loopback   # free
  # named so
  name: 'mine'

approvals:
  rules:
    - tool: terminal
      decision: ask   # always
foreign:
  kept: [1, 2]
"""


def test_only_the_line_of_the_setting_changes() -> None:
    before = COMMENTED.decode().splitlines()
    after = edited(COMMENTED, "model.provider", "other").decode().splitlines()
    changed = [(one, two) for one, two in zip(before, after, strict=True) if one != two]
    assert changed == [("  provider: loopback   # free", "  provider: other      # free")]


def test_a_setting_that_was_not_there_is_added_and_one_that_was_is_taken_out() -> None:
    added = edited(COMMENTED, "terminal.network", "deny")
    assert added.startswith(COMMENTED)
    assert added.endswith(b"terminal:\n  network: deny\n")
    assert edited(added, "terminal.network", None).startswith(COMMENTED)
    assert edited(COMMENTED, "terminal.network", None) == COMMENTED


@pytest.mark.parametrize("content", [b"", b"# only words\n", b"# without an end", b"\xef\xbb\xbf# with a mark\n"])
def test_a_file_without_settings_keeps_its_words(content: bytes) -> None:
    after = edited(content, "agent.max_turns", 3)
    assert after.startswith(content)
    assert after.endswith(b"agent:\n  max_turns: 3\n")
    assert edited(content, "agent.max_turns", None).rstrip() == content.rstrip()


@pytest.mark.parametrize("key", ["", ".", "a..b", "a.b.c.d.e.f.g", "model.name.deeper"])
def test_a_key_that_leads_nowhere_is_refused(key: str) -> None:
    with pytest.raises(InvalidParams):
        edited(COMMENTED, key, 1)


def test_what_would_break_the_file_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(COMMENTED)
    with pytest.raises(InvalidParams, match="max_turns"):
        set_setting(path, "agent.max_turns", "many")
    assert path.read_bytes() == COMMENTED
    with pytest.raises(InvalidParams, match="larger"):
        set_setting(path, "foreign.kept", "x" * 300_000)
    path.write_text("agent: [")
    with pytest.raises(ProfileUnusable):
        set_setting(path, "agent.max_turns", 3)


def test_a_look_ahead_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    assert preview(path, "agent.max_turns", 3).agent.max_turns == 3
    assert not path.exists()
    set_setting(path, "agent.max_turns", 3)
    assert load_config(path).agent.max_turns == 3
    assert path.stat().st_mode & 0o777 == 0o600


def test_edits_at_the_same_time_are_all_there(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    keys = [f"providers.p{number}" for number in range(8)]
    edits = [threading.Thread(target=set_setting, args=(path, key, {"kind": "openai"})) for key in keys]
    for each in edits:
        each.start()
    for each in edits:
        each.join()
    assert set(load_config(path).providers) == {key.removeprefix("providers.") for key in keys}


def test_a_secret_keeps_company(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.touch(mode=0o600)
    path.write_text("# mine\nexport A='1'\n\nB=2 # two\nnot a line\nA=3\n")
    set_secret(path, "A", "new value")
    assert path.read_text() == '# mine\n\nB=2 # two\nnot a line\nA="new value"\n'
    set_secret(path, "B", None)
    assert path.read_text() == '# mine\n\nnot a line\nA="new value"\n'
    with pytest.raises(InvalidParams):
        set_secret(path, "no-name", "x")
    with pytest.raises(InvalidParams, match="larger"):
        set_secret(path, "LARGE", "x" * 300_000)


def test_a_file_that_others_can_read_takes_no_secret(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.touch(mode=0o644)
    path.chmod(0o644)
    with pytest.raises(ProfileUnusable):
        set_secret(path, "A", "1")


NAMES = st.sampled_from(["A", "B", "LONGER_NAME"])
VALUES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)


@given(st.dictionaries(NAMES, VALUES), NAMES, st.none() | VALUES, st.sampled_from(["", "# words\n", "broken line\n"]))
def test_one_secret_changes_and_no_other(values: dict[str, str], name: str, value: str | None, before: str) -> None:
    text = before + dotenv.render(values)
    after = dotenv.parse(dotenv.with_value(text, name, value)).values
    wanted = {key: each for key, each in values.items() if key != name}
    assert after == (wanted if value is None else {**wanted, name: value})


LISTED = b"""\
approvals:
  rules:
    # what is harmless
    - tool: terminal   # the shell
      argv: [git, status]
      decision: allow
    # what is not
    - tool: "*"
      decision: deny   # for good
providers:
  mine:
    kind: openai
    api_key: 'sk-written-into-the-file'   # bad habit
    headers:
      X-Team: blue   # ours
"""


def test_one_entry_of_a_list_changes_and_the_words_around_the_others_stay() -> None:
    first: JsonValue = {"tool": "terminal", "argv": ["git", "status"], "decision": "allow"}
    after = edited(LISTED, "approvals.rules", [first, {"tool": "*", "decision": "ask"}]).decode()
    assert after == LISTED.decode().replace("deny   # for good", "ask    # for good")
    added: JsonValue = {"tool": "files", "decision": "ask"}
    longer = edited(LISTED, "approvals.rules", [first, added, {"tool": "*", "decision": "deny"}]).decode()
    for words in ("# what is harmless", "# the shell", "# for good"):
        assert words in longer
    assert longer.index("git, status") < longer.index("tool: files") < longer.index("# for good")
    shorter = edited(LISTED, "approvals.rules", [first]).decode()
    assert "# the shell" in shorter
    assert "# for good" not in shorter


def test_what_was_shown_masked_and_comes_back_masked_stays_what_it_is() -> None:
    shown: JsonValue = {"kind": "anthropic", "api_key": "«secret»", "headers": {"X-Team": "red"}}
    after = edited(LISTED, "providers.mine", shown).decode()
    assert "api_key: 'sk-written-into-the-file'   # bad habit" in after
    assert "kind: anthropic" in after
    assert "X-Team: red    # ours" in after or "X-Team: red   # ours" in after
    assert edited(LISTED, "providers.mine.api_key", "«secret»") == LISTED
    with pytest.raises(InvalidParams, match="stands for a value"):
        edited(LISTED, "providers.other.api_key", "«secret»")


def test_an_entry_that_others_refer_to_is_changed_where_it_was_asked_for_alone() -> None:
    shared = b"terminal:\n  read: &dirs [/srv]\n  write: *dirs\n"
    after = yaml(edited(shared, "terminal.read", ["/srv", "/opt"]))
    assert after == {"terminal": {"read": ["/srv", "/opt"], "write": ["/srv"]}}


def yaml(data: bytes) -> object:
    return cast("object", YAML(typ="safe").load(data))  # pyright: ignore[reportUnknownMemberType]


def test_what_is_wrong_within_a_value_is_told_by_its_place(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    rules: JsonValue = [{"tool": "terminal", "decision": "allow"}, {"tool": "files", "decision": "perhaps"}]
    with pytest.raises(InvalidParams) as refused:
        set_setting(path, "approvals.rules", rules)
    assert refused.value.data["path"] == "value[1].decision"
    with pytest.raises(InvalidParams) as refused:
        set_setting(path, "providers", {"mine": {"kind": "openai", "colour": "red"}})
    assert refused.value.data["path"] == "value.mine.colour"
    with pytest.raises(InvalidParams) as refused:
        set_setting(path, "agent.max_turns", 0)
    assert refused.value.data["path"] == "value"


def test_a_file_is_not_made_larger_than_one_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(COMMENTED)
    monkeypatch.setattr("hermes_ws.scope.config_edit.CONFIG_BYTES", len(COMMENTED) + 10)
    with pytest.raises(InvalidParams, match="larger"):
        set_setting(path, "agent.default", "x" * 100)
    assert path.read_bytes() == COMMENTED
    secrets = tmp_path / ".env"
    monkeypatch.setattr("hermes_ws.scope.config_edit.ENV_BYTES", 20)
    with pytest.raises(InvalidParams, match="larger"):
        set_secret(secrets, "TOKEN", "x" * 100)
    assert not secrets.exists()


def test_a_named_mapping_is_not_changed_where_else_it_is_used() -> None:
    text = b"providers:\n  one: &shared\n    kind: openai\n    base_url: https://a.example/v1\n  two: *shared\n"
    after = YAML(typ="safe").load(edited(text, "providers.two", {"kind": "openai", "base_url": "https://b.example/v1"}))
    assert after["providers"]["one"]["base_url"] == "https://a.example/v1"
    assert after["providers"]["two"]["base_url"] == "https://b.example/v1"


def test_what_is_not_there_is_not_taken_out() -> None:
    for key in ("model.max_tokens", "agent.default", "nothing.there.at.all"):
        assert edited(COMMENTED, key, None) == COMMENTED


def test_what_a_new_mapping_leaves_out_goes() -> None:
    text = b"providers:\n  one:\n    kind: openai   # speaks it\n    base_url: https://a.example/v1\n"
    assert edited(text, "providers.one", {"kind": "openai"}) == b"providers:\n  one:\n    kind: openai   # speaks it\n"
