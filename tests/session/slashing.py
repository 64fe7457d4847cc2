"""Typing commands behind a slash in a served home, and looking for the workers that run them."""

from __future__ import annotations

from pathlib import Path

from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.session import commands
from hermes_ws.session.briefing import ground_of
from hermes_ws.session.hands import SessionHands
from hermes_ws.session.session import Session
from hermes_ws.warden import descendants

SIGN = b"The slash worker:"
"""How the program begins that a worker is."""


async def hands_of(runtime: ProfileRuntime, session: Session) -> SessionHands:
    """The hands of a session as `slash.exec` has them: of the profile as it is now."""
    thread = await session.thread("main")
    found = await ground_of(runtime, runtime.sessions.keys, session.record, thread.key)
    return SessionHands(runtime, found.scope, found.cwd, thread.key)


async def type_in(runtime: ProfileRuntime, session: Session, line: str) -> str:
    """What a quick command of the profile prints."""
    name, arg = commands.split(line)
    hands = await hands_of(runtime, session)
    return await commands.run(runtime.scope.config.quick_commands[name], arg, hands)


async def workers(runtime: ProfileRuntime) -> list[int]:
    """The processes of the profile that are slash workers, below its warden, by number."""
    granted = await runtime.warden_for(runtime.scope, runtime.home.user)
    return [pid for pid in below(granted.warden.statistics().pid) if SIGN in command_line(pid)]


def below(pid: int) -> list[int]:
    return [seen.pid for seen in descendants.below(pid)]


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def environment_of(pid: int) -> str:
    """What a process was started with."""
    return Path(f"/proc/{pid}/environ").read_text()
