"""What a turn's model needs of the machine: keys that a command prints, and a small model that runs here.

Both are children of the profile's warden.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, final

import trio

from hermes_ws.agent.ports import Pipe
from hermes_ws.contract.errors import HermesError, ModelUnauthorised
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.session.hands import SessionHands
from hermes_ws.session.local_models import PROGRAM
from hermes_ws.session.ports import Runtime

MINT_S: Final = 30.0
"""Seconds that a command has to print a key: time to ask somebody over a network."""

KEY_BYTES: Final = 65_536
"""The longest key: a token with all its claims."""


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
                pipe = await self._hands.open_pipe(command, env=env)
                try:
                    await pipe.close_input()
                    key = await _printed(pipe)
                finally:
                    await pipe.aclose()
            if limit.cancelled_caught:
                problem = f"it took longer than {MINT_S:g} seconds"
        except HermesError as error:
            problem = error.message
        if not key or len(key.split()) != 1:
            raise ModelUnauthorised(
                f"The command that makes the key for provider {provider} gave none: {problem if not key else 'words'}.",
                hint=f"Run providers.{provider}.key_command by hand; it must print the key and nothing else.",
            )
        return key

    async def local(self, model: str) -> tuple[str, str]:
        """Where a model of this machine answers. Raises `ModelFailed`."""
        argv = (sys.executable, "-I", "-c", PROGRAM)
        idle_s = self._scope.config.warden.idle_s
        models = self._runtime.ongoing.models
        return await models.reach(model, lambda env: self._hands.open_pipe(argv, env=env), idle_s)


async def _printed(pipe: Pipe) -> str:
    said = b""
    while len(said) < KEY_BYTES and (data := await pipe.receive()):
        said += data
    return said.decode(errors="replace").strip()
