"""What files held before an agent's tools wrote them, so that it can be put back.

Kept are the contents before and after each write of a file tool, as blobs of the home; what commands change is not. A
file that somebody has changed since is left alone when others are restored. Contents are read and written through the
warden, within the session's grants, and never leave the home.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from hermes_ws.contract.errors import HermesError, NotFound
from hermes_ws.journal import threads
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.blobs import Blob
from hermes_ws.journal.database import Database, Transaction
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.session.ports import Runtime

FILE_BYTES: Final = 8 * 1024 * 1024
"""A larger file is not kept: sources are smaller, and what is larger was made by a program and can be again."""

DIFF_CHARACTERS: Final = 200_000
"""Of the differences that are shown at once."""

OVERSIZE: Final = "-"
"""Stands for a content that was too large to keep."""


@final
@dataclass(frozen=True, slots=True)
class Kept:
    """A file before and after what one execution did to it: hashes of contents, None where there was no file."""

    path: Path
    before: str | None
    after: str


@final
@dataclass(frozen=True, slots=True)
class Checkpoint:
    """All that one execution wrote. `hash` names it; times are seconds since 1970."""

    execution_generation: int
    made_at: float
    files: tuple[Kept, ...]

    @property
    def hash(self) -> str:
        """The name of the checkpoint."""
        return f"cp-{self.execution_generation}"


@final
@dataclass(frozen=True, slots=True)
class Restored:
    """What became of a restore, by path."""

    restored: tuple[str, ...]
    skipped_edits: tuple[str, ...]
    skipped_oversize: tuple[str, ...]
    failed: Mapping[str, str]


@final
class FileCheckpoints:
    """The `Keeper` of one execution: told of each write before and after it."""

    def __init__(self, runtime: Runtime, scope: ProfileScope, cwd: Path, key: ThreadKey, generation: int) -> None:
        self._files = Files(runtime, scope, cwd)
        self._journal: Database = runtime.journal
        self._key = key
        self._generation = generation

    async def before(self, path: Path) -> str | None:
        """Keep what the file holds, and say what that is called. Raises what the warden does."""
        return await self._keep(await self._files.read(path))

    async def after(self, path: Path, before: str | None) -> None:
        """Commit that this execution has written the file."""
        content = await self._files.read(path)
        if content is None:
            return
        after = "-" if isinstance(content, int) else hashlib.sha256(content).hexdigest()
        where = str(self._files.place(path))

        def work(tx: Transaction) -> None:
            thread = tx.head(self._key).id
            if before is not None and before != OVERSIZE:
                self._journal.blobs.use(tx, Blob(before, 0), self._key)
            known = tx.connection.execute(
                "UPDATE file_before SET after = ? WHERE thread = ? AND execution_generation = ? AND path = ?",
                (after, thread, self._generation, where),
            )
            if not known.rowcount:
                tx.connection.execute(
                    "INSERT INTO file_before (thread, execution_generation, path, before, after, made_at)"
                    " VALUES (?, ?, ?, ?, ?, ?)",
                    (thread, self._generation, where, before, after, tx.now),
                )

        await self._journal.transact(work)

    async def _keep(self, content: bytes | int | None) -> str | None:
        if content is None:
            return None
        if isinstance(content, int):
            return OVERSIZE
        return (await self._journal.blobs.put(content)).hash


@final
class Files:
    """The files of a session's directory, byte by byte, through its warden."""

    def __init__(self, runtime: Runtime, scope: ProfileScope, cwd: Path) -> None:
        self._runtime = runtime
        self._scope = scope
        self._cwd = cwd

    def place(self, path: Path) -> Path:
        """The absolute path."""
        return self._cwd / path

    async def read(self, path: Path) -> bytes | int | None:
        """The content; its size when it is too large to keep; None when there is no such file."""
        granted = await self._runtime.warden_for(self._scope, self._cwd)
        parts: list[bytes] = []
        length = 0
        while True:
            try:
                read = await granted.warden.read_file(self.place(path), offset=length)
            except NotFound:
                return None
            if read.size > FILE_BYTES:
                return read.size
            parts.append(read.data)
            length += len(read.data)
            if length >= read.size or not read.data:
                return b"".join(parts)

    async def write(self, path: Path, content: bytes) -> None:
        """Replace the file."""
        granted = await self._runtime.warden_for(self._scope, self._cwd)
        await granted.warden.write_file(self.place(path), content)


