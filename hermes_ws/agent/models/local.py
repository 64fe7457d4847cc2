"""A small model on this machine: weights and engine from packages (extra `local`), in a confined child of the profile.

The engine has an OpenAI-compatible endpoint of its own on loopback, so that behind it everything is as with any other.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import final

from hermes_ws.agent.models.endpoint import Endpoint, Patience
from hermes_ws.agent.models.http_model import HttpModel
from hermes_ws.agent.models.model import ModelRequest, Piece
from hermes_ws.agent.models.openai import openai
from hermes_ws.agent.ports import ModelMachine


@final
class LocalModel:
    """One model of this machine, for one turn. It is started with the first request, and stays for the next turns."""

    provider = "local"

    def __init__(
        self,
        name: str,
        machine: ModelMachine,
        *,
        patience: Patience,
        redact: Callable[[str], str],
        max_tokens: int | None = None,
    ) -> None:
        self.name = name
        self._machine = machine
        self._patience = patience
        self._redact = redact
        self._dialect = openai(max_tokens=max_tokens)
        self._model: HttpModel | None = None

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[Piece], None]:
        """Stream one reply; see `Model`. Raises ModelFailed where the model cannot be started."""
        if self._model is None:
            url, key = await self._machine.local(self.name)
            reach = Endpoint(url, "the local model", key, {}, "the local model's own key")
            self._model = HttpModel(self.name, reach, self._dialect, patience=self._patience, redact=self._redact)
        async with self._model.stream(request) as pieces:
            yield pieces

    async def aclose(self) -> None:
        """Close the connections; the model itself stays."""
        model, self._model = self._model, None
        if model is not None:
            await model.aclose()
