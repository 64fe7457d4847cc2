"""Thousands of sessions and long conversations: what the page holds stays bounded. Nothing here measures time."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.e2e.process import Server

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


def test_thousands_of_sessions_make_few_rows_however_far_one_scrolls(visit: Visit) -> None:
    page = visit()
    expect(page.get_by_role("status").first).to_have_text("Connected")
    page.evaluate(ROWS)
    expect(page.locator(".groups h2")).to_have_text(["p0", "p1", "p2"])
    assert page.locator(".session").count() < 100
    first = page.locator(".session").first
    first.focus()
    page.evaluate("rows[0].state = 'running'; list.set(rows, false)")
    expect(page.get_by_role("img", name="running").first).to_be_visible()
    expect(first).to_be_focused()
    most = page.evaluate(
        """async () => {
          const body = document.querySelector(".groups");
          let most = 0;
          for (let at = 0; at < body.scrollHeight; at += 700) {
            body.scrollTop = at;
            await new Promise(requestAnimationFrame);
            most = Math.max(most, document.querySelectorAll(".session").length);
            const seen = document.elementFromPoint(60, body.getBoundingClientRect().top + 60);
            if (!seen.closest(".session, h2")) return `nothing stands at ${at}`;
          }
          return most;
        }"""
    )
    assert isinstance(most, int), most
    assert most < 100
    expect(first).to_be_focused()
    expect(page.get_by_text("Session 4997", exact=True)).to_be_in_viewport()


def test_every_one_of_thousands_of_rows_is_reached_by_keys(visit: Visit) -> None:
    page = visit()
    expect(page.get_by_role("status").first).to_have_text("Connected")
    page.evaluate(ROWS)
    page.get_by_label("Search sessions").press("ArrowDown")
    focused = page.locator(".session:focus")
    expect(focused).to_have_attribute("data-session", "s0")
    page.keyboard.press("ArrowDown")
    expect(focused).to_have_attribute("data-session", "s3")
    page.keyboard.press("End")
    expect(focused).to_have_attribute("data-session", "s4997")
    expect(focused).to_be_in_viewport()
    page.keyboard.press("ArrowUp")
    expect(focused).to_have_attribute("data-session", "s4994")
    page.keyboard.press("PageUp")
    expect(focused).not_to_have_attribute("data-session", "s4994")
    expect(focused).to_be_in_viewport()
    assert page.locator(".session[tabindex='0']").count() == 1, "Tab goes past the list, not through it"
    page.keyboard.press("Home")
    expect(focused).to_have_attribute("data-session", "s0")
    assert focused.locator("xpath=..").get_attribute("aria-setsize") == "1667"


def test_a_change_in_a_long_list_reads_its_beginning_and_not_all_of_it(visit: Visit, server: Server) -> None:
    client = server.connect()
    made = [client.call("session.create", profile="second", title=f"Number {at}")["session_id"] for at in range(450)]
    page = visit()
    expect(page.get_by_role("status").first).to_have_text("Connected")
    asked: list[str] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: asked.append(str(frame))))
    page.reload()
    expect(page.get_by_role("status").first).to_have_text("Connected")
    # One that is far beyond what the list holds is found by its title.
    page.get_by_label("Search sessions").fill("number 0")
    last = page.locator(f"[data-session='{made[0]}']")
    while not last.count():
        before = page.locator(".groups").evaluate(
            "body => { body.scrollTop = body.scrollHeight; return body.scrollHeight; }"
        )
        page.wait_for_function(
            "before => document.querySelector('.groups').scrollHeight > before"
            f" || document.querySelector(\"[data-session='{made[0]}']\")",
            arg=before,
        )
    page.locator(".groups").evaluate("body => { body.scrollTop = body.scrollHeight; }")
    expect(last).to_be_visible()
    asked.clear()
    change = {"request_id": "a", "operation": "rename", "payload": {"title": "Another name"}}
    client.call("session.mutate", session_id=made[449], expected_revision=1, **change)
    page.locator(".groups").evaluate("body => { body.scrollTop = 0; }")
    expect(page.locator(".session .name", has_text="Another name")).to_be_visible()
    assert len([each for each in asked if "session.list" in each]) < 3
    change = {"request_id": "b", "operation": "rename", "payload": {"title": "The oldest"}}
    client.call("session.mutate", session_id=made[0], expected_revision=1, **change)
    page.get_by_label("Search sessions").fill("The oldest")
    expect(page.locator(".session .name")).to_have_text("The oldest")
    client.close()


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
    assert page.evaluate("rowsMade") < 200