async def list_checkpoints(journal: Database, key: ThreadKey) -> list[Checkpoint]:
    """The checkpoints of a thread, the newest first."""
    rows = await journal.read(
        lambda connection: connection.execute(
            "SELECT execution_generation, made_at, path, before, after FROM file_before WHERE thread = ? ORDER BY id",
            (threads.number(connection, key),),
        ).fetchall()
    )
    found: dict[int, list[tuple[float, Kept]]] = {}
    for generation, made_at, path, before, after in rows:
        found.setdefault(generation, []).append((made_at, Kept(Path(path), before, after)))
    return [
        Checkpoint(generation, kept[0][0], tuple(each for _, each in kept))
        for generation, kept in sorted(found.items(), reverse=True)
    ]


async def find(journal: Database, key: ThreadKey, hash: str) -> list[Checkpoint]:
    """The checkpoint of this name and those after it, the newest first. Raises NotFound."""
    newer: list[Checkpoint] = []
    for checkpoint in await list_checkpoints(journal, key):
        newer.append(checkpoint)
        if checkpoint.hash == hash:
            return newer
    raise NotFound(f"This thread has no checkpoint {hash[:100]}.", hint="rollback.list names those there are.")


def originals(checkpoints: list[Checkpoint]) -> dict[Path, Kept]:
    """Each file as it was before the oldest of these, and as the newest of them left it."""
    found: dict[Path, Kept] = {}
    for checkpoint in checkpoints:
        for kept in checkpoint.files:
            newest = found.get(kept.path)
            found[kept.path] = Kept(kept.path, kept.before, kept.after if newest is None else newest.after)
    return found


async def difference(journal: Database, files: Files, wanted: Mapping[Path, Kept]) -> tuple[str, str]:
    """What has changed since, as a count per file and as a unified diff."""
    stat: list[str] = []
    text: list[str] = []
    for path, kept in sorted(wanted.items()):
        if kept.before == OVERSIZE:
            stat.append(f"{path}: too large to compare")
            continue
        old = "" if kept.before is None else (await journal.blobs.read(kept.before)).decode(errors="replace")
        now = await files.read(path)
        new = now.decode(errors="replace") if isinstance(now, bytes) else ""
        lines = list(
            difflib.unified_diff(
                old.splitlines(keepends=True), new.splitlines(keepends=True), f"a{path}", f"b{path}", n=3
            )
        )
        added = sum(1 for line in lines[2:] if line.startswith("+"))
        removed = sum(1 for line in lines[2:] if line.startswith("-"))
        stat.append(f"{path}: +{added} -{removed}")
        text += [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines]
    return "\n".join(stat), "".join(text)[:DIFF_CHARACTERS]


async def restore(journal: Database, files: Files, wanted: Mapping[Path, Kept]) -> Restored:
    """Put files back as they were. One that is not as the agent left it is somebody's own work, and is left alone.

    A file that was made since is emptied, not deleted: nothing is removed through a warden.
    """
    restored: list[str] = []
    edited: list[str] = []
    oversize: list[str] = []
    failed: dict[str, str] = {}
    for path, kept in sorted(wanted.items()):
        if OVERSIZE in (kept.before, kept.after):
            oversize.append(str(path))
            continue
        try:
            now = await files.read(path)
            if now is not None and (isinstance(now, int) or hashlib.sha256(now).hexdigest() != kept.after):
                edited.append(str(path))
                continue
            content = b"" if kept.before is None else await journal.blobs.read(kept.before)
            await files.write(path, content)
            restored.append(str(path))
        except HermesError as error:
            failed[str(path)] = error.message
    return Restored(tuple(restored), tuple(edited), tuple(oversize), failed)
