"""What a person does on the page, in a real browser: each test is one story."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.dashboard.conftest import link
from tests.e2e.process import Server

Visit = Callable[..., Page]


def start_session(page: Page, profile: str) -> None:
    page.get_by_label("New session in").select_option(profile)
    page.get_by_role("button", name="New session").click()
    expect(page.locator(".pane .banner .profile").last).to_have_text(profile)


def say(page: Page, text: str) -> None:
    box = page.locator(".pane textarea").last
    box.fill(text)
    box.press("Enter")


def test_the_link_signs_in_once_and_leaves_no_trace_in_the_address(visit: Visit) -> None:
    page = visit()
    expect(page.get_by_role("status").first).to_have_text("Connected")
    assert "ticket" not in page.url
    page.reload()
    expect(page.get_by_role("status").first).to_have_text("Connected")


def test_without_a_link_the_page_says_how_to_get_one(visit: Visit) -> None:
    page = visit(signed_in=False)
    expect(page.get_by_text("hermes-ws open")).to_be_visible()


def test_a_link_that_was_used_is_refused(visit: Visit, server: Server) -> None:
    used = link(server)
    first = visit(signed_in=False)
    first.goto(used)
    first.reload()
    expect(first.get_by_role("status").first).to_have_text("Connected")
    second = visit(signed_in=False)
    second.goto("about:blank")
    second.goto(used)
    expect(second.get_by_text("was used already")).to_be_visible()


def test_a_conversation_streams_and_is_rendered_when_it_is_whole(visit: Visit, shots: Path) -> None:
    page = visit()
    start_session(page, "default")
    # What is finished of a long one is rendered while it goes on.
    say(page, f"/do say Some **bold** words {'and so on ' * 900}\n/do stream 5000 20")
    expect(page.locator(".message.writing strong")).to_have_text("bold")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".pane .state")).to_have_text("")
    say(page, "/do say # A heading\n/do say \n/do say Some `code` and **bold** words.")
    body = page.locator(".message:not(.user) .body").last
    expect(body.locator("strong")).to_have_text("bold")
    expect(page.locator(".pane .state")).to_have_text("")
    page.screenshot(path=shots / "conversation.png")


def test_an_approval_is_given_in_the_inbox_and_the_command_runs(visit: Visit, shots: Path) -> None:
    page = visit()
    start_session(page, "second")
    say(page, "/do run touch made-by-the-page && ls")
    question = page.locator(".question")
    expect(question).to_contain_text("touch made-by-the-page")
    expect(question.locator(".profile")).to_have_text("second")
    assert page.title().startswith("(1)")
    page.screenshot(path=shots / "inbox.png")
    question.get_by_role("button", name="Allow once").click()
    expect(page.locator(".question")).to_have_count(0)
    expect(page.locator(".tool .output").last).to_contain_text("made-by-the-page")
    assert not page.title().startswith("(")


def test_a_question_that_is_answered_elsewhere_goes_away(visit: Visit) -> None:
    first, second = visit(), visit()
    start_session(first, "default")
    say(first, "/do run touch elsewhere")
    expect(first.locator(".question")).to_have_count(1)
    expect(second.locator(".question")).to_have_count(1)
    second.locator(".question").get_by_role("button", name="Deny").click()
    expect(first.locator(".question")).to_have_count(0)


def test_the_agent_is_answered_in_its_own_words(visit: Visit) -> None:
    page = visit()
    start_session(page, "default")
    say(page, "/do ask Which colour?")
    question = page.locator(".question")
    question.get_by_label("Which colour?").fill("heliotrope")
    question.get_by_role("button", name="Answer").click()
    expect(page.locator(".pane")).to_contain_text("heliotrope")


def test_what_runs_can_be_stopped(visit: Visit) -> None:
    page = visit()
    start_session(page, "default")
    say(page, "/do stream 5000 20")
    stop = page.get_by_role("button", name="Stop")
    stop.click()
    expect(page.locator(".note")).to_contain_text("Interrupted")
    expect(stop).to_be_hidden()


def test_a_draft_stays_with_its_session_and_never_goes_to_another(visit: Visit) -> None:
    page = visit()
    start_session(page, "default")
    page.locator(".pane textarea").fill("half a thought")
    start_session(page, "second")
    expect(page.locator(".pane textarea")).to_have_value("")
    page.reload()
    page.locator(".groups section", has_text="default").locator(".session").first.click()
    expect(page.locator(".pane textarea")).to_have_value("half a thought")


def test_two_conversations_stand_side_by_side(visit: Visit) -> None:
    page = visit()
    start_session(page, "default")
    say(page, "/do say first pane")
    expect(page.locator(".pane")).to_contain_text("first pane")
    page.locator(".groups section", has_text="second").locator(".session").first.click(modifiers=["Control"])
    expect(page.locator(".pane")).to_have_count(2)
    expect(page.locator(".pane .banner .profile")).to_have_text(["default", "second"])


def test_sessions_are_searched_and_grouped(visit: Visit) -> None:
    page = visit()
    start_session(page, "default")
    say(page, "the word is chrysanthemum")
    expect(page.locator(".pane")).to_contain_text("chrysanthemum")
    page.get_by_label("Search sessions").fill("chrysanthemum")
    expect(page.locator(".session")).to_have_count(1)
    page.get_by_label("Group by").select_option("state")
    expect(page.locator(".groups h2")).to_have_text(["idle"])


@pytest.mark.parametrize(
    "hostile",
    [
        "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>",
        "[click](javascript:document.title='owned') ![x](http://192.0.2.1/steal)",
        "\u202edesrever \u001b[31mred " + "x" * 20_000,
    ],
)
def test_a_hostile_transcript_runs_nothing(visit: Visit, hostile: str) -> None:
    page = visit()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    start_session(page, "default")
    say(page, "/do say " + hostile)
    expect(page.locator(".message:not(.user) .body.rendered").last).to_be_visible()
    assert "owned" not in page.title()
    assert not [url for url in asked if "192.0.2.1" in url]
    assert page.locator(".message script, .message img[onerror], .message a[href^=javascript]").count() == 0


def test_everything_can_be_done_from_the_keyboard(visit: Visit) -> None:
    page = visit()
    start_session(page, "default")
    expect(page.locator(".pane textarea")).to_be_focused()
    page.keyboard.type("/do run touch by-keyboard")
    page.keyboard.press("Enter")
    expect(page.locator(".question")).to_have_count(1)
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement?.textContent") == "Deny":
            break
    page.keyboard.press("Enter")
    expect(page.locator(".question")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_looks_right_in_both_themes_and_on_a_phone(visit: Visit, shots: Path, scheme: str) -> None:
    page = visit(color_scheme=scheme, viewport={"width": 390, "height": 800})
    start_session(page, "second")
    say(page, "What can you do?")
    expect(page.locator(".message:not(.user) .body.rendered")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.screenshot(path=shots / f"phone-{scheme}.png")


def test_no_file_of_the_page_names_another_host() -> None:
    place = Path(__file__).parent.parent.parent / "hermes_ws" / "dashboard"
    for path in place.glob("*.*"):
        text = path.read_text("utf-8")
        assert re.findall(r"https?://(?!www\.w3\.org/2000/svg|127\.0\.0\.1:)[\w.]+", text) == [], path.name
    # The library names its ancestor in a comment; it speaks to nobody.
    for path in (place / "vendor").glob("*.js"):
        assert (
            re.findall(
                r"\b(?:fetch|XMLHttpRequest|WebSocket|EventSource|sendBeacon)\b|\bimport\(", path.read_text("utf-8")
            )
            == []
        )


def test_a_session_is_renamed_pinned_and_deleted(visit: Visit) -> None:
    page = visit()
    answers = iter(["The tidy name", None])
    page.on("dialog", lambda dialog: dialog.accept(next(answers, None) or ""))
    start_session(page, "second")
    say(page, "something to name")
    expect(page.locator(".message:not(.user) .body.rendered")).to_be_visible()
    page.get_by_label("Actions for this session").click()
    page.get_by_role("button", name="Rename").click()
    expect(page.locator(".banner h1")).to_have_text("The tidy name")
    expect(page.locator(".session .name", has_text="The tidy name")).to_be_visible()
    page.get_by_label("Actions for this session").click()
    page.get_by_role("button", name="Delete").click()
    expect(page.locator(".pane")).to_have_count(0)
    expect(page.locator(".session .name", has_text="The tidy name")).to_have_count(0)


def test_a_message_is_taken_back_for_editing(visit: Visit) -> None:
    page = visit()
    page.on("dialog", lambda dialog: dialog.accept())
    start_session(page, "default")
    say(page, "the first thought")
    expect(page.locator(".message:not(.user) .body.rendered")).to_have_count(1)
    say(page, "the second thought")
    expect(page.locator(".message:not(.user) .body.rendered")).to_have_count(2)
    page.locator(".message.user").last.hover()
    page.locator(".message.user").last.get_by_role("button", name="Edit from here").click()
    expect(page.locator(".pane textarea")).to_have_value("the second thought")
    expect(page.locator(".message.user")).to_have_count(1)
    expect(page.locator(".message.user")).to_contain_text("the first thought")


def test_a_branch_opens_beside(visit: Visit) -> None:
    page = visit()
    start_session(page, "default")
    say(page, "a fork in the road")
    expect(page.locator(".message:not(.user) .body.rendered")).to_have_count(1)
    page.locator(".message:not(.user)").last.hover()
    page.locator(".message:not(.user)").last.get_by_role("button", name="Branch from here").click()
    expect(page.locator(".pane")).to_have_count(2)
    expect(page.locator(".pane").last.locator(".message.user")).to_contain_text("a fork in the road")


def test_a_profile_is_looked_after_in_one_place(visit: Visit, shots: Path) -> None:
    page = visit()
    expect(page.get_by_role("status").first).to_have_text("Connected")
    page.get_by_role("button", name="Manage").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Profile to manage").select_option("second")
    expect(dialog).to_contain_text("Landlock")
    page.screenshot(path=shots / "manage.png")
    dialog.get_by_role("tab", name="Secrets").click()
    expect(dialog).to_contain_text("ONLY_B")
    assert "only-value" not in page.content()
    dialog.get_by_label("Name", exact=True).fill("FROM_PAGE")
    dialog.get_by_label("Value (never shown again)").fill("value-from-the-page-1")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.locator("[data-secret='FROM_PAGE']")).to_be_visible()
    for tab in ("Models", "Settings", "Skills", "Tool servers", "Processes", "Usage", "Tokens", "Server"):
        dialog.get_by_role("tab", name=tab, exact=True).click()
        expect(dialog.locator(".sheet > .problem")).to_have_text("")
        expect(dialog.get_by_role("tabpanel")).not_to_be_empty()
    dialog.get_by_label("Close").click()
    expect(dialog).to_have_count(0)
