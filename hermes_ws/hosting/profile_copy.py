"""Copying the parts of a home, file by file and row by row.

Links are kept only where they stay within the part that is copied: what a link reaches outside of it is not the
profile's (case PLIFE-08). The source may be in use: nothing in it is followed that a command could change. What cannot
be read ends the copy with its path (case PLIFE-09). A database is read through SQLite in one transaction, so that it
may be in use, and its rows go into a new file of our own making: nothing of a foreign schema comes along, and no second
descriptor of a live file is ever closed, which would drop its locks.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final, cast, final

from hermes_ws.contract.errors import LimitReached, ProfileUnusable
from hermes_ws.contract.methods.profile_life import Part
from hermes_ws.journal.schema import begin, migrate, refuse_unknown
from hermes_ws.scope.home import ProfileHome
from hermes_ws.scope.private_file import write_private

PLACES: Final[Mapping[Part, str]] = MappingProxyType(
    {
        "config": "config.yaml",
        "soul": "SOUL.md",
        "agents": "agents",
        "skills": "skills",
        "memory": "memories",
        "files": "home",
        "secrets": ".env",
        "sessions": "state/blobs",
    }
)
"""Where each part lies in a home; of the sessions, what lies beside their database."""

FILES: Final = 200_000
"""A large checkout with all its dependencies; more is a mistake, or an attack."""

BYTES: Final = 32 * 1024**3
"""More than a person's working directory, and less than a disk."""

DEPTH: Final = 200
"""Directories in each other; the longest path of the kernel has room for ten times as many, and each holds one open."""

_PIECE: Final = 1024 * 1024
"""What is in memory of a file at once."""

NOT_COPIED: Final = frozenset({"timer", "audit", "process", "receipt"})
"""Tables that belong to the one profile: what it plans, what was done to it, what runs in it."""

META_COPIED: Final = ("question", "clock")

_SETTLE: Final = (
    ("admission", "UPDATE admission SET status = 'cancelled' WHERE status IN ('queued', 'started', 'unknown')"),
    ("execution", "UPDATE execution SET ended_at = started_at, outcome = 'interrupted' WHERE ended_at IS NULL"),
    ("question", "UPDATE question SET state = 'abandoned' WHERE state = 'open'"),
)
"""What was under way stays with the original: a copy runs nothing of it, and asks nobody."""


@final
@dataclass(slots=True)
class Copied:
    """How much was copied, and what was left out."""

    files: int = 0
    bytes: int = 0
    skipped: list[str] = field(default_factory=list[str])

    def count(self, size: int) -> None:
        """One more file. Raises `LimitReached`."""
        self.files += 1
        self.bytes += size
        if self.files > FILES or self.bytes > BYTES:
            raise LimitReached(f"A home of more than {FILES} files or {BYTES} bytes is not copied.")


@final
@dataclass(frozen=True, slots=True)
class Renaming:
    """What becomes of the origin and of the paths of a home in the rows that are copied."""

    old_origin: str
    new_origin: str
    old_user: str
    new_user: str

    def value(self, value: object) -> object:
        """A cell with every id of the old origin made one of the new."""
        if self.old_origin == self.new_origin:
            return value
        if isinstance(value, str):
            return value.replace(self.old_origin, self.new_origin)
        if isinstance(value, bytes):
            return value.replace(self.old_origin.encode(), self.new_origin.encode())
        return value


def copy_part(source: ProfileHome, target: ProfileHome, part: Part, copied: Copied) -> None:
    """Copy what a part consists of; nothing when it is not there. Raises `ProfileUnusable`, `LimitReached`."""
    place = PLACES[part]
    copy_tree(source.path / place, target.path / place, copied)


