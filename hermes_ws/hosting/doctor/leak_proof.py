"""The proof, on the machine that it matters for: two homes with canaries, and nothing of one in the other.

Two profiles are made in a directory of its own, served by a host of its own, and worked in: in the order A, B, A and
side by side, their agents run commands, read and write files, and look where they should not. Every event, file, child
and error is then searched for what belongs to the other. It takes seconds, needs no model, and leaves nothing.
"""

from __future__ import annotations

import os
import secrets
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, final

import orjson
import trio

from hermes_ws.contract.errors import HermesError
from hermes_ws.contract.methods.connection import ClientTool
from hermes_ws.contract.methods.prompts import SubmitParams
from hermes_ws.contract.methods.sessions import CreateParams
from hermes_ws.contract.questions import OpenQuestion
from hermes_ws.hosting.doctor.finding import Finding
from hermes_ws.hosting.host import Host
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.scope import guard
from hermes_ws.scope.current import Bound, bind, in_thread
from hermes_ws.scope.environment import StartEnvironment
from hermes_ws.scope.home import HomesRoot
from hermes_ws.scope.identity import ProfileName
from hermes_ws.session.ports import Counted
from hermes_ws.session.thread import Thread
from hermes_ws.warden.subreaper import become_subreaper
from hermes_ws.wire.cursor import Cursor

TURN_WITHIN_S: Final = 60.0
"""Seconds for one turn of a few commands, on a machine that swaps."""

PAGE: Final = 2000
"""Events that are read at once."""

NAMES: Final = ("default", "other")

REACHES: Final = 8
"""Tool calls of one turn."""

CONFIG: Final = "approvals:\n  mode: auto\nterminal:\n  env: [SHARED, {only}]\n"


@final
class Nobody:
    """People who are never there: the proof asks nothing."""

    def ask(self, question: OpenQuestion, profile: str) -> Counted:
        """Nobody could be asked."""
        return Counted(with_right=0, capable=0)

    def client_tools(self, profile: str) -> tuple[ClientTool, ...]:
        """Nobody offers any."""
        return ()

    def skin_changed(self, profile: str, name: str) -> None:
        """Nobody is there to be told."""

    def sessions_changed(self, profile: str, session_id: str | None) -> None:
        """Nobody is there to be told."""

    def settled(self, question_id: str, reason: str, profile: str) -> None:
        """Nobody was asked."""


@final
@dataclass(slots=True)
class Side:
    """One home of the proof, its canaries, and what was told about it."""

    name: str
    path: Path
    canaries: Mapping[str, str]
    told: list[str] = field(default_factory=list[str])


async def prove(place: Path, base: Mapping[str, str]) -> tuple[Finding, ...]:
    """Serve two homes below `place`, an empty directory, and say for each kind of reach whether it was refused."""
    root = HomesRoot.directory(place / "homes")
    sides = tuple(_write(root.path, name) for name in NAMES)
    parent = f"canary-{secrets.token_hex(8)}"
    start = StartEnvironment(base=base, parameters={}, launch_secrets={"PARENT_KEY": parent})
    before = dict(_environment())
    tripwire = guard.install(root)
    try:
        async with trio.open_nursery() as nursery:
            host = Host(root, start, instance_id="doctor", audience=Nobody(), subreaper=become_subreaper())
            await nursery.start(host.run)
            runtimes = [await host.open(ProfileName(name)) for name in NAMES]
            for index in (0, 1, 0):
                await _work(runtimes[index], sides[index], sides[1 - index])
            async with trio.open_nursery() as both:
                for index in (0, 1):
                    both.start_soon(_work, runtimes[index], sides[index], sides[1 - index])
            await _ask_for_the_others(runtimes, sides)
            await host.drain(0)
            nursery.cancel_scope.cancel()
    finally:
        tripwire.disarm()
    return (
        _verdict("guard", "the tripwire in the server", tripwire.tripped() == 0),
        _verdict("environment", "the server's own environment", before == dict(_environment())),
        *(finding for side, other in (sides, sides[::-1]) for finding in _search(side, other, parent)),
    )


def _write(root: Path, name: str) -> Side:
    path = root / name
    only = f"ONLY_{name.upper()}"
    canaries = {place: f"canary-{name}-{secrets.token_hex(8)}" for place in ("SHARED", only, "soul", "file", "memory")}
    for directory in ("home", "memories"):
        (path / directory).mkdir(mode=0o700, parents=True)
    path.chmod(0o700)
    (path / ".env").touch(mode=0o600)
    (path / ".env").write_text(f"SHARED={canaries['SHARED']}\n{only}={canaries[only]}\n")
    (path / "config.yaml").write_text(CONFIG.format(only=only))
    (path / "SOUL.md").write_text(canaries["soul"])
    (path / "memories" / "MEMORY.md").write_text(canaries["memory"])
    (path / "home" / "notes.txt").write_text(canaries["file"])
    return Side(name, path, canaries)


