"""The list of sessions: what can be done with one, how they are grouped, and what they say of themselves, live."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.dashboard.conftest import link
from tests.dashboard.steps import serving
from tests.dashboard.test_stories import say, start_session
from tests.e2e.process import Server

Visit = Callable[..., Page]


def menu(page: Page, what: str) -> None:
    page.get_by_label("Actions for this session").click()
    page.locator(".menu").get_by_role("button", name=what, exact=True).click()


def row(page: Page) -> str:
    """Where the session of the open pane stands in the list."""
    return f".session[data-session='{page.locator('.pane').get_attribute('data-session')}']"


def test_a_pinned_session_stands_first_and_stays_so_until_it_is_unpinned(visit: Visit) -> None:
    page, other = visit(), visit()
    start_session(page, "second")
    say(page, "the one to keep")
    expect(page.locator(".message:not(.user) .body.rendered")).to_have_count(1)
    kept = row(page)
    menu(page, "Pin")
    expect(page.locator(kept).get_by_label("pinned")).to_be_visible()
    expect(other.locator(kept).get_by_label("pinned")).to_be_visible()
    start_session(page, "second")
    expect(page.locator(".pane .message")).to_have_count(0)
    say(page, "a later one")
    group = page.locator(".groups section", has=page.locator("h2", has_text="second"))
    expect(group.locator(".name")).to_contain_text(["the one to keep", "a later one"])
    page.get_by_label("Group by").select_option("date")
    expect(page.locator(".groups h2")).to_have_text(["pinned", "Today"])
    page.locator(kept).click()
    expect(page.locator(".pane .message.user")).to_have_count(1)
    page.get_by_label("Actions for this session").click()
    expect(page.locator(".menu").get_by_role("button", name="Pin", exact=True)).to_be_hidden()
    page.locator(".menu").get_by_role("button", name="Unpin").click()
    expect(page.locator(".groups h2")).to_have_text(["Today"])
    expect(page.locator(kept).get_by_label("pinned")).to_have_count(0)


def test_an_archived_session_is_out_of_the_way_and_comes_back(visit: Visit) -> None:
    page, other = visit(), visit()
    start_session(page, "default")
    say(page, "put me away")
    expect(page.locator(".message:not(.user) .body.rendered")).to_have_count(1)
    gone = row(page)
    expect(other.locator(gone)).to_have_count(1)
    menu(page, "Archive")
    expect(page.locator(gone)).to_have_count(0)
    expect(other.locator(gone)).to_have_count(0)
    page.get_by_label("Show", exact=True).select_option("archived")
    expect(page.locator(".session")).to_have_count(1)
    expect(page.locator(gone)).to_have_count(1)
    menu(page, "Unarchive")
    expect(page.locator(gone)).to_have_count(0)
    expect(page.locator(".groups")).to_contain_text("No session fits.")
    page.get_by_label("Show", exact=True).select_option("all")
    expect(page.locator(gone)).to_have_count(1)
    expect(other.locator(gone)).to_have_count(1)


def test_a_name_given_here_is_seen_elsewhere_and_may_be_taken_away(visit: Visit) -> None:
    page, other = visit(), visit()
    answers = iter(["A new name", ""])
    page.on("dialog", lambda asked: asked.accept(next(answers)))
    start_session(page, "default")
    say(page, "/do say nothing of note")
    named = row(page)
    menu(page, "Rename")
    expect(page.locator(named).locator(".name")).to_have_text("A new name")
    expect(other.locator(named).locator(".name")).to_have_text("A new name")
    menu(page, "Rename")
    expect(other.locator(named).locator(".name")).not_to_have_text("A new name")


def test_a_session_says_what_it_does_while_it_does_it(visit: Visit, shots: Path) -> None:
    page, other = visit(), visit()
    start_session(page, "default")
    live = row(page)
    say(page, "/do stream 3000 20")
    for each in (page, other):
        expect(each.locator(live).get_by_role("img", name="running")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    for each in (page, other):
        expect(each.locator(live).get_by_role("img", name="idle")).to_be_visible()
    say(page, "/do run touch this-waits")
    for each in (page, other):
        expect(each.locator(live).get_by_role("img", name="waits for you")).to_be_visible()
    other.get_by_label("Show", exact=True).select_option("waiting")
    expect(other.locator(".session")).to_have_count(1)
    other.get_by_label("Group by").select_option("state")
    expect(other.locator(".groups h2")).to_have_text(["waits for you"])
    page.screenshot(path=shots / "list.png")
    page.locator(".question").get_by_role("button", name="Deny").click()
    expect(other.locator(".session")).to_have_count(0)


def test_words_in_messages_are_found_in_every_profile_and_marked(visit: Visit) -> None:
    page = visit()
    for profile in ("default", "second"):
        start_session(page, profile)
        say(page, "an opening line")
        expect(page.locator(".message:not(.user) .body.rendered")).to_have_count(1)
        say(page, f"then the marmalade of {profile}")
        expect(page.locator(".message:not(.user) .body.rendered")).to_have_count(2)
        say(page, "and a last line")
        expect(page.locator(".message:not(.user) .body.rendered")).to_have_count(3)
    page.get_by_label("Search sessions").fill("marmalade")
    expect(page.locator(".hit")).to_have_count(2)
    expect(page.locator(".hit mark")).to_have_text(["marmalade", "marmalade"])
    assert sorted(page.locator(".hit .profile").all_inner_texts()) == ["default", "second"]
    page.locator(".hit", has_text="of second").click()
    expect(page.locator(".pane .banner .profile")).to_have_text("second")
    expect(page.locator(".pane .message.user")).to_contain_text(["an opening line", "marmalade of second"])
    page.get_by_label("Search sessions").fill("there is no such word anywhere")
    expect(page.locator(".groups")).to_contain_text("No session fits.")


@pytest.fixture
def lost(tmp_path: Path) -> Iterator[Server]:
    """A server after a crash that ended an execution."""
    before = serving(tmp_path, default="agent:\n  after_crash: unknown\n")
    client = before.connect()
    made = client.call("session.create", title="It was running", profile="default")
    client.call("prompt.submit", session_id=made["session_id"], input_id="one", text="/do stream 5000 20")
    client.until(lambda event: event["type"] == "message.delta")
    before.kill()
    client.close()
    after = Server(before.homes, before.log, {})
    yield after
    assert after.stop() == 0


def test_what_a_crash_ended_is_lost_until_somebody_says_so(browser: Browser, lost: Server) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(link(lost))
    page.get_by_label("Group by").select_option("state")
    expect(page.locator(".groups h2")).to_have_text(["lost"])
    page.get_by_label("Show", exact=True).select_option("lost")
    page.locator(".session").click()
    expect(page.locator(".queue")).to_contain_text("The server ended while this ran.")
    page.locator(".queue").get_by_role("button", name="Acknowledge").click()
    expect(page.locator(".session")).to_have_count(0)
    page.get_by_label("Show", exact=True).select_option("all")
    expect(page.locator(".session").get_by_role("img", name="idle")).to_be_visible()
    context.close()


DATES = """async () => {
  const {SessionList} = await import("/session_list.js");
  localStorage.setItem("hermes-ws.grouping", "date");
  const list = new SessionList({open() {}, filtered() {}, older() {}, search: async () => []});
  const noon = new Date().setHours(12, 0, 0, 0) / 1000;
  const row = (id, updated_at, pinned) => ({session_id: id, profile: "p", title: id, state: "idle", preview: "",
    updated_at, pinned, created_at: 1, revision: 1, source: "x", agent: "default", cwd: "/"});
  document.querySelector(".sessions").replaceWith(list.root);
  const days = [row("kept", noon - 9e6, true), row("new", noon), row("last night", noon - 86400)];
  list.set([...days, row("old", noon - 9e5)], false);
}"""


def test_sessions_are_grouped_by_their_days(visit: Visit) -> None:
    page = visit()
    expect(page.get_by_role("status").first).to_have_text("Connected")
    page.evaluate(DATES)
    expect(page.locator(".groups h2")).to_have_text(["pinned", "Today", "Yesterday", "Earlier"])
    expect(page.locator(".session .name")).to_have_text(["kept", "new", "last night", "old"])
