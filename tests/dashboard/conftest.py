"""A real browser against a real server. Both end with the test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.e2e.conftest import two_homes
from tests.e2e.process import Server

CHROMIUM = "/usr/bin/chromium-headless-shell"
"""Debian's Chromium without its own windows: the same engine for half the processor time."""

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""Without these the browser speaks to hosts of its maker, and not to ours alone."""

PATIENCE_MS = 20_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One per module, not longer: it brings a loop and children that tests of other things would find."""
    if not shutil.which(CHROMIUM):
        if os.environ.get("CI"):
            pytest.fail("chromium-headless-shell is not installed")
        pytest.skip("needs a browser: apt-get install chromium-headless-shell")
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    place = tmp_path_factory.mktemp("dashboard")
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    server = Server(two_homes(place / "homes"), place / "server.log", environment)
    yield server
    assert server.stop() == 0


def link(server: Server) -> str:
    """A link that signs a browser in, once."""
    client = server.connect(server_requests=False)
    issued = client.call("ticket.issue", purpose="browser")
    client.close()
    origin = server.url.replace("ws://", "http://").removesuffix("/ws")
    return f"{origin}/#ticket={issued['ticket']}"


@pytest.fixture
def visit(browser: Browser, server: Server) -> Iterator[Callable[..., Page]]:
    """Open the page in a browser of its own, signed in. A word on its console about an error fails the test."""
    contexts = []
    problems: list[str] = []

    def open_page(*, signed_in: bool = True, **options: object) -> Page:
        context = browser.new_context(**options)  # pyright: ignore[reportArgumentType]
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
        page.goto(link(server) if signed_in else link(server).split("#", maxsplit=1)[0])
        return page

    yield open_page
    for context in contexts:
        context.close()
    expected = ("WebSocket connection to", "Failed to load resource")
    assert [each for each in problems if not any(part in each for part in expected)] == []


@pytest.fixture
def shots(request: pytest.FixtureRequest) -> Path:
    """Where pictures of the page are kept for a person to look at."""
    place = Path(request.config.rootpath) / ".pytest_cache" / "screenshots"
    place.mkdir(parents=True, exist_ok=True)
    return place
