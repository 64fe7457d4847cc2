"""The server goes away and comes back under an open page."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.dashboard.conftest import PATIENCE_MS, link
from tests.dashboard.test_stories import say, start_session
from tests.e2e.conftest import two_homes
from tests.e2e.process import Server


@pytest.fixture
def restart(tmp_path: Path) -> Iterator[tuple[Server, Callable[[], Server]]]:
    homes = two_homes(tmp_path / "homes")
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    servers = [Server(homes, tmp_path / "server.log", environment)]

    def again() -> Server:
        port = servers[-1].url.split(":")[2].split("/")[0]
        servers.append(Server(homes, tmp_path / "server.log", environment, "--port", port))
        return servers[-1]

    yield servers[0], again
    servers[-1].stop()


def test_the_page_comes_back_by_itself_signed_in_and_complete(
    browser: Browser, restart: tuple[Server, Callable[[], Server]]
) -> None:
    server, again = restart
    context = browser.new_context()
    context.set_default_timeout(PATIENCE_MS)
    page: Page = context.new_page()
    page.goto(link(server))
    start_session(page, "second")
    say(page, "remember the green lamp")
    expect(page.locator(".message:not(.user) .body.rendered")).to_be_visible()
    page.locator(".pane textarea").fill("a draft")
    server.kill()
    expect(page.locator("body")).to_have_attribute("data-connection", "offline")
    again()
    expect(page.get_by_role("status").first).to_have_text("Server restarted")
    expect(page.locator(".message.user")).to_have_count(1)
    expect(page.locator(".message:not(.user)")).to_have_count(1)
    expect(page.locator(".pane textarea")).to_have_value("a draft")
    say(page, "and the blue door")
    expect(page.locator(".message.user")).to_have_count(2)
    context.close()
