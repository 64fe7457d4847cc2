"""A home on disk, its database, and a session to write to."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextvars import Context
from pathlib import Path
from typing import Protocol

import pytest

from hermes_ws.journal import sessions
from hermes_ws.journal.database import Database
from hermes_ws.journal.opening import Durability
from hermes_ws.journal.schema import STEPS, Step
from hermes_ws.journal.sessions import NewSession


class Opener(Protocol):
    """Opens the home's database; whatever is still open at the end of the test is closed."""

    async def __call__(
        self,
        *,
        durability: Durability = "full",
        steps: tuple[Step, ...] = ...,
        clock: Callable[[], float] = ...,
        context: Context | None = None,
        instance_id: str = "instance",
    ) -> Database: ...


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def file(home: Path) -> Path:
    return home / "state" / "sessions.db"


@pytest.fixture
def lock(home: Path) -> Path:
    return home / "run" / "owner.lock"


@pytest.fixture
async def open_home(home: Path, file: Path, lock: Path) -> AsyncIterator[Opener]:
    opened: list[Database] = []

    async def opener(
        *,
        durability: Durability = "full",
        steps: tuple[Step, ...] = tuple(STEPS),
        clock: Callable[[], float] = lambda: 1000.0,
        context: Context | None = None,
        instance_id: str = "instance",
    ) -> Database:
        database = await Database.open(
            home,
            file,
            lock,
            instance_id=instance_id,
            profile="work",
            durability=durability,
            steps=steps,
            clock=clock,
            context=context,
        )
        opened.append(database)
        return database

    yield opener
    for database in opened:
        await database.close()


@pytest.fixture
async def database(open_home: Opener) -> Database:
    return await open_home()


@pytest.fixture
async def journal(database: Database) -> Database:
    """A database with one session, `ses-1`, and its thread `main`."""
    await database.transact(lambda tx: sessions.create(tx, NEW))
    return database


NEW = NewSession("ses-1", None, "default", "/home/user", "api", "owner", "digest")


def look(file: Path, sql: str) -> list[tuple[object, ...]]:
    """What a database holds, seen from outside, after it was closed."""
    connection = sqlite3.connect(file)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()
