"""How the command ends, in numbers that scripts can rely on."""

from __future__ import annotations

DONE = 0
"""Done, or left on purpose."""

FAILED = 1
"""The work failed, or no server could be spoken with."""

REFUSED = 2
"""The options make no sense; nothing was contacted."""

NEEDS_A_PERSON = 3
"""A question waits for an answer, or an execution was lost and somebody has to say what becomes of it."""

DETACHED = 130
"""Interrupted from the keyboard. What the server accepted goes on."""
