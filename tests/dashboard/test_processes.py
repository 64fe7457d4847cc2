"""Background processes on the page: live output, a line to their input, their end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.dashboard.test_stories import say, start_session

Visit = Callable[..., Page]


def start(page: Page, command: str) -> None:
    """Have the agent start a command in the background, and allow it."""
    say(page, f"/do tool terminal {json.dumps({'command': command, 'background': True})}")
    page.locator(".question").get_by_role("button", name="Allow once").click()
    expect(page.locator(".question")).to_have_count(0)


def test_output_comes_live_and_a_line_goes_to_its_input(visit: Visit, shots: Path) -> None:
    page = visit(viewport={"width": 1400, "height": 900})
    start_session(page, "default")
    panel = page.locator(".pane .processes")
    expect(panel).to_be_hidden()
    start(page, r"printf '\e[32mready\e[0m\n'; while read line; do echo got $line; [ $line = bye ] && exit 7; done")
    expect(panel.locator("> summary")).to_contain_text("1 / 1")
    panel.locator("> summary").click()
    process = panel.locator("[data-process]")
    process.locator("summary").click()
    output = process.locator(".output")
    expect(output.locator(".fg-2")).to_have_text("ready")
    box = process.get_by_placeholder("Write a line to it")
    box.fill("first")
    box.press("Enter")
    expect(output).to_contain_text("got first")
    expect(box).to_have_value("")
    page.screenshot(path=shots / "processes.png")
    box.fill("bye")
    process.get_by_role("button", name="Send").click()
    expect(output).to_contain_text("got bye")
    expect(process.locator("summary")).to_contain_text("exit code 7")
    expect(panel.locator("> summary")).to_contain_text("Processes 1")
    expect(box).to_be_hidden()


def test_what_writes_much_is_followed_and_ended(visit: Visit) -> None:
    """More than is shown at once: the end is there, the beginning is let go, and wide characters shift nothing."""
    page = visit()
    start_session(page, "second")
    start(page, "for i in $(seq 20000); do echo 😀 $i; done; sleep 1; echo last of it; sleep 1000")
    panel = page.locator(".pane .processes")
    panel.locator("> summary").click()
    process = panel.locator("[data-process]")
    process.locator("summary").click()
    expect(process.locator(".output")).to_contain_text("last of it")
    lines = (process.locator(".output").text_content() or "").rstrip("\n").split("\n")
    assert len(lines) > 1000
    numbers = [int(line.split()[1]) for line in lines[1:-1]]
    assert numbers == list(range(numbers[0], 20_001))
    process.get_by_role("button", name="End", exact=True).click()
    expect(process.locator("summary")).to_contain_text("ended by signal")
    page.get_by_role("button", name="Manage").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("tab", name="Processes").click()
    expect(dialog.locator("[data-process]")).to_contain_text(["seq 20000"])
