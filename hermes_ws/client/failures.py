"""What can go wrong between a client and a server, told apart by what the caller may do next.

A `RemoteError` is an answer: the server refused, and nothing happened. `NotSent` is as definite. `OutcomeUnknown` is
the one that needs care: the request left, the reply did not come back, and only an id that the server remembers
(`input_id`, `request_id`) makes it safe to send again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from pydantic import JsonValue

REFUSED_CLOSE_CODES = range(4500, 4600)
"""Close codes of the server that mean: do not come back as you are. After all others one may."""


class ClientError(Exception):
    """Whatever this client raises about its server. `hint` says what a person can do; it may be empty."""

    hint: str = ""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        if hint:
            self.hint = hint


@final
class RemoteError(ClientError):
    """The server refused. `type` is the stable name, `code` the group, `data` what a program needs."""

    def __init__(self, code: int, message: str, data: Mapping[str, JsonValue]) -> None:
        hint = data.get("hint")
        super().__init__(message, hint=hint if isinstance(hint, str) else "")
        self.code = code
        self.data = data
        named = data.get("type")
        self.type = named if isinstance(named, str) else "unknown"


@final
class OutcomeUnknown(ClientError):
    """The request was sent and its reply was lost. It may have been carried out or not; it was not sent again."""

    hint = "Look at the session before you send it again."

    def __init__(self, method: str, because: str) -> None:
        super().__init__(f"It is not known whether {method} was carried out: {because}.")
        self.method = method


@final
class NotSent(ClientError):
    """The request never left this process. It is safe to send it again."""

    def __init__(self, method: str, because: str) -> None:
        super().__init__(f"{method} was not sent: {because}.")
        self.method = method


@final
class TooLarge(ClientError):
    """The request does not fit into one frame of this server. Nothing was sent."""

    hint = "Send less at once."

    def __init__(self, method: str, size: int, limit: int) -> None:
        super().__init__(f"{method} takes {size} bytes, and the server reads at most {limit} in one frame.")
        self.size = size
        self.limit = limit


@final
class ReplyRefused(ClientError):
    """The server's answer breaks the contract: a wrong shape, or an identifier that is blank."""

    hint = "The versions of client and server may not fit together."

    def __init__(self, subject: str, because: str) -> None:
        super().__init__(f"The server's {subject} cannot be used: {because}.")
        self.subject = subject


@final
class EventUnreadable(ClientError):
    """An event breaks the contract that this client knows, and what comes after it would rest on a gap. `cursor` is the
    position before it, up to where everything was handled; None before the first."""

    hint = "The versions of client and server may not fit together. With another version, go on from this cursor."

    def __init__(self, cursor: str | None, type: str, because: str) -> None:
        super().__init__(f"The event {type} after {cursor or 'the beginning'} cannot be read: {because}.")
        self.cursor = cursor
        self.type = type
        self.because = because


class ConnectFailed(ClientError):
    """No connection came about. `retry` tells whether trying again, unchanged, may help."""

    def __init__(self, message: str, *, retry: bool, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.retry = retry


@final
class Incompatible(ConnectFailed):
    """The server speaks another major version of the protocol. `hint` says which side is the older one."""

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message, retry=False, hint=hint)


@final
class ConnectionLost(ClientError):
    """The connection ended. What the server had accepted goes on there. `code` is None when no close frame came."""

    def __init__(self, code: int | None, reason: str) -> None:
        told = f" ({code}{': ' + reason if reason else ''})" if code is not None else ""
        super().__init__(f"The connection to the server ended{told}.")
        self.code = code
        self.reason = reason

    @property
    def retry(self) -> bool:
        """Whether coming back, unchanged, may help."""
        return self.code not in REFUSED_CLOSE_CODES


@final
class Lagging(ClientError):
    """This subscriber was too slow for its bounded queue. The journal has it all: subscribe again from the cursor."""

    def __init__(self, events: int) -> None:
        super().__init__(f"More than {events} events waited for this subscriber.")
