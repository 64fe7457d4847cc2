"""A question as it is printed, and an answer as it is typed. Pure.

What an approval is about is always printed whole, on lines of its own: nobody can approve what is cut off.
"""

from __future__ import annotations

from typing import get_args

from pydantic import JsonValue, ValidationError

from hermes_ws.cli.sanitise import harmless
from hermes_ws.contract.events import Envelope, RequestOpened
from hermes_ws.contract.questions import (
    ApprovalParams,
    ApprovalResult,
    Choice,
    ClarifyItem,
    ClarifyParams,
    ClarifyResult,
    OpenQuestion,
)

ANSWERABLE = ("approval", "clarify")
"""The kinds of question that this view can show and take an answer to."""

SEPARATOR = "|"
"""Stands between the answers to several questions that are asked together."""

SKIP = "-"
"""The answer that answers nothing."""


class Unanswerable(Exception):
    """What was typed is no answer to this question; the message says what would be."""


def describe(question: OpenQuestion) -> list[str]:
    """The question, what may be answered, and how. Harmless text."""
    try:
        if question.kind == "approval":
            return _approval(question.id, ApprovalParams.model_validate(question.params))
        if question.kind == "clarify":
            return _clarify(question.id, ClarifyParams.model_validate(question.params))
    except ValidationError:
        pass
    kind = harmless(question.kind)
    return [f"The agent asks something ({kind}) that cannot be", "answered in this view.", f"Its id: {question.id}"]


def opened_question(event: Envelope) -> OpenQuestion:
    """The question that a `request.opened` event tells of. Raises ValidationError for another shape."""
    opened = RequestOpened.model_validate(event.payload)
    return OpenQuestion(
        id=opened.id,
        kind=opened.kind,
        session_id=event.session_id or "",
        thread_id=event.thread_id or "",
        execution_generation=opened.execution_generation,
        params=opened.params,
        asked_at=opened.asked_at,
        deadline=opened.deadline,
    )


def approval(question: OpenQuestion, choice: str, reason: str | None) -> dict[str, JsonValue]:
    """The result for an approval. Raises Unanswerable."""
    if question.kind != "approval":
        raise Unanswerable(f"{question.id} is no approval; type /answer {question.id} TEXT.")
    offered = ApprovalParams.model_validate(question.params).choices
    known: dict[str, Choice] = {each: each for each in get_args(Choice) if each in offered}
    if choice not in known:
        raise Unanswerable(f"{harmless(choice)!r} is no choice; there are {', '.join(known)}.")
    return ApprovalResult(choice=known[choice], reason=reason).model_dump(mode="json", exclude_none=True)


def clarification(question: OpenQuestion, text: str) -> dict[str, JsonValue]:
    """The result for a question. Raises Unanswerable."""
    if question.kind != "clarify":
        raise Unanswerable(f"{question.id} is an approval; type /approve {question.id} CHOICE.")
    items = ClarifyParams.model_validate(question.params).questions
    parts = [text] if len(items) == 1 else [part.strip() for part in text.split(SEPARATOR)]
    if len(parts) != len(items):
        raise Unanswerable(f"There are {len(items)} questions; put {SEPARATOR} between the answers.")
    answers = {item.qid: _answer(item, part) for item, part in zip(items, parts, strict=True)}
    return ClarifyResult(answers=answers).model_dump(mode="json")


def _approval(id: str, asked: ApprovalParams) -> list[str]:
    subject = asked.command if asked.command is not None else asked.path
    # A hook is the profile's own, and no call of the agent.
    asking = "May this run?" if asked.tool == "hook" else f"May the agent use {harmless(asked.tool)}?"
    lines = [asking, harmless(asked.description)]
    if subject is not None:
        lines += [f"    {line}" for line in harmless(subject).splitlines()]
    lines.append(f"Asked because: {harmless(asked.rule)}")
    return [*lines, *(f"/approve {id} {choice}" for choice in asked.choices)]


def _clarify(id: str, asked: ClarifyParams) -> list[str]:
    lines = ["The agent asks:"]
    for item in asked.questions:
        lines += [f"  {line}" for line in harmless(item.question).splitlines()]
        lines += [f"    {number}. {harmless(choice)}" for number, choice in enumerate(item.choices or [], 1)]
        if item.multi_select:
            lines.append("    (several, with commas between)")
    if len(asked.questions) > 1:
        lines.append(f"(put {SEPARATOR} between the answers, {SKIP} to skip one)")
    return [*lines, f"/answer {id} TEXT"]


def _answer(item: ClarifyItem, text: str) -> str | list[str] | None:
    if text == SKIP:
        return None
    if not item.multi_select:
        return _chosen(item, text)
    return [_chosen(item, part.strip()) for part in text.split(",") if part.strip()]


def _chosen(item: ClarifyItem, text: str) -> str:
    choices = item.choices or []
    if text.isascii() and text.isdigit() and 1 <= int(text) <= len(choices):
        return choices[int(text) - 1]
    return text
