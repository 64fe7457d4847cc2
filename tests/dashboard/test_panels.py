"""The panels of the dialog that tell: what the kernel enforces, what was used, how the server is, and to whom."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.dashboard.steps import managing, serving
from tests.dashboard.test_stories import say, start_session
from tests.e2e.process import Server

Visit = Callable[..., Page]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    config = {"model": {"provider": "loopback", "price": {"input": 100_000, "output": 100_000}}}
    server = serving(tmp_path_factory.mktemp("panels"), default=json.dumps(config), second="")
    yield server
    assert server.stop() == 0


def test_what_the_kernel_enforces_is_told_as_the_server_knows_it(visit: Visit, server: Server) -> None:
    client = server.connect()
    told = client.call("profiles.describe", profile="second")
    client.close()
    page = visit()
    dialog = managing(page, "Profile", "second")
    found = told["confinement"]
    abi = found["landlock_abi"]
    expect(dialog.locator("tr", has_text="Files")).to_contain_text(f"Landlock {abi}" if abi else "not enforced")
    for layer, name in (("System calls", "seccomp"), ("Namespaces", "bubblewrap")):
        expect(dialog.locator("tr", has_text=layer)).to_contain_text(name if found[name] else "not enforced here")
    expect(dialog.locator("tr", has_text="Processes")).to_contain_text(str(told["terminal"]["processes"]))
    expect(dialog.locator("tr", has_text="Network")).to_contain_text("allowed")
    for note in found["notes"]:
        expect(dialog).to_contain_text(note)
    client = server.connect()
    client.call("config.set", profile="second", key="terminal.network", value="deny")
    client.close()
    managing(page, "Server")
    expect(managing(page, "Profile", "second").locator("tr", has_text="Network")).to_contain_text("none")


def test_usage_is_drawn_by_day_model_and_profile(visit: Visit, server: Server, shots: Path) -> None:
    page = visit()
    start_session(page, "default")
    say(page, "count what this takes")
    expect(page.locator(".message:not(.user) .body.rendered")).to_have_count(1)
    client = server.connect()
    told = client.call("insights.get", profile="default", days=30)
    client.close()
    dialog = managing(page, "Usage")
    expect(dialog.locator(".chart g")).to_have_count(30)
    figures = {
        row.locator("dt").text_content(): row.locator("dd").text_content()
        for row in dialog.locator(".figures > div").all()
    }
    assert figures["executions"] == f"{told['executions']:,}"
    assert figures["tokens in"] == f"{told['input_tokens']:,}"
    assert figures["cost"] == f"${told['cost_usd']:.2f}"
    assert float(dialog.locator(".chart g").last.locator("rect.in").get_attribute("height") or 0) > 0
    dialog.get_by_text("As a table").click()
    expect(dialog.locator("tbody tr")).to_have_count(len(told["by_day"]))
    bars = dialog.locator(".bars")
    expect(bars.first.locator("li", has_text="loopback")).to_contain_text(f"{told['by_model']['loopback']} ×")
    expect(bars.nth(1).locator(".name").filter(has_text="default")).to_have_count(1)
    page.screenshot(path=shots / "usage.png")
    dialog.get_by_role("combobox", name="Range").select_option(label="The last 7 days")
    expect(dialog.locator(".chart g")).to_have_count(7)


def test_the_server_tells_its_health_and_its_connections_as_they_are(visit: Visit, server: Server) -> None:
    page = visit()
    dialog = managing(page, "Server")
    connections = dialog.locator(".figures > div", has_text="Connections").locator("dd")
    expect(connections).to_have_text("1")
    more = [server.connect(), server.connect()]
    expect(connections).to_have_text("3")
    session = more[0].call("session.create", profile="second")["session_id"]
    rows = dialog.locator(".connections tbody tr")
    expect(rows).to_have_count(3)
    listening = rows.filter(has=page.locator(f"[title*='{session}']"))
    expect(listening).to_contain_text("WebSocket")
    expect(listening).to_contain_text("second")
    expect(rows.filter(has_text="dashboard")).not_to_have_count(0)
    for client in more:
        client.close()
    expect(connections).to_have_text("1")
    open_ones = dialog.locator("table:not(.connections) tbody tr")
    expect(open_ones.filter(has_text="default")).to_contain_text("open")


def test_a_panel_that_cannot_be_shown_says_why_and_tries_again(visit: Visit, server: Server) -> None:
    page = visit()
    dialog = managing(page, "Server")
    page.evaluate(
        """() => {
          const real = WebSocket.prototype.send;
          let once = true;
          WebSocket.prototype.send = function (data) {
            if (once && data.includes("memory.get")) {
              once = false;
              data = data.replace("memory.get", "memory.got");
            }
            return real.call(this, data);
          };
        }"""
    )
    dialog.get_by_role("tab", name="Memory").click()
    expect(dialog.locator(".sheet > .problem")).to_contain_text("memory.got")
    dialog.get_by_role("button", name="Try again").click()
    expect(dialog.get_by_label("What the agents have noted")).to_be_visible()
    expect(dialog.locator(".sheet > .problem")).to_have_text("")


def test_whoever_may_only_look_is_offered_nothing_else(visit: Visit, server: Server) -> None:
    client = server.connect()
    issued = client.call("ticket.issue", purpose="browser", rights=["observe"], profiles=["default"])
    client.close()
    page = visit(signed_in=False)
    page.goto("about:blank")
    page.goto(f"{server.url.replace('ws://', 'http://').removesuffix('/ws')}/#ticket={issued['ticket']}")
    dialog = managing(page, "Secrets")
    expect(dialog).to_contain_text("You may look at this, but not change it.")
    expect(dialog.locator("[data-secret='MY_KEY']")).to_be_visible()
    expect(dialog.get_by_role("button", name="Save", exact=True)).to_be_disabled()
    expect(dialog.get_by_label("Name", exact=True)).to_be_disabled()
    expect(dialog.get_by_role("tab", name="Tokens")).to_have_count(0)
    managing(page, "Settings")
    dialog.get_by_label("Find a setting").fill("max turns")
    expect(dialog.get_by_label("Max turns")).to_be_disabled()
    managing(page, "Usage")
    expect(dialog).not_to_contain_text("You may look at this")
