"""One turn: the model is asked, what it calls is done, and it is asked again until it calls nothing more.

Whenever a turn is left, by its end, a failure or an interrupt, what was committed is a valid history for the next
request: a message that was cut off is there as partial, and each call has its result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, final

import trio

from hermes_ws.agent.approvals import SessionApprovals
from hermes_ws.agent.calls import Batch, Workbench
from hermes_ws.agent.context import Context
from hermes_ws.agent.history import calls_of, repaired
from hermes_ws.agent.models.model import Model, ModelRequest
from hermes_ws.agent.ports import Asker, Hands, Library, Narrator, NoAnswerer, QuestionExpired, RuleBook, Steering
from hermes_ws.agent.prompt import PromptParts, system_prompt
from hermes_ws.agent.reply import Reply, RequestedCall, commit, pace_of, receive
from hermes_ws.agent.request import TurnRequest, TurnSettings, settings_of
from hermes_ws.agent.rules import NO_RULES, RulesMemory, rules_above
from hermes_ws.agent.support import Delegates, Hooks, Keeper, Memory
from hermes_ws.agent.tools.registry import enabled
from hermes_ws.contract.content import Message, Usage
from hermes_ws.contract.questions import CONTINUE, ContinueParams, ContinueResult

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
    steering: Steering | None = None,
    delegates: Delegates | None = None,
    memory: Memory | None = None,
    hooks: Hooks | None = None,
    keeper: Keeper | None = None,
    library: Library | None = None,
    rulebook: RuleBook | None = None,
    rules: RulesMemory | None = None,
) -> TurnEnd:
    """Run one turn. The model belongs to it and is closed when it is left.

    Raises ModelFailed and its kinds, StorageUnavailable and StaleEpoch when what happens cannot be committed. Being
    cancelled is the interrupt: what the model said is committed as partial, each call gets a result, both within
    `reply.CLOSING_S`, and the cancellation goes on.
    """
    tools = enabled(request.toolsets, request.offered, request.withheld)
    bench = Workbench(
        request,
        tools,
        narrator,
        hands,
        asker,
        approvals,
        delegates=delegates,
        memory=memory,
        hooks=hooks,
        keeper=keeper,
        library=library,
        rulebook=rulebook,
        rules=rules if rules is not None else RulesMemory(),
    )
    try:
        return await _Turn(bench, model, steering).run()
    finally:
        with trio.move_on_after(MODEL_CLOSING_S, shield=True):
            await model.aclose()


@final
class _Turn:
    """What has come of a turn so far."""

    def __init__(self, bench: Workbench, model: Model, steering: Steering | None) -> None:
        self._bench = bench
        self._request = bench.request
        self._narrator = bench.narrator
        self._model = model
        self._steering = steering
        self._total = Usage(model=model.name)
        self._steps = 0

    async def run(self) -> TurnEnd:
        bench, request = self._bench, self._request
        redaction = request.settings.redaction
        system = await self._system()
        specs = [tool.spec for tool in bench.tools.values()]
        settings = request.settings
        context = Context(settings.window, self._model, self._narrator, redaction, system, settings.prices)
        messages = repaired([*request.history, *await self._left_over()])
        limit = request.max_turns
        if request.going_on is not None and request.going_on.steps:
            self._steps = limit = request.going_on.steps
        while True:
            messages += await self._steered()
            if self._steps == limit:
                if not await self._goes_on(limit):
                    return TurnEnd(self._total, self._steps)
                limit += request.max_turns
            self._steps += 1
            messages, summing = await context.fitted(messages)
            self._total = add(self._total, summing) if summing is not None else self._total
            asked = ModelRequest(system, messages, specs, request.attached)
            reply = await receive(
                self._model,
                asked,
                narrator=self._narrator,
                redaction=redaction,
                meter=context.meter,
                prices=request.settings.prices,
            )
            self._total = add(self._total, reply.usage)
            await commit(partial(_remark, self._narrator, reply))
            if reply.message is not None:
                messages.append(reply.message)
            if reply.calls:
                results = await Batch(bench, reply.calls).run()
                messages.append(Message(message_id=f"step-{self._steps}", role="tool", text="", content=list(results)))
            else:
                said = () if self._steering is None else await self._steering.finish()
                if not said:
                    return TurnEnd(self._total, self._steps)
                messages += said

    async def _left_over(self) -> Sequence[Message]:
        """Do what the last message of a turn that goes on has called and has no result yet; the results."""
        going_on, history = self._request.going_on, self._request.history
        asked = () if going_on is None or not history else calls_of(history[-1])
        if going_on is None or not asked:
            return ()
        calls = [RequestedCall(block, dict(block.arguments), "") for block in asked]
        results = await Batch(self._bench, calls, going_on.outcomes).run()
        return (Message(message_id="step-0", role="tool", text="", content=list(results)),)

    async def _steered(self) -> Sequence[Message]:
        return () if self._steering is None else await self._steering.take()

    async def _goes_on(self, turns: int) -> bool:
        """Ask whether to go on after so many steps. Nobody who can be asked, and no answer in time, are no consent."""
        request = self._request
        if not request.unattended:
            asked = ContinueParams(session_id=request.session_id, thread_id=request.thread_id, turns=turns)
            try:
                answer = await self._bench.asker.ask(CONTINUE, asked)
            except (NoAnswerer, QuestionExpired):
                pass
            else:
                if not isinstance(answer, ContinueResult):
                    raise TypeError(f"an answer to continue is a ContinueResult, not {type(answer).__name__}")
                if answer.go_on:
                    return True
        await self._narrator.notice(
            "warning",
            "max_turns",
            f"The agent was asked {turns} times in this turn, and stopped there.",
            hint="Send a message to let it go on, or raise agent.max_turns.",
        )
        return False

    async def _system(self) -> str:
        """The system prompt, redacted."""
        request, hands = self._request, self._bench.hands
        settings = request.settings
        rules = NO_RULES
        if request.reads_rules:
            rules = await rules_above(hands, settings.directory_rules, self._bench.threads, self._bench.rules)
        await self._narrator.rules_read(rules.names, rules.problems)
        prompt = system_prompt(
            PromptParts(
                definition=request.definition,
                soul=settings.soul,
                profile=request.profile,
                cwd=hands.cwd,
                tools=tuple(self._bench.tools),
                rules=rules.text,
                memory=settings.memory,
                user=settings.user,
                skills=settings.skills,
                frozen=request.frozen,
                note=request.note,
            )
        )
        return settings.redaction.redact(prompt)


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


def add(total: Usage, step: Usage) -> Usage:
    """Both together. The first token is that of the first step; a cost is known only when that of every step is."""
    first = total == Usage(model=total.model)
    cost = step.cost_usd if first else None
    if not first and total.cost_usd is not None and step.cost_usd is not None:
        cost = total.cost_usd + step.cost_usd
    return Usage(
        input_tokens=total.input_tokens + step.input_tokens,
        output_tokens=total.output_tokens + step.output_tokens,
        cached_tokens=total.cached_tokens + step.cached_tokens,
        cost_usd=cost,
        model=step.model,
        duration_ms=total.duration_ms + step.duration_ms,
        tokens_per_second=pace_of(total, step),
        time_to_first_token_ms=(
            step.time_to_first_token_ms if total.time_to_first_token_ms is None else total.time_to_first_token_ms
        ),
    )
