"""Turning what an agent wrote into what a page may show."""

from __future__ import annotations

from pydantic import Field

from hermes_ws.contract.model import Params, Result
from hermes_ws.contract.registry import Order, Right, Scope, method

MARKDOWN_CHARACTERS = 250_000
"""Of one text: longer ones are no message any more, and would keep a thread busy for seconds."""


class RenderParams(Params):
    """A text in Markdown (CommonMark with tables and strikethrough). HTML in it is shown as text."""

    text: str = Field(max_length=MARKDOWN_CHARACTERS)


class Rendered(Result):
    """HTML that holds nothing active: no scripts, styles, frames, forms or event handlers. Code is marked up with
    classes; `styles` are the rules for them on a light ground, `dark_styles` those on a dark one."""

    html: str
    styles: str
    dark_styles: str = ""


RENDER_MARKDOWN = method(
    "render.markdown",
    RenderParams,
    Rendered,
    scope=Scope.SERVER,
    right=Right.NONE,
    order=Order.FREE,
    doc="Render Markdown as HTML that is safe to show.",
)
