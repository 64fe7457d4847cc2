"""Several models in order: the next one is asked when one fails before it has answered anything."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import final

from hermes_ws.agent.models.model import Model, ModelRequest, Piece, RetryPiece
from hermes_ws.contract.errors import ModelFailed


@final
class FallbackModel:
    """The first of these models that answers. A turn that fell back stays there: its steps belong together."""

    def __init__(self, models: Sequence[Model]) -> None:
        self._models = models
        self._current = 0

    @property
    def provider(self) -> str:
        return self._models[self._current].provider

    @property
    def name(self) -> str:
        return self._models[self._current].name

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[Piece], None]:
        """Stream one reply; see `Model`. Raises what the last one raised."""
        async with aclosing(self._pieces(request)) as pieces:
            yield pieces

    async def aclose(self) -> None:
        for model in self._models:
            await model.aclose()

    async def _pieces(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        while True:
            began = False
            try:
                async with self._models[self._current].stream(request) as pieces:
                    async for piece in pieces:
                        began = began or not isinstance(piece, RetryPiece)
                        yield piece
                return
            except ModelFailed as failed:
                if began or self._current + 1 >= len(self._models):
                    raise
                self._current += 1
                fallen = RetryPiece(f"{failed.message} Falling back to {self.name}.", 0.0)
            yield fallen
