"""A terminal in the session's directory: programs of all kinds, several who look, and what is not theirs to do."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.dashboard.conftest import link
from tests.dashboard.test_stories import say, start_session
from tests.e2e.process import Server

Visit = Callable[..., Page]

VENDOR = Path(__file__).parent.parent.parent / "hermes_ws" / "dashboard" / "vendor"

PUBLISHED = {
    "xterm-headless.js": "b27576b6bef6610be97e55a959319baa8a6b1a4fae629d49926971a536428c7a",
    "xterm-unicode11.js": "37bb2d573c615661c875398be2a3497e02bd21d7202a5d1159f6ab70a8cfc2f2",
}
"""The files of @xterm/headless 6.0.0 and @xterm/addon-unicode11 0.9.0, as they were published (`lib*/*.mjs`)."""


def open_terminal(page: Page, profile: str = "default") -> None:
    start_session(page, profile)
    page.get_by_role("button", name="Terminal", exact=True).click()
    expect(page.locator(".terminal .keys")).to_be_focused()
    # The prompt is there: what is typed before it would be seen twice.
    expect(page.locator(".screen")).to_contain_text("#")


def run(page: Page, line: str) -> None:
    page.keyboard.type(line)
    page.keyboard.press("Enter")


def shows(page: Page, words: str) -> None:
    expect(page.locator(".screen")).to_contain_text(words)


def lacks(page: Page, words: str) -> None:
    expect(page.locator(".screen")).not_to_contain_text(words)


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_the_library_is_as_it_was_published_and_its_licence_is_with_it(name: str) -> None:
    assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == PUBLISHED[name]
    assert "The xterm.js authors" in (VENDOR / "LICENSE").read_text("utf-8")


def test_a_shell_runs_in_the_sessions_directory_in_colour(visit: Visit, shots: Path) -> None:
    page = visit(viewport={"width": 1400, "height": 900})
    start_session(page, "second")
    say(page, "/do write from-the-agent.txt words")
    expect(page.locator(".tool .dot.done")).to_have_count(1)
    page.get_by_role("button", name="Terminal", exact=True).click()
    shows(page, "#")
    run(page, "mkdir -p folder; ls --color=always; echo $ONLY_B; echo 'wide 日本 😀 end'")
    shows(page, "from-the-agent.txt")
    shows(page, "only-value-of-second")
    # `ls` makes directories bold and blue.
    expect(page.locator(".screen .row span.fg-12.is-bold", has_text="folder")).to_have_count(1)
    wide = page.locator(".screen .wide", has_text="日").last
    narrow = wide.evaluate("node => node.getBoundingClientRect().width")
    assert narrow == pytest.approx(
        page.evaluate("document.querySelector('.probe').getBoundingClientRect().width / 20"), 0.01
    )
    page.screenshot(path=shots / "terminal.png")


def test_programs_that_ask_and_programs_that_take_the_whole_screen(visit: Visit, shots: Path) -> None:
    page = visit(viewport={"width": 1400, "height": 900})
    open_terminal(page)
    run(page, "python3 -q")
    shows(page, ">>>")
    run(page, "print(6 * 7, 'from python')")
    shows(page, "42 from python")
    page.keyboard.press("Control+d")
    run(page, "seq 1000 | less")
    shows(page, "12")
    lacks(page, "from python")
    page.keyboard.press("End")
    page.keyboard.press("Shift+G")
    shows(page, "(END)")
    shows(page, "1000")
    page.keyboard.press("ArrowUp")
    lacks(page, "1000")
    page.screenshot(path=shots / "terminal-less.png")
    page.keyboard.press("q")
    shows(page, "42 from python")
    # Where the cursor is, is a question of the program; only who works in the terminal answers it.
    run(page, r"IFS='[;' read -p $'\e[6n' -sd R _ row column; echo it is at column $column.")
    shows(page, "it is at column 1.")


def test_control_c_interrupts_and_the_end_is_told(visit: Visit) -> None:
    page = visit()
    open_terminal(page)
    run(page, "sleep 1000; echo never")
    page.keyboard.press("Control+c")
    run(page, "echo after-$((1 + 1))")
    shows(page, "after-2")
    run(page, "exit 3")
    shows(page, "[ended with exit code 3]")
    page.get_by_label("End terminal").click()
    expect(page.locator(".terminals")).to_be_hidden()
    expect(page.locator(".pane textarea").first).to_be_focused()


def test_its_size_follows_the_window(visit: Visit) -> None:
    page = visit(viewport={"width": 1400, "height": 900})
    open_terminal(page)
    run(page, "trap 'stty size' WINCH; stty size")
    rows = page.locator(".screen .row")
    before = rows.count()
    page.set_viewport_size({"width": 1100, "height": 600})
    expect(rows).not_to_have_count(before)
    run(page, "echo size $(stty size).")
    columns = page.evaluate(
        """() => { const screen = document.querySelector(".screen"), style = getComputedStyle(screen);
        const room = screen.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
        return Math.floor(room * 40 / document.querySelector(".probe").getBoundingClientRect().width); }"""
    )
    shows(page, f"size {rows.count()} {columns}.")


def test_what_is_pasted_is_not_run_before_enter(visit: Visit) -> None:
    page = visit()
    open_terminal(page)
    page.locator(".terminal .keys").evaluate(
        """node => { const transfer = new DataTransfer();
        transfer.setData("text/plain", "echo one-$((0 + 1))\\necho two-$((1 + 1))\\u001b[201~");
        const pasted = {clipboardData: transfer, bubbles: true, cancelable: true};
        node.dispatchEvent(new ClipboardEvent("paste", pasted)); }"""
    )
    shows(page, "echo two-")
    lacks(page, "one-1")
    page.keyboard.press("Enter")
    shows(page, "one-1")
    shows(page, "two-2")


def same_height(first: Page, second: Page) -> None:
    """Both come to show as many rows; whoever turned to the terminal last decides how many."""
    for _ in range(200):
        rows = first.locator(".screen .row").count()
        if rows and second.locator(".screen .row").count() == rows:
            return
        first.wait_for_timeout(100)
    raise AssertionError("the two show different sizes")


def test_several_look_at_one_terminal_and_share_its_size(visit: Visit) -> None:
    first = visit(viewport={"width": 1400, "height": 900})
    open_terminal(first, "second")
    session = first.locator(".pane").get_attribute("data-session")
    run(first, "echo begun-$((2 * 3))")
    shows(first, "begun-6")
    second = visit(viewport={"width": 1000, "height": 700})
    second.locator(f".session[data-session='{session}']").click()
    second.get_by_role("button", name="Terminal").click()
    shows(second, "begun-6")
    expect(second.get_by_role("tab")).to_contain_text("2 viewers")
    run(second, "echo told-$((3 * 3)) $(stty size).")
    shows(first, "told-9")
    same_height(first, second)
    first.locator(".screen").click()
    same_height(first, second)
    first.on("dialog", lambda dialog: dialog.accept())
    first.get_by_label("End terminal").click()
    shows(second, "[ended ")


def test_it_goes_on_while_it_is_hidden_and_while_the_page_is_away(visit: Visit) -> None:
    page = visit()
    open_terminal(page)
    session = page.locator(".pane").get_attribute("data-session")
    run(page, "export KEPT=still-here")
    page.get_by_label("Hide the terminals; they go on").click()
    expect(page.locator(".terminals")).to_be_hidden()
    page.get_by_role("button", name="Terminal (1)").click()
    expect(page.locator(".terminal .keys")).to_be_focused()
    run(page, "echo $KEPT $KEPT")
    shows(page, "still-here still-here")
    page.reload()
    page.locator(f".session[data-session='{session}']").click()
    page.get_by_role("button", name="Terminal").click()
    shows(page, "still-here still-here")
    expect(page.locator(".terminal .keys")).to_be_focused()
    run(page, "echo again $KEPT")
    shows(page, "again still-here")


def test_the_keyboard_leaves_it_and_scrolls_in_it(visit: Visit) -> None:
    page = visit()
    open_terminal(page)
    run(page, "seq 500")
    shows(page, "500")
    for _ in range(60):
        page.keyboard.press("Shift+PageUp")
    expect(page.locator(".screen .row").first).to_contain_text("seq 500")
    page.keyboard.type("x")
    shows(page, "500")
    page.keyboard.press("Control+F6")
    expect(page.locator(".pane textarea").first).to_be_focused()


def test_what_a_program_writes_runs_nothing_and_turns_nothing_around(visit: Visit) -> None:
    """Titles, links, a clipboard that is to be filled, marks that turn text around, and a flood."""
    page = visit()
    page.on("dialog", lambda dialog: dialog.dismiss())
    open_terminal(page)
    run(page, r"printf '<img src=x onerror=alert(1)>\n\e]0;owned\a\e]52;c;b3duZWQ=\a'")
    run(page, r"printf '\e]8;;javascript:alert(1)\aclick\e]8;;\a\n'")
    shows(page, "<img src=x onerror=alert(1)>")
    run(page, r"printf 'safe \u202edesrever\u202c \u2066x\u2069\n'")
    shows(page, "safe desrever x")
    assert "owned" not in page.title()
    assert page.locator(".screen img, .screen a").count() == 0
    run(page, "yes flood | head -c 3000000; echo the-end-$((4 * 4))")
    shows(page, "the-end-16")
    run(page, "clear; echo still-$((5 * 5))")
    shows(page, "still-25")


def test_whoever_may_not_open_one_is_not_offered_it(visit: Visit, server: Server) -> None:
    client = server.connect(server_requests=False)
    session = client.call("session.create", profile="second", title="Looked at only")["session_id"]
    ticket = client.call("ticket.issue", purpose="browser", rights=["observe", "submit"])["ticket"]
    client.close()
    page = visit(signed_in=False)
    page.goto("about:blank")
    page.goto(link(server).split("#", maxsplit=1)[0] + f"#ticket={ticket}")
    page.locator(f".session[data-session='{session}']").click()
    expect(page.locator(".pane textarea")).to_be_visible()
    expect(page.locator(".banner h1")).to_have_text("Looked at only")
    expect(page.get_by_role("button", name="Terminal")).to_have_count(0)


KEYS = [
    ({"key": "ArrowUp"}, False, "\x1b[A"),
    ({"key": "ArrowUp"}, True, "\x1bOA"),
    ({"key": "ArrowLeft", "ctrlKey": True}, True, "\x1b[1;5D"),
    ({"key": "Home", "shiftKey": True}, False, "\x1b[1;2H"),
    ({"key": "Delete"}, False, "\x1b[3~"),
    ({"key": "PageUp", "altKey": True}, False, "\x1b[5;3~"),
    ({"key": "F1"}, False, "\x1bOP"),
    ({"key": "F12"}, False, "\x1b[24~"),
    ({"key": "Tab", "shiftKey": True}, False, "\x1b[Z"),
    ({"key": "Backspace"}, False, "\x7f"),
    ({"key": "Enter", "altKey": True}, False, "\x1b\r"),
    ({"key": "c", "ctrlKey": True}, False, "\x03"),
    ({"key": "[", "ctrlKey": True}, False, "\x1b"),
    ({"key": " ", "ctrlKey": True}, False, "\x00"),
    ({"key": "b", "altKey": True}, False, "\x1bb"),
    ({"key": "x", "ctrlKey": True, "altKey": True}, False, "\x1b\x18"),
    # Made with AltGr, which tells both keys: it is text.
    ({"key": "€", "ctrlKey": True, "altKey": True}, False, None),
    ({"key": "@", "ctrlKey": True, "altKey": True}, False, None),
    ({"key": "a"}, False, None),
    ({"key": "Dead"}, False, None),
    ({"key": "Shift", "shiftKey": True}, False, None),
    ({"key": "c", "metaKey": True}, False, None),
]


def test_keys_are_sent_as_xterm_sends_them(visit: Visit) -> None:
    page = visit()
    said = page.evaluate(
        """async cases => { const {sequence} = await import("/keys.js");
        const none = {ctrlKey: false, altKey: false, shiftKey: false, metaKey: false};
        return cases.map(([event, application]) => sequence({...none, ...event}, application)); }""",
        [[event, application] for event, application, _ in KEYS],
    )
    assert said == [wanted for _, _, wanted in KEYS]
