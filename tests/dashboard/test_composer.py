"""Writing a message: what was said before, completion, commands, files."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.dashboard.test_stories import say, start_session

Visit = Callable[..., Page]


def picture() -> bytes:
    """A red square of one pixel, as PNG."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\0\xff\0\0")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


DROP = """(place, [name, type, data, kind]) => {
  const bytes = Uint8Array.from(atob(data), character => character.charCodeAt(0));
  const transfer = new DataTransfer();
  transfer.items.add(new File([bytes], name, {type}));
  const made = kind === "paste"
    ? new ClipboardEvent("paste", {clipboardData: transfer, bubbles: true, cancelable: true})
    : new DragEvent("drop", {dataTransfer: transfer, bubbles: true, cancelable: true});
  place.dispatchEvent(made);
}"""


def give(page: Page, kind: str, name: str, type: str, content: bytes) -> None:
    box = page.locator(".pane textarea")
    box.evaluate(DROP, [name, type, base64.b64encode(content).decode(), kind])


def test_what_was_said_comes_back_and_the_draft_after_it(visit: Visit) -> None:
    page = visit()
    start_session(page, "default")
    for number, words in enumerate(("the first", "the second"), 1):
        say(page, words)
        expect(page.locator(".message:not(.user) .body.rendered")).to_have_count(number)
    box = page.locator(".pane textarea")
    box.fill("a draft")
    box.press("Home")
    box.press("ArrowUp")
    expect(box).to_have_value("the second")
    box.press("ArrowUp")
    expect(box).to_have_value("the first")
    box.press("ArrowUp")
    expect(box).to_have_value("the first")
    box.press("ArrowDown")
    box.press("ArrowDown")
    expect(box).to_have_value("a draft")


def test_commands_are_completed_and_carried_out(visit: Visit) -> None:
    page = visit()
    start_session(page, "second")
    box = page.locator(".pane textarea")
    box.press_sequentially("/prof")
    expect(page.get_by_role("listbox")).to_contain_text("/profile")
    box.press("Tab")
    expect(box).to_have_value("/profile ")
    expect(page.get_by_role("listbox")).to_have_count(0)
    box.press("Enter")
    expect(page.locator(".note")).to_contain_text("second in")
    expect(box).to_have_value("")
    say(page, "/title A name by command")
    expect(page.locator(".banner h1")).to_have_text("A name by command")
    say(page, "/nonsense")
    expect(page.locator(".pane > .problem")).to_contain_text("There is no command /nonsense")
    expect(box).to_have_value("/nonsense")
    say(page, "//etc is a directory")
    expect(page.locator(".message.user .body")).to_have_text(["/etc is a directory"])


def test_paths_are_completed_as_the_session_sees_them(visit: Visit) -> None:
    page = visit()
    start_session(page, "default")
    say(page, "/do write heliotrope.txt purple")
    expect(page.locator(".tool .dot.done")).to_have_count(1)
    box = page.locator(".pane textarea")
    box.press_sequentially("look at @helio")
    expect(page.locator(".completions li")).to_contain_text("heliotrope.txt")
    box.press("ArrowDown")
    expect(page.locator(".completions [aria-selected=true]")).to_have_count(1)
    box.press("Enter")
    expect(box).to_have_value("look at @heliotrope.txt ")
    box.press_sequentially("@h")
    expect(page.get_by_role("listbox")).to_be_visible()
    box.press("Escape")
    expect(page.get_by_role("listbox")).to_have_count(0)


def test_a_picture_and_a_file_go_with_a_message(visit: Visit) -> None:
    page = visit()
    start_session(page, "default")
    give(page, "paste", "red.png", "image/png", picture())
    give(page, "drop", "notes.txt", "text/plain", b"n" * 700_000)
    give(page, "drop", "wrong.txt", "text/plain", b"not this one")
    expect(page.locator(".attachments .chip")).to_have_count(3)
    page.get_by_label("Remove wrong.txt").click()
    expect(page.locator(".attachments [role=status]")).to_have_count(0)
    say(page, "what is this?")
    user = page.locator(".message.user")
    expect(user.locator("img[alt='red.png']")).to_have_js_property("naturalWidth", 1)
    expect(user.locator(".file")).to_contain_text("notes.txt")
    expect(page.locator(".attachments .chip")).to_have_count(0)
    expect(page.locator(".pane .state")).to_have_text("")
    page.reload()
    page.locator(".session", has_text="what is this?").first.click()
    # Pictures are fetched when they come into sight.
    user.scroll_into_view_if_needed()
    expect(user.locator("img[alt='red.png']")).to_have_js_property("naturalWidth", 1)
    with page.expect_download() as saved:
        user.locator(".file").click()
    assert saved.value.suggested_filename == "notes.txt"
    assert len(saved.value.path().read_bytes()) == 700_000
