"""What happens in a conversation: what is queued, steered, summarised, read further up, and written by the hostile."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Dialog, Page, expect

from tests.dashboard.steps import serving
from tests.dashboard.test_stories import say, start_session
from tests.e2e.process import Server

Visit = Callable[..., Page]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Two profiles; one has another model to choose, and it costs something."""
    priced = {"prices": {"thinker": {"input": 100_000, "output": 100_000}}}
    config = json.dumps({"providers": {"loopback": priced}})
    server = serving(tmp_path_factory.mktemp("conversation"), default=config, second="")
    yield server
    assert server.stop() == 0


def answered(page: Page, number: int) -> None:
    expect(page.locator(".message:not(.user) .body.rendered")).to_have_count(number)
    expect(page.locator(".pane .state")).to_have_text("")


def test_what_is_said_meanwhile_is_queued_withdrawn_or_steers(visit: Visit) -> None:
    page = visit()
    start_session(page, "default")
    say(page, "/do stream 100000 20")
    expect(page.get_by_role("button", name="Queue")).to_be_visible()
    say(page, "the first that waits")
    say(page, "the second that waits")
    queue = page.locator(".pane .queue li")
    expect(queue).to_have_count(2)
    queue.first.get_by_role("button", name="Withdraw").click()
    expect(queue).to_have_text(["the second that waits Withdraw"])
    box = page.locator(".pane > .composer textarea")
    box.fill("a word in between")
    page.get_by_role("button", name="Steer").click()
    expect(box).to_have_value("")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".note", has_text="Interrupted")).to_have_count(1)
    expect(page.locator(".message.user", has_text="the second that waits")).to_have_count(1)
    expect(page.locator(".message.user", has_text="the first that waits")).to_have_count(0)
    expect(queue).to_have_count(0)


def test_a_word_in_between_reaches_the_agent(visit: Visit) -> None:
    page = visit()
    start_session(page, "default")
    say(page, "/do wait 2\n/do tool todo {}")
    page.locator(".pane > .composer textarea").fill("/do say it was heard")
    page.get_by_role("button", name="Steer").click()
    expect(page.locator(".message:not(.user)", has_text="it was heard")).to_have_count(1)


def test_a_model_is_chosen_for_the_session_and_its_cost_is_shown(visit: Visit) -> None:
    page = visit()
    start_session(page, "default")
    page.get_by_label("Model", exact=True).click()
    page.get_by_label("Model, from the next turn on").select_option(label="thinker")
    expect(page.locator(".model > summary")).to_contain_text("thinker")
    page.get_by_label("Model", exact=True).click()
    page.locator(".another summary").click()
    page.get_by_label("Provider").select_option("loopback")
    page.get_by_label("Name of the model").fill("thinker")
    page.get_by_role("button", name="Use it").click()
    expect(page.get_by_label("Name of the model")).to_be_hidden()
    say(page, "count the cost of this")
    answered(page, 1)
    expect(page.locator(".meter")).to_contain_text("$")
    start_session(page, "default")
    expect(page.locator(".model > summary")).to_have_text("loopback")


def test_older_messages_are_summarised_for_the_model_and_stay_on_the_page(visit: Visit) -> None:
    page = visit()
    start_session(page, "second")
    for number in range(1, 7):
        say(page, f"point number {number}")
        answered(page, number)
    page.get_by_label("Actions for this session").click()
    page.get_by_role("button", name="Summarise older messages").click()
    note = page.locator(".note", has_text="were summarised")
    expect(note).to_contain_text("The user said: point number 1")
    expect(page.locator(".message.user")).to_have_count(6)
    say(page, "and one more")
    answered(page, 7)


def test_nothing_is_taken_back_without_a_yes(visit: Visit) -> None:
    page = visit()
    asked: list[str] = []

    def refuse(dialog: Dialog) -> None:
        asked.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", refuse)
    start_session(page, "second")
    say(page, "this stays")
    answered(page, 1)
    page.locator(".message.user").hover()
    page.get_by_role("button", name="Edit from here").click()
    page.get_by_label("Actions for this session").click()
    page.get_by_role("button", name="Answer again").click()
    page.get_by_label("Actions for this session").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    say(page, "and so does this")
    answered(page, 2)
    assert len(asked) == 3
    expect(page.locator(".message.user .body")).to_have_text(["this stays", "and so does this"])


