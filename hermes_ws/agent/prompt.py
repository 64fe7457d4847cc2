"""What a model is told before the conversation: who it is, for whom it works, where, and by which rules."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from hermes_ws.agent.definition import AgentDefinition

SKILL_VIEW: Final = "skill_view"
"""The tool that reads a skill; without it, knowing their names would be of no use."""


@final
@dataclass(frozen=True, slots=True)
class PromptParts:
    """What a system prompt is made of. `skills` are lines of name and description, `frozen` what the session was made
    with, `note` what only this thread is told."""

    definition: AgentDefinition
    soul: str
    profile: str
    cwd: Path
    tools: Collection[str]
    rules: str = ""
    memory: str = ""
    user: str = ""
    skills: Sequence[str] = ()
    frozen: str = ""
    note: str = ""


def system_prompt(parts: PromptParts) -> str:
    """The system prompt. The same input gives the same text, so that providers can cache it (case SCOPE-12)."""
    where = f"You work for the profile “{parts.profile}”. Your directory is {parts.cwd}; relative paths start there."
    if parts.tools:
        where += (
            f" Your tools: {', '.join(parts.tools)}. What they may do is decided by the profile's rules and its user."
        )
    else:
        where += " You have no tools in this conversation."
    texts = [parts.definition.instructions.strip(), parts.soul, where]
    if parts.rules:
        texts.append(parts.rules)
    if parts.memory:
        texts.append(f"What you noted in earlier sessions (MEMORY.md):\n\n{parts.memory}")
    if parts.user:
        texts.append(f"What you know of the user (USER.md):\n\n{parts.user}")
    if parts.skills and SKILL_VIEW in parts.tools:
        listed = "\n".join(parts.skills)
        texts.append(f"Skills that you can read with skill_view when a task calls for one:\n{listed}")
    texts += [parts.frozen, parts.note]
    return "\n\n".join(text for text in texts if text)
