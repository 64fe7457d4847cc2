"""The dashboard in a real browser: a long answer, a long conversation, a long list. Does the page stay responsive?

What is measured is what a person would feel: the longest task, during which the page answers to nothing, how long
frames take, and what the page holds. The reference is the same browser on the same page while nothing happens.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from bench.figure import Figure
from bench.load import Peer
from bench.serve import Served, server_over, started_server

CHROMIUM = "/usr/bin/chromium-headless-shell"

FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync")

PIECES = 100_000
"""Of one answer."""

MESSAGES = 10_000
"""Of one conversation."""

BROUGHT = 2000
"""Messages of one import; the rest are made from these."""

SESSIONS = 5000

PATIENCE_MS = 300_000
"""For one wait: the answer alone takes minutes on a machine that does other things."""

METER = """() => {
  window.meter = {tasks: [], frames: [], keys: []};
  new PerformanceObserver(list => { for (const each of list.getEntries()) meter.tasks.push(each.duration); })
    .observe({type: "longtask"});
  let last = performance.now();
  const tick = now => { meter.frames.push(now - last); last = now; requestAnimationFrame(tick); };
  requestAnimationFrame(tick);
  addEventListener("keydown", () => {
    const begin = performance.now();
    requestAnimationFrame(() => setTimeout(() => meter.keys.push(performance.now() - begin)));
  }, true);
}"""
"""Long tasks, times between frames, and from a key to the frame that shows what came of it."""


class Seen:
    """What the meter has seen, and what the page holds then."""

    def __init__(self, page: Page, protocol: CDPSession) -> None:
        told: dict[str, Any] = page.evaluate("() => meter")
        frames = sorted(told["frames"]) or [0.0]
        self.longest: float = max(told["tasks"], default=0.0)
        self.frame: float = frames[len(frames) // 2]
        self.late: float = frames[int(len(frames) * 0.99)]
        self.key: float = max(told["keys"], default=0.0)
        protocol.send("HeapProfiler.collectGarbage")
        held = {each["name"]: each["value"] for each in protocol.send("Performance.getMetrics")["metrics"]}
        self.heap: float = held["JSHeapUsedSize"] / 1_048_576
        self.nodes: float = held["Nodes"]


class Client:
    """Requests to the server, one after the other."""

    def __init__(self, served: Served) -> None:
        self._peer = Peer(served.port, served.token)
        self._next = 0
        self.call(
            "client.capabilities",
            client={"name": "bench", "version": "1"},
            protocol={"major": 1, "minor": 0},
            server_requests=False,
        )

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The result. Raises `RuntimeError` for a refusal."""
        self._next += 1
        told = json.loads(
            self._peer.answer(
                json.dumps({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params}).encode()
            )
        )
        if "error" in told:
            raise RuntimeError(str(told["error"]))
        result: dict[str, Any] = told["result"]
        return result


def figures() -> list[Figure]:
    """Three stories, each in a browser of its own."""
    with started_server(_prepare) as served, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        try:
            idle = _idle(browser, served)
            return [
                *_rows("an answer of 100,000 pieces", _answer(browser, served), idle),
                *_rows(
                    "a conversation of 10,000 messages, read from its end to its beginning",
                    _read(browser, served),
                    idle,
                ),
                *_rows("a list of 5,000 sessions, scrolled to its end and back", _scroll(browser, served), idle),
            ]
        finally:
            browser.close()


def _rows(what: str, seen: Seen, idle: Seen) -> Iterator[Figure]:
    yield Figure(f"{what}: longest task", seen.longest, None, "ms")
    yield Figure(f"{what}: a frame, p50 (while nothing happens)", seen.frame, idle.frame, "ms")
    yield Figure(f"{what}: a frame, p99 (while nothing happens)", seen.late, idle.late, "ms")
    if seen.key:
        yield Figure(f"{what}: from a key to its frame, worst (while nothing happens)", seen.key, idle.key, "ms")
    yield Figure(f"{what}: memory of scripts (of the empty page)", seen.heap, idle.heap, "MiB")
    yield Figure(f"{what}: nodes (of the empty page)", seen.nodes, idle.nodes, "")