async def _work(runtime: ProfileRuntime, side: Side, other: Side) -> None:
    """Have the agent of one side look at everything it has, and for everything of the other side."""
    foreign = shlex.quote(str(other.path))
    reach = (
        "env; pwd; cat notes.txt",
        f"cat {foreign}/.env {foreign}/SOUL.md {foreign}/home/notes.txt; ls -la {foreign}",
        f"ln -sf {foreign} link; cat link/.env; ln {foreign}/.env hard; cat hard; rm -f link hard",
        "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline | tr '\\0' '\\n'",
        "ls -l /proc/[0-9]*/fd /proc/[0-9]*/cwd",
        f"printf %s {shlex.quote(side.canaries['file'])} > written.txt",
    )
    # In files, so that no approval asks about the words: what matters here is what the kernel says.
    with guard.permit(runtime.home):
        for number, command in enumerate(reach):
            (side.path / "home" / f"look{number}.sh").write_text(f"{command}\n")
    script = "\n\n".join(f"/do run sh look{number}.sh 2>&1" for number in range(len(reach)))
    script += f"\n\n/do read {other.path}/SOUL.md\n\n/do write {other.path}/home/planted.txt planted"
    # As the dispatcher binds for the handler of a request.
    with bind(Bound(runtime.scope)):
        session, _ = await runtime.sessions.create(CreateParams(subscribe=False), "doctor")
        thread = await session.thread("main")
        submitted = SubmitParams(session_id=session.session_id, input_id=secrets.token_hex(8), text=script)
        await thread.submit(submitted, "doctor")
        with trio.move_on_after(TURN_WITHIN_S):
            await runtime.sessions.wait_until_idle()
        side.told.append(await _all_events(thread))


async def _all_events(thread: Thread) -> str:
    parts: list[str] = []
    cursor = Cursor(1, 0)
    while True:
        page = await thread.events(cursor, PAGE)
        parts += [orjson.dumps(event.model_dump(mode="json")).decode() for event in page.events]
        if not page.events or not page.more:
            return "\n".join(parts)
        cursor = Cursor.parse(str(page.events[-1].cursor))


async def _ask_for_the_others(runtimes: list[ProfileRuntime], sides: tuple[Side, ...]) -> None:
    """An id of one, asked of the other; the error is part of what is searched."""
    for index in (0, 1):
        mine, foreign = runtimes[index], runtimes[1 - index]
        session_id = f"{foreign.scope.identity.origin}-x"
        with bind(Bound(mine.scope)), suppress(HermesError):
            try:
                await mine.sessions.get(session_id)
            except HermesError as error:
                sides[index].told.append(str(error.to_wire()))
        await in_thread(mine.limiter, lambda: None)


def _search(side: Side, other: Side, parent: str) -> Iterator[Finding]:
    foreign = (*other.canaries.values(), *([parent] if side.name != NAMES[0] else []))
    told = "\n".join(side.told)
    yield _verdict(
        "ran", f"the work in {side.name}", told.count('"tool.complete"') >= 8 and side.canaries["file"] in told
    )
    yield _verdict("events", f"what was told about {side.name}", not _found(told, foreign))
    own = (side.canaries["SHARED"], parent)
    yield _verdict("redaction", f"values of secrets in what was told about {side.name}", not _found(told, own))
    kept = [path for path in side.path.rglob("*") if path.is_file() and not path.is_symlink()]
    leaked = [path for path in kept if _found(path.read_bytes().decode(errors="replace"), foreign)]
    yield _verdict("disk", f"the files of {side.name}", not leaked)
    planted = (side.path / "home" / "planted.txt").exists()
    yield _verdict("writing", f"writing into {side.name} from {other.name}", not planted)
    logs = "".join(path.read_text(errors="replace") for path in (side.path / "logs").glob("*"))
    yield _verdict("logs", f"the log of {side.name}", not _found(logs, (*foreign, *own)))


def _found(text: str, canaries: tuple[str, ...]) -> bool:
    return any(canary in text for canary in canaries)


def _verdict(check: str, subject: str, held: bool) -> Finding:
    if held:
        return Finding(f"leaks: {check}", subject, "ok", f"{subject}: nothing crossed.")
    return Finding(
        f"leaks: {check}", subject, "error", f"{subject}: something crossed, or the proof could not be made.",
        "Run `hermes-ws doctor` for what the kernel enforces; set terminal.confine: required until it is mended.",
    )  # fmt: skip


def _environment() -> Iterator[tuple[str, str]]:
    """What the kernel has as this process's environment."""
    for entry in Path("/proc/self/environ").read_bytes().split(b"\0"):
        name, _, value = entry.partition(b"=")
        yield os.fsdecode(name), os.fsdecode(value)
