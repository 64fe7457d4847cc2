"""One batch of tool calls: each is decided, run, told, and gets exactly one result.

Calls that only read run side by side when the whole batch does; all others run in order. Whatever ends the batch early,
an interrupt or a bug, each call has a result when this is left, because a history without it is refused by the next
request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Final, cast, final

import trio

from hermes_ws.agent.approvals import Decision, SessionApprovals, decide
from hermes_ws.agent.deeds import ToolOutcome
from hermes_ws.agent.history import results_of
from hermes_ws.agent.permanent import covers, rules_for
from hermes_ws.agent.ports import Asker, Hands, Library, Narrator, NoAnswerer, QuestionExpired, RuleBook
from hermes_ws.agent.reach import place_of, with_git
from hermes_ws.agent.reply import RequestedCall, commit
from hermes_ws.agent.request import TurnRequest
from hermes_ws.agent.rules import RulesBelow, RulesMemory
from hermes_ws.agent.support import Delegates, Hooks, Keeper, Memory
from hermes_ws.agent.tools.output import fit
from hermes_ws.agent.tools.plan import Plan
from hermes_ws.agent.tools.tool import Prepared, Subject, Tool, ToolContext, refused
from hermes_ws.contract.content import ToolResultBlock
from hermes_ws.contract.errors import HermesError, InvalidParams, StaleEpoch, StorageUnavailable
from hermes_ws.contract.questions import APPROVAL, ApprovalParams, ApprovalResult
from hermes_ws.scope.sections import RuleConfig

INTERRUPTED: Final = "Interrupted before it finished. What it had done until then stands."
NOT_STARTED: Final = "Not started: the turn was interrupted before."
BROKEN_OFF: Final = "Broken off by an error in the server. It may have taken effect or not."

NONE_YET: Final[Mapping[str, ToolOutcome]] = MappingProxyType({})
"""The outcomes of calls that have just been asked for."""

_ENDS_TURN: Final = (StorageUnavailable, StaleEpoch)
"""Not the tool's failures: what happens can no longer be written down, so nothing more may happen."""


@final
@dataclass(frozen=True)
class Workbench:
    """What all calls of a turn share."""

    request: TurnRequest
    tools: Mapping[str, Tool]
    narrator: Narrator
    hands: Hands
    asker: Asker
    approvals: SessionApprovals
    threads: trio.CapacityLimiter = field(default_factory=lambda: trio.CapacityLimiter(1))
    """One thread at a time of a turn looks at paths: a disk that does not answer holds up its own turn alone."""
    delegates: Delegates | None = None
    memory: Memory | None = None
    hooks: Hooks | None = None
    keeper: Keeper | None = None
    library: Library | None = None
    rulebook: RuleBook | None = None
    plan: Plan = field(default_factory=Plan)
    rules: RulesMemory = field(default_factory=RulesMemory)

    def __post_init__(self) -> None:
        self.plan.recall(self.request.history)

    @cached_property
    def below(self) -> RulesBelow:
        """The rules of directories below the session's that the model has not read yet."""
        request = self.request
        trust = request.settings.directory_rules if request.reads_rules else "none"
        outputs = (each.output for message in request.history for each in results_of(message))
        return RulesBelow(self.hands, trust, self.threads, outputs)


