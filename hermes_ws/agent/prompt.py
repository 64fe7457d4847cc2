"""What a model is told before the conversation: who it is, for whom it works, where, and by which rules."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from hermes_ws.agent.definition import AgentDefinition
from hermes_ws.agent.ports import Hands, Narrator
from hermes_ws.contract.errors import HermesError, NotFound, StaleEpoch, StorageUnavailable

RULES_FILE: Final = "AGENTS.md"
"""Where a directory keeps rules for agents; the name that most tools agree on."""

RULES_BYTES: Final = 65_536
"""More rules than this nobody follows; the rest is cut, and the model is told so."""


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


async def rules(hands: Hands) -> str:
    """The rules of the session's directory, redacted; empty when it has none.

    Read through the hands: a server never opens a file of a directory that it works in. Raises NotFound and its
    relatives, as the hands do.
    """
    read = await hands.read(hands.cwd / RULES_FILE, offset=0, limit=RULES_BYTES)
    if read.text is None or not read.text.strip():
        return ""
    cut = f"\n[cut after {RULES_BYTES:,} bytes]" if read.size > RULES_BYTES else ""
    return read.text.strip() + cut


async def found_rules(hands: Hands, narrator: Narrator) -> str:
    """As `rules`; what cannot be read is said and left out, since it must not keep anyone from talking."""
    try:
        return await rules(hands)
    except NotFound:
        return ""
    except (StorageUnavailable, StaleEpoch):
        raise
    except HermesError as error:
        said = f"The rules of the directory could not be read. {error.message}"
        await narrator.notice("warning", "rules_unreadable", said, error.hint)
        return ""


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
        texts.append(f"Rules of this directory ({RULES_FILE}):\n\n{parts.rules}")
    if parts.memory:
        texts.append(f"What you noted in earlier sessions (MEMORY.md):\n\n{parts.memory}")
    if parts.user:
        texts.append(f"What you know of the user (USER.md):\n\n{parts.user}")
    if parts.skills:
        listed = "\n".join(parts.skills)
        texts.append(f"Skills that you can read with skill_view when a task calls for one:\n{listed}")
    texts += [parts.frozen, parts.note]
    return "\n\n".join(text for text in texts if text)
