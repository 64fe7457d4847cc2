"""A profile as one file: written from a home, and read into a new one.

It is a compressed tar with a manifest first, sealed under a passphrase where one is given; secrets do not leave
without. What comes in is somebody else's: names outside of a home's own places, links and devices that lead elsewhere,
and more than a home may hold are refused, and nothing of it is then left.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import stat
import tarfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, cast, final

import orjson

from hermes_ws.contract.errors import InvalidParams, NotFound
from hermes_ws.contract.methods.profile_life import Part
from hermes_ws.hosting.profile_copy import PLACES, Copied
from hermes_ws.scope.home import ProfileHome
from hermes_ws.scope.identity import Identity

MANIFEST: Final = "manifest.json"
MANIFEST_BYTES: Final = 65_536
"""A manifest takes some hundred bytes."""

FORMAT: Final = 1

DATABASE: Final = "state/sessions.db"

SEALED: Final = b"hermes-ws sealed 1\n"
"""What a file that is encrypted under a passphrase begins with."""

_HEAD: Final = 32
"""Bytes that tell what kind of file it is."""


@final
@dataclass(frozen=True, slots=True)
class Manifest:
    """What an archive says of itself."""

    profile: str
    id: str
    origin: str
    user: str
    parts: tuple[Part, ...]


@final
@dataclass(frozen=True, slots=True)
class Written:
    """An archive that was written."""

    path: Path
    size: int
    sha256: str
    files: int
    skipped: tuple[str, ...]


def write(
    staged: ProfileHome,
    identity: Identity,
    user: str,
    parts: Sequence[Part],
    goal: Path,
    passphrase: str | None,
    skipped: Sequence[str] = (),
) -> Written:
    """Write a home that was copied beside for it into one file, 0600, durably. Raises OSError, `LimitReached`."""
    copied = Copied()
    fd = os.open(goal, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(fd, "w+b") as file:
        out = file if passphrase is None else _sealer(file, passphrase)
        with tarfile.open(fileobj=out, mode="w|gz", format=tarfile.PAX_FORMAT) as tar:
            manifest = orjson.dumps(
                {
                    "format": FORMAT,
                    "profile": identity.name,
                    "id": identity.id,
                    "origin": identity.origin,
                    "user": user,
                    "parts": list(parts),
                }
            )
            head = tarfile.TarInfo(MANIFEST)
            head.size, head.mode, head.mtime = len(manifest), 0o600, int(time.time())
            tar.addfile(head, io.BytesIO(manifest))
            for place in (*(PLACES[part] for part in parts), *([DATABASE] if "sessions" in parts else ())):
                if (staged.path / place).exists():
                    tar.add(staged.path / place, place, filter=lambda each: _anonymous(each, copied))
        if out is not file:
            out.close()
        file.flush()
        os.fsync(file.fileno())
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256").hexdigest()  # pyright: ignore[reportArgumentType]
        return Written(goal, goal.stat().st_size, digest, copied.files, tuple(skipped))


# What encrypts is loaded when there is something to encrypt: it takes 8 MiB, and most servers never do.


def _sealer(file: BinaryIO, passphrase: str) -> BinaryIO:
    from hermes_ws.hosting.sealed import Sealer

    return cast("BinaryIO", Sealer(file, passphrase))


def _opener(file: BinaryIO, passphrase: str) -> BinaryIO:
    from hermes_ws.hosting.sealed import Opener

    return cast("BinaryIO", io.BufferedReader(Opener(file, passphrase)))


def _anonymous(member: tarfile.TarInfo, copied: Copied) -> tarfile.TarInfo:
    copied.count(member.size)
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def read(path: Path, target: ProfileHome, passphrase: str | None, *, secrets: bool) -> Manifest:
    """Unpack an archive into an empty home. Raises `InvalidParams` for what is no archive or goes beyond a home,
    `NotFound`, `LimitReached`. The caller removes the home when this raises.
    """
    try:
        # O_NONBLOCK: a pipe with nobody at the other end would hold up every change of profiles.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise NotFound(f"{path} cannot be read: {error.strerror}.", file=str(path)) from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise InvalidParams(f"{path} is no file.", path="path")
    with open(fd, "rb") as file:
        sealed = file.read(len(SEALED)) == SEALED
        if sealed and passphrase is None:
            raise InvalidParams("The archive is sealed; its passphrase is needed.", path="passphrase")
        if not sealed:
            file.seek(0)
        stream = _opener(file, passphrase) if sealed and passphrase else file
        try:
            with tarfile.open(fileobj=stream, mode="r|gz") as tar:
                return _unpack(tar, target, secrets=secrets)
        except (tarfile.TarError, EOFError, OSError) as error:
            raise InvalidParams(f"{path} is no archive of a profile: {error}.", path="path") from error


def _unpack(tar: tarfile.TarFile, target: ProfileHome, *, secrets: bool) -> Manifest:
    copied = Copied()
    manifest: Manifest | None = None
    allowed = (*PLACES.values(), DATABASE)
    for member in tar:
        copied.count(member.size)
        if manifest is None:
            manifest = _manifest(tar, member)
            continue
        name = os.path.normpath(member.name)
        if not any(name == place or name.startswith(place + os.sep) for place in allowed):
            raise InvalidParams(f"{member.name!r} has no place in a profile.", path="path")
        if not (member.isreg() or member.isdir() or member.issym()):
            raise InvalidParams(f"{member.name!r} is neither a file, a directory nor a link.", path="path")
        if name == PLACES["secrets"] and not secrets:
            continue
        _place(tar, member, target.path / name, target.path)
    if manifest is None:
        raise InvalidParams("The archive is empty.", path="path")
    _hold_links(target.path)
    if target.env.is_symlink() or target.config.is_symlink():
        raise InvalidParams("The settings of an archive are links.", path="path")
    if target.env.exists():
        target.env.chmod(0o600)
    return manifest


def _place(tar: tarfile.TarFile, member: tarfile.TarInfo, goal: Path, home: Path) -> None:
    """Put one file, directory or link where it belongs; nothing is written through a link that leads out."""
    goal.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _hold(goal.parent, home)
    if member.isdir():
        goal.mkdir(mode=0o700, exist_ok=True)
    elif member.issym():
        goal.symlink_to(member.linkname)
        _hold(goal, home)
    else:
        content = tar.extractfile(member)
        assert content is not None, "a regular file has content"
        mode = member.mode & 0o755 | 0o600
        with open(os.open(goal, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb") as file:
            shutil.copyfileobj(content, file)
        os.utime(goal, (member.mtime, member.mtime))


def _hold_links(home: Path) -> None:
    """Look at all links once more: what the first passes by may have been put there after it."""
    for directory, directories, files in os.walk(home):
        for name in (*directories, *files):
            if (path := Path(directory, name)).is_symlink():
                _hold(path, home)


def _hold(path: Path, home: Path) -> None:
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(home)):
        raise InvalidParams(f"{str(path.relative_to(home))!r} leads out of the profile.", path="path")


def _manifest(tar: tarfile.TarFile, member: tarfile.TarInfo) -> Manifest:
    content = tar.extractfile(member) if member.name == MANIFEST and member.size <= MANIFEST_BYTES else None
    try:
        said = cast("dict[str, object]", orjson.loads(content.read() if content is not None else b"{}"))
        if said["format"] != FORMAT:
            raise InvalidParams("The archive was written by a newer hermes-ws.", path="path")
        parts = frozenset(map(str, cast("list[object]", said["parts"])))
        return Manifest(
            profile=str(said["profile"]),
            id=str(said["id"]),
            origin=str(said["origin"]),
            user=str(said["user"]),
            parts=tuple(part for part in PLACES if part in parts),
        )
    except (ValueError, KeyError, TypeError):
        raise InvalidParams("The archive does not begin with the manifest of a profile.", path="path") from None