@final
class Batch:
    """The calls of one reply, and what became of each. Those that have their outcome already are not made again."""

    def __init__(
        self, bench: Workbench, calls: Sequence[RequestedCall], outcomes: Mapping[str, ToolOutcome] = NONE_YET
    ) -> None:
        self._bench = bench
        self._calls = calls
        self._started: set[str] = set()
        self._outcomes: dict[str, ToolOutcome] = dict(outcomes)
        self._to_do = tuple(call for call in calls if call.block.call_id not in self._outcomes)

    async def run(self) -> Sequence[ToolResultBlock]:
        """Run all calls and commit their results, in the order of the calls.

        Cancelling ends what runs; the calls that had no result by then get one that says so.
        """
        try:
            if all(self._reads_only(call) for call in self._to_do):
                await self._side_by_side()
            else:
                for call in self._to_do:
                    await self._one(call)
        except BaseException as raised:
            await self._finish(INTERRUPTED if _is_cancellation(raised) else BROKEN_OFF)
            raise
        return await self._finish(BROKEN_OFF)

    async def _side_by_side(self) -> None:
        """Decide about each in order, since a person answers one question at a time; then run all that may."""
        allowed: list[tuple[RequestedCall, Prepared]] = []
        for call in self._to_do:
            prepared = await self._admitted(call)
            if prepared is not None:
                allowed.append((call, prepared))
        try:
            async with trio.open_nursery() as nursery:
                for call, prepared in allowed:
                    nursery.start_soon(self._perform, call, prepared)
        except BaseExceptionGroup as group:
            failed = _failures(group)
            if not failed:
                raise
            raise failed[0] from group

    async def _one(self, call: RequestedCall) -> None:
        prepared = await self._admitted(call)
        if prepared is not None:
            await self._perform(call, prepared)

    async def _admitted(self, call: RequestedCall) -> Prepared | None:
        """The call, ready to run; None when it may not, and then it has its result."""
        refusal: ToolOutcome | None
        tool = self._bench.tools.get(call.block.name)
        prepared: Prepared | None = None
        if call.problem:
            refusal = ToolOutcome(f"The call was not made: {call.problem}", is_error=True)
        elif tool is None:
            known = ", ".join(self._bench.tools) or "none"
            refusal = ToolOutcome(f"There is no tool {call.block.name}. There are: {known}.", is_error=True)
        else:
            try:
                prepared = tool.prepare(call.arguments)
            except InvalidParams as error:
                refusal = refused(error, tool.spec)
            else:
                refusal = await self._refusal(prepared.subject) or await self._hooked(call)
        if refusal is not None:
            await self._done(call, refusal)
            return None
        return prepared

    async def _hooked(self, call: RequestedCall) -> ToolOutcome | None:
        """What a hook of the profile has against a call that may run; None when nothing."""
        hooks = self._bench.hooks
        because = None if hooks is None else await hooks.before_tool(call.block.name, call.block.arguments)
        return None if because is None else ToolOutcome(f"Not run: {because}", is_error=True)

    async def _perform(self, call: RequestedCall, prepared: Prepared) -> None:
        bench = self._bench
        self._started.add(call.block.call_id)
        await bench.narrator.tool_start(call.block)
        context = ToolContext(
            hands=bench.hands,
            asker=bench.asker,
            session_id=bench.request.session_id,
            thread_id=bench.request.thread_id,
            deadline_s=bench.request.settings.deadline_s,
            progress=lambda piece: bench.narrator.tool_progress(call.block.call_id, piece),
            redact=bench.request.settings.redaction.redact,
            call_id=call.block.call_id,
            delegates=bench.delegates,
            memory=bench.memory,
            library=bench.library,
            plan=bench.plan,
        )
        began = trio.current_time()
        try:
            outcome = await self._kept(prepared, context)
        except _ENDS_TURN:
            raise
        except HermesError as error:
            outcome = ToolOutcome(f"{error.message} {error.hint}".strip(), is_error=True)
        if not outcome.duration_ms:
            outcome = replace(outcome, duration_ms=round((trio.current_time() - began) * 1000))
        await self._done(call, await self._with_rules(prepared.subject, outcome))

    async def _with_rules(self, subject: Subject, outcome: ToolOutcome) -> ToolOutcome:
        """What a file tool gave, and the rules on the way to that file that the model has not read."""
        if subject.path is None or outcome.is_error:
            return outcome
        said, problems = await self._bench.below.on_the_way(subject.path)
        for each in problems:
            await self._bench.narrator.notice("warning", each.type, each.message, each.hint)
        return replace(outcome, output=outcome.output + said) if said else outcome

    async def _kept(self, prepared: Prepared, context: ToolContext) -> ToolOutcome:
        """Run a call; what a file held before it was written is kept where the session asks for that."""
        keeper, subject = self._bench.keeper, prepared.subject
        if keeper is None or subject.path is None or "writes" not in subject.needs:
            return await prepared.run(context)
        path = self._bench.hands.cwd / subject.path
        before = await keeper.before(path)
        outcome = await prepared.run(context)
        await commit(lambda: keeper.after(path, before))
        return outcome

    async def _done(self, call: RequestedCall, outcome: ToolOutcome) -> None:
        """Commit the outcome of one call, also when cancelled: it has happened."""
        fitted = fit(outcome.output, self._bench.request.settings.redaction.redact)
        whole = outcome.whole if outcome.whole is not None else fitted.whole
        told = replace(outcome, output=fitted.text, truncated=outcome.truncated or fitted.cut, whole=whole)
        self._outcomes[call.block.call_id] = told
        await commit(lambda: self._bench.narrator.tool_complete(call.block, told))

    async def _finish(self, reason: str) -> Sequence[ToolResultBlock]:
        """Give each call without an outcome one, and commit the results of the batch."""
        for call in self._calls:
            if call.block.call_id not in self._outcomes:
                started = call.block.call_id in self._started
                await self._done(call, ToolOutcome(reason if started else NOT_STARTED, is_error=True))
        blocks = [
            ToolResultBlock(
                call_id=call.block.call_id,
                name=call.block.name,
                output=self._outcomes[call.block.call_id].output,
                is_error=self._outcomes[call.block.call_id].is_error,
                images=[picture.block() for picture in self._outcomes[call.block.call_id].pictures],
                diff=self._outcomes[call.block.call_id].diff,
            )
            for call in self._calls
        ]
        await commit(lambda: self._bench.narrator.tool_results(blocks))
        return blocks

    async def _refusal(self, subject: Subject) -> ToolOutcome | None:
        """Decide about a call, by asking where the rules say so. None when it may run."""
        bench = self._bench
        place = await place_of(subject, bench.hands.cwd, bench.threads, here=bench.hands.here)
        policy = bench.request.policy
        decision = decide(subject, policy=policy, session=bench.approvals, place=place)
        if decision.verdict == "allow" and policy.looks_at_git:
            place = await with_git(place, subject, bench.hands)
            decision = decide(subject, policy=policy, session=bench.approvals, place=place)
        if decision.verdict == "allow":
            return None
        if decision.verdict == "deny":
            return ToolOutcome(f"Denied by {decision.rule}. Do not try to reach it in another way.", is_error=True)
        return await self._asked(subject, decision, place.resolved)

    async def _asked(self, subject: Subject, decision: Decision, resolved: Path | None) -> ToolOutcome | None:
        bench = self._bench
        redact = bench.request.settings.redaction.redact
        rules = () if bench.rulebook is None else rules_for(subject, decision, resolved)
        params = ApprovalParams(
            session_id=bench.request.session_id,
            thread_id=bench.request.thread_id,
            tool=subject.tool,
            command=None if subject.command is None else redact(subject.command),
            path=None if subject.path is None else redact(subject.path),
            description=redact(f"{_described(subject, decision)}\n{covers(subject, decision, rules)}"),
            rule=redact(decision.rule),
            choices=["once", "session", "always", "deny"] if rules else ["once", "session", "deny"],
        )
        try:
            answer = await bench.asker.ask(APPROVAL, params)
        except NoAnswerer:
            return ToolOutcome(
                "Not run: it needs an approval, and nobody who is connected can give one. This is no refusal.",
                is_error=True,
            )
        except QuestionExpired:
            return ToolOutcome("Not run: its approval was not given in time. This is no refusal.", is_error=True)
        if not isinstance(answer, ApprovalResult):
            raise TypeError(f"an answer to an approval is an ApprovalResult, not {type(answer).__name__}")
        if answer.choice == "deny":
            reason = f" The reason: {answer.reason}" if answer.reason else ""
            return ToolOutcome(f"Not run: the user refused it.{reason}", is_error=True)
        if answer.choice in ("session", "always"):
            bench.approvals.remember(subject, decision)
        if answer.choice == "always":
            await self._write_down(rules, decision)
        return None

    async def _write_down(self, rules: Sequence[RuleConfig], decision: Decision) -> None:
        """Keep what was allowed for good. Where that fails it is allowed for the session, and the person is told."""
        bench = self._bench
        if bench.rulebook is None or not rules:
            return
        asking = None if decision.asking is None else bench.request.policy.rules[decision.asking]
        try:
            await bench.rulebook.add(rules, asking)
        except StaleEpoch:
            raise
        except HermesError as error:
            await bench.narrator.notice(
                "warning",
                "rule_not_written",
                f"It is allowed for this session; the rule could not be written. {error.message}",
                error.hint,
            )

    def _reads_only(self, call: RequestedCall) -> bool:
        tool = self._bench.tools.get(call.block.name)
        return tool is not None and tool.reads_only


def _described(subject: Subject, decision: Decision) -> str:
    """A sentence for the person, with what is dangerous about it."""
    return f"{subject.description}\nTake care: {decision.danger}." if decision.danger else subject.description


def _is_cancellation(raised: BaseException) -> bool:
    return not _failures(raised)


def _failures(raised: BaseException) -> list[BaseException]:
    """What a batch failed with, without the cancellations that this brought about."""
    if isinstance(raised, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", raised)
        return [leaf for part in group.exceptions for leaf in _failures(part)]
    return [] if isinstance(raised, trio.Cancelled) else [raised]
