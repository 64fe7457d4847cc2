"""Getting a session to talk in: a new one, or one that is resumed."""

from __future__ import annotations

import shlex
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, final

from pydantic import JsonValue, TypeAdapter, ValidationError

from hermes_ws.cli import exits
from hermes_ws.cli.frozen import UNCOMPARED, changes, written
from hermes_ws.cli.sanitise import harmless
from hermes_ws.client.failures import ClientError, RemoteError
from hermes_ws.client.link import Link
from hermes_ws.contract.methods.runtime import RUNTIME_DESCRIBE, Description
from hermes_ws.contract.methods.session_views import SESSION_INFO, OfSession
from hermes_ws.contract.methods.sessions import (
    SESSION_CREATE,
    SESSION_LIST,
    SESSION_RESUME,
    Created,
    CreateParams,
    ListParams,
    ResumeParams,
)
from hermes_ws.contract.methods.threads import Snapshot
from hermes_ws.contract.model import Empty, Identifier

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""Same value, same machine, same boot: the server sees the directories that this terminal sees."""

LATEST = "latest"

OWN_SOURCES: Final = ("cli", "oneshot")
"""What this command line's sessions say that they were started from; `latest` looks for them in this order."""

LISTED = 200
"""Sessions that are looked through for one of this directory: a page."""

UNKNOWN_METHOD = -32601


@final
class Refusal(ClientError):
    """What was asked for would change a session that may not be changed by this. Nothing was submitted."""


@final
class Undecided(ClientError):
    """The server wants to be told once more before it does this. Nothing was done, and nothing went wrong."""


def status_of(error: ClientError) -> int:
    """The exit status that tells of this error."""
    return exits.REFUSED if isinstance(error, Refusal) else exits.FAILED


@final
@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for on the command line. `directory` is the terminal's own, or the one of `--in` (`asked`).

    `terminal` is the session that this terminal was in last; with it, or with `resume`, a session is gone on with.
    With `create_title` one is made where there is none of that title.
    """

    profile: str | None
    resume: str | None
    source: str
    directory: Path
    asked: bool = False
    frozen: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    terminal: str | None = None
    create_title: str | None = None
    source_asked: bool = False


@final
@dataclass(frozen=True, slots=True)
class Opened:
    """The session, and the cursor up to where it is known. `snapshot` is there when it was resumed."""

    session_id: str
    thread_id: str
    profile: str
    cursor: str
    snapshot: Snapshot | None = None
    info: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    revision: int = 1
    generation: int | None = None
    """The thread's newest execution, as far as it is known."""


async def open_session(link: Link, wanted: Wanted, note: Callable[[str], None]) -> Opened:
    """Make or resume the session. Raises ClientError; `note` gets sentences about what was done differently."""
    if wanted.resume is not None or wanted.terminal is not None:
        try:
            snapshot = await _found(link, wanted)
        except RemoteError as error:
            if wanted.create_title is None or error.type != "session_unknown":
                raise
        else:
            await _see_unchanged(link, wanted, snapshot)
            return resumed(snapshot)
    return await _create(link, wanted, note)


async def _create(link: Link, wanted: Wanted, note: Callable[[str], None]) -> Opened:
    described = await link.call(RUNTIME_DESCRIBE, Empty())
    offered = frozenset(described.session_create.parameters)
    missing = sorted(written(name) for name in wanted.frozen if name not in offered)
    once = wanted.create_title is not None and "if_missing" in offered
    if wanted.asked and "cwd" not in offered:
        missing.append("--in")
    if wanted.create_title is not None and "title" not in offered:
        missing.append("--create-if-missing")
    if missing:
        raise ClientError(
            f"The server does not support creation options: {', '.join(missing)}. No session was made.",
            hint="Leave them out, or use a newer server.",
        )
    source = wanted.source if wanted.source in described.session_create.sources else None
    if source is None and wanted.source_asked:
        known = ", ".join(described.session_create.sources)
        raise ClientError(f"The server knows no source {wanted.source!r}; it knows {known}. No session was made.")
    directory = str(wanted.directory) if wanted.asked or _same_machine(described) else None
    if directory is not None and "cwd" not in offered:
        note("The server does not take a directory; the session works in the one that it is configured with.")
        directory = None
    if wanted.frozen.get("safe_mode") and not wanted.asked:
        directory = None
    try:
        created = await link.call(SESSION_CREATE, _creation(wanted, source, directory, once=once))
    except RemoteError as error:
        if error.type != "directory_refused" or directory is None or wanted.asked:
            raise
        note(f"The session does not work in {directory}: {error.message}")
        created = await link.call(SESSION_CREATE, _creation(wanted, source, None, once=once))
    if created.existing:
        # Somebody made it since it was looked for; it is gone on with as if it had been found.
        snapshot = await _by_id(link, created.session_id, wanted.profile)
        await _see_unchanged(link, wanted, snapshot)
        return resumed(snapshot)
    return made(created)


