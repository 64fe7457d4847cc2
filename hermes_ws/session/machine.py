"""What a turn's model needs of the machine: keys that a command prints, and a small model that runs here.

Both are children of the profile's warden.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, final

import trio

from hermes_ws.contract.errors import HermesError, ModelUnauthorised
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.session.hands import SessionHands
from hermes_ws.session.local_models import PROGRAM
from hermes_ws.session.ports import Runtime
from hermes_ws.warden.running import Running

MINT_S: Final = 30.0
"""Seconds that a command has to print a key: time to ask somebody over a network."""

KEY_BYTES: Final = 65_536
"""The longest key: a token with all its claims."""

WORDS_BYTES: Final = 500
"""Of what the command complains of: the end, which mostly says what is wrong."""


@final
class SessionMachine:
    """The `ModelMachine` of a thread."""

    def __init__(self, runtime: Runtime, scope: ProfileScope, cwd: Path) -> None:
        self._runtime = runtime
        self._scope = scope
        self._hands = SessionHands(runtime, scope, cwd)

    async def mint(self, provider: str, command: Sequence[str], env: Mapping[str, str]) -> str:
        """The key that a command prints on its standard output. Raises `ModelUnauthorised`."""
        key, problem = "", "it printed nothing"
        try:
            with trio.move_on_after(MINT_S) as limit:
                async with await self._hands.open_pipe(command, env=env) as running:
                    key, words = await _said(running)
                    ended = await running.wait()
                if ended.exit_code != 0:
                    how = f"signal {ended.signal}" if ended.exit_code is None else f"exit code {ended.exit_code}"
                    key, problem = "", f"it ended with {how}"
                if not key and words:
                    problem += f" and said: {self._scope.secrets.redact(words)}"
            if limit.cancelled_caught:
                key, problem = "", f"it took longer than {MINT_S:g} seconds"
        except HermesError as error:
            key, problem = "", error.message
        if len(key.split()) > 1:
            key, problem = "", "it printed words"
        if not key:
            raise ModelUnauthorised(
                f"The command that makes the key for provider {provider} gave none: {problem}.",
                hint=f"Run providers.{provider}.key_command by hand; it must print the key and nothing else.",
            )
        return key

    async def local(self, model: str) -> tuple[str, str]:
        """Where a model of this machine answers. Raises `ModelFailed`."""
        argv = (sys.executable, "-I", "-c", PROGRAM)
        idle_s = self._scope.config.warden.idle_s
        models = self._runtime.ongoing.models
        return await models.reach(model, lambda env: self._hands.open_pipe(argv, env=env), idle_s)


async def _said(running: Running) -> tuple[str, str]:
    """What a program prints, and the end of what it complains of."""
    printed, words = b"", b""

    async def listen() -> None:
        nonlocal words
        while data := await running.receive_problems():
            words = (words + data)[-WORDS_BYTES:]

    await running.close_input()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        while len(printed) < KEY_BYTES and (data := await running.receive()):
            printed += data
        if len(printed) >= KEY_BYTES:
            nursery.cancel_scope.cancel()
            await running.aclose()
    return printed.decode(errors="replace").strip(), words.decode(errors="replace").strip()
