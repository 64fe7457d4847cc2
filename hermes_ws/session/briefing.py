"""What an execution runs: one turn, put together from its session, its thread and the profile as they are now.

Settings, definition and directory are taken when the execution begins, all of one load, and kept to its end.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, final

import trio
from pydantic import JsonValue

from hermes_ws.agent import definition
from hermes_ws.agent.approvals import ApprovalPolicy, SessionApprovals
from hermes_ws.agent.deeds import ToolOutcome
from hermes_ws.agent.definition import AgentDefinition
from hermes_ws.agent.memory import MemoryFiles
from hermes_ws.agent.models.choose import choose
from hermes_ws.agent.models.model import Model
from hermes_ws.agent.ports import ModelMachine
from hermes_ws.agent.request import GoingOn, TurnRequest, TurnSettings, settings_of
from hermes_ws.agent.turn import run_turn
from hermes_ws.contract.content import Message
from hermes_ws.contract.errors import Draining, LimitReached
from hermes_ws.contract.questions import CONTINUE
from hermes_ws.journal import lineage, summaries
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.admissions import AdmissionRecord, executions
from hermes_ws.journal.lineage import Lineage
from hermes_ws.journal.recovery import results_before
from hermes_ws.journal.sessions import SessionRecord
from hermes_ws.scope.current import Bound, bind, in_thread
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.session import attachments, safe
from hermes_ws.session.asker import ExecutionAsker, keeping
from hermes_ws.session.checkpoints import FileCheckpoints
from hermes_ws.session.hands import SessionHands
from hermes_ws.session.hooks import SessionHooks
from hermes_ws.session.launch import Keys, Launch
from hermes_ws.session.library import ProfileLibrary
from hermes_ws.session.machine import SessionMachine
from hermes_ws.session.narration import Narration
from hermes_ws.session.offering import offered
from hermes_ws.session.ports import Runtime
from hermes_ws.session.questions import Asking
from hermes_ws.session.rulebook import ProfileRules
from hermes_ws.session.steering import ExecutionSteering
from hermes_ws.session.subagents import Delegations
from hermes_ws.session.titles import Naming, give_title
from hermes_ws.session.workplace import Workplace

CHILD_NOTE: Final = (
    "You are a subagent: another agent has given you the task below, and reads only your last message. Do the task, "
    "then say what you found or did, and what is left open."
)

KEY_SHOWN: Final = "the session's api_key"
"""What stands in a text where the key of a launch request would."""


@final
@dataclass(frozen=True, slots=True)
class Ground:
    """What a thread's model and tools act on: the scope in force for it, its agent, and what was asked for."""

    scope: ProfileScope
    launch: Launch
    overrides: Mapping[str, JsonValue]
    agent: AgentDefinition
    cwd: Path
    settings: TurnSettings
    machine: ModelMachine

    @property
    def policy(self) -> ApprovalPolicy:
        """What decides about its calls."""
        return _for_thread(self.settings, None, yolo=self.launch.yolo).policy.in_mode(self.agent.approvals)

    def model(self) -> Model:
        """The model of the thread. Whoever asks for it closes it. Raises ModelFailed and its kinds."""
        return choose(self.scope, self.overrides, self.agent, machine=self.machine)

    def small_model(self) -> Model:
        """The model for what is done beside the thread: the profile's small one, unless the session brought its own key
        or address. As `model` else."""
        small = self.scope.config.model.small
        if small is None or self.launch.base_url is not None or "api_key" in self.overrides:
            return self.model()
        return choose(self.scope, {"provider": small.provider, "model": small.name}, machine=self.machine)


async def ground(
    runtime: Runtime, session: SessionRecord, origin: Lineage | None, keys: Keys, scope: ProfileScope
) -> Ground:
    """Look at the home for what a thread works with. The scope is to be bound.

    Raises LaunchCredentialsUnavailable, DirectoryRefused, NotFound, ProfileUnusable.
    """
    launch = Launch.read(session.launch)
    key = keys.of(session.session_id, launch)
    return await in_thread(runtime.limiter, _look, runtime, session, origin, launch, key, scope)


async def ground_of(runtime: Runtime, keys: Keys, session: SessionRecord, key: ThreadKey) -> Ground:
    """As `ground`, for a thread that nothing runs on: of the profile as it is now."""
    scope = await runtime.fresh_scope()
    with bind(Bound(scope, None, key.session_id, None)):
        origin = await runtime.journal.read(lambda connection: lineage.get(connection, key))
        return await ground(runtime, session, origin, keys, scope)


