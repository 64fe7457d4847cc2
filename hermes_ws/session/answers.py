"""Whether an answer fits its question: in its declared shape, and one of those that were offered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from pydantic import JsonValue, ValidationError

from hermes_ws.contract.errors import InvalidParams
from hermes_ws.contract.model import Params
from hermes_ws.contract.questions import (
    QUESTIONS,
    ApprovalParams,
    ApprovalResult,
    ClarifyParams,
    ClarifyResult,
    ConnectionParams,
    ConnectionResult,
    VaultLoginResult,
)
from hermes_ws.contract.validation import read_params
from hermes_ws.session.vault import TypedLogin


def validated(kind: str, asked: Mapping[str, JsonValue], sent: Mapping[str, JsonValue]) -> Params:
    """The answer in its declared shape, and one of those that were offered. Raises `InvalidParams` with the path."""
    result = read_params(QUESTIONS[kind].result, sent, where="result")
    if isinstance(result, ApprovalResult):
        offered = ApprovalParams.model_validate(asked).choices
        if result.choice not in offered:
            raise InvalidParams(f"The choices are {', '.join(offered)}.", path="result.choice")
    if isinstance(result, VaultLoginResult) and result.value is not None:
        _login_fits(result.value)
    if isinstance(result, ConnectionResult):
        _decisions_fit(ConnectionParams.model_validate(asked), result)
    if isinstance(result, ClarifyResult):
        _answers_fit(ClarifyParams.model_validate(asked), result)
    return result


def kept_of(kind: str, result: Params) -> dict[str, JsonValue] | None:
    """What of an answer is stored and told to everybody: where the kind is declared secret, what it says is told."""
    declared = QUESTIONS[kind]
    if declared.secret and not declared.told:
        return None
    told = set(declared.told) if declared.secret else None
    return cast("dict[str, JsonValue]", result.model_dump(mode="json", include=told))


def _answers_fit(asked: ClarifyParams, result: ClarifyResult) -> None:
    items = {item.qid: item for item in asked.questions}
    for qid, answer in result.answers.items():
        path = f"result.answers.{qid}"
        if qid not in items:
            raise InvalidParams(f"There is no question {qid}; there are {', '.join(items)}.", path=path)
        if isinstance(answer, list) and not items[qid].multi_select:
            raise InvalidParams(f"Question {qid} takes one answer.", path=path)


def _decisions_fit(asked: ConnectionParams, result: ConnectionResult) -> None:
    targets = {target.name: target for target in asked.targets}
    for name in result.targets.keys() - targets.keys():
        raise InvalidParams(f"There is no target {name}; there are {', '.join(targets)}.", path="result.targets")
    wanted = {
        field.name
        for name, state in result.targets.items()
        for field in targets[name].required_env
        if state == "connected"
    }
    if result.values.keys() != wanted:
        names = ", ".join(sorted(wanted)) or "none"
        raise InvalidParams(f"The values that are needed for what is connected: {names}.", path="result.values")


def _login_fits(value: str) -> None:
    try:
        TypedLogin.model_validate_json(value)
    except ValidationError:
        wanted = "It is a JSON object with username and password, as text."
        raise InvalidParams(wanted, path="result.value") from None
