"""Approval rules that are added to a `config.yaml`: in the right place, with all else as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_ws.contract.errors import InvalidParams, ProfileUnusable
from hermes_ws.scope.config import load_config
from hermes_ws.scope.config_edit import add_rules

WRITTEN = """\
# my settings
model:
  provider: loopback   # no key
approvals:   # how I like it
  mode: ask
  rules:
    # reading is fine
    - {tool: terminal, command: "git log *", decision: allow}
    - tool: terminal   # careful
      command: git *
      decision: ask
display:
  skin: default
"""

NEW = {"tool": "terminal", "argv": ["git", "push", "a b", "[x]: #y"], "decision": "allow"}
ASKING = {"tool": "terminal", "command": "git *", "decision": "ask"}


def test_a_rule_is_put_before_the_one_that_asked_and_comments_stay(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(WRITTEN)
    add_rules(path, [NEW], ASKING)
    rules = load_config(path).approvals.rules
    assert [each.command or each.argv for each in rules] == ["git log *", tuple(NEW["argv"]), "git *"]
    lines = path.read_text().splitlines()
    assert [line for line in lines if line in WRITTEN.splitlines()] == WRITTEN.splitlines()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_rule_without_a_place_goes_to_the_end(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(WRITTEN)
    gone = {"tool": "terminal", "command": "no longer there", "decision": "ask"}
    for number, before in enumerate((None, gone), 3):
        add_rules(path, [NEW], before)
        assert load_config(path).approvals.rules[-1].argv == tuple(NEW["argv"])
        assert len(load_config(path).approvals.rules) == number


@pytest.mark.parametrize(
    "text", [None, "", "# nothing yet\n", "approvals:\n  mode: ask\n", "approvals:\n", "display: {}\n"]
)
def test_the_first_rule_makes_what_it_needs(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "config.yaml"
    if text is not None:
        path.write_text(text)
    add_rules(path, [NEW], None)
    assert [each.argv for each in load_config(path).approvals.rules] == [tuple(NEW["argv"])]
    assert "# nothing yet" not in (text or "") or "# nothing yet" in path.read_text()


def test_a_file_that_cannot_be_read_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("approvals: {mode: sometimes}\n")
    with pytest.raises(ProfileUnusable):
        add_rules(path, [NEW], None)
    assert path.read_text() == "approvals: {mode: sometimes}\n"


@pytest.mark.parametrize("more", ["command: x, argv: [y]", "argv: []", 'argv: [""]', "path: x, command: y"])
def test_a_rule_is_about_one_thing(tmp_path: Path, more: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(f"approvals: {{rules: [{{tool: terminal, decision: allow, {more}}}]}}\n")
    with pytest.raises(ProfileUnusable):
        load_config(path)


def test_a_file_is_not_made_larger_than_one_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(WRITTEN)
    monkeypatch.setattr("hermes_ws.scope.config_edit.CONFIG_BYTES", len(WRITTEN) + 10)
    with pytest.raises(InvalidParams, match="larger"):
        add_rules(path, [NEW], ASKING)
    assert path.read_text() == WRITTEN
