"""Telling who is connected that the list of sessions looks different now.

It is a hint to ask again, and not worth more than that: the first of several changes is told at once, and what follows
within `QUIET_S` is told together when that is over.
"""

from __future__ import annotations

from typing import Final, final

import trio

from hermes_ws.contract.errors import Draining
from hermes_ws.contract.methods.connection import ClientTool
from hermes_ws.contract.questions import OpenQuestion
from hermes_ws.session.ports import Audience, Counted, Runtime

QUIET_S: Final = 1.0
"""Seconds between two hints about one profile: a person sees no difference, and a busy profile costs each client one
look at the list a second."""


@final
class Announcer:
    """The hints of one open profile."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._quiet = False
        self._held: set[str | None] = set()

    def changed(self, session_id: str | None) -> None:
        """A session came, went, or stands otherwise in the list; None when it is not known which. Never waits."""
        self._held.add(session_id)
        if self._quiet:
            return
        try:
            self._runtime.start_soon(self._stay_quiet, name="hints about the list of sessions")
        except Draining:
            self._held.clear()  # The profile closes, and whoever listens is told that.
            return
        self._quiet = True
        self._tell()

    def _tell(self) -> None:
        held, self._held = self._held, set()
        only = next(iter(held)) if len(held) == 1 else None
        self._runtime.audience.sessions_changed(self._runtime.scope.profile.text, only)

    async def _stay_quiet(self) -> None:
        try:
            while True:
                await trio.sleep(QUIET_S)
                if not self._held:
                    return
                self._tell()
        finally:
            self._quiet = False


@final
class Overheard:
    """The audience of a profile's questions: a session that waits for a person stands otherwise in the list, too."""

    def __init__(self, audience: Audience, announcer: Announcer) -> None:
        self._audience = audience
        self._announcer = announcer

    def ask(self, question: OpenQuestion, profile: str) -> Counted:
        """As the audience's."""
        self._announcer.changed(question.session_id)
        return self._audience.ask(question, profile)

    def settled(self, question_id: str, reason: str, profile: str) -> None:
        """As the audience's."""
        self._announcer.changed(None)
        self._audience.settled(question_id, reason, profile)

    def client_tools(self, profile: str) -> tuple[ClientTool, ...]:
        """As the audience's."""
        return self._audience.client_tools(profile)

    def skin_changed(self, profile: str, name: str) -> None:
        """As the audience's."""
        self._audience.skin_changed(profile, name)

    def sessions_changed(self, profile: str, session_id: str | None) -> None:
        """As the audience's."""
        self._audience.sessions_changed(profile, session_id)
