"""Getting a session to talk in: a new one, or one that is resumed."""

from __future__ import annotations

import shlex
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import final

from pydantic import TypeAdapter, ValidationError

from hermes_ws.cli.sanitise import harmless
from hermes_ws.client.failures import RemoteError
from hermes_ws.client.link import Link
from hermes_ws.contract.methods.runtime import RUNTIME_DESCRIBE, Description
from hermes_ws.contract.methods.sessions import SESSION_CREATE, SESSION_RESUME, CreateParams, ResumeParams
from hermes_ws.contract.methods.threads import Snapshot
from hermes_ws.contract.model import Empty, Identifier

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""Same value, same machine, same boot: the server sees the directories that this terminal sees."""

LATEST = "latest"


@final
@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for on the command line. `directory` is the terminal's own."""

    profile: str | None
    resume: str | None
    source: str
    directory: Path


@final
@dataclass(frozen=True, slots=True)
class Opened:
    """The session, and the cursor up to where it is known. `snapshot` is there when it was resumed."""

    session_id: str
    thread_id: str
    profile: str
    cursor: str
    snapshot: Snapshot | None = None


async def open_session(link: Link, wanted: Wanted, note: Callable[[str], None]) -> Opened:
    """Make or resume the session. Raises ClientError; `note` gets sentences about what was done differently."""
    if wanted.resume is not None:
        snapshot = await _resume(link, wanted.resume, wanted.profile)
        return Opened(snapshot.session_id, snapshot.thread_id, snapshot.profile, snapshot.cursor, snapshot)
    described = await link.call(RUNTIME_DESCRIBE, Empty())
    directory = str(wanted.directory) if _same_machine(described) else None
    if directory is not None and "cwd" not in described.session_create.parameters:
        directory = None
    source = wanted.source if wanted.source in described.session_create.sources else None
    try:
        created = await link.call(SESSION_CREATE, _creation(wanted.profile, source, directory))
    except RemoteError as error:
        if error.type != "directory_refused" or directory is None:
            raise
        note(f"The session does not work in {directory}: {error.message}")
        created = await link.call(SESSION_CREATE, _creation(wanted.profile, source, None))
    return Opened(created.session_id, created.thread_id, created.profile, created.cursor)


def _creation(profile: str | None, source: str | None, directory: str | None) -> CreateParams:
    params = CreateParams(request_id=uuid.uuid4().hex, subscribe=False)
    given = {"profile": profile, "source": source, "cwd": directory}
    return params.model_copy(update={name: value for name, value in given.items() if value is not None})


async def _resume(link: Link, named: str, profile: str | None) -> Snapshot:
    if named == LATEST:
        return await link.call(SESSION_RESUME, ResumeParams(latest=True, profile=profile, messages=True))
    if _is_identifier(named):
        try:
            return await link.call(SESSION_RESUME, ResumeParams(session_id=named, profile=profile, messages=True))
        except RemoteError as error:
            if error.type != "session_unknown":
                raise
    return await link.call(SESSION_RESUME, ResumeParams(title=named, profile=profile, messages=True))


def _is_identifier(text: str) -> bool:
    try:
        TypeAdapter(Identifier).validate_python(text)
    except ValidationError:
        return False
    return True


def _same_machine(described: Description) -> bool:
    try:
        return BOOT_ID.read_text("ascii").strip() == described.boot_id
    except OSError:
        return False


def resume_line(opened: Opened, wanted: Wanted) -> str:
    """What to type to come back to the session."""
    profile = f" --profile {shlex.quote(wanted.profile)}" if wanted.profile is not None else ""
    return harmless(f"hermes-ws chat --resume {shlex.quote(opened.session_id)}{profile}")
