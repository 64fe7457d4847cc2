"""What a turn is given: the conversation, the agent, and the settings of the profile that it acts for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from pydantic import JsonValue

from hermes_ws.agent.approvals import ApprovalPolicy
from hermes_ws.agent.definition import AgentDefinition
from hermes_ws.agent.ports import Redaction
from hermes_ws.contract.content import Message
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


def settings_of(scope: ProfileScope, confined: bool) -> TurnSettings:
    """Read the settings of a turn from a scope. Reads SOUL.md: call it in a worker thread, with the home bound.

    `confined` tells whether a kernel confines what the tools do; where it does not, nothing is allowed by default.
    """
    soul = read_regular(scope.home.soul, limit=SOUL_BYTES)
    return TurnSettings(
        policy=ApprovalPolicy(scope.config.approvals.mode, scope.config.approvals.rules, confined),
        redaction=scope.secrets,
        soul="" if soul is None else soul.decode("utf-8", errors="replace").strip(),
        toolsets=scope.config.agent.toolsets,
        deadline_s=scope.terminal.deadline_s,
    )


@final
@dataclass(frozen=True, slots=True)
class TurnRequest:
    """One turn. `history` is oldest first and ends with the user's message; `launch` is what the session asked for."""

    history: Sequence[Message]
    definition: AgentDefinition
    session_id: str
    thread_id: str
    profile: str
    max_turns: int
    settings: TurnSettings
    unattended: bool = False
    launch: Mapping[str, JsonValue] | None = None

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
