"""What SQLite's errors become."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from hermes_ws.contract.errors import StorageFull, StorageUnavailable
from hermes_ws.journal.failures import is_storage, storage_error

FILE = Path("/home/x/state/sessions.db")


def failed(code: int, kind: type[sqlite3.Error] = sqlite3.OperationalError) -> sqlite3.Error:
    error = kind("text of SQLite")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        (sqlite3.SQLITE_BUSY, "Another program"),
        (sqlite3.SQLITE_READONLY, "Give the user of the server"),
        (sqlite3.SQLITE_IOERR_FSYNC, ""),
        (sqlite3.SQLITE_CORRUPT, "Nothing was overwritten"),
    ],
)
def test_the_error_names_the_file_and_what_to_do(code: int, hint: str) -> None:
    error = storage_error(failed(code), FILE)
    assert type(error) is StorageUnavailable
    assert str(FILE) in error.message
    assert error.hint.startswith(hint)
    assert error.data["file"] == str(FILE)
    assert ("damaged" in error.data) == ("Nothing was overwritten" in error.hint)


def test_a_full_disk_is_a_type_of_its_own() -> None:
    assert type(storage_error(failed(sqlite3.SQLITE_FULL), FILE)) is StorageFull


def test_a_statement_of_ours_that_is_wrong_is_no_failure_of_the_disk() -> None:
    connection = sqlite3.connect(":memory:")
    with pytest.raises(sqlite3.OperationalError) as caught:
        connection.execute("SELECT * FROM nowhere")
    assert not is_storage(caught.value)
    with pytest.raises(sqlite3.ProgrammingError) as misused:
        connection.execute("SELECT ?")
    assert not is_storage(misused.value)
    connection.close()
    assert not is_storage(ValueError())
    assert not is_storage(failed(sqlite3.SQLITE_CONSTRAINT, sqlite3.IntegrityError))
    assert is_storage(failed(sqlite3.SQLITE_CORRUPT, sqlite3.DatabaseError))
    assert is_storage(failed(sqlite3.SQLITE_FULL))
