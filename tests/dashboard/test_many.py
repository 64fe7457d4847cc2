"""Thousands of sessions and long conversations: what the page holds stays bounded. Nothing here measures time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
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

UPWARDS = """async () => {
  const {Conversation} = await import("/conversation.js");
  const {Transcript} = await import("/transcript.js");
  const conversation = new Conversation("s", "p");
  const render = async () => null;
  const message = number => ({message_id: `m${number}`, role: number % 2 ? "assistant" : "user", content: [],
    text: `line ${number} `.repeat(1 + number % 40)});
  const messages = (from, to) => Array.from({length: to - from}, (_, at) => message(from + at));
  let first = 2900;
  const acts = {edit() {}, branch() {}, content: async () => new Blob(),
    earlier() { conversation.prepend({messages: messages(first - 100, first), more: first > 100}); first -= 100; }};
  const transcript = new Transcript(conversation, render, acts);
  document.querySelector("main").replaceChildren(transcript.scroller);
  transcript.scroller.style.height = "600px";
  conversation.begin({position: "fresh", messages: messages(2900, 3000), more_messages: true, execution: null,
    pending: [], revision: 1, cursor: "1:1", generation: 1});
  window.most = 0;
  const frame = () => new Promise(requestAnimationFrame);
  await frame();
  await frame();
  window.conversation = conversation;
  while (conversation.more) {
    transcript.scroller.scrollTop = 0;
    await frame();
    acts.earlier();
    await frame();
    await frame();
    window.most = Math.max(most, document.querySelectorAll(".item").length);
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
    expect(last).to_be_visible()
    page.get_by_label("Search sessions").fill("")
    expect(last).to_have_count(0)
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


def test_a_long_conversation_that_is_read_upwards_holds_few_rows_and_all_of_its_words(visit: Visit) -> None:
    page = visit()
    expect(page.get_by_role("status").first).to_have_text("Connected")
    page.evaluate(UPWARDS)
    assert page.evaluate("conversation.items.length") == 3000
    assert 100 < page.evaluate("most") < 1000
    scroller = page.locator(".transcript")
    for share in (0, 0.5, 1, 0.3):
        scroller.evaluate("(node, share) => { node.scrollTop = share * node.scrollHeight; }", share)
        # What stands in sight is there, wherever one looks, and the rows are in their order.
        page.wait_for_function(
            """() => {
              const {left, top, height} = document.querySelector(".transcript").getBoundingClientRect();
              const at = document.elementsFromPoint(left + 300, top + height / 2).find(each => each.matches(".leaf"));
              const rows = [...document.querySelectorAll(".item")].map(each => Number(each.dataset.id.slice(1)));
              const sorted = rows.every((each, index) => !index || rows[index - 1] < each);
              return at && at.children.length > 0 && sorted && rows.length < 1000;
            }"""
        )
    scroller.evaluate("node => { node.scrollTop = node.scrollHeight; }")
    expect(page.locator("[data-id=m2999] .body")).to_contain_text("line 2999")
    page.locator("[data-id=m2999]").scroll_into_view_if_needed()
    expect(page.locator("[data-id=m2999]")).to_be_in_viewport()


CODE = "".join(f"line {number} of some code\n" for number in range(1200))

LONG_LINE = "word " * 10_000


@pytest.mark.parametrize(
    ("text", "first", "least"),
    [
        ("# Head\n\nWords.\n\nMore.\n", "# Head\n\n", 3),
        ("- one\n\n- two\n\n  more of two\n\nAfter.\n", "- one\n\n- two\n\n  more of two\n\n", 2),
        ("1. one\n\n2. two\n", "1. one\n\n2. two\n", 1),
        ("Look:\n\n```py\na = 1\n\n\nb = 2\n```\n\nAfter.\n", "Look:\n\n", 3),
        ("~~~\n```\n\nstill code\n~~~\n\nAfter.\n", "~~~\n```\n\nstill code\n~~~\n\n", 2),
        (f"```\n{CODE}```\n", None, 3),
        (LONG_LINE, None, 6),
        ("\U0001f600" * 9000, None, 2),
        ("no end", "no end", 1),
        ("", None, 0),
    ],
)
@pytest.mark.parametrize("step", [1, 7, 5000])
def test_a_text_that_grows_is_cut_where_nothing_is_torn(
    visit: Visit, text: str, first: str | None, least: int, step: int
) -> None:
    """All of it is in the blocks, and each is rendered as it would be within the whole: code goes on as code."""
    page = visit(signed_in=False)
    found = page.evaluate(
        """async ([text, step]) => { const {Blocks} = await import("/blocks.js");
        const blocks = new Blocks();
        const found = [];
        for (let at = 0; at < text.length; at += step) found.push(...blocks.add(text.slice(at, at + step)));
        return [...found, ...blocks.end()]; }""",
        [text, step],
    )
    assert "".join(each["plain"] for each in found) == text
    assert len(found) >= least
    assert all(len(each["plain"]) <= 8192 + 30 for each in found)
    if first is not None:
        assert found[0]["plain"] == first
    for each in found:
        assert each["source"].count("```") % 2 == 0 or text.startswith("~~~")
        assert each["plain"].encode("utf-16", "surrogatepass").decode("utf-16") == each["plain"]
