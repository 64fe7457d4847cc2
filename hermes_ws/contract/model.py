"""The two base models of the wire, and the identifiers that both sides check.

What a client sends is strict: an unknown key is an error, so that a misspelt option is never silently ignored. What a
server answers is read leniently: keys may be added later, and an older client passes over them.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

from hermes_ws.contract.errors import HermesError, SessionUnknown

Identifier = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[!-~]+$")]
"""An id of ours or of a client's: printable ASCII without blanks. 128 leaves room for a UUID with a prefix."""

CursorText = Annotated[str, StringConstraints(min_length=3, max_length=42, pattern=r"^[0-9]{1,20}:[0-9]{1,20}$")]
"""`generation:sequence`, as text; two unsigned 64-bit numbers fit."""

Title = Annotated[str, StringConstraints(min_length=1, max_length=200)]
"""What a person calls a session; one line in every list."""


class Params(BaseModel):
    """What a request carries. Frozen; unknown keys are errors, and so is a number that came as text."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    def located_by(self) -> str | None:
        """The id that tells which home the request is about, if it carries one; ids begin with their home's origin."""
        return None

    def unknown(self) -> HermesError:
        """What is answered when that id leads nowhere, or where the caller may not look: in the words in which the
        profile says that it has no such thing."""
        return SessionUnknown(f"There is no session {self.located_by()}.")


class Result(BaseModel):
    """What an answer or an event carries. Frozen; a reader passes over keys that it does not know."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class Empty(Params):
    """No parameters."""
