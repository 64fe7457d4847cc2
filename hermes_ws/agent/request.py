"""What a turn is given: the conversation, the agent, and the settings of the profile that it acts for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, final

from pydantic import JsonValue

from hermes_ws.agent import memory, skills
from hermes_ws.agent.approvals import ApprovalPolicy
from hermes_ws.agent.compaction import ROOMY, Window
from hermes_ws.agent.deeds import ToolOutcome
from hermes_ws.agent.definition import AgentDefinition
from hermes_ws.agent.models.model import Attached
from hermes_ws.agent.ports import Redaction
from hermes_ws.agent.pricing import UNPRICED, Prices, prices_of
from hermes_ws.agent.tools.tool import Tool
from hermes_ws.contract.content import Message
from hermes_ws.scope.home import ProfileHome
from hermes_ws.scope.private_file import read_regular
from hermes_ws.scope.profile_scope import ProfileScope

SOUL_BYTES: Final = 65_536
"""A character sketch; longer than this it would be a manual, and belongs into a skill."""


@final
@dataclass(frozen=True, slots=True)
class TurnSettings:
    """What the profile says about its turns. An execution keeps those that it began with."""

    policy: ApprovalPolicy
    redaction: Redaction
    soul: str
    toolsets: tuple[str, ...]
    deadline_s: float
    memory: str = ""
    user: str = ""
    skills: tuple[str, ...] = ()
    window: Window = ROOMY
    prices: Prices = UNPRICED
    directory_rules: Literal["checked", "trusted", "none"] = "checked"

    def bare(self) -> TurnSettings:
        """Without anything that the profile's user or agent has written: what safe mode leaves."""
        return replace(self, soul="", memory="", user="", skills=())


def instructions(home: ProfileHome) -> str:
    """The profile's instructions, its file SOUL.md, as far as they are read. Reads a file, as `settings_of` does."""
    soul = read_regular(home.soul, limit=SOUL_BYTES)
    return "" if soul is None else soul.decode("utf-8", errors="replace").strip()


def settings_of(scope: ProfileScope, confined: bool) -> TurnSettings:
    """Read the settings of a turn from a scope. Reads files of the home: call it in a worker thread, with it bound.

    `confined` tells whether a kernel confines what the tools do; where it does not, nothing is allowed by default.
    """
    config = scope.config
    return TurnSettings(
        policy=ApprovalPolicy(
            config.approvals.mode,
            config.approvals.rules,
            confined,
            config.approvals.dangers,
            git_programs=config.approvals.git_programs,
        ),
        redaction=scope.secrets,
        soul=instructions(scope.home),
        toolsets=config.agent.toolsets,
        deadline_s=scope.terminal.deadline_s,
        memory=memory.read(scope.home, "memory"),
        user=memory.read(scope.home, "user"),
        skills=tuple(f"- {each.name}: {each.description}" for each in skills.list(scope.home) if not each.problem),
        window=Window(
            config.model.context_tokens, config.compaction.at, config.compaction.keep, config.compaction.automatic
        ),
        prices=prices_of(config),
        directory_rules=config.agent.directory_rules,
    )


@final
@dataclass(frozen=True, slots=True)
class GoingOn:
    """Where a turn stood whose server was lost, when it goes on with what it was asking.

    `outcomes` are those of the last message's calls that had ended: the others are decided about, and run, as they
    would have been. `steps` is after how many the person was being asked whether to go on; 0 when that was not it.
    """

    outcomes: Mapping[str, ToolOutcome]
    steps: int = 0


@final
@dataclass(frozen=True, slots=True)
class TurnRequest:
    """One turn. `history` is oldest first and ends with the user's message; `launch` is what the session asked for.

    `frozen` is text that the session was made with, `note` what only this thread is told; both stand in the prompt.
    """

    history: Sequence[Message]
    definition: AgentDefinition
    session_id: str
    thread_id: str
    profile: str
    max_turns: int
    settings: TurnSettings
    unattended: bool = False
    launch: Mapping[str, JsonValue] | None = None
    frozen: str = ""
    note: str = ""
    reads_rules: bool = True
    offered: Sequence[Tool] = ()
    """Tools from elsewhere: of tool servers, and of clients."""
    withheld: frozenset[str] = frozenset()
    """Names of tools that this session does not have, whatever its toolsets."""
    attached: Mapping[str, Attached] = field(default_factory=dict[str, Attached])
    """The contents of the images and files in the history, by their hash."""
    going_on: GoingOn | None = None
    """Where an earlier execution of the same input stood; the history then ends with what it did last."""

    @property
    def toolsets(self) -> tuple[str, ...]:
        """The session's choice, else the agent's, else the profile's."""
        chosen = (self.launch or {}).get("toolsets")
        if isinstance(chosen, (list, tuple)):
            return tuple(each for each in chosen if isinstance(each, str))
        return self.settings.toolsets if self.definition.toolsets is None else self.definition.toolsets

    @property
    def policy(self) -> ApprovalPolicy:
        """The profile's rules, in the agent's mode where it has one."""
        return self.settings.policy.in_mode(self.definition.approvals)
