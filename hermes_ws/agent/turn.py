"""One turn: the model is asked, what it calls is done, and it is asked again until it calls nothing more.

Whenever a turn is left, by its end, a failure or an interrupt, what was committed is a valid history for the next
request: a message that was cut off is there as partial, and each call has its result.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final, final

import trio

from hermes_ws.agent.approvals import SessionApprovals
from hermes_ws.agent.calls import Batch, Workbench
from hermes_ws.agent.history import repaired
from hermes_ws.agent.models.model import Model, ModelRequest
from hermes_ws.agent.ports import Asker, Hands, Narrator
from hermes_ws.agent.prompt import rules, system_prompt
from hermes_ws.agent.reply import Reply, commit, receive
from hermes_ws.agent.request import TurnRequest, TurnSettings, settings_of
from hermes_ws.agent.tools.registry import enabled
from hermes_ws.contract.content import Message, Usage
from hermes_ws.contract.errors import HermesError, NotFound, StaleEpoch, StorageUnavailable

__all__ = ["TurnEnd", "TurnRequest", "TurnSettings", "run_turn", "settings_of"]

MODEL_CLOSING_S: Final = 2.0
"""Seconds that closing the connections of a model may take; it only has to say goodbye."""


@final
@dataclass(frozen=True, slots=True)
class TurnEnd:
    """A turn that came to its end. `usage` is the sum of its steps, `steps` how often the model was asked."""

    usage: Usage
    steps: int


async def run_turn(
    request: TurnRequest,
    *,
    narrator: Narrator,
    hands: Hands,
    asker: Asker,
    approvals: SessionApprovals,
    model: Model,
) -> TurnEnd:
    """Run one turn. The model belongs to it and is closed when it is left.

    Raises ModelFailed and its kinds, StorageUnavailable and StaleEpoch when what happens cannot be committed. Being
    cancelled is the interrupt: what the model said is committed as partial, each call gets a result, both within
    `reply.CLOSING_S`, and the cancellation goes on.
    """
    bench = Workbench(request, enabled(request.toolsets), narrator, hands, asker, approvals)
    total = Usage(model=model.name)
    try:
        system = await _system(bench)
        messages = repaired(request.history)
        specs = [tool.spec for tool in bench.tools.values()]
        redaction = request.settings.redaction
        for step in range(1, request.max_turns + 1):
            asked = ModelRequest(system, messages, specs)
            reply = await receive(model, asked, narrator=narrator, redaction=redaction)
            total = _sum(total, reply.usage)
            await commit(partial(_remark, narrator, reply))
            if reply.message is not None:
                messages.append(reply.message)
            if not reply.calls:
                return TurnEnd(total, step)
            results = await Batch(bench, reply.calls).run()
            messages.append(Message(message_id=f"step-{step}", role="tool", text="", content=list(results)))
        await narrator.notice(
            "warning",
            "max_turns",
            f"The agent was asked {request.max_turns} times in this turn, and stopped there.",
            hint="Send a message to let it go on, or raise agent.max_turns.",
        )
        return TurnEnd(total, request.max_turns)
    finally:
        with trio.move_on_after(MODEL_CLOSING_S, shield=True):
            await model.aclose()


async def _system(bench: Workbench) -> str:
    """The system prompt. Rules that cannot be read are said and left out: they must not keep anyone from talking."""
    request, hands = bench.request, bench.hands
    found = ""
    try:
        found = await rules(hands)
    except NotFound:
        pass
    except (StorageUnavailable, StaleEpoch):
        raise
    except HermesError as error:
        await bench.narrator.notice(
            "warning", "rules_unreadable", f"The rules of the directory could not be read. {error.message}", error.hint
        )
    prompt = system_prompt(
        request.definition,
        soul=request.settings.soul,
        profile=request.profile,
        cwd=hands.cwd,
        tools=tuple(bench.tools),
        rules=found,
    )
    return request.settings.redaction.redact(prompt)


async def _remark(narrator: Narrator, reply: Reply) -> None:
    """Say what a person could not tell from the message."""
    if reply.reason == "length":
        await narrator.notice(
            "warning", "model_length", "The answer was cut off at the limit of its length.", "Raise model.max_tokens."
        )
    elif reply.reason == "filtered":
        await narrator.notice("warning", "model_filtered", "The provider's filter withheld the answer, or its end.")
    elif reply.empty:
        await narrator.notice("warning", "model_empty", "The model answered nothing.", "Ask again, or another model.")


def _sum(total: Usage, step: Usage) -> Usage:
    return Usage(
        input_tokens=total.input_tokens + step.input_tokens,
        output_tokens=total.output_tokens + step.output_tokens,
        cached_tokens=total.cached_tokens + step.cached_tokens,
        model=step.model,
        duration_ms=total.duration_ms + step.duration_ms,
        time_to_first_token_ms=(
            step.time_to_first_token_ms if total.time_to_first_token_ms is None else total.time_to_first_token_ms
        ),
    )