def _look(
    runtime: Runtime,
    session: SessionRecord,
    origin: Lineage | None,
    launch: Launch,
    key: str | None,
    scope: ProfileScope,
) -> Ground:
    confined = runtime.confinement.level == "kernel"
    if key is not None:
        scope = replace(scope, secrets=scope.secrets.hiding({KEY_SHOWN: key}))
    if launch.safe_mode:
        scope = safe.emptied(scope, session.session_id)
        if key is not None:
            scope = replace(scope, secrets=scope.secrets.hiding({KEY_SHOWN: key}))
        cwd = scope.home.user
    else:
        if launch.ignore_user_config:
            scope = safe.with_defaults(scope)
        # Against the policy as it is now (case SCOPE-14).
        cwd = scope.terminal.check_directory(Path(session.cwd), home=scope.home, homes=runtime.homes())
    # Over SSH nothing of ours confines what runs; a container does, by what it is.
    confined = confined and scope.terminal.confine != "off" and scope.terminal.backend != "ssh"
    settings = settings_of(scope, confined)
    if launch.safe_mode or launch.ignore_rules:
        settings = settings.bare()
    own = None if origin is None else origin.about.get("agent")
    name = own if isinstance(own, str) else session.agent
    overrides = launch.overrides()
    if name != session.agent:
        # Another agent of the home was chosen on purpose: its own model and tools count.
        for each in ("model", "provider", "reasoning", "toolsets", "max_turns"):
            overrides.pop(each, None)
    if key is not None:
        overrides["api_key"] = key
    if launch.safe_mode:
        wanted = launch.toolsets
        overrides["toolsets"] = [each for each in safe.OWN_TOOLSETS if wanted is None or each in wanted]
    agent = AgentDefinition(name) if launch.safe_mode else definition.load(scope.home, name)
    return Ground(scope, launch, overrides, agent, cwd, settings, SessionMachine(runtime, scope, cwd))


@final
@dataclass(frozen=True, slots=True)
class _Stored:
    """What the journal knows of a thread on which an execution begins, all of one moment."""

    origin: Lineage | None
    history: Sequence[Message]
    executions: int
    """How many the input has had, this one counted."""


def _stored(connection: sqlite3.Connection, key: ThreadKey, record: AdmissionRecord) -> _Stored:
    return _Stored(
        lineage.get(connection, key), summaries.history(connection, key), executions(connection, record.admission_id)
    )


