"""The state of each home: looked at, never changed. A home that a server owns is looked at from outside."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hermes_ws.contract.errors import HermesError, StorageUnavailable
from hermes_ws.hosting.doctor.finding import Finding
from hermes_ws.hosting.new_home import STAGING
from hermes_ws.hosting.profile_life import DELETED
from hermes_ws.journal.schema import STEPS, refuse_unknown
from hermes_ws.scope import dotenv
from hermes_ws.scope.config import load_config
from hermes_ws.scope.home import HomesRoot, ProfileHome
from hermes_ws.scope.identity import read_identity

OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def look_at_homes(root: HomesRoot) -> Iterator[Finding]:
    """Every home under the root, and what a crash left beside them."""
    origins: dict[str, str] = {}
    names = root.names()
    if not names:
        yield Finding(
            "homes", str(root.path), "error", "There is no home here.",
            f"Make one: mkdir -m 700 -p {root.path}, or name another with HERMES_HOME.",
        )  # fmt: skip
    for name in names:
        try:
            home = root.find(name)
        except HermesError as error:
            yield Finding("home", name.text, "error", error.message, error.hint or "Remove the link, or mend it.")
            continue
        yield from _look(name.text, home, origins)
    for path in sorted(root.homes.glob(".*")) if root.homes.is_dir() else ():
        if path.name.startswith((STAGING, DELETED)):
            yield Finding(
                "leftover", path.name, "info", f"{path} was being made or deleted when a server ended.",
                "The next start of the server removes it.",
            )  # fmt: skip


def _look(name: str, home: ProfileHome, origins: dict[str, str]) -> Iterator[Finding]:
    found = home.path.stat()
    problems = 0
    for finding in _problems(name, home, found, origins):
        problems += finding.level in ("warning", "error")
        yield finding
    if not problems:
        yield Finding("home", name, "ok", f"{home.path} is in order.")


def _problems(name: str, home: ProfileHome, found: os.stat_result, origins: dict[str, str]) -> Iterator[Finding]:
    if found.st_uid != os.geteuid():
        yield Finding(
            "owner", name, "error", f"{home.path} belongs to another user.", f"chown -R $(id -un) {home.path}"
        )
    if found.st_mode & OTHERS:
        mode = stat.S_IMODE(found.st_mode)
        yield Finding(
            "mode",
            name,
            "warning",
            f"{home.path} can be entered by others (mode {mode:04o}).",
            f"chmod 700 {home.path}",
        )
    try:
        config = load_config(home.config)
        if config.foreign:
            yield Finding(
                "settings", name, "info", f"config.yaml has sections that are not ours: {', '.join(config.foreign)}."
            )
    except HermesError as error:
        yield Finding("settings", name, "error", error.message, error.hint or f"Mend {home.config}.")
    try:
        for problem in dotenv.load(home.env).problems:
            yield Finding(
                "secrets", name, "warning", f".env, line {problem.line}: {problem.text}.", f"Mend {home.env}."
            )
    except HermesError as error:
        yield Finding("secrets", name, "error", error.message, error.hint or f"Mend {home.env}.")
    try:
        identity = read_identity(home)
        if identity is not None:
            twin = origins.setdefault(identity.origin, name)
            if twin != name:
                yield Finding(
                    "identity", name, "error", f"{name} is a copy of {twin}: both have the same identity.",
                    f"Give it its own: hermes-ws profile adopt {name}",
                )  # fmt: skip
    except HermesError as error:
        yield Finding("identity", name, "error", error.message, error.hint)
    if home.imported.exists():
        yield Finding(
            "imported", name, "info", "What it would start by itself is off, because it was imported.",
            "Look at config.yaml, then confirm it (profiles.confirm).",
        )  # fmt: skip
    for secret in (home.token, home.socket):
        if secret.exists() and stat.S_IMODE(secret.stat().st_mode) & OTHERS:
            yield Finding("access", name, "error", f"{secret} is open to others.", f"chmod 600 {secret}")
    if _owned(home.lock):
        yield Finding("lock", name, "info", "A server owns it now; its database was not opened.")
    else:
        yield from _database(name, home.database)


def _owned(lock: Path) -> bool:
    """Whether some process holds the lock, found out by trying for it."""
    try:
        fd = os.open(lock, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def _database(name: str, path: Path) -> Iterator[Finding]:
    if not path.exists():
        return
    restore = "Keep a copy of the file and its -wal, and restore a backup."
    try:
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            version = refuse_unknown(connection, path)
            damage = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
        finally:
            connection.close()
    except sqlite3.Error as error:
        yield Finding("database", name, "error", f"{path} cannot be read: {error}.", restore)
        return
    except StorageUnavailable as unknown:
        yield Finding("database", name, "error", unknown.message, unknown.hint)
        return
    if damage != "ok":
        yield Finding("database", name, "error", f"{path} is damaged: {damage}.", restore)
    if version < len(STEPS):
        yield Finding(
            "database", name, "info", f"{path} is of version {version}.",
            "It is brought up to date when the profile is opened; a copy is made before.",
        )  # fmt: skip
