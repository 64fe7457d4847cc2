"""A profile and the server looked after in the dialog: each panel with something in it, and each button pressed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect
from websockets.exceptions import InvalidStatus

from tests.dashboard.steps import managing, serving
from tests.dashboard.test_stories import say, start_session
from tests.e2e.gateway_client import Client, Refused
from tests.e2e.process import Server

Visit = Callable[..., Page]

SKILL = "---\nname: tidy\ndescription: Puts things in order.\n---\nFirst look, then move.\n"

TOOLS = '''
from mcp.server import MCPServer

server = MCPServer("small")

@server.tool()
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return f"{a + b}"

server.run()
'''


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    place = tmp_path_factory.mktemp("manage")
    script = place / "tools.py"
    script.write_text(TOOLS)
    program = {"command": sys.executable, "args": ["-I", str(script)]}
    wrong = {"command": str(place / "no-such-program")}
    config = {
        "model": {"provider": "loopback", "price": {"input": 100_000, "output": 100_000}},
        "mcp_servers": {"small": program, "broken": wrong},
        "terminal": {"read": [str(script)]},
        "secrets": {"plain": ["MY_KEY"]},
    }
    server = serving(place, default=json.dumps(config), second="")
    skill = server.homes / "default" / "skills" / "tidy"
    (skill / "references").mkdir(parents=True)
    (skill / "SKILL.md").write_text(SKILL)
    (skill / "references" / "order.md").write_text("By size, then by colour.\n")
    yield server
    assert server.stop() == 0


def agree(page: Page) -> None:
    page.on("dialog", lambda asked: asked.accept())


def test_an_agent_is_written_used_and_deleted(visit: Visit, server: Server) -> None:
    page = visit()
    agree(page)
    dialog = managing(page, "Agents")
    dialog.get_by_label("Name", exact=True).fill("poet")
    dialog.get_by_label("What it is for").fill('Writes: short "lines"')
    dialog.get_by_label("Instructions").fill("Answer in verse.")
    dialog.get_by_role("button", name="Create").click()
    card = dialog.locator("[data-agent='poet']")
    expect(card).to_contain_text('Writes: short "lines"')
    card.locator("summary").click()
    box = card.get_by_label("Definition")
    expect(box).to_have_value('---\nname: "poet"\ndescription: "Writes: short \\"lines\\""\n---\nAnswer in verse.\n')
    box.fill("---\nname: poet\nmax_turns: none at all\n---\nAnswer.\n")
    card.get_by_role("button", name="Save poet").click()
    expect(card.locator(".wrong")).to_contain_text("max_turns")
    box.fill("---\nname: poet\ndescription: In verse.\nmax_turns: 3\n---\nAnswer.\n")
    card.get_by_role("button", name="Save poet").click()
    expect(card).to_contain_text("In verse.")
    assert (server.homes / "default" / "agents" / "poet.md").read_text().count("max_turns: 3") == 1
    dialog.get_by_label("Close").click()
    page.get_by_label("New session in").select_option("second")
    page.get_by_label("New session in").select_option("default")
    page.get_by_label("Agent of the new session").select_option("poet")
    page.get_by_role("button", name="New session").click()
    expect(page.locator(".model > summary")).to_contain_text("poet")
    card = managing(page, "Agents").locator("[data-agent='poet']")
    card.locator("summary").click()
    card.get_by_role("button", name="Delete poet").click()
    expect(card).to_have_count(0)
    assert not (server.homes / "default" / "agents" / "poet.md").exists()


def test_a_skill_is_read_with_its_files(visit: Visit) -> None:
    page = visit()
    card = managing(page, "Skills").locator("[data-skill='tidy']")
    expect(card).to_contain_text("Puts things in order.")
    card.locator("summary").click()
    expect(card.locator("pre")).to_contain_text("First look, then move.")
    card.get_by_role("button", name="references/order.md").click()
    expect(card.locator("pre")).to_have_text("By size, then by colour.\n")
    expect(managing(page, "Skills", "second")).to_contain_text("This profile has no skills.")


def test_a_tool_server_runs_says_what_is_wrong_and_is_restarted(visit: Visit, shots: Path) -> None:
    page = visit()
    start_session(page, "default")
    say(page, "hello")
    expect(page.locator(".message:not(.user) .body.rendered")).to_have_count(1)
    dialog = managing(page, "Tool servers")
    small, broken = dialog.locator("[data-server='small']"), dialog.locator("[data-server='broken']")
    expect(small).to_contain_text("ready")
    expect(small.locator("code")).to_have_text(["small__add"])
    expect(broken).to_contain_text("Failed")
    expect(broken.locator(".problem")).not_to_be_empty()
    page.screenshot(path=shots / "tool-servers.png")
    small.get_by_role("button", name="Restart small").click()
    expect(small).to_contain_text("restarts: 1")
    expect(small).to_contain_text("ready")
    expect(managing(page, "Tool servers", "second")).to_contain_text("This profile has no tool servers.")


def test_a_model_gets_a_key_is_checked_and_loses_it(visit: Visit, server: Server) -> None:
    page = visit()
    agree(page)
    dialog = managing(page, "Models", "second")
    loopback, openai = dialog.locator("[data-provider='loopback']"), dialog.locator("[data-provider='openai']")
    expect(loopback).to_contain_text("in force")
    loopback.get_by_role("button", name="Check loopback").click()
    expect(loopback.get_by_role("status")).to_contain_text("The provider answers")
    expect(openai).to_contain_text("No key")
    openai.get_by_label("Key (never shown again)").fill("key-from-the-page-4711")
    openai.get_by_role("button", name="Save key openai").click()
    expect(openai).to_contain_text("A key is set")
    assert "key-from-the-page-4711" not in page.content()
    assert "key-from-the-page-4711" in (server.homes / "second" / ".env").read_text()
    openai.get_by_role("button", name="Forget key openai").click()
    expect(openai).to_contain_text("No key")
    assert "key-from-the-page-4711" not in (server.homes / "second" / ".env").read_text()
    dialog.get_by_label("Name", exact=True).fill("nobody")
    dialog.get_by_label("Address").fill("http://127.0.0.1:9/v1")
    dialog.get_by_label("Key (never shown again)").last.fill("another-key-4711")
    dialog.get_by_role("button", name="Add", exact=True).click()
    nobody = dialog.locator("[data-provider='nobody']")
    nobody.get_by_role("button", name="Check nobody").click()
    expect(nobody.locator(".said.bad")).not_to_be_empty()
    dialog.get_by_role("combobox", name="Provider", exact=True).select_option("nobody")
    dialog.get_by_label("Model", exact=True).fill("large")
    dialog.get_by_role("button", name="Use", exact=True).click()
    expect(nobody).to_contain_text("in force")
    file = (server.homes / "second" / "config.yaml").read_text()
    assert "model:\n  provider: nobody\n  name: large\n" in file, "and no defaults beside"
    dialog.get_by_role("combobox", name="Provider", exact=True).select_option("loopback")
    dialog.get_by_label("Model", exact=True).fill("loopback")
    dialog.get_by_role("button", name="Use", exact=True).click()
    expect(loopback).to_contain_text("in force")


def test_memory_is_edited_as_far_as_it_may_grow(visit: Visit, server: Server) -> None:
    page = visit()
    dialog = managing(page, "Memory", "second")
    notes = dialog.get_by_label("What they have noted about you")
    notes.fill("Prefers mornings.")
    expect(dialog).to_contain_text("17 of")
    form = dialog.locator("form", has=page.locator("textarea")).nth(1)
    form.get_by_role("button", name="Save").click()
    expect(form.get_by_role("status")).to_have_text("Saved.")
    managing(page, "Usage", "second")
    expect(managing(page, "Memory", "second").get_by_label("What they have noted about you")).to_have_value(
        "Prefers mornings."
    )
    found = list((server.homes / "second").rglob("USER.md"))
    assert [path.read_text().strip() for path in found] == ["Prefers mornings."]


def test_a_schedule_is_made_run_paused_and_deleted(visit: Visit) -> None:
    page = visit()
    agree(page)
    dialog = managing(page, "Schedules", "second")
    expect(dialog).to_contain_text("Nothing is scheduled.")
    dialog.get_by_label("What to submit").fill("/do say the scheduled words")
    dialog.get_by_label("Title").fill("Hourly")
    dialog.get_by_role("combobox", name="When", exact=True).select_option(label="Again and again")
    dialog.get_by_label("Every so many minutes").fill("0")
    dialog.get_by_role("button", name="Create").click()
    expect(dialog.locator("[data-schedule]")).to_have_count(0)
    dialog.get_by_label("Every so many minutes").fill("90")
    dialog.get_by_role("button", name="Create").click()
    card = dialog.locator("[data-schedule]")
    expect(card).to_contain_text("every 1.5 hours")
    card.get_by_role("button", name="Run now Hourly").click()
    expect(card).to_contain_text("runs: 1")
    expect(card).to_contain_text("Last:")
    expect(page.locator(".session .name", has_text="Hourly")).not_to_have_count(0)
    card.get_by_role("button", name="Pause Hourly").click()
    expect(card).to_contain_text("paused")
    expect(card).not_to_contain_text("Next:")
    card.get_by_role("button", name="Go on Hourly").click()
    expect(card).to_contain_text("active")
    card.get_by_role("button", name="Delete Hourly").click()
    expect(card).to_have_count(0)
    dialog.get_by_label("What to submit").fill("/do say never")
    dialog.get_by_label("When (cron)").fill("61 * * * *")
    dialog.get_by_role("button", name="Create").click()
    expect(dialog.locator(".wrong")).not_to_be_empty()
    expect(dialog.get_by_label("When (cron)")).to_have_attribute("aria-invalid", "true")


def test_a_token_is_shown_once_and_lets_nobody_in_when_it_is_revoked(visit: Visit, server: Server) -> None:
    page = visit()
    agree(page)
    dialog = managing(page, "Tokens")
    dialog.get_by_label("Name", exact=True).fill("Not A Name")
    dialog.get_by_role("button", name="Create").click()
    expect(dialog.get_by_label("Name", exact=True)).to_have_attribute("aria-invalid", "true")
    dialog.get_by_label("Name", exact=True).fill("tablet")
    dialog.get_by_label("submit prompts").check()
    dialog.get_by_label("second", exact=True).check()
    dialog.get_by_role("button", name="Create").click()
    token = dialog.locator("code.token").inner_text()
    card = dialog.locator("[data-token]", has_text="tablet")
    expect(card).to_contain_text("submit prompts")
    expect(card).to_contain_text("Profiles: second")
    assert token not in card.inner_text()
    guest = Client(server.url, token)
    assert [row["name"] for row in guest.call("profiles.list")["profiles"]] == ["second"]
    with pytest.raises(Refused):
        guest.call("secrets.names", profile="default")
    managing(page, "Server")
    dialog = managing(page, "Tokens")
    assert token not in page.content()
    card.get_by_role("button", name="Revoke tablet").click()
    expect(card).to_have_count(0)
    with pytest.raises(InvalidStatus, match="401"):
        Client(server.url, token)


def test_a_secret_is_set_and_deleted_and_never_shown(visit: Visit, server: Server) -> None:
    page = visit()
    agree(page)
    dialog = managing(page, "Secrets")
    expect(dialog.locator("[data-secret='MY_KEY']")).to_contain_text("no secret")
    dialog.get_by_label("Name", exact=True).fill("bad name")
    dialog.get_by_label("Value (never shown again)").fill("value-from-the-page-99")
    dialog.get_by_role("button", name="Save", exact=True).click()
    expect(dialog.get_by_label("Name", exact=True)).to_have_attribute("aria-invalid", "true")
    dialog.get_by_label("Name", exact=True).fill("PAGE_KEY")
    dialog.get_by_role("button", name="Save", exact=True).click()
    row = dialog.locator("[data-secret='PAGE_KEY']")
    expect(row).to_be_visible()
    assert "value-from-the-page-99" not in page.content()
    expect(dialog.get_by_label("Value (never shown again)")).to_have_value("")
    assert "value-from-the-page-99" in (server.homes / "default" / ".env").read_text()
    row.get_by_role("button", name="Delete PAGE_KEY").click()
    expect(row).to_have_count(0)
    assert "PAGE_KEY" not in (server.homes / "default" / ".env").read_text()


def test_a_profile_is_made_cloned_renamed_and_deleted_with_consent(visit: Visit, server: Server) -> None:
    page = visit()
    dialog = managing(page, "Profile")
    create = dialog.locator("[data-more='createWhat']")
    create.locator("summary").click()
    create.get_by_label("New name").fill("Not/A/Name")
    create.get_by_role("button", name="Create").click()
    expect(create.locator(".wrong")).not_to_be_empty()
    create.get_by_label("New name").fill("garden")
    create.get_by_label("Instructions").fill("Speak of plants.")
    create.get_by_role("button", name="Create").click()
    expect(create.get_by_role("status")).to_contain_text("garden is made")
    assert (server.homes / "garden" / "SOUL.md").read_text() == "Speak of plants."
    clone = dialog.locator("[data-more='cloneWhat']")
    clone.locator("summary").click()
    clone.get_by_label("New name").fill("orchard")
    clone.get_by_label("skills").uncheck()
    clone.get_by_label("secrets").check()
    clone.get_by_role("button", name="Clone").click()
    expect(clone.get_by_role("status")).to_contain_text("orchard is made")
    assert "MY_KEY" in (server.homes / "orchard" / ".env").read_text()
    assert not (server.homes / "orchard" / "skills" / "tidy").exists()
    expect(dialog.get_by_label("Profile to manage").locator("option", has_text="orchard")).to_have_count(1)
    dialog.get_by_label("Close").click()
    expect(page.get_by_label("New session in").locator("option")).to_have_text(
        ["default", "garden", "orchard", "second"], use_inner_text=False
    )
    dialog = managing(page, "Profile", "orchard")
    dialog.get_by_label("New name").first.fill("grove")
    dialog.get_by_role("button", name="Rename orchard").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_label("New session in").locator("option", has_text="grove")).to_have_count(1)
    dialog = managing(page, "Profile", "grove")
    delete = dialog.locator("[data-more='deleteWhat']")
    delete.locator("summary").click()
    delete.get_by_label("Type grove to delete it").fill("garden")
    delete.get_by_role("button", name="Delete for good").click()
    expect(delete.locator(".wrong")).not_to_be_empty()
    assert (server.homes / "grove").exists()
    delete.get_by_label("Type grove to delete it").fill("grove")
    delete.get_by_role("button", name="Delete for good").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_label("New session in").locator("option", has_text="grove")).to_have_count(0)
    assert not (server.homes / "grove").exists()


def test_instructions_are_read_and_changed_and_a_profile_goes_out_and_comes_in(visit: Visit, server: Server) -> None:
    page = visit()
    (server.homes / "default" / "SOUL.md").write_text("Speak like a gardener.\n")
    dialog = managing(page, "Profile")

    def card(what: str) -> Locator:
        made = dialog.locator(f"details[data-more={what}]")
        made.locator("summary").click()
        return made

    soul = card("soulWhat")
    expect(soul.get_by_label("Instructions")).to_have_value("Speak like a gardener.")
    soul.get_by_label("Instructions").fill("Speak like a sailor.")
    soul.get_by_role("button", name="Save").click()
    expect(soul.get_by_role("status")).to_have_text("Saved.")
    assert (server.homes / "default" / "SOUL.md").read_text() == "Speak like a sailor."
    out = card("exportWhat")
    out.get_by_label("secrets").check()
    out.get_by_role("button", name="Export").click()
    expect(out.locator(".wrong")).to_contain_text("passphrase")
    out.get_by_label("Passphrase").fill("a-passphrase-of-tests")
    out.get_by_role("button", name="Export").click()
    expect(out.get_by_role("status")).to_contain_text("files, ")
    path = (out.get_by_role("status").text_content() or "").partition(", in ")[2].partition(". Left out")[0]
    back = card("importWhat")
    back.get_by_label("Path of the file").fill(path)
    back.get_by_label("New name").fill("brought")
    back.get_by_label("Passphrase").fill("another-passphrase")
    back.get_by_label("Take the secrets").check()
    back.get_by_role("button", name="Import").click()
    expect(back.locator(".said.bad")).not_to_be_empty()
    back.get_by_label("Passphrase").fill("a-passphrase-of-tests")
    back.get_by_role("button", name="Import").click()
    expect(back.get_by_role("status")).to_contain_text("brought is made")
    assert (server.homes / "brought" / "SOUL.md").read_text() == "Speak like a sailor."
    assert "value-of-default-1234" in (server.homes / "brought" / ".env").read_text()
    managing(page, "Profile", "brought")
    expect(dialog).to_contain_text("mcp_servers is off")
    dialog.get_by_role("button", name="Switch them on").click()
    expect(dialog.get_by_role("button", name="Switch them on")).to_have_count(0)
    expect(dialog).not_to_contain_text("mcp_servers is off")
    (server.homes / "default" / "SOUL.md").unlink()
    client = server.connect()
    client.call("profiles.delete", profile="brought", confirm="brought")
    client.close()