@final
class Briefing:
    """One turn of one execution."""

    def __init__(
        self,
        place: Workplace,
        record: AdmissionRecord,
        asking: Asking,
        narration: Narration,
        steering: ExecutionSteering | None,
    ) -> None:
        self._place = place
        self._record = record
        self._asking = asking
        self._narration = narration
        self._steering = steering

    async def run(self, began: Callable[[], None]) -> None:
        """Bind the scope, call `began`, and run the turn within its budget.

        Raises what `run_turn` does, what `ground` does, and LimitReached when the budget is used up.
        """
        place, key = self._place, self._place.key
        runtime = place.runtime
        scope = await runtime.fresh_scope()
        with bind(Bound(scope, None, key.session_id, self._asking.execution_generation)):
            began()
            place.began()
            stored = await runtime.journal.read(lambda connection: _stored(connection, key, self._record))
            found = await ground(runtime, place.session, stored.origin, place.keys, scope)
            budget = scope.config.agent.run_budget_seconds
            with trio.move_on_after(float("inf") if budget is None else budget) as limit:
                await self._turn(found, stored)
            if limit.cancelled_caught:
                raise LimitReached(
                    f"The execution took longer than {budget:g} seconds and was ended.",
                    hint="Send a message to let it go on, or raise agent.run_budget_seconds.",
                    limit=budget,
                )

    async def _turn(self, found: Ground, stored: _Stored) -> None:
        place, record = self._place, self._record
        runtime, scope, launch = place.runtime, found.scope, found.launch
        origin, history = stored.origin, stored.history
        asker = ExecutionAsker(
            place.questions,
            self._asking,
            runtime,
            keeping(runtime, runtime.scope),
            deadline_s=scope.config.questions.deadline_s,
        )
        hands = SessionHands(runtime, scope, found.cwd, place.key)
        hooks = SessionHooks(runtime, scope, hands, asker, self._narration, place.key, launch)
        if len(history) == 1 and origin is None:
            await hooks.run("session_start")
        delegates = Delegations(place, self._asking, origin, found.agent, scope, unattended=record.unattended)
        keeper = FileCheckpoints(runtime, scope, found.cwd, place.key, self._asking.execution_generation)
        policy = SessionApprovals() if launch.safe_mode else place.approvals
        request = TurnRequest(
            history=history,
            definition=found.agent,
            session_id=place.key.session_id,
            thread_id=place.key.thread_id,
            profile=scope.profile.text,
            max_turns=_max_turns(found),
            settings=_for_thread(found.settings, origin, yolo=launch.yolo),
            unattended=record.unattended,
            launch=found.overrides,
            frozen=launch.frozen,
            note=_note(place.key, origin, launch),
            reads_rules=not (launch.ignore_rules or launch.safe_mode),
            withheld=safe.WITHHELD if launch.safe_mode else frozenset(),
        )
        if stored.executions > 1:
            request = replace(request, going_on=await self._going_on())
        tools = await offered(runtime, scope, request, hands, self._narration, place.rules.servers)
        attached = await attachments.read(runtime.journal.blobs, history, scope.secrets)
        try:
            await run_turn(
                replace(request, offered=tools, attached=attached),
                narrator=self._narration,
                hands=hands,
                asker=asker,
                approvals=policy,
                model=found.model(),
                steering=self._steering,
                delegates=None if launch.safe_mode else delegates,
                memory=None if launch.safe_mode else MemoryFiles(scope.home, runtime.limiter),
                keeper=keeper if launch.checkpoints else None,
                hooks=hooks if hooks.has("tool_before") else None,
                library=None if launch.safe_mode else ProfileLibrary(runtime, scope),
                rulebook=None if launch.safe_mode else ProfileRules(runtime, scope),
                rules=place.rules.memory,
            )
        except BaseException:
            await hooks.run_at_the_end("turn_end")
            raise
        await hooks.run("turn_end")
        if origin is None and scope.config.agent.titles:
            await self._name(found)

    async def _name(self, found: Ground) -> None:
        """Give the session a title from its first words, and have a model find a better one beside what follows."""
        place, scope = self._place, found.scope
        runtime = place.runtime
        named = await give_title(runtime, place.key, place.session, self._record.text, scope)
        if named is None:
            return
        place.titled(named)
        if scope.config.agent.titles != "words":
            naming = Naming(runtime, place.key, named, scope, found.settings, found.small_model, place.titled)
            with suppress(Draining):  # Then the first words have to do.
                runtime.start_soon(naming.run, name=f"title of {place.key.session_id}")

    async def _going_on(self) -> GoingOn | None:
        """Where an execution stood that was lost while a person was asked; None for a turn that begins."""
        journal, record = self._place.runtime.journal, self._record
        asked = await self._place.questions.left(self._asking)
        if not asked:
            return None
        results = await journal.read(lambda connection: results_before(connection, record))
        outcomes = {call_id: ToolOutcome(output, failed) for call_id, (output, failed) in results.items()}
        turns = [each.params.get("turns") for each in asked if each.kind == CONTINUE.kind]
        return GoingOn(outcomes, next((each for each in turns if isinstance(each, int)), 0))


def _max_turns(found: Ground) -> int:
    asked = found.overrides.get("max_turns")
    if isinstance(asked, int):
        return asked
    return found.agent.max_turns or found.scope.config.agent.max_turns


def _for_thread(settings: TurnSettings, origin: Lineage | None, *, yolo: bool) -> TurnSettings:
    """What only this thread does otherwise: a fork that is to be left whole, a session that asks nobody."""
    if yolo:
        settings = replace(settings, policy=replace(settings.policy, yolo=True))
    if origin is not None and origin.about.get("compaction") == "disabled":
        settings = replace(settings, window=replace(settings.window, automatic=False))
    return settings


def _note(key: ThreadKey, origin: Lineage | None, launch: Launch) -> str:
    lines: list[str] = []
    if origin is not None and origin.kind == "subagent":
        lines.append(CHILD_NOTE)
    if launch.pass_session_id:
        lines.append(f"This session's id is {key.session_id}.")
    return "\n".join(lines)
