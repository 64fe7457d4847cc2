"""What SQLite's errors mean to the one who asked."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

from hermes_ws.contract.errors import StorageFull, StorageUnavailable


def is_storage(error: BaseException) -> bool:
    """Whether the disk or the file failed, rather than a statement of ours."""
    if isinstance(error, sqlite3.OperationalError):
        # Without a code it is the module speaking, of a statement that cannot be prepared; SQLITE_ERROR likewise.
        return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) != sqlite3.SQLITE_ERROR
    return type(error) is sqlite3.DatabaseError


def storage_error(error: BaseException, database: Path) -> StorageUnavailable:
    """The error for the wire. It names the file and never what was in it."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return StorageFull(f"{database} cannot grow: {error}.", file=str(database))
    hint = ""
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        hint = "Nothing was overwritten. Stop the server, keep a copy of the file and its -wal, and restore a backup."
        return StorageUnavailable(f"{database} is damaged: {error}.", hint=hint, file=str(database), damaged=True)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        hint = "Another program holds the database. Close it; nothing but the server may write to it."
    elif code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        hint = "Give the user of the server the right to read and write this file and its directory."
    return StorageUnavailable(f"{database} cannot be used: {error}.", hint=hint, file=str(database))


def os_error(error: OSError, place: Path) -> StorageUnavailable:
    """The same for a file that is not SQLite's. It names the directory and never what was to be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFull(f"{place} cannot grow: {error.strerror}.", file=str(place))
    return StorageUnavailable(f"{place} cannot be used: {error.strerror}.", file=str(place))
