"""Edits of a session that need more than its rows: a summary by a model, another model, an answer anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast, final

from pydantic import JsonValue

from hermes_ws.agent.compaction import Compacted
from hermes_ws.contract.content import Message
from hermes_ws.contract.errors import NotFound, SessionBusy
from hermes_ws.contract.methods.mutations import CompressPayload, ModelPayload, RetryPayload, UndoPayload
from hermes_ws.journal import admissions, messages, replacement, summaries
from hermes_ws.journal.admissions import NewAdmission
from hermes_ws.journal.summaries import Summary
from hermes_ws.session import shortening
from hermes_ws.session.briefing import ground_of
from hermes_ws.session.launch import Launch
from hermes_ws.session.mutations import Change, Preparation
from hermes_ws.session.shortening import closing, completed, replaced, shortened
from hermes_ws.wire.frames import encode


@final
@dataclass(frozen=True, slots=True)
class _Summarised:
    """A summary that was made before the edit, and the history that it is of."""

    made: Compacted | None
    history: list[Message]
    limit: int
    """Tokens that the model reads at most."""


async def summarised(preparation: Preparation, payload: CompressPayload) -> object:
    """Have the session's model summarise the older messages. Raises `ModelFailed`; then nothing was changed."""
    runtime, key = preparation.runtime, preparation.key
    found = await ground_of(runtime, preparation.keys, preparation.session, key)
    history = await runtime.journal.read(lambda connection: summaries.history(connection, key))
    keep = payload.here or found.settings.window.keep
    made = await shortened(runtime, found, key, history, keep=keep, focus=payload.focus)
    return _Summarised(made, history, found.settings.window.tokens)


def compress(change: Change, payload: CompressPayload) -> dict[str, JsonValue]:
    """Let the summary stand for the older messages. With a preview, or nothing to cover, nothing changes."""
    assert isinstance(change.prepared, _Summarised)
    made, history = change.prepared.made, change.prepared.history
    if made is None:
        return {"compressed": False, "covered": 0, "summary": ""}
    told = completed(made, hard=payload.mode == "hard", kept=history[made.covered :])
    result = cast("dict[str, JsonValue]", told.model_dump(mode="json"))
    if payload.preview:
        return {**result, "compressed": False}
    now = summaries.history(change.tx.connection, change.key)
    if [message.message_id for message in now] != [message.message_id for message in history]:
        raise SessionBusy("The conversation went on while it was summarised.", hint="Try again.")
    if payload.mode == "hard":
        result["generation"] = replacement.replace(change.tx, change.key, replaced(made, history))
    else:
        summaries.put(change.tx, change.key, Summary(made.summary, made.first_kept))
    hard, kept = payload.mode == "hard", history[made.covered :]
    shortening.tell(change.tx, change.key, made, hard=hard, kept=kept, limit=change.prepared.limit)
    return {**result, "compressed": True}


async def relaunched(preparation: Preparation, payload: ModelPayload) -> object:
    """See that there is such a model, and what it needs. Raises `ModelFailed` and its kinds."""
    launch = _launch(preparation.session.launch, payload)
    session = preparation.session.with_launch(launch.overrides())
    found = await ground_of(preparation.runtime, preparation.keys, session, preparation.key)
    async with closing(found.model()):
        return launch


def model(change: Change, payload: ModelPayload) -> dict[str, JsonValue]:
    """Another model from the next turn on; what runs keeps its own."""
    launch = _launch(change.session.launch, payload)
    change.columns["launch"] = encode(launch.overrides()).decode()
    return {"model": payload.model, "provider": payload.provider, "reasoning": payload.reasoning}


def undo(change: Change, payload: UndoPayload) -> dict[str, JsonValue]:
    """Take back the last message of the user and what followed. Raises `NotFound` when there is none."""
    kept, said = _before_the_last(change)
    removed = len(messages.stored(change.tx.connection, change.key)) - len(kept)
    return {"generation": replacement.replace(change.tx, change.key, kept), "text": said.text, "removed": removed}


def retry(change: Change, payload: RetryPayload) -> dict[str, JsonValue]:
    """Take back the last message of the user and what followed, and admit it again."""
    kept, said = _before_the_last(change)
    generation = replacement.replace(change.tx, change.key, kept)
    record, _ = admissions.admit(
        change.tx,
        NewAdmission(
            key=change.key,
            principal=change.principal,
            input_id=f"retry-{messages.new_id()}",
            digest="",
            text=said.text,
        ),
    )
    return {"generation": generation, "admission_id": record.admission_id, "text": said.text}


def _before_the_last(change: Change) -> tuple[list[Message], Message]:
    told = messages.stored(change.tx.connection, change.key)
    for index in range(len(told) - 1, -1, -1):
        if told[index].role == "user":
            return told[:index], told[index]
    raise NotFound("The user has said nothing in this thread.")


def _launch(stored: object, payload: ModelPayload) -> Launch:
    launch = Launch.model_validate(stored)
    changed: dict[str, object] = {
        "model": payload.model,
        "provider": payload.provider,
        "reasoning": payload.reasoning,
    }
    if payload.provider != launch.provider:
        # The address and the key that the session came with belong to the provider that it came with.
        changed |= {"base_url": None, "has_key": False}
    return launch.model_copy(update=changed)