@contextmanager
def _page(browser: Browser, served: Served) -> Iterator[tuple[Page, Callable[[], Seen]]]:
    """The page, signed in, and the meter, which begins anew with each reading."""
    issued = Client(served).call("ticket.issue", purpose="browser")
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    protocol = context.new_cdp_session(page)
    protocol.send("Performance.enable")
    page.goto(f"http://127.0.0.1:{served.port}/#ticket={issued['ticket']}")
    page.wait_for_selector("body[data-connection=connected] .session")
    page.evaluate(METER)
    yield page, lambda: Seen(page, protocol)
    context.close()


def _idle(browser: Browser, served: Served) -> Seen:
    with _page(browser, served) as (page, look):
        page.get_by_label("Search sessions").press_sequentially("12345", delay=100)
        page.wait_for_function("() => meter.frames.length > 120")
        return look()


def _answer(browser: Browser, served: Served) -> Seen:
    """Somebody types a next prompt while the answer comes."""
    with _page(browser, served) as (page, look):
        page.get_by_role("button", name="New session").click()
        box = page.locator(".pane textarea")
        box.fill(f"/do stream {PIECES} 0 6")
        box.press("Enter")
        page.wait_for_selector(".message.writing")
        while page.locator(".message.writing").count():
            box.press_sequentially("and then ", delay=40)
            box.fill("")
        page.wait_for_selector(".message:not(.user):not(.writing) .body.rendered")
        return look()


def _read(browser: Browser, served: Served) -> Seen:
    with _page(browser, served) as (page, look):
        page.get_by_label("Search sessions").fill("the long one")
        page.locator(".session").first.click()
        page.wait_for_selector("[data-id$='-4']")
        page.evaluate(
            """async patience => {
              const scroller = document.querySelector(".transcript");
              const frame = () => new Promise(requestAnimationFrame);
              const earlier = document.querySelector(".earlier");
              const end = performance.now() + patience;
              while (!earlier.hidden) {
                scroller.scrollTop = 0;
                const before = document.querySelector(".item");
                earlier.click();
                while (document.querySelector(".item") === before) {
                  if (performance.now() > end) throw new Error("the conversation was not read to its beginning");
                  await frame();
                }
              }
              for (let at = 0; at < 100; at++) {
                scroller.scrollTop = (scroller.scrollHeight * at) / 100;
                await frame();
              }
            }""",
            PATIENCE_MS,
        )
        return look()


def _scroll(browser: Browser, served: Served) -> Seen:
    with _page(browser, served) as (page, look):
        page.evaluate(
            """async ([sessions, patience]) => {
              const body = document.querySelector(".groups");
              const frame = () => new Promise(requestAnimationFrame);
              const end = performance.now() + patience;
              while (body.scrollHeight < sessions * 30) {
                if (performance.now() > end) throw new Error(`${body.scrollHeight} pixels of rows only`);
                body.scrollTop = body.scrollHeight;
                await frame();
              }
              for (let at = 200; at >= 0; at--) { body.scrollTop = (body.scrollHeight * at) / 200; await frame(); }
            }""",
            [SESSIONS, PATIENCE_MS],
        )
        return look()


def _prepare(homes: Path) -> None:
    """A long conversation and many sessions. What would take minutes to be said is copied in the database."""
    with server_over(homes) as served:
        client = Client(served)
        made = client.call("session.create", title="the long one", subscribe=False)
        client.call(
            "session.mutate",
            session_id=made["session_id"],
            request_id="import",
            expected_revision=made["revision"],
            operation="import",
            payload={"messages": [_said(number) for number in range(BROUGHT)]},
        )
        for number in range(SESSIONS):
            client.call("session.create", title=f"Number {number}", subscribe=False)
    [path] = homes.glob("default/**/sessions.db")
    with closing(sqlite3.connect(path)) as database, database:
        for round in range(1, MESSAGES // BROUGHT):
            database.execute(
                "INSERT INTO message (thread, message_id, role, body) SELECT thread, message_id || ?, role,"
                " CAST(json_set(CAST(body AS TEXT), '$.message_id', message_id || ?) AS BLOB) FROM message"
                " WHERE instr(substr(message_id, 5), '-') = 0 ORDER BY id LIMIT ?",
                (f"-{round}", f"-{round}", BROUGHT),
            )


def _said(number: int) -> dict[str, str]:
    words = f"Line {number}. " + "Some words that are long enough to be broken over several lines of the page. " * 3
    code = "\n\n```python\nfor number in range(10):\n    print(number)\n```\n" if number % 20 == 1 else ""
    return {"role": ("user", "assistant")[number % 2], "text": words + code}
