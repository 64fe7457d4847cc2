"""Versions of the database, and the way from one to the next."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_ws.contract.errors import StorageUnavailable
from hermes_ws.journal.schema import APPLICATION, STEPS, migrate
from tests.journal.conftest import look

NEXT = (*STEPS, ("ALTER TABLE session ADD COLUMN colour TEXT", "UPDATE session SET colour = 'red'"))
"""A further version that does not exist."""

NOW = len(STEPS)

SESSION = "INSERT INTO session VALUES ('s', NULL, 0, 'a', '/', 'api', '{}', 'owner', NULL, 'd', 1, 0.0, 0.0, 0)"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


@pytest.fixture
def connection(path: Path) -> Iterator[sqlite3.Connection]:
    opened = sqlite3.connect(path, isolation_level=None)
    yield opened
    opened.close()


def version(connection: sqlite3.Connection) -> int:
    return connection.execute("PRAGMA user_version").fetchone()[0]


def test_an_empty_file_becomes_the_newest_version_without_a_copy(connection: sqlite3.Connection, path: Path) -> None:
    assert migrate(connection, path) is None
    assert version(connection) == len(STEPS)
    assert migrate(connection, path) is None
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_migration_keeps_a_private_copy_of_what_was_before(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    migrate(connection, path)
    connection.execute(SESSION)
    copy = migrate(connection, path, NEXT)
    assert copy == path.with_name(f"sessions.db.v{NOW}")
    assert copy.stat().st_mode & 0o777 == 0o600
    assert version(connection) == NOW + 1
    assert connection.execute("SELECT session_id, colour FROM session").fetchall() == [("s", "red")]
    assert look(copy, "PRAGMA user_version") == [(NOW,)]
    assert look(copy, "SELECT session_id FROM session") == [("s",)]
    assert not copy.with_name(f"sessions.db.v{NOW}.part").exists()


def test_the_journal_mode_stays_what_it_was(connection: sqlite3.Connection, path: Path) -> None:
    """Case STORE-07."""
    connection.execute("PRAGMA journal_mode = WAL")
    migrate(connection, path)
    migrate(connection, path, NEXT)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_migration_that_fails_leaves_the_version_before_it_and_can_be_tried_again(
    connection: sqlite3.Connection, path: Path
) -> None:
    migrate(connection, path)
    connection.execute(SESSION)
    path.with_name(f"sessions.db.v{NOW}.part").write_text("left by a copy that was cut off")
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, path, (*STEPS, (*NEXT[-1], "NO SUCH STATEMENT")))
    assert version(connection) == NOW
    assert not connection.in_transaction
    assert "colour" not in [row[1] for row in connection.execute("PRAGMA table_info(session)")]
    migrate(connection, path, NEXT)
    assert version(connection) == NOW + 1


def test_a_newer_file_is_refused_as_it_is(connection: sqlite3.Connection, path: Path) -> None:
    migrate(connection, path, NEXT)
    with pytest.raises(StorageUnavailable, match=f"has version {NOW + 1}; this program knows versions up to {NOW}"):
        migrate(connection, path)
    assert version(connection) == NOW + 1


@pytest.mark.parametrize("number", [0, 1, 2, 7])
def test_a_database_that_is_not_known_is_named_and_not_touched(
    connection: sqlite3.Connection, path: Path, number: int
) -> None:
    """Of another program, or from before there was a first version, with whatever number."""
    connection.execute("CREATE TABLE theirs (x)")
    connection.execute(f"PRAGMA user_version = {number}")
    before = path.read_bytes()
    with pytest.raises(StorageUnavailable, match="another program, or older") as caught:
        migrate(connection, path)
    assert str(path) in caught.value.message
    assert caught.value.data["file"] == str(path)
    assert "Nothing was changed" in caught.value.hint
    assert path.read_bytes() == before


def test_a_file_says_whose_it_is(connection: sqlite3.Connection, path: Path) -> None:
    migrate(connection, path)
    assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION,)
    assert path.read_bytes()[68:72] == b"HWJR"


def test_a_rollback_of_sqlites_own_is_not_rolled_back_twice(connection: sqlite3.Connection, path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, path, (("CREATE TABLE a (x)", "ROLLBACK", "NO SUCH STATEMENT"),))
    assert not connection.in_transaction
