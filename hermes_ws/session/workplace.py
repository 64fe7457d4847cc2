"""What the executions of one thread share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import final

from hermes_ws.agent.approvals import SessionApprovals
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.sessions import SessionRecord
from hermes_ws.journal.tail import ThreadTail
from hermes_ws.session.launch import Keys
from hermes_ws.session.narration import KnownRules
from hermes_ws.session.ports import Runtime, Sibling
from hermes_ws.session.questions import Questions


@final
@dataclass(frozen=True, slots=True)
class Workplace:
    """A thread's place in its session and its profile."""

    runtime: Runtime
    questions: Questions
    session: SessionRecord
    key: ThreadKey
    tail: ThreadTail
    approvals: SessionApprovals
    rested: Callable[[], None]
    """Called when the thread has nothing more to do, for those who wait until a profile is idle."""
    keys: Keys
    sibling: Callable[[str], Awaitable[Sibling]]
    """Another thread of the same session, by its id. Raises `ThreadUnknown`."""
    rules: KnownRules
    """What was told of the directory's rules."""
    titled: Callable[[SessionRecord], None]
    """Called with the session as it is stored when it was given a title."""
    began: Callable[[], None]
    """Called when a turn begins."""