def test_reasoning_is_folded_and_code_is_copied(visit: Visit) -> None:
    page = visit(permissions=["clipboard-read", "clipboard-write"])
    start_session(page, "default")
    say(page, "/do think first this, then that\n/do say ```python\n/do say print('copied')\n/do say ```")
    answered(page, 1)
    reasoning = page.locator(".reasoning")
    expect(reasoning.locator("pre")).to_be_hidden()
    reasoning.locator("summary").click()
    expect(reasoning.locator("pre")).to_have_text("first this, then that")
    code = page.locator(".message pre")
    expect(code.locator("span[class]").first).to_be_visible()
    code.hover()
    code.get_by_role("button", name="Copy").click()
    expect(code.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "print('copied')\n"


AT_END = "node => node.scrollHeight - node.scrollTop - node.clientHeight < 3"


def until(page: Page, holds: Callable[[], bool]) -> None:
    """Look again and again. The page's policy forbids to do that in it."""
    for _ in range(400):
        if holds():
            return
        page.wait_for_timeout(50)
    raise AssertionError("it does not come about")


def grown(page: Page, height: int) -> None:
    until(page, lambda: page.locator(".transcript").evaluate("node => node.scrollHeight") > height)


def test_who_reads_further_up_is_not_moved_and_who_reads_along_stays_at_the_end(visit: Visit) -> None:
    page = visit(viewport={"width": 1000, "height": 600})
    start_session(page, "second")
    say(
        page, "\n".join(f"/do say paragraph {number} of the first answer, for the length of it" for number in range(80))
    )
    answered(page, 1)
    scroller = page.locator(".transcript")
    say(page, "/do stream 100000 5")
    expect(page.locator(".message.writing")).to_have_count(1)
    for _ in range(3):
        grown(page, scroller.evaluate("node => node.scrollHeight"))
        until(page, lambda: bool(scroller.evaluate(AT_END)))
    scroller.hover()
    page.mouse.wheel(0, -1_000_000)
    until(page, lambda: scroller.evaluate("node => node.scrollTop") == 0)
    # Its row is out of sight and keeps its height; its text grows all the same.
    body = page.locator(".message.writing .body")
    written = len(body.text_content() or "")
    until(page, lambda: len(body.text_content() or "") > written + 500)
    assert scroller.evaluate("node => node.scrollTop") == 0
    page.mouse.wheel(0, 10_000_000)
    until(page, lambda: bool(scroller.evaluate(AT_END)))
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".pane .state")).to_have_text("")


def test_the_output_of_a_running_command_is_there_before_its_end(visit: Visit) -> None:
    page = visit()
    start_session(page, "default")
    say(page, "/do run echo begun; until [ -e go-on ]; do sleep 0.1; done; echo ended")
    page.locator(".question").get_by_role("button", name="Allow once").click()
    output = page.locator(".tool .output")
    expect(output).to_have_text("begun\n")
    expect(page.locator(".tool .dot.running")).to_have_count(1)
    page.get_by_role("button", name="Terminal", exact=True).click()
    expect(page.locator(".screen")).to_contain_text("#")
    page.keyboard.type("touch go-on\n")
    expect(output).to_contain_text("ended")
    expect(page.locator(".tool .dot.done")).to_have_count(1)


HOSTILE = (
    "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    "<style>*{display:none}</style>"
)


def test_the_hostile_run_nothing_wherever_they_write(visit: Visit, server: Server) -> None:
    """In a title, a question, a tool's name, its arguments and its output, a file's name, a note, reasoning."""
    page = visit()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    client = server.connect(server_requests=False)
    session = client.call("session.create", profile="default", title=HOSTILE[:100])["session_id"]
    client.close()
    page.locator(f".session[data-session='{session}']").click()
    expect(page.locator(".banner h1")).to_contain_text("<img src=x")
    steps = [
        f"/do think {HOSTILE}",
        f"/do tool {HOSTILE.replace(' ', '')} {json.dumps({HOSTILE: HOSTILE})}",
        f"/do tool write_file {json.dumps({'path': 'a<b>.txt', 'content': HOSTILE})}",
        f"/do tool read_file {json.dumps({'path': 'a<b>.txt'})}",
    ]
    say(page, "\n".join(steps))
    expect(page.locator(".tool .dot.done, .tool .dot.failed")).to_have_count(3)
    expect(page.locator(".pane .state")).to_have_text("")
    for each in page.locator(".tool summary, .reasoning summary, .changes > summary").all():
        if each.is_visible() and not each.evaluate("node => node.parentElement.open"):
            each.click()
    say(page, f"/do ask {HOSTILE}")
    question = page.locator(".question")
    expect(question).to_contain_text("<script>")
    question.get_by_role("button", name="Skip").click()
    say(page, f"/do fail {HOSTILE}")
    expect(page.locator(".pane .state")).to_have_text("")
    made = page.locator(":is(.pane, .inbox, .side) :is(script, style, iframe, object, embed, img[src='x'], [onerror])")
    assert made.count() == 0
    assert "owned" not in page.title()
    origin = server.url.replace("ws://", "http://").removesuffix("/ws")
    assert [url for url in asked if not url.startswith((origin, "blob:", "data:"))] == []


@pytest.mark.parametrize("flood", ["one line", "many lines", "colours", "turned around"])
def test_floods_of_output_leave_the_page_in_order(visit: Visit, flood: str) -> None:
    page = visit(viewport={"width": 1200, "height": 700})
    start_session(page, "second")
    program = {
        "one line": "head -c 3000000 /dev/zero | tr '\\\\0' x",
        "many lines": "yes 'a line' | head -n 300000",
        "colours": "for i in $(seq 3000); do printf '\\\\033[3%dm%d\\\\033[0m' $((i % 8)) $i; done",
        "turned around": "for i in $(seq 500); do printf '\\\\342\\\\200\\\\256 abc \\\\342\\\\201\\\\246'; done",
    }[flood]
    say(page, f"/do run {program}".replace("\\\\", "\\"))
    page.locator(".question").get_by_role("button", name="Allow once").click()
    expect(page.locator(".tool .dot:is(.done, .failed)")).to_have_count(1)
    expect(page.locator(".pane .state")).to_have_text("")
    output = page.locator(".tool .output")
    assert len(output.text_content() or "") < 20_000
    assert "\u202e" not in (output.text_content() or "")
    if page.get_by_role("button", name="Show all of it").is_visible():
        page.get_by_role("button", name="Show all of it").click()
        expect(page.get_by_role("button", name="Show all of it")).to_be_hidden()
        assert len(output.text_content() or "") <= 400_100
    assert page.evaluate("document.documentElement.scrollWidth") <= 1200
    say(page, "still here")
    expect(page.locator(".message.user", has_text="still here")).to_have_count(1)
