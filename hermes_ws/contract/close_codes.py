"""Why a connection was closed, and whether to come back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, final

Return = Literal["resume", "changed", "as it is", "never"]
"""What a client does next: `resume` with what it has, come back once something `changed`, or see its own mistake."""


@final
@dataclass(frozen=True, slots=True)
class CloseCode:
    """One code, its stable name, what the client does next, and a sentence on what happened."""

    code: int
    name: str
    then: Return
    doc: str


CLOSE_CODES: Final[tuple[CloseCode, ...]] = (
    CloseCode(1000, "done", "as it is", "Both sides have said what they wanted to."),
    CloseCode(1001, "shutting_down", "resume", "The server ends; what it accepted is kept."),
    CloseCode(1002, "protocol_error", "never", "A frame broke the rules of WebSocket itself."),
    CloseCode(1003, "binary", "never", "A binary message came; only text is understood."),
    CloseCode(1007, "not_utf8", "never", "A text was not UTF-8."),
    CloseCode(1009, "too_large", "never", "A message was larger than `limits.frame_bytes`, or had too many fragments."),
    CloseCode(4400, "resume", "resume", "This connection cannot go on; another one goes on where it was."),
    CloseCode(4410, "moved", "resume", "The profile is served elsewhere; `gateway.moved` said where."),
    CloseCode(4412, "send_deadline", "resume", "Nothing was read for too long."),
    CloseCode(4429, "overloaded", "resume", "Requests kept coming and their answers were not read."),
    CloseCode(4501, "credential_withdrawn", "changed", "The token that let this connection in holds no more."),
    CloseCode(4503, "profile_gone", "changed", "The profile that this connection was bound to is no longer served."),
    CloseCode(4526, "protocol_unsupported", "changed", "The client speaks another major version."),
)
"""4400 to 4499: reconnect and resume. 4500 to 4599: do not come back as you are."""
