"""An answer fits its question or is refused with the place where it does not, and without what it said."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_ws.contract.errors import InvalidParams
from hermes_ws.contract.questions import QUESTIONS
from hermes_ws.session.answers import validated

APPROVAL = {
    "session_id": "s",
    "thread_id": "main",
    "tool": "terminal",
    "description": "d",
    "rule": "r",
    "choices": ["once", "deny"],
}
CLARIFY = {"session_id": "s", "thread_id": "main", "questions": [{"qid": "a", "question": "?"}]}
TARGETS = [
    {"name": "github", "kind": "connector", "required_env": [{"name": "GITHUB_TOKEN"}]},
    {"name": "plain", "kind": "skill"},
]
CONNECTION = {"session_id": "s", "thread_id": "main", "targets": TARGETS}
LOGIN = {"session_id": "s", "thread_id": "main", "origin": "https://a.example", "site": "a.example"}


@pytest.mark.parametrize(
    ("kind", "asked", "sent"),
    [
        ("approval", APPROVAL, {"choice": "once"}),
        ("clarify", CLARIFY, {"answers": {"a": "x"}}),
        ("clarify", CLARIFY, {"answers": {}}),
        ("sudo", {}, {"value": "x"}),
        ("secret", {}, {"value": None}),
        ("continue", {}, {"continue": True}),
        ("vault.unlock_prompt", {}, {"value": "x"}),
        ("vault.save_login", LOGIN, {"value": '{"username": "u", "password": "p"}'}),
        ("vault.save_login", LOGIN, {"value": None}),
        ("vault.code", {}, {"value": "123456"}),
        ("connection", CONNECTION, {"targets": {"github": "connected"}, "values": {"GITHUB_TOKEN": "x"}}),
        ("connection", CONNECTION, {"targets": {"github": "skipped", "plain": "connected"}}),
        ("client_tool", {}, {"output": "done"}),
    ],
)
def test_what_fits_is_taken(kind: str, asked: dict[str, Any], sent: dict[str, Any]) -> None:
    assert isinstance(validated(kind, asked, sent), QUESTIONS[kind].result)


@pytest.mark.parametrize(
    ("kind", "asked", "sent", "path"),
    [
        ("approval", APPROVAL, {"choice": "always"}, "result.choice"),
        ("approval", APPROVAL, {"choice": "maybe"}, "result.choice"),
        ("clarify", CLARIFY, {"answers": {"b": "x"}}, "result.answers.b"),
        ("clarify", CLARIFY, {"answers": {"a": ["x", "y"]}}, "result.answers.a"),
        ("secret", {}, {"value": 5}, "result.value"),
        ("secret", {}, {"value": "x" * 65_537}, "result.value"),
        ("secret", {}, {}, "result.value"),
        ("continue", {}, {"go_on": True}, "result.continue"),
        ("vault.save_login", LOGIN, {"value": "canary-of-the-test"}, "result.value"),
        ("vault.save_login", LOGIN, {"value": '{"username": "canary-of-the-test"}'}, "result.value"),
        ("connection", CONNECTION, {"targets": {"gitlab": "connected"}}, "result.targets"),
        ("connection", CONNECTION, {"targets": {"github": "connected"}}, "result.values"),
        (
            "connection",
            CONNECTION,
            {"targets": {"github": "skipped"}, "values": {"GITHUB_TOKEN": "x"}},
            "result.values",
        ),
        ("connection", CONNECTION, {"targets": {"plain": "connected"}, "values": {"PATH": "x"}}, "result.values"),
        ("client_tool", {}, {"output": "x" * 262_145}, "result.output"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(
    kind: str, asked: dict[str, Any], sent: dict[str, Any], path: str
) -> None:
    with pytest.raises(InvalidParams) as refused:
        validated(kind, asked, sent)
    assert refused.value.data["path"].startswith(path)
    assert "canary" not in str(refused.value.to_wire())


def test_secrets_are_not_shown_by_what_holds_them() -> None:
    for kind, sent in (("secret", {"value": "canary"}), ("vault.code", {"value": "canary"})):
        assert "canary" not in repr(validated(kind, {}, sent))
    connected = validated(
        "connection", CONNECTION, {"targets": {"github": "connected"}, "values": {"GITHUB_TOKEN": "canary"}}
    )
    assert "canary" not in repr(connected)
