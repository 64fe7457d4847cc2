"""Giving an agent something to do, and asking what became of it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from hermes_ws.contract.content import TextBlock, Usage
from hermes_ws.contract.errors import (
    AdmissionConflict,
    Draining,
    NotFound,
    SessionBusy,
    SessionUnknown,
    StaleGeneration,
    StorageUnavailable,
    ThreadUnknown,
)
from hermes_ws.contract.events import Outcome
from hermes_ws.contract.methods.threads import ReceiptStatus, ThreadParams
from hermes_ws.contract.model import Identifier, Params, Result
from hermes_ws.contract.registry import Needs, Order, Right, Scope, method

PROMPT_CHARACTERS = 500_000
"""More than any model reads at once, and half of what a frame may carry."""


ATTACHMENTS = 20
"""Pictures and files of one input; each is read into memory for each request to the model."""


class Attached(Params):
    """A picture or a file that was put with `blob.put` before, by its hash. Pictures are PNG, JPEG, GIF or WebP."""

    blob: str = Field(pattern=r"^[0-9a-f]{64}$")
    media_type: str = Field(min_length=3, max_length=100, pattern=r"^[a-z0-9.+-]+/[a-z0-9.+-]+$")
    name: str = Field(default="", max_length=255)


class SubmitParams(ThreadParams):
    """An input. The same `input_id` with the same content is admitted once, however often it is sent."""

    input_id: Identifier
    text: str | None = Field(default=None, max_length=PROMPT_CHARACTERS)
    content: list[TextBlock] | None = None
    attached: list[Attached] = Field(default=[], max_length=ATTACHMENTS)
    mode: Literal["queue", "steer", "reject"] = "queue"
    finite: bool = False
    unattended: bool = False

    @model_validator(mode="after")
    def _coherent(self) -> SubmitParams:
        if (self.text is None) == (self.content is None):
            raise ValueError("give either text or content")
        if not self.plain_text().strip():
            raise ValueError("the input is blank")
        if self.attached and self.mode == "steer":
            raise ValueError("what steers an execution is words; attach to an input that runs in its turn")
        if self.unattended and not self.finite:
            raise ValueError("unattended needs finite")
        return self

    def plain_text(self) -> str:
        """The words of the input, whichever way they came."""
        if self.text is not None:
            return self.text
        return "\n".join(block.text for block in self.content or ())


class Admitted(Result):
    """The durable record that the input was accepted; `cursor` is just before its first event."""

    admission_id: str
    status: ReceiptStatus
    execution_generation: int | None = None
    cursor: str


class ReceiptParams(Params):
    """An input by the id that the client or the server gave it."""

    session_id: Identifier
    profile: Identifier | None = None
    input_id: Identifier | None = None
    admission_id: Identifier | None = None

    def located_by(self) -> str:
        return self.session_id

    @model_validator(mode="after")
    def _exactly_one(self) -> ReceiptParams:
        if (self.input_id is None) == (self.admission_id is None):
            raise ValueError("name the input by exactly one of input_id or admission_id")
        return self


class Receipt(Admitted):
    """What became of an input."""

    outcome: Outcome | None = None
    usage: Usage | None = None


class CancelParams(Params):
    """An input that is to be taken back."""

    session_id: Identifier
    profile: Identifier | None = None
    admission_id: Annotated[Identifier, Needs(Right.CONTROL, "an input of somebody else")]

    def located_by(self) -> str:
        return self.session_id


class AdmissionStatus(Result):
    """What the input is now. `cancelled` when it was taken back in time; what has started is not."""

    status: ReceiptStatus


class ResolveParams(CancelParams):
    """A lost execution, as the caller has seen it. `outcome` is what the person found out about it."""

    admission_id: Identifier
    execution_generation: int = Field(ge=1)
    outcome: Literal["completed", "failed", "interrupted"] = "interrupted"


PROMPT_SUBMIT = method(
    "prompt.submit",
    SubmitParams,
    Admitted,
    scope=Scope.THREAD,
    right=Right.SUBMIT,
    order=Order.THREAD,
    errors=(SessionUnknown, ThreadUnknown, AdmissionConflict, SessionBusy, Draining, StorageUnavailable),
    doc="Admit an input to a thread; durable before the reply.",
)

PROMPT_RECEIPT = method(
    "prompt.receipt",
    ReceiptParams,
    Receipt,
    scope=Scope.SESSION,
    right=Right.OBSERVE,
    order=Order.FREE,
    errors=(SessionUnknown, NotFound),
    doc="What became of an input.",
)

PROMPT_CANCEL = method(
    "prompt.cancel",
    CancelParams,
    AdmissionStatus,
    scope=Scope.SESSION,
    right=Right.SUBMIT,
    order=Order.NOW,
    errors=(SessionUnknown, NotFound, StorageUnavailable),
    doc="Take back an input that waits in the queue; one that has started is left alone.",
)

PROMPT_RESOLVE_UNKNOWN = method(
    "prompt.resolve_unknown",
    ResolveParams,
    AdmissionStatus,
    scope=Scope.SESSION,
    right=Right.CONTROL,
    order=Order.SESSION,
    errors=(SessionUnknown, NotFound, StaleGeneration, StorageUnavailable),
    doc="Say what became of a lost execution, so that the queue behind it goes on.",
)
