"""What the choice `always` writes: rules that allow exactly what the question showed, and nothing that it did not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hermes_ws.agent.approvals import Decision
from hermes_ws.agent.tools.tool import Subject
from hermes_ws.scope.sections import RuleConfig

PATH_CHARACTERS: Final = 4096
"""Longest path that a rule can hold."""

WORD_CHARACTERS: Final = 16_384
"""Longest word of a command that a rule can hold."""

_MAGIC: Final = re.compile(r"[*?]")


def rules_for(subject: Subject, decision: Decision, resolved: Path | None) -> Sequence[RuleConfig]:
    """The rules that `always` would write; none where no rule says exactly what the question is about.

    A command whose words do not tell what it runs has none: only this very line could be meant. A path with a character
    that is a pattern in rules has none either.
    """
    if subject.command is not None:
        if any(len(word) > WORD_CHARACTERS for prefix in decision.prefixes for word in prefix):
            return ()
        return tuple(RuleConfig(tool=subject.tool, argv=prefix, decision="allow") for prefix in decision.prefixes)
    if subject.path is None:
        return (RuleConfig(tool=subject.tool, decision="allow"),) if subject.lasting else ()
    path = str(resolved) if resolved is not None else ""
    if not path or _MAGIC.search(path) or len(path) > PATH_CHARACTERS:
        return ()
    return (RuleConfig(tool=subject.tool, path=path, decision="allow"),)


def covers(subject: Subject, decision: Decision, rules: Sequence[RuleConfig]) -> str:
    """What a yes for more than once would cover, in sentences for the person."""
    if decision.prefixes:
        shown = " or ".join(f"`{' '.join(map(quoted, prefix))}`" for prefix in decision.prefixes)
        which = "exactly" if decision.danger is not None else "every command that begins with"
        return f"For the session or always: {which} {shown}."
    if rules and rules[0].path is not None:
        return f"For the session: exactly this again. Always: {subject.tool} on {rules[0].path}."
    if subject.command is None and subject.path is None:
        return f"For the session{' or always' if rules else ''}: every call of {subject.tool}."
    return "For the session: exactly this again."


def quoted(word: str) -> str:
    """A word so that its limits can be seen."""
    plain = word.isascii() and word.replace("-", "").replace("/", "").replace(".", "").replace("_", "").isalnum()
    return word if plain else "'" + word.replace("'", "'\\''") + "'"