def copy_tree(source: Path, target: Path, copied: Copied) -> None:
    """Copy a file or a directory with all below it, as what runs in the profile lets it be seen meanwhile.

    Each level is opened below the one before and through no link, so that a command that puts a link where a file or a
    directory was a moment ago makes nobody read what that leads to. What vanishes meanwhile is not copied, and of what
    grows no more than there was.
    """
    try:
        above = os.open(source.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _Copying(source, copied).entry(above, source, target, DEPTH)
    finally:
        os.close(above)


@final
@dataclass(frozen=True, slots=True)
class _Copying:
    """One tree that is being copied; `top` is its root."""

    top: Path
    copied: Copied

    def entry(self, above: int, path: Path, goal: Path, levels: int) -> None:
        """Copy what has this path's name in the directory `above`."""
        try:
            place = self._open(above, path, goal)
            if place is not None:
                try:
                    self._opened(place, path, goal, levels)
                finally:
                    os.close(place)
        except OSError as error:
            raise ProfileUnusable(f"{path} cannot be copied: {error.strerror}.", file=str(path)) from error

    def _open(self, above: int, path: Path, goal: Path) -> int | None:
        """A descriptor of a file or directory. Of what is neither, a link is copied here and anything else left out."""
        to = None
        try:
            status = os.stat(path.name, dir_fd=above, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode):
                # O_NONBLOCK: it may be a pipe by now, with nobody at the other end.
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
                return os.open(path.name, flags, dir_fd=above)
            if stat.S_ISLNK(status.st_mode):
                to = os.readlink(path.name, dir_fd=above)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
        if to is not None and self._stays_within(path, to):
            self.copied.count(0)
            goal.symlink_to(to)
        else:
            self.copied.skipped.append(str(path))
        return None

    def _opened(self, place: int, path: Path, goal: Path, levels: int) -> None:
        status = os.fstat(place)
        mode = stat.S_IMODE(status.st_mode) & 0o777
        if stat.S_ISDIR(status.st_mode):
            if not levels:
                raise LimitReached(f"A home with more than {DEPTH} directories in each other is not copied.")
            goal.mkdir(mode=mode | 0o700, exist_ok=True)
            for name in sorted(os.listdir(place)):
                self.entry(place, path / name, goal / name, levels - 1)
        elif stat.S_ISREG(status.st_mode):
            self.copied.count(status.st_size)
            fd = os.open(goal, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode | 0o600)
            with open(fd, "wb") as target:
                rest = status.st_size
                while rest > 0 and (piece := os.read(place, min(rest, _PIECE))):
                    target.write(piece)
                    rest -= len(piece)
                target.flush()
                os.fsync(target.fileno())
        else:
            self.copied.skipped.append(str(path))

    def _stays_within(self, link: Path, to: str) -> bool:
        """Whether a link leads, by a relative path, to something that is copied with it."""
        if link == self.top or os.path.isabs(to):
            return False
        reached = Path(os.path.realpath(link.parent / to))
        return reached.exists() and reached.is_relative_to(os.path.realpath(self.top))


def copy_database(source: Path, target: Path, renaming: Renaming) -> None:
    """Copy the sessions of a home into a new database. Raises `ProfileUnusable`, sqlite3 errors, OSError."""
    if not source.exists():
        return
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    old = sqlite3.connect(f"file:{source}?mode=ro", uri=True, isolation_level=None)
    new = sqlite3.connect(target, isolation_level=None)
    try:
        begin(new)
        migrate(new, target)
        refuse_unknown(old, source)
        new.execute("PRAGMA foreign_keys = OFF")
        old.execute("BEGIN")
        if old.execute("PRAGMA user_version").fetchone() != new.execute("PRAGMA user_version").fetchone():
            raise ProfileUnusable(
                f"{source} was written by another version of hermes-ws.",
                hint="Open the profile once with this version, then try again.",
                file=str(source),
            )
        new.execute("BEGIN IMMEDIATE")
        tables = _tables(new) & _tables(old)
        for table in sorted(tables - NOT_COPIED - {"meta"}):
            _copy_rows(old, new, table, renaming)
        for key in META_COPIED:
            row = old.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
            if row is not None:
                new.execute("UPDATE meta SET value = ? WHERE key = ?", (row[0], key))
        for table, statement in _SETTLE:
            if table in tables:
                new.execute(statement)
        _move_directories(new, renaming.old_user, renaming.new_user)
        new.execute("COMMIT")
    except sqlite3.DatabaseError as error:
        raise ProfileUnusable(f"{source} cannot be copied: {error}.", file=str(source)) from error
    finally:
        new.close()
        old.close()


def move_sessions(database: Path, old_user: Path, new_user: Path) -> None:
    """The home was moved: sessions that work below its home/ go on there. Nobody may have it open."""
    if database.exists():
        connection = sqlite3.connect(database, isolation_level=None)
        try:
            _move_directories(connection, str(old_user), str(new_user))
        finally:
            connection.close()


def move_settings(home: ProfileHome, old: Path, new: Path) -> None:
    """The home was moved from `old` to `new`: settings that name a path in it name the new one."""
    if home.config.is_file() and not home.config.is_symlink():
        text = home.config.read_text("utf-8", "surrogateescape")
        moved = text.replace(f"{old}{os.sep}", f"{new}{os.sep}")
        if moved != text:
            write_private(home.config, moved.encode("utf-8", "surrogateescape"))


def _move_directories(connection: sqlite3.Connection, old_user: str, new_user: str) -> None:
    """A directory of the home as it was is the same one of the home as it is now."""
    length = len(old_user)
    connection.execute(
        "UPDATE session SET cwd = ? || substr(cwd, ?) WHERE cwd = ? OR substr(cwd, 1, ?) = ?",
        (new_user, length + 1, old_user, length + 1, old_user + os.sep),
    )


def _tables(connection: sqlite3.Connection) -> frozenset[str]:
    """Ordinary tables: what an index for searching is made of is made again by its triggers."""
    rows = cast(
        "list[tuple[str, str]]", connection.execute("SELECT name, type FROM pragma_table_list WHERE schema = 'main'")
    )
    return frozenset(name for name, kind in rows if kind == "table" and not name.startswith("sqlite_"))


def _copy_rows(old: sqlite3.Connection, new: sqlite3.Connection, table: str, renaming: Renaming) -> None:
    columns = [name for name in _columns(new, table) if name in _columns(old, table)]
    listed = ", ".join(f'"{name}"' for name in columns)
    places = ", ".join("?" for _ in columns)
    rows = cast("Iterator[tuple[object, ...]]", old.execute(f'SELECT {listed} FROM "{table}"'))
    statement = f'INSERT OR REPLACE INTO "{table}" ({listed}) VALUES ({places})'
    new.executemany(statement, (tuple(map(renaming.value, row)) for row in rows))


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    rows = cast("list[tuple[str]]", connection.execute("SELECT name FROM pragma_table_info(?)", (table,)).fetchall())
    return [name for (name,) in rows]
