"""A home on disk, its database, and a session to write to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from hermes_ws.journal import sessions
from hermes_ws.journal.database import Database, ThreadKey
from hermes_ws.journal.sessions import NewSession

KEY = ThreadKey("ses-1", "main")


class Home:
    """A home's directory, and how to open its database."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.database = path / "state" / "sessions.db"
        self.lock = path / "run" / "owner.lock"

    async def open(self, **options: object) -> Database:
        return await Database.open(
            self.path,
            self.database,
            self.lock,
            **{"instance_id": "instance", "profile": "work", **options},  # type: ignore[arg-type]
        )


def new_session(session_id: str = "ses-1", **changes: object) -> NewSession:
    values: dict[str, object] = {
        "title": None,
        "agent": "default",
        "cwd": "/home/user",
        "source": "api",
        "principal": "owner",
        "digest": "d",
        **changes,
    }
    return NewSession(session_id, **values)  # type: ignore[arg-type]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
async def database(home: Home) -> AsyncIterator[Database]:
    opened = await home.open()
    yield opened
    await opened.close()


@pytest.fixture
async def journal(database: Database) -> Database:
    """A database with one session, `ses-1`, and its thread `main`."""
    await database.transact(lambda tx: sessions.create(tx, new_session()))
    return database


Opener = Callable[..., Awaitable[Database]]