def made(created: Created) -> Opened:
    """A new session. Nothing was executed in it."""
    return Opened(
        created.session_id,
        created.thread_id,
        created.profile,
        created.cursor,
        info=created.info,
        revision=created.revision,
        generation=0,
    )


def resumed(snapshot: Snapshot) -> Opened:
    """A session that is gone on with."""
    return Opened(
        snapshot.session_id,
        snapshot.thread_id,
        snapshot.profile,
        snapshot.cursor,
        snapshot,
        snapshot.info,
        snapshot.revision,
        None if snapshot.execution is None else snapshot.execution.execution_generation,
    )


def _creation(wanted: Wanted, source: str | None, directory: str | None, *, once: bool) -> CreateParams:
    given: dict[str, JsonValue] = {
        "profile": wanted.profile,
        "source": source,
        "cwd": directory,
        "title": wanted.create_title,
        "if_missing": True if once else None,
        **wanted.frozen,
    }
    stated = {name: value for name, value in given.items() if value is not None}
    try:
        return CreateParams.model_validate({"request_id": uuid.uuid4().hex, "subscribe": False, **stated})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ClientError(
            f"The session cannot be made like that: {where + ': ' if where else ''}{first['msg']}."
        ) from None


async def _found(link: Link, wanted: Wanted) -> Snapshot:
    if wanted.terminal is not None:
        try:
            return await _by_id(link, wanted.terminal, wanted.profile)
        except RemoteError as error:
            if error.type not in ("session_unknown", "permission_denied"):
                raise
    if wanted.resume is None or wanted.resume == LATEST:
        return await _latest(link, wanted)
    if is_identifier(wanted.resume):
        try:
            return await _by_id(link, wanted.resume, wanted.profile)
        except RemoteError as error:
            if error.type != "session_unknown":
                raise
    try:
        params = ResumeParams(title=wanted.resume, profile=wanted.profile, messages=True)
    except ValidationError:
        raise ClientError(f"{wanted.resume[:40]!r}... is neither an id nor a title.") from None
    return await link.call(SESSION_RESUME, params)


async def _by_id(link: Link, session_id: str, profile: str | None) -> Snapshot:
    return await link.call(SESSION_RESUME, ResumeParams(session_id=session_id, profile=profile, messages=True))


async def _latest(link: Link, wanted: Wanted) -> Snapshot:
    """The newest of this command line's sessions in this directory, else the newest of them anywhere."""
    for source in OWN_SOURCES:
        try:
            listed = await link.call(SESSION_LIST, ListParams(profile=wanted.profile, source=source, limit=LISTED))
        except RemoteError as error:
            if error.code != UNKNOWN_METHOD:
                raise
            break  # an older server finds it by itself, without regard to the directory
        here = [row for row in listed.sessions if row.cwd == str(wanted.directory)] or listed.sessions
        if here:
            newest = max(here, key=lambda row: row.updated_at)
            return await _by_id(link, newest.session_id, wanted.profile)
    else:
        raise ClientError("There is no session of this command line yet.", hint="hermes-ws chat begins one.")
    return await link.call(SESSION_RESUME, ResumeParams(latest=True, profile=wanted.profile, messages=True))


async def _see_unchanged(link: Link, wanted: Wanted, snapshot: Snapshot) -> None:
    """What a session was made with may be said again, and may not be changed."""
    asked = {name: value for name, value in wanted.frozen.items() if name not in UNCOMPARED}
    if wanted.asked:
        asked["cwd"] = str(wanted.directory)
    if wanted.source_asked:
        asked["source"] = wanted.source
    if not asked:
        return
    try:
        known = await link.call(SESSION_INFO, OfSession(session_id=snapshot.session_id, profile=wanted.profile))
    except RemoteError as error:
        if error.code != UNKNOWN_METHOD:
            raise
        told = ", ".join(written(name) for name in asked)
        raise Refusal(f"This server does not tell what a session was made with: {told} is unsupported here.") from None
    changed = changes(asked, known.launch, {"cwd": known.cwd, "source": known.source})
    if changed:
        raise Refusal(
            f"The session was made otherwise: changing {', '.join(changed)} on a resume is unsupported.",
            hint="Leave them out, or begin a new session.",
        )


async def newest_generation(link: Link, opened: Opened) -> int | None:
    """The thread's newest execution, by which edits are fenced; None where an older server does not tell."""
    if opened.snapshot is None:
        return opened.generation
    try:
        known = await link.call(SESSION_INFO, OfSession(session_id=opened.session_id))
    except RemoteError as error:
        if error.code != UNKNOWN_METHOD:
            raise
        return opened.generation
    mine = (each.execution_generation for each in known.threads if each.thread_id == opened.thread_id)
    return next(mine, opened.generation)


def is_identifier(text: str) -> bool:
    """Whether this may be an id; a title may be anything else."""
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
