"""What tools did, as a person would want to read it: differences, colours, long outputs, files put back."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.dashboard.test_stories import say, start_session

Visit = Callable[..., Page]

BEFORE = "".join(f"line {number}\n" for number in range(1, 31))
AFTER = BEFORE.replace("line 10\n", "line ten\nline ten and a half\n").replace("line 20\n", "")


def use(page: Page, tool: str, **arguments: object) -> None:
    done = page.locator(".tool .dot.done").count()
    say(page, f"/do tool {tool} {json.dumps(arguments)}")
    expect(page.locator(".tool .dot.done")).to_have_count(done + 1)
    expect(page.locator(".pane .state")).to_have_text("")


def test_an_edit_is_shown_as_what_is_different(visit: Visit, shots: Path) -> None:
    page = visit(viewport={"width": 1400, "height": 900})
    start_session(page, "default")
    use(page, "write_file", path="notes.txt", content=BEFORE)
    written = page.locator(".tool").last.locator(".diff")
    expect(written.locator("figcaption")).to_contain_text("notes.txt +30 −0")
    use(page, "write_file", path="notes.txt", content=AFTER)
    replaced = page.locator(".tool").last.locator(".diff")
    expect(replaced.locator("figcaption")).to_contain_text("notes.txt +2 −2")
    expect(replaced.locator("del")).to_have_text(["-line 10\n", "-line 20\n"])
    expect(replaced.locator("ins")).to_have_text(["+line ten\n", "+line ten and a half\n"])
    use(page, "write_file", path="notes.txt", content=BEFORE)
    edits = [{"old": "line 9\nline 10\n", "new": "line 9\nline ten\n"}, {"old": "line 20\n", "new": ""}]
    use(page, "patch", path="notes.txt", edits=edits)
    first, second = page.locator(".tool").last.locator(".diff").all()
    expect(first.locator("del")).to_have_text(["-line 10\n"])
    expect(first.locator("ins")).to_have_text(["+line ten\n"])
    expect(second.locator("figcaption")).to_contain_text("+0 −1")
    page.screenshot(path=shots / "diff.png")
    page.reload()
    page.locator(".session").first.click()
    expect(page.locator(".tool")).to_have_count(4)
    page.locator(".tool summary").last.click()
    expect(page.locator(".tool").last.locator("ins")).to_have_text(["+line ten\n"])
    page.locator(".tool summary").nth(1).click()
    expect(page.locator(".tool").nth(1).locator("ins")).to_have_text(["+line ten\n", "+line ten and a half\n"])


def test_changed_files_are_listed_compared_and_put_back(visit: Visit, shots: Path) -> None:
    page = visit(viewport={"width": 1400, "height": 900})
    page.on("dialog", lambda dialog: dialog.accept())
    start_session(page, "second")
    panel = page.locator(".pane .changes")
    expect(panel).to_be_hidden()
    use(page, "write_file", path="kept.txt", content=BEFORE)
    use(page, "write_file", path="kept.txt", content=AFTER)
    expect(panel.locator("> summary")).to_contain_text("Files changed 1")
    panel.locator("> summary").click()
    latest = panel.locator("[data-checkpoint]").first
    latest.locator("summary").click()
    expect(latest.locator("figcaption")).to_contain_text("kept.txt +2 −2")
    expect(latest.locator("ins")).to_have_text(["+line ten\n", "+line ten and a half\n"])
    page.screenshot(path=shots / "changes.png")
    latest.get_by_role("button", name="Put the files back").click()
    expect(panel.get_by_role("status")).to_contain_text("kept.txt")
    expect(latest).to_contain_text("kept.txt: +0 -0")
    use(page, "read_file", path="kept.txt")
    expect(page.locator(".tool .output").last).to_contain_text("line 20")


def test_a_command_keeps_its_colours_and_a_long_output_is_there_in_full(visit: Visit) -> None:
    page = visit()
    start_session(page, "default")
    say(page, r"/do run printf '\e[31mred\e[0m plain \e]0;title\a\e[2Kend\n50%%\r100%%\n'; seq 30000")
    page.locator(".question").get_by_role("button", name="Allow once").click()
    expect(page.locator(".tool .dot.done")).to_have_count(1)
    output = page.locator(".tool .output")
    expect(output).to_contain_text("red plain end\n100%\n1\n2\n")
    assert "30000" not in (output.text_content() or "")[:4000]
    page.get_by_role("button", name="Show all of it").click()
    expect(output).to_contain_text("\n15000\n15001\n")
    expect(output.locator(".fg-1")).to_have_text("red")
    expect(output).to_contain_text("30000")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (BEFORE, AFTER),
        ("", "new\n"),
        ("gone\n", ""),
        ("a\nb\nc\n", "c\nb\na\n"),
        ("-- sql\n++ more\n", "-- other\n++ more\n@@ -1 +1 @@\n"),
        ("same\n", "same\n"),
        ("no end", "no end\n"),
    ],
)
def test_differences_tell_the_whole_of_both_sides(visit: Visit, before: str, after: str) -> None:
    """What is not gone, in order, is the one side, and what is not new is the other; however it is found."""
    page = visit()
    told = difflib.unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), "a/f", "b/f", n=1000)
    # As the server says that a last line has no end.
    unified = "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in told)
    own, read = page.evaluate(
        """async ([before, after, unified]) => { const {differences, parsed} = await import("/diff.js");
        return [differences(before, after), parsed(unified)[0]?.lines ?? []]; }""",
        [before, after, unified],
    )
    for lines in (own, read):
        old = [each["text"] for each in lines if each["kind"] in ("same", "gone")]
        new = [each["text"] for each in lines if each["kind"] in ("same", "new")]
        if all(each["kind"] != "skip" for each in lines) and lines:
            assert (old, new) == (before.splitlines(), after.splitlines())
    changed = [each["text"] for each in own if each["kind"] in ("gone", "new")]
    assert bool(changed) == (before.splitlines() != after.splitlines())
