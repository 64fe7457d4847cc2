"""Ids that sessions give out. Each begins with what it names, so that a log line can be read; the rest is random."""

from __future__ import annotations

import secrets
import string

MAIN_THREAD = "main"
"""The thread that every session has."""

RANDOM_LENGTH = 16
"""36^16 is 83 bits: two equal ones never happen, and it still fits on a line."""

_ALPHABET = string.ascii_lowercase + string.digits


def session_id(origin: str) -> str:
    """`<origin>-<random>`: the id alone tells which home to open."""
    return f"{origin}-{_random()}"


def steering_id() -> str:
    """The input id of words to a running execution, which their sender gave none."""
    return f"steer-{_random()}"


def process_id(origin: str) -> str:
    """A background process: `<origin>-proc-<random>`."""
    return f"{origin}-proc-{_random()}"


def terminal_id(origin: str) -> str:
    """A terminal: `<origin>-term-<random>`."""
    return f"{origin}-term-{_random()}"


def incident_id() -> str:
    """Finds the stack of a bug of ours in the log; the only thing of it that leaves the server."""
    return f"inc-{_random()}"


def _random() -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(RANDOM_LENGTH))
