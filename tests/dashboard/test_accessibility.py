"""The page for everyone: what axe-core finds, and what it cannot find."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.dashboard.steps import managing
from tests.dashboard.test_stories import say, start_session

Visit = Callable[..., Page]

RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}


def violations(page: Page) -> list[str]:
    results = Axe().run(page, options=RULES)
    return [
        f"{rule['id']}: {node['target']} {node['failureSummary']}"
        for rule in results.response["violations"]
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_conversation_with_a_question_has_no_violation(visit: Visit, scheme: str) -> None:
    page = visit(color_scheme=scheme)
    start_session(page, "second")
    say(page, "/do say Some **words**.\n/do run touch accessible")
    expect(page.locator(".question")).to_have_count(1)
    assert violations(page) == []
    page.locator(".question").get_by_role("button", name="Deny").click()
    expect(page.locator(".question")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_dialog_has_no_violation(visit: Visit, scheme: str) -> None:
    """Every panel of it, with all that can be folded open."""
    page = visit(color_scheme=scheme)
    expect(page.get_by_role("status").first).to_have_text("Connected")
    page.get_by_role("button", name="Manage").click()
    tabs = page.get_by_role("tab").all_inner_texts()
    assert len(tabs) == 13
    for tab in tabs:
        managing(page, tab)
        page.locator("details").evaluate_all("all => { for (const each of all) each.open = true; }")
        assert violations(page) == [], tab


def test_right_to_left_text_stands_on_the_right(visit: Visit) -> None:
    page = visit()
    start_session(page, "default")
    say(page, "/do say مرحبا بالعالم")
    body = page.locator(".message:not(.user) .body.rendered").last
    expect(body).to_be_visible()
    assert body.evaluate("node => getComputedStyle(node).direction") == "rtl"


def test_nothing_moves_for_those_who_asked_for_that(visit: Visit) -> None:
    page = visit(reduced_motion="reduce")
    start_session(page, "default")
    say(page, "/do stream 200 20")
    dot = page.locator(".dot.running").first
    expect(dot).to_be_visible()
    assert dot.evaluate("node => getComputedStyle(node).animationName") == "none"
    page.get_by_role("button", name="Stop").click()
