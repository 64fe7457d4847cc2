"""What would be decided about a call of a session, as the profile and the session are now."""

from __future__ import annotations

from typing import cast

import trio
from pydantic import JsonValue

from hermes_ws.agent.approvals import decide, judged_parts, problems_in
from hermes_ws.agent.permanent import rules_for
from hermes_ws.agent.reach import place_of, with_git
from hermes_ws.agent.tools.registry import TOOLS
from hermes_ws.agent.tools.tool import Need, Subject
from hermes_ws.contract.methods.approvals import Explained, ExplainedPart, ExplainParams
from hermes_ws.scope.current import Bound, bind
from hermes_ws.session.hands import SessionHands
from hermes_ws.session.ports import Runtime
from hermes_ws.session.session import Session


async def explain(runtime: Runtime, session: Session, params: ExplainParams) -> Explained:
    """Decide, and tell why. Raises what keeps an execution of the session from being run."""
    ground = await session.ground()
    policy = ground.policy
    subject = _subject(params)
    with bind(Bound(ground.scope, None, session.session_id, None)):
        here = ground.scope.terminal.backend == "local"
        place = await place_of(subject, ground.cwd, trio.CapacityLimiter(1), here=here)
        if here and policy.looks_at_git:
            place = await with_git(place, subject, SessionHands(runtime, ground.scope, ground.cwd))
    found = decide(subject, policy=policy, session=session.approvals, place=place)
    parts = judged_parts(subject, policy=policy, session=session.approvals, place=place)
    redact = ground.scope.secrets.redact
    return Explained(
        decision=found.verdict,
        rule=redact(found.rule),
        danger=found.danger,
        parts=[
            ExplainedPart(
                argv=[redact(word) for word in part.argv],
                decision=decision.verdict,
                rule=redact(decision.rule),
                danger=decision.danger,
                problems=[redact(problem) for problem in problems_in(part, place)],
            )
            for part, decision in parts
        ],
        always=[
            cast("dict[str, JsonValue]", rule.model_dump(mode="json", exclude_none=True))
            for rule in (rules_for(subject, found, place.resolved) if found.verdict == "ask" else ())
        ],
        mode=policy.mode,
        confined=policy.confined,
        yolo=policy.yolo,
    )


def _subject(params: ExplainParams) -> Subject:
    known = TOOLS.get(params.tool)
    needs: frozenset[Need] = known.needs if known is not None else frozenset({"network"})
    command = params.command if params.tool == "terminal" else None
    path = None if command is not None else params.path
    return Subject(params.tool, params.tool, needs, command, path, params.cwd, lasting=known is None)
