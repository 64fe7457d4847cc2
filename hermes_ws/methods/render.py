"""Turning what an agent wrote into what a page may show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

import trio

from hermes_ws.contract.methods.render import RENDER_MARKDOWN, Rendered, RenderParams
from hermes_ws.methods.handler import handles
from hermes_ws.methods.ports import ServerCall
from hermes_ws.scope.current import in_thread

PREFIX: Final = "hl-"
"""What the classes of marked-up code begin with."""

LIGHT: Final = "xcode"
DARK: Final = "github-dark"
"""Styles of the library for code; their words can be read on the grounds that the page has."""

TAGS: Final = (
    *("a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre"),
    *("s", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"),
)
"""What is left of HTML: nothing that loads, runs, or looks like a part of the page around it."""


@handles(RENDER_MARKDOWN)
async def markdown(call: ServerCall, params: RenderParams) -> Rendered:
    """Render it in a thread: a large text takes its time."""
    limiter = trio.to_thread.current_default_thread_limiter()
    return await in_thread(limiter, render, params.text)


def render(text: str) -> Rendered:
    """Markdown as HTML: parsed without HTML, code marked up, and everything that is not known to be harmless gone."""
    # Imported here: they take 60 ms and 15 MiB, which a server that renders nothing need not have.
    import nh3
    from markdown_it import MarkdownIt
    from pygments.formatters.html import HtmlFormatter

    parser = MarkdownIt("commonmark", {"html": False, "highlight": _highlight})
    # An image would tell its server who looks at the text; what it points to stays there as a link.
    parser.enable(["table", "strikethrough"]).disable("image")
    attributes = {"a": {"href", "title"}, "code": {"class"}, "pre": {"class"}, "span": {"class"}, "ol": {"start"}}
    html = nh3.clean(
        parser.render(text),
        tags=set(TAGS),
        attributes=attributes,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return Rendered(html=html, styles=_rules(HtmlFormatter, LIGHT), dark_styles=_rules(HtmlFormatter, DARK))


def _rules(formatter: Callable[..., Any], style: str) -> str:
    """Those for words of code alone: the ground is that of the page."""
    made = cast("str", formatter(classprefix=PREFIX, style=style).get_style_defs("pre"))
    return "\n".join(line for line in made.splitlines() if line.startswith(f"pre .{PREFIX}"))


def _highlight(code: str, language: str, attributes: str) -> str:
    """Code with its words marked up; empty where the language is not known, which shows it as it is."""
    import pygments
    from pygments.formatters.html import HtmlFormatter
    from pygments.lexers import get_all_lexers, get_lexer_by_name  # pyright: ignore[reportUnknownVariableType]

    wanted = language.lower()
    # Asked first: for a name that it does not know the library looks through all installed packages.
    if not any(wanted in aliases for _, aliases, _, _ in get_all_lexers(plugins=False)):
        return ""
    return pygments.highlight(code, get_lexer_by_name(wanted), HtmlFormatter(nowrap=True, classprefix=PREFIX))
