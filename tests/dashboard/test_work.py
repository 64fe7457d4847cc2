"""Subagents, models, usage, earlier messages, what a profile's agents know, and being called."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.dashboard.test_stories import say, start_session
from tests.e2e.process import Server

Visit = Callable[..., Page]


def test_a_subagent_is_watched_steered_opened_and_stopped(visit: Visit, shots: Path) -> None:
    page = visit()
    page.on("dialog", lambda dialog: dialog.accept("be brief"))
    start_session(page, "default")
    tasks = [{"goal": "/do say I begin.\n/do stream 3000 20"}, {"goal": "/do say done at once"}]
    say(page, f"/do tool delegate_task {json.dumps({'tasks': tasks})}")
    panel = page.locator(".subagents")
    expect(panel).to_be_visible()
    panel.locator("summary").click()
    expect(panel.locator("[data-subagent]")).to_have_count(2)
    busy = panel.locator("[data-subagent]").first
    expect(panel.get_by_role("img", name="completed")).to_have_count(1)
    busy.get_by_role("button", name="Watch").click()
    expect(panel.locator(".tail")).to_contain_text("I begin.")
    busy.get_by_role("button", name="Steer").click()
    expect(panel.get_by_role("status")).to_contain_text("It will be told")
    busy.get_by_role("button", name="Open").click()
    expect(page.locator(".pane")).to_have_count(2)
    child = page.locator(".pane").last
    expect(child.locator(".banner h1")).to_contain_text("subagent")
    expect(child.locator(".message:not(.user)")).to_contain_text("I begin.")
    page.screenshot(path=shots / "subagents.png")
    busy.get_by_role("button", name="Stop").click()
    expect(panel.get_by_role("img", name="Interrupted")).to_have_count(1)
    expect(child.locator(".state")).to_have_text("")


def test_a_model_is_chosen_for_one_session_and_what_it_consumed_is_shown(visit: Visit) -> None:
    page = visit()
    page.on("dialog", lambda dialog: dialog.accept())
    start_session(page, "default")
    say(page, "count this")
    expect(page.locator(".meter")).to_contain_text("tokens")
    expect(page.locator(".meter")).to_contain_text("of the context")
    page.get_by_label("Model", exact=True).click()
    choice = page.get_by_label("Model, from the next turn on")
    expect(choice).to_be_visible()
    assert choice.locator("option:checked").inner_text() == page.locator(".model > summary").inner_text()
    page.get_by_label("Model", exact=True).press("Escape")
    expect(choice).to_be_hidden()
    page.get_by_label("Actions for this session").click()
    page.get_by_role("button", name="Summarise older messages").click()
    expect(page.locator(".note")).to_contain_text("nothing to summarise")
    page.get_by_label("Actions for this session").click()
    page.get_by_role("button", name="Answer again").click()
    expect(page.locator(".message.user")).to_have_count(1)
    expect(page.locator(".message:not(.user) .body.rendered")).to_have_count(1)


def test_earlier_messages_are_read_when_asked_for(visit: Visit, server: Server) -> None:
    client = server.connect()
    made = client.call("session.create", profile="second", title="A long one")
    messages = [{"role": ("user", "assistant")[number % 2], "text": f"line {number}"} for number in range(500)]
    client.call(
        "session.mutate",
        session_id=made["session_id"],
        request_id="import",
        expected_revision=client.call("session.info", session_id=made["session_id"])["revision"],
        operation="import",
        payload={"messages": messages},
    )
    client.close()
    page = visit()
    page.locator(".session", has_text="A long one").click()
    expect(page.get_by_text("line 499", exact=True)).to_be_visible()
    more = page.get_by_role("button", name="Show earlier messages")
    for _ in range(10):
        if not more.is_visible():
            break
        before = page.locator(".item").count()
        more.click()
        expect(page.locator(".item")).not_to_have_count(before)
    said = [each.strip() for each in page.locator(".item .body").all_text_contents()]
    assert said == [f"line {number}" for number in range(500)]


def test_the_words_of_messages_are_found_and_sessions_are_filtered(visit: Visit) -> None:
    page = visit()
    start_session(page, "second")
    for number, words in enumerate(("an opening line", "in between: rhododendron", "and a last one"), 1):
        say(page, words)
        expect(page.locator(".message:not(.user) .body.rendered")).to_have_count(number)
    session = page.locator(".pane").get_attribute("data-session")
    start_session(page, "default")
    page.get_by_label("Search sessions").fill("rhododendron")
    page.locator(".hit", has_text="rhododendron").first.click()
    expect(page.locator(".pane")).to_have_attribute("data-session", session or "")
    page.get_by_label("Search sessions").fill("")
    page.get_by_label("Actions for this session").click()
    page.get_by_role("button", name="Archive", exact=True).click()
    row = page.locator(f".session[data-session='{session}']")
    expect(row).to_have_count(0)
    page.get_by_label("Show", exact=True).select_option("archived")
    expect(row).to_have_count(1)
    page.get_by_label("Show", exact=True).select_option("running")
    expect(page.locator(".session")).to_have_count(0)


def test_memory_and_schedules_are_kept_in_the_dialog(visit: Visit, shots: Path) -> None:
    page = visit()
    expect(page.get_by_role("status").first).to_have_text("Connected")
    page.get_by_role("button", name="Manage").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("tab", name="Memory").click()
    dialog.get_by_label("What the agents have noted").fill("The user likes tea.")
    dialog.get_by_role("button", name="Save").first.click()
    expect(dialog).to_contain_text("Saved.")
    dialog.get_by_role("tab", name="Schedules").click()
    dialog.get_by_role("tab", name="Memory").click()
    expect(dialog.get_by_label("What the agents have noted")).to_have_value("The user likes tea.")
    dialog.get_by_role("tab", name="Schedules").click()
    dialog.get_by_label("What to submit").fill("/do say good morning")
    dialog.get_by_label("When (cron)").fill("0 8 * * 1-5")
    dialog.get_by_label("Time zone").fill("Europe/Berlin")
    dialog.get_by_role("button", name="Create").click()
    card = dialog.locator("[data-schedule]")
    expect(card).to_contain_text("Europe/Berlin")
    page.screenshot(path=shots / "schedules.png")
    card.get_by_role("button", name="Pause").click()
    expect(card).to_contain_text("paused")
    card.get_by_role("button", name="Go on").click()
    expect(card).to_contain_text("active")
    page.once("dialog", lambda asked: asked.accept())
    card.get_by_role("button", name="Delete").click()
    expect(card).to_have_count(0)


def test_whoever_asked_for_it_is_told_that_a_question_waits(visit: Visit) -> None:
    """Only while nobody looks at the page, and without a word of the question."""
    page = visit(permissions=["notifications"])
    page.add_init_script(
        """window.told = []; window.away = false;
        class Told { constructor(title, options) { window.told.push(title + ": " + options.body); } close() {} }
        Told.permission = "granted"; Told.requestPermission = async () => "granted"; window.Notification = Told;
        Object.defineProperty(document, "hidden", {get: () => window.away});"""
    )
    expect(page.get_by_role("status").first).to_have_text("Connected")
    page.reload()
    start_session(page, "second")
    say(page, "/do run touch unasked")
    expect(page.locator(".question")).to_have_count(1)
    page.locator(".question").get_by_role("button", name="Deny").click()
    page.get_by_role("button", name="Notify me").click()
    page.evaluate("window.away = true")
    say(page, "/do run touch asked")
    expect(page.locator(".question")).to_have_count(1)
    page.wait_for_function("window.told.length > 0")
    assert page.evaluate("window.told") == ["A question waits for you: second"]
    page.locator(".question").get_by_role("button", name="Deny").click()
