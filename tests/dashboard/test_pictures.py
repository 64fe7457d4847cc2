"""Pictures in a transcript: given by a tool, or by the hundred."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.dashboard.steps import serving
from tests.dashboard.test_composer import give, picture
from tests.dashboard.test_stories import say, start_session
from tests.e2e.process import Server

Visit = Callable[..., Page]

TOOLS = '''
import base64
from mcp.server import MCPServer
from mcp_types import CallToolResult, ImageContent, TextContent

server = MCPServer("painter")
DATA = "%s"

@server.tool()
def paint(count: int, kind: str) -> CallToolResult:
    """Paint pictures."""
    pictures = [ImageContent(type="image", data=DATA, mime_type=kind) for _ in range(count)]
    return CallToolResult(content=[TextContent(type="text", text="painted"), *pictures])

server.run()
'''


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    place = tmp_path_factory.mktemp("pictures")
    script = place / "tools.py"
    script.write_text(TOOLS % base64.b64encode(picture()).decode())
    program = {"command": sys.executable, "args": ["-I", str(script)]}
    config = {"mcp_servers": {"painter": program}, "terminal": {"read": [str(script)]}}
    server = serving(place, default=json.dumps(config), second="")
    yield server
    assert server.stop() == 0


def paint(page: Page, count: int, kind: str = "image/png") -> None:
    say(page, f"/do tool painter__paint {json.dumps({'count': count, 'kind': kind})}")
    page.locator(".question").get_by_role("button", name="Allow once").click()
    expect(page.locator(".question")).to_have_count(0)
    expect(page.locator(".tool .dot.done").last).to_be_visible()
    expect(page.locator(".pane .state")).to_have_text("")


def test_a_picture_that_a_tool_gave_is_shown_now_and_later(visit: Visit) -> None:
    page = visit()
    start_session(page, "default")
    paint(page, 1)
    tool = page.locator(".tool").last
    expect(tool.locator(".output")).to_contain_text("shown to the person")
    tool.locator(".output").scroll_into_view_if_needed()
    expect(tool.locator("img")).to_have_js_property("naturalWidth", 1)
    page.reload()
    page.locator(".session").first.click()
    page.locator(".tool summary").last.click()
    page.locator(".tool .output").scroll_into_view_if_needed()
    expect(page.locator(".tool img")).to_have_js_property("naturalWidth", 1)


def test_what_is_no_picture_and_a_flood_of_them_break_nothing(visit: Visit) -> None:
    page = visit()
    start_session(page, "default")
    paint(page, 1, "image/svg+xml")
    expect(page.locator(".tool .output").last).to_contain_text("not shown")
    expect(page.locator(".tool img")).to_have_count(0)
    paint(page, 300)
    expect(page.locator(".tool").last.locator("img")).to_have_count(20)
    for number in range(20):
        give(page, "paste", f"{number}.png", "image/png", picture())
    expect(page.locator(".attachments [role=status]")).to_have_count(0)
    give(page, "paste", "one too many.png", "image/png", picture())
    expect(page.locator(".pane > .problem")).to_contain_text("No more than 20 files")
    say(page, "look at them all")
    expect(page.locator(".message.user img")).to_have_count(20)
    page.locator(".message.user").last.scroll_into_view_if_needed()
    expect(page.locator(".message.user img").last).to_have_js_property("naturalWidth", 1)
