"""Commands of the profile that are run around a session: at its start and end, after a turn, before a tool call.

A hook runs in the session's directory, confined like any other command, and only after a person has accepted it once
(or the session was made with `accept_hooks`). What was accepted is the command itself: another one is asked about anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Final, Literal, final

import trio
from pydantic import JsonValue

from hermes_ws.agent.ports import Asker, Hands, NoAnswerer, QuestionExpired
from hermes_ws.contract.errors import HermesError, StaleEpoch, StorageUnavailable
from hermes_ws.contract.questions import APPROVAL, ApprovalParams, ApprovalResult
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.database import Transaction
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.scope.sections import HookConfig
from hermes_ws.session.launch import Launch
from hermes_ws.session.narration import Narration
from hermes_ws.session.ports import Runtime

When = Literal["session_start", "turn_end", "tool_before", "session_end"]

REASON: Final = 500
"""Characters of a hook's output that tell why a call is not made."""

ENDING_S: Final = 8.0
"""Seconds that the hooks at an end may take together when it cannot wait: less than a profile has to close."""


@final
class SessionHooks:
    """The hooks of one execution, or of the end of a session."""

    def __init__(
        self,
        runtime: Runtime,
        scope: ProfileScope,
        hands: Hands,
        asker: Asker | None,
        narration: Narration | None,
        key: ThreadKey,
        launch: Launch,
    ) -> None:
        self._runtime = runtime
        self._hooks = scope.config.hooks
        self._redact = scope.secrets.redact
        self._hands = hands
        self._asker = asker
        self._narration = narration
        self._key = key
        self._accept = launch.accept_hooks

    def has(self, when: When) -> bool:
        """Whether there are any."""
        return bool(self._of(when))

    async def run(self, when: When) -> None:
        """Run those of one kind, in order. One that fails is told, and keeps nothing from going on."""
        await self._all(when, ask=True)

    async def run_at_the_end(self, when: When) -> None:
        """As `run`, also when cancelled, within ENDING_S. Nobody is asked any more: only what was accepted runs."""
        with trio.move_on_after(ENDING_S, shield=True):
            await self._all(when, ask=False)

    async def _all(self, when: When, *, ask: bool) -> None:
        for hook in self._of(when):
            if ask or await self._known(when, hook):
                failed = await self._one(when, hook, {})
                if failed is not None:
                    await self._tell(f"A hook at {when} failed: {failed}")

    async def before_tool(self, name: str, arguments: Mapping[str, JsonValue]) -> str | None:
        """Run those before a tool call; the first that fails keeps the call from being made."""
        for hook in self._of("tool_before"):
            failed = await self._one("tool_before", hook, {"tool": name, "arguments": dict(arguments)})
            if failed is not None:
                return f"a hook of the profile refused it: {failed}"
        return None

    def _of(self, when: When) -> tuple[HookConfig, ...]:
        match when:
            case "session_start":
                return self._hooks.session_start
            case "turn_end":
                return self._hooks.turn_end
            case "tool_before":
                return self._hooks.tool_before
            case "session_end":
                return self._hooks.session_end

    async def _one(self, when: When, hook: HookConfig, about: Mapping[str, JsonValue]) -> str | None:
        """Run one hook; what is wrong in words, or None. It reads what it is about from its standard input."""
        if not await self._accepted(when, hook):
            if when == "tool_before":
                return "it was not accepted"
            await self._tell(f"A hook at {when} was not run: nobody has accepted it.")
            return None
        told = {"hook": when, "session_id": self._key.session_id, "thread_id": self._key.thread_id, **about}
        document = json.dumps(told).replace("'", "'\\''")
        command = f"printf %s '{document}' | {{ {hook.command}\n}}"
        try:
            ran = await self._hands.run(command, cwd=None, deadline_s=hook.deadline_s, on_output=lambda piece: None)
        except (StorageUnavailable, StaleEpoch):
            raise
        except HermesError as error:
            return error.message
        if ran.exit_code == 0:
            return None
        said = ran.output.strip()[-REASON:]
        return said or f"it ended with {'its deadline' if ran.timed_out else f'exit code {ran.exit_code}'}"

    async def _known(self, when: When, hook: HookConfig) -> bool:
        """Whether somebody has accepted it before."""
        digest = _digest(when, hook)
        known = await self._runtime.journal.read(
            lambda connection: connection.execute("SELECT 1 FROM accepted WHERE digest = ?", (digest,)).fetchone()
        )
        return self._accept or known is not None

    async def _accepted(self, when: When, hook: HookConfig) -> bool:
        if await self._known(when, hook):
            return True
        if self._asker is None:
            return False
        digest = _digest(when, hook)
        asked = ApprovalParams(
            session_id=self._key.session_id,
            thread_id=self._key.thread_id,
            tool="hook",
            command=self._redact(hook.command),
            description=f"The profile wants this command run at {when}. Accepted once, it is not asked about again.",
            rule="hooks run after they were accepted once",
            choices=["always", "deny"],
        )
        try:
            answer = await self._asker.ask(APPROVAL, asked)
        except (NoAnswerer, QuestionExpired):
            return False
        if not isinstance(answer, ApprovalResult) or answer.choice == "deny":
            return False

        def work(tx: Transaction) -> None:
            tx.connection.execute("INSERT INTO accepted VALUES (?, ?) ON CONFLICT DO NOTHING", (digest, tx.now))

        await self._runtime.journal.transact(work)
        return True

    async def _tell(self, said: str) -> None:
        if self._narration is not None:
            await self._narration.notice("warning", "hook", self._redact(said))
        else:
            self._runtime.log.write("warning", "hook", session_id=self._key.session_id, message=said)


def _digest(when: When, hook: HookConfig) -> str:
    """Stands for this very command at this occasion."""
    return hashlib.sha256(f"{when}\n{hook.command}".encode()).hexdigest()
