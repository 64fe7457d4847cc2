"""The network goes away and comes back; several tabs; one profile's words and another's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.dashboard.conftest import link
from tests.dashboard.proxy import Network
from tests.dashboard.test_stories import say, start_session
from tests.e2e.conftest import two_homes
from tests.e2e.process import Server

Visit = Callable[..., Page]


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    network = Network()
    yield network
    network.end()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, network: Network) -> Iterator[Server]:
    """A server that can be reached under the network's address as well."""
    place = tmp_path_factory.mktemp("network")
    homes = two_homes(place / "homes")
    with (homes / "default" / "config.yaml").open("a") as config:
        config.write(f'server:\n  hosts: ["127.0.0.1:{network.port}"]\n')
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    server = Server(homes, place / "server.log", environment)
    network.lead_to(int(server.url.split(":")[2].split("/")[0]))
    yield server
    assert server.stop() == 0


def through(network: Network, server: Server, visit: Visit) -> Page:
    """The page, reached through the network."""
    page = visit(signed_in=False)
    page.goto("about:blank")
    page.goto(f"http://127.0.0.1:{network.port}/#" + link(server).split("#", maxsplit=1)[1])
    expect(page.get_by_role("status").first).to_have_text("Connected")
    return page


def test_what_happened_while_the_network_was_cut_is_there_when_it_is_back(
    network: Network, server: Server, visit: Visit
) -> None:
    """The execution goes on without the page; a question asked meanwhile waits in the inbox; nothing is shown twice."""
    page = through(network, server, visit)
    start_session(page, "second")
    session = page.locator(".pane").get_attribute("data-session")
    say(page, "/do say before\n/do stream 40 20\n/do say in between\n/do run touch asked-meanwhile")
    expect(page.locator(".message.writing .body")).to_contain_text("before")
    page.locator(".pane textarea").fill("half a thought")
    network.cut()
    expect(page.locator("body")).to_have_attribute("data-connection", "offline")
    client = server.connect()
    client.call("session.resume", session_id=session, after="1:0")
    client.question()
    network.restore()
    expect(page.locator("body")).to_have_attribute("data-connection", "connected")
    expect(page.locator(".question")).to_have_count(1)
    expect(page.locator(".message:not(.user) .body.rendered")).to_contain_text("in between")
    expect(page.locator(".message.user")).to_have_count(1)
    expect(page.locator(".message:not(.user)")).to_have_count(1)
    expect(page.locator(".pane textarea")).to_have_value("half a thought")
    page.locator(".question").get_by_role("button", name="Deny").click()
    expect(page.locator(".question")).to_have_count(0)
    client.close()


def test_a_prompt_sent_into_a_dead_network_is_admitted_once(network: Network, server: Server, visit: Visit) -> None:
    """The bytes go nowhere and no error comes; what was written stays, and sending it again is the same message."""
    page = through(network, server, visit)
    start_session(page, "default")
    network.silence()
    say(page, "said once")
    page.evaluate("dispatchEvent(new Event('online'))")
    expect(page.locator("body")).to_have_attribute("data-connection", "offline")
    expect(page.locator(".pane textarea")).to_have_value("said once")
    network.restore()
    expect(page.locator("body")).to_have_attribute("data-connection", "connected")
    page.locator(".pane textarea").press("Enter")
    expect(page.locator(".message:not(.user) .body.rendered")).to_be_visible()
    expect(page.locator(".message.user")).to_have_count(1)
    expect(page.locator(".pane textarea")).to_have_value("")


def test_two_tabs_show_the_same_session_and_share_its_draft(visit: Visit) -> None:
    first = visit()
    start_session(first, "default")
    say(first, "a word for both tabs")
    expect(first.locator(".message:not(.user) .body.rendered")).to_be_visible()
    session = first.locator(".pane").get_attribute("data-session")
    second = first.context.new_page()
    second.goto(first.url)
    second.locator(f"[data-session='{session}']").click()
    expect(second.locator(".message.user")).to_contain_text("a word for both tabs")
    first.locator(".pane textarea").fill("begun here")
    expect(second.locator(".pane textarea")).to_have_value("begun here")
    second.locator(".pane textarea").press("Enter")
    for page in (first, second):
        expect(page.locator(".message.user")).to_have_count(2)
        expect(page.locator(".message.user").last).to_contain_text("begun here")
        expect(page.locator(".pane textarea")).to_have_value("")


def test_a_switch_of_profile_cannot_send_what_was_written_for_the_other(visit: Visit, server: Server) -> None:
    """Neither by changing the session under the hands, nor with a completion or history that comes late."""
    page = visit()
    start_session(page, "default")
    page.locator(".pane textarea").fill("meant for default alone")
    start_session(page, "second")
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowUp")
    expect(page.locator(".pane textarea")).to_have_value("")
    expect(page.locator(".pane")).to_have_attribute("aria-label", "second")
    session = page.locator(".pane").get_attribute("data-session")
    say(page, "meant for second")
    expect(page.locator(".message:not(.user) .body.rendered")).to_be_visible()
    client = server.connect()
    told = client.call("thread.messages", session_id=session)["messages"]
    client.close()
    assert [each["text"] for each in told if each["role"] == "user"] == ["meant for second"]


def test_side_by_side_each_box_says_for_whom_it_is_and_sends_there(visit: Visit) -> None:
    page = visit()
    start_session(page, "default")
    say(page, "left")
    expect(page.locator(".message:not(.user) .body.rendered")).to_be_visible()
    left = page.locator(".pane").get_attribute("data-session")
    start_session(page, "second")
    page.locator(f".session[data-session='{left}']").click(modifiers=["Control"])
    expect(page.locator(".pane")).to_have_count(2)
    page.get_by_label("Message in default").fill("for default")
    page.get_by_label("Message in second").fill("for second")
    page.get_by_label("Message in second").press("Enter")
    expect(page.locator(".pane[aria-label=second] .message.user .body")).to_have_text(["for second"])
    expect(page.get_by_label("Message in default")).to_have_value("for default")
    expect(page.locator(".pane[aria-label=default] .message.user")).to_have_count(1)


def test_a_terminal_goes_on_while_the_network_is_cut(network: Network, server: Server, visit: Visit) -> None:
    page = through(network, server, visit)
    start_session(page, "default")
    page.get_by_role("button", name="Terminal", exact=True).click()
    screen = page.locator(".screen")
    expect(screen).to_contain_text("#")
    page.keyboard.type("export KEPT=kept; echo up-$((1 + 1)); sleep 1; echo meanwhile-$((2 + 2))\n")
    expect(screen).to_contain_text("up-2")
    network.cut()
    expect(page.locator("body")).to_have_attribute("data-connection", "offline")
    network.restore()
    expect(page.locator("body")).to_have_attribute("data-connection", "connected")
    expect(screen).to_contain_text("meanwhile-4")
    page.locator(".screen").click()
    page.keyboard.type("echo $KEPT-$((3 + 3))\n")
    expect(screen).to_contain_text("kept-6")
    assert (screen.text_content() or "").count("up-2") == 1
