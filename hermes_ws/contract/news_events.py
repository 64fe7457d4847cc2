"""What is told of how things look and what is going on, beside what they come to."""

from __future__ import annotations

from hermes_ws.contract.model import Result


class SkinChanged(Result):
    """What the profile is dressed in now: the skin as `gateway.ready` has it."""

    name: str
    colors: dict[str, str]
    light_colors: dict[str, str]
    dark_colors: dict[str, str]
    branding: dict[str, str]


class ToolGenerating(Result):
    """The model is writing a call of this tool, which takes a while where it writes a whole file."""

    name: str


class StatusUpdate(Result):
    """What the execution is waiting for, in words; `model_retry` while a request to the model is made again."""

    kind: str
    text: str
