"""`hermes-ws serve`, with a place in it at which it kills itself. Only the tests of crashes start it.

`python dying_server.py POINT COUNT ARMED serve …`: once the file ARMED exists, the process ends by SIGKILL when it
comes to the point for the COUNT-th time. The server itself knows nothing of points: they are put around its own
functions here.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hermes_ws.cli.main import hermes_ws
from hermes_ws.journal import replacement, schema
from hermes_ws.journal.transaction import Group
from hermes_ws.journal.writer import Writer
from hermes_ws.server.connection import Connection

NEXT = (
    "CREATE TABLE later (x INTEGER)",
    "ALTER TABLE session ADD COLUMN colour TEXT",
    "UPDATE session SET colour = 'red'",
    "INSERT INTO later VALUES (1)",
)
"""The step to a further version, which does not exist."""


class Failpoint:
    """Counts, and ends the process at its number."""

    def __init__(self, count: int, armed: str) -> None:
        self._left = count
        self._armed = armed

    def reached(self) -> None:
        if not os.path.exists(self._armed):
            return
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def before(owner: Any, name: str, point: Failpoint) -> None:
    original: Callable[..., Any] = getattr(owner, name)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        point.reached()
        return original(*args, **kwargs)

    setattr(owner, name, wrapped)


def after(owner: Any, name: str, point: Failpoint) -> None:
    original: Callable[..., Any] = getattr(owner, name)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        point.reached()
        return result

    setattr(owner, name, wrapped)


def in_migration(point: Failpoint) -> None:
    """Between two statements of a step that only this program has."""

    class Statements(tuple[str, ...]):
        def __iter__(self) -> Any:
            for statement in super().__iter__():
                point.reached()
                yield statement

    steps = (*schema.STEPS, Statements(NEXT))
    migrate = schema.migrate
    from hermes_ws.journal import opening

    def further(connection: sqlite3.Connection, database: Path, _: object) -> Path | None:
        return migrate(connection, database, steps)

    opening.migrate = further


POINTS: Mapping[str, Callable[[Failpoint], None]] = MappingProxyType(
    {
        "before-commit": lambda point: before(Group, "commit", point),
        "after-commit": lambda point: after(Group, "commit", point),
        "before-delivery": lambda point: before(Writer, "_deliver", point),
        "after-delivery": lambda point: after(Writer, "_deliver", point),
        "before-reply": lambda point: before(Connection, "reply", point),
        "in-rebase": lambda point: before(replacement, "_retell", point),
        "in-migration": in_migration,
    }
)


def main() -> None:
    name, count, armed, *arguments = sys.argv[1:]
    POINTS[name](Failpoint(int(count), armed))
    hermes_ws(arguments, prog_name="hermes-ws")


if __name__ == "__main__":
    main()
