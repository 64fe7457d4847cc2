"""What tells one provider's protocol from another's: a path, headers, the form of a request, the reading of a reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, final

from hermes_ws.agent.models.model import ModelRequest, Piece


@final
class Malformed(Exception):
    """A chunk that is not in the form of a chunk. It can be passed over."""


class ReplyStream(Protocol):
    """Reads one reply, chunk by chunk; no I/O."""

    @property
    def began(self) -> bool:
        """Whether anything of an answer has come."""
        ...

    @property
    def finished(self) -> bool:
        """Whether the answer is whole."""
        ...

    @property
    def over(self) -> bool:
        """Whether the provider said that nothing follows."""
        ...

    def feed(self, data: str) -> list[Piece]:
        """One chunk. Raises Malformed for what is none, ModelFailed or Transient for an error that it reports."""
        ...

    def end(self) -> list[Piece]:
        """What was held back, the calls, and the last pieces of a whole reply. Call it once `finished`."""
        ...


@final
@dataclass(frozen=True, slots=True)
class Dialect:
    """One protocol. `path` follows the base URL; `what` is what its answers are called in errors."""

    provider: str
    path: str
    what: str
    headers: Callable[[str | None], Mapping[str, str]]
    """Those of a request with this key, or without one."""
    body: Callable[[str, ModelRequest], bytes]
    """The content of a request to the model of this name."""
    reply: Callable[[], ReplyStream]
