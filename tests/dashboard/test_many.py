"""Thousands of sessions and long conversations: what the page holds stays bounded. Nothing here measures time."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

Visit = Callable[..., Page]

ROWS = """async () => {
  const {SessionList} = await import("/session_list.js");
  window.list = new SessionList({open() {}, filtered() {}, older() {}, search: async () => []});
  window.rows = Array.from({length: 5000}, (_, number) => ({
    session_id: `s${number}`, profile: `p${number % 3}`, title: `Session ${number}`, state: "idle", preview: "",
    updated_at: 1e9 - number, created_at: 1e9, revision: 1, source: "x", agent: "default", cwd: "/"}));
  const side = document.querySelector(".sessions");
  side.replaceWith(list.root);
  list.set(rows, false);
}"""

LONG = """async () => {
  const {Conversation} = await import("/conversation.js");
  const {Transcript} = await import("/transcript.js");
  const conversation = new Conversation("s", "p");
  const acts = {edit() {}, branch() {}, earlier() {}, content: async () => new Blob()};
  const transcript = new Transcript(conversation, async () => null, acts);
  document.querySelector("main").replaceChildren(transcript.scroller);
  window.conversation = conversation;
  for (let number = 0; number < 10000; number++) {
    const payload = {message_id: `m${number}`, role: number % 2 ? "assistant" : "user", text: `line ${number}`};
    conversation.apply({type: "message.complete", payload, cursor: `1:${number + 1}`});
    if (number % 1000 === 0) await new Promise(requestAnimationFrame);
  }
}"""

PIECES = """async () => {
  const payload = {message_id: "live", role: "assistant"};
  conversation.apply({type: "message.start", payload});
  window.rowsMade = 0;
  const made = new MutationObserver(seen => { for (const each of seen) window.rowsMade += each.addedNodes.length; });
  made.observe(document.querySelector(".items"), {childList: true, subtree: true});
  for (let number = 0; number < 100000; number++) {
    conversation.apply({type: "message.delta", payload: {message_id: "live", offset: number * 5, text: "word "}});
    if (number % 20000 === 0) await new Promise(requestAnimationFrame);
  }
}"""


def test_thousands_of_sessions_make_few_rows_and_the_rest_as_one_scrolls(visit: Visit) -> None:
    page = visit()
    expect(page.get_by_role("status").first).to_have_text("Connected")
    page.evaluate(ROWS)
    expect(page.locator(".groups h2")).to_have_text(["p0", "p1", "p2"])
    assert page.locator(".session").count() < 500
    first = page.locator(".session").first
    first.focus()
    page.evaluate("rows[0].state = 'running'; list.set(rows, false)")
    expect(page.get_by_role("img", name="running").first).to_be_visible()
    expect(first).to_be_focused()
    before = page.locator(".session").count()
    page.locator(".older:visible").last.scroll_into_view_if_needed()
    expect(page.locator(".session")).not_to_have_count(before)


def test_a_long_conversation_holds_a_bounded_page(visit: Visit) -> None:
    page = visit()
    expect(page.get_by_role("status").first).to_have_text("Connected")
    page.evaluate(LONG)
    expect(page.get_by_text("line 9999", exact=True)).to_be_visible()
    assert page.locator(".item").count() <= 500
    expect(page.get_by_role("button", name="Show earlier messages")).to_have_count(1)
    page.evaluate(PIECES)
    body = page.locator(".item").last.locator(".body")
    expect(body).to_have_js_property("textContent.length", 500_000)
    assert page.evaluate("rowsMade") < 20
