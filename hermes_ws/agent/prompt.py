"""What a model is told before the conversation: who it is, for whom it works, where, and by which rules."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final

from hermes_ws.agent.definition import AgentDefinition
from hermes_ws.agent.ports import Hands

RULES_FILE: Final = "AGENTS.md"
"""Where a directory keeps rules for agents; the name that most tools agree on."""

RULES_BYTES: Final = 65_536
"""More rules than this nobody follows; the rest is cut, and the model is told so."""


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


def system_prompt(
    definition: AgentDefinition, *, soul: str, profile: str, cwd: Path, tools: Collection[str], rules: str
) -> str:
    """The system prompt. The same input gives the same text, so that providers can cache it (case SCOPE-12)."""
    where = f"You work for the profile “{profile}”. Your directory is {cwd}; relative paths start there."
    if tools:
        where += f" Your tools: {', '.join(tools)}. What they may do is decided by the profile's rules and its user."
    else:
        where += " You have no tools in this conversation."
    parts = [definition.instructions.strip()]
    if soul:
        parts.append(soul)
    parts.append(where)
    if rules:
        parts.append(f"Rules of this directory ({RULES_FILE}):\n\n{rules}")
    return "\n\n".join(parts)
