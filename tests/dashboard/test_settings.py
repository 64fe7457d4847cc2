"""The settings as a form: each has a field that fits it, and what the server refuses is said at that field."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Dialog, Locator, Page, expect

from tests.dashboard.steps import managing, serving
from tests.e2e.process import Server

Visit = Callable[..., Page]

CONFIG = """\
# how I like it
model:
  provider: loopback   # free
providers:
  mine:
    kind: openai
    base_url: https://models.example/v1   # nobody is there
    api_key: sk-written-into-the-file-12345
approvals:
  rules:
    # harmless
    - tool: terminal
      argv: [git, status]
      decision: allow
agent:
  max_turns: 30   # enough
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = serving(tmp_path_factory.mktemp("settings"), default=CONFIG, second="")
    yield server
    assert server.stop() == 0


def written(server: Server, profile: str = "default") -> str:
    return (server.homes / profile / "config.yaml").read_text()


def setting(dialog: Locator, key: str) -> Locator:
    """The row of a setting, in its open section."""
    row = dialog.locator(f"[data-key='{key}']")
    section = row.locator("xpath=ancestor::details[contains(@class, 'section')]")
    if section.get_attribute("open") is None:
        section.locator("summary").click()
    return row


def saved(row: Locator) -> None:
    row.get_by_role("button", name="Save", exact=True).click()
    expect(row.get_by_role("status")).to_have_text("Saved.")


def test_a_number_has_its_unit_its_origin_and_its_error(visit: Visit, server: Server, shots: Path) -> None:
    page = visit()
    dialog = managing(page, "Settings")
    row = setting(dialog, "agent.max_turns")
    box = row.get_by_label("Max turns")
    expect(box).to_have_value("30")
    expect(row).to_contain_text("set in the file")
    expect(row).to_contain_text("Default: 40")
    expect(row).to_contain_text("Steps after which the person is asked")
    expect(row.get_by_role("button", name="Save", exact=True)).to_be_hidden()
    box.fill("0")
    row.get_by_role("button", name="Save", exact=True).click()
    expect(box).to_have_attribute("aria-invalid", "true")
    expect(box).to_be_focused()
    expect(row.locator(".line .wrong")).to_contain_text("greater than or equal to 1")
    page.screenshot(path=shots / "settings-error.png")
    assert "max_turns: 30   # enough" in written(server)
    box.fill("31")
    saved(row)
    assert "max_turns: 31   # enough" in written(server)
    deadline = setting(dialog, "terminal.deadline_s")
    expect(deadline.locator(".unit")).to_have_text("seconds (2 minutes)")
    expect(deadline).not_to_contain_text("set in the file")
    expect(setting(dialog, "terminal.output_bytes").locator(".unit")).to_have_text("bytes (1 MiB)")


def test_a_setting_is_brought_back_to_its_default(visit: Visit, server: Server) -> None:
    page = visit()
    row = setting(managing(page, "Settings"), "compaction.keep")
    expect(row.get_by_role("button", name="Reset to default")).to_have_count(0)
    row.get_by_label("Keep").fill("9")
    saved(row)
    assert "keep: 9" in written(server)
    row.get_by_role("button", name="Reset to default").click()
    expect(row.get_by_label("Keep")).to_have_value("6")
    expect(row.get_by_role("button", name="Reset to default")).to_have_count(0)
    assert "keep" not in written(server)


def test_a_checkbox_and_a_choice(visit: Visit, server: Server) -> None:
    page = visit()
    dialog = managing(page, "Settings", "second")
    row = setting(dialog, "approvals.dangers")
    expect(row.get_by_label("Dangers")).to_be_checked()
    row.get_by_label("Dangers").uncheck()
    saved(row)
    row = setting(dialog, "terminal.network")
    row.get_by_label("Network").select_option(label="deny")
    saved(row)
    row = setting(dialog, "model.reasoning")
    expect(row.get_by_label("Reasoning").locator("option:checked")).to_have_text("not set")
    row.get_by_label("Reasoning").select_option(label="high")
    saved(row)
    for line in ("dangers: false", "network: deny", "reasoning: high"):
        assert line in written(server, "second")
    row.get_by_label("Reasoning").select_option(label="not set")
    saved(row)
    assert "reasoning" not in written(server, "second")


def test_a_list_grows_and_shrinks_and_may_be_absent(visit: Visit, server: Server) -> None:
    page = visit()
    dialog = managing(page, "Settings", "second")
    row = setting(dialog, "terminal.env")
    row.get_by_role("button", name="Add to Env").click()
    expect(row.get_by_label("Env 1", exact=True)).to_be_focused()
    row.get_by_label("Env 1", exact=True).fill("MY_KEY")
    row.get_by_role("button", name="Add to Env").click()
    row.get_by_label("Env 2", exact=True).fill("not a name")
    row.get_by_role("button", name="Save", exact=True).click()
    expect(row.get_by_label("Env 2", exact=True)).to_have_attribute("aria-invalid", "true")
    expect(row.get_by_label("Env 1", exact=True)).not_to_have_attribute("aria-invalid", "true")
    row.get_by_role("button", name="Remove Env 2").click()
    saved(row)
    assert "env:\n    - MY_KEY\n" in written(server, "second")
    row = setting(dialog, "terminal.directories")
    expect(row.get_by_label("Set Directories")).not_to_be_checked()
    row.get_by_label("Set Directories").check()
    saved(row)
    assert "directories: []" in written(server, "second")


def test_an_entry_of_a_map_is_added_and_its_wrong_part_is_named(visit: Visit, server: Server, shots: Path) -> None:
    page = visit()
    dialog = managing(page, "Settings")
    row = setting(dialog, "providers")
    mine = row.locator(".entry.named").first
    expect(mine.get_by_label("Name", exact=True)).to_have_value("mine")
    expect(mine.get_by_label("Api key")).to_have_value("")
    expect(mine.get_by_label("Api key")).to_have_attribute("placeholder", "set; not shown")
    assert "sk-written" not in page.content()
    row.get_by_role("button", name="Add to Providers").click()
    other = row.locator(".entry.named").nth(1)
    other.get_by_label("Name", exact=True).fill("other")
    other.get_by_label("Base url").fill("http://127.0.0.1:9/v2")
    other.get_by_label("Api key").fill("${MY_KEY}")
    row.get_by_role("button", name="Save", exact=True).click()
    expect(row.locator(".wrong").filter(has_text="kind")).to_contain_text("kind: openai")
    other.get_by_label("Kind").select_option(label="openai")
    page.screenshot(path=shots / "settings-map.png")
    saved(row)
    file = written(server)
    assert "api_key: sk-written-into-the-file-12345" in file, "what came back masked stays"
    assert "# nobody is there" in file
    assert "other:\n    kind: openai\n    base_url: http://127.0.0.1:9/v2\n    api_key: ${MY_KEY}" in file
    row.get_by_role("button", name="Remove other").click()
    saved(row)
    assert "other" not in written(server)


def test_rules_are_a_list_of_forms_and_the_comments_stay(visit: Visit, server: Server) -> None:
    page = visit()
    row = setting(managing(page, "Settings"), "approvals.rules")
    row.get_by_role("button", name="Add to Rules").click()
    second = row.locator("> .group > .rows > .entry").nth(1)
    second.get_by_label("Tool").fill("write_file")
    second.get_by_label("Path").fill("/srv/*")
    second.get_by_label("Command").fill("ls *")
    second.get_by_label("Decision").select_option(label="deny")
    row.get_by_role("button", name="Save", exact=True).click()
    expect(second.locator("> .group > .wrong")).to_contain_text("a rule is about one of")
    second.get_by_label("Command").fill("")
    saved(row)
    file = written(server)
    assert "# harmless\n    - tool: terminal\n      argv: [git, status]" in file
    assert "- tool: write_file\n      path: /srv/*\n      decision: deny" in file


def test_what_may_cost_money_is_asked_about(visit: Visit, server: Server) -> None:
    page = visit()
    asked: list[str] = []
    answers = iter((False, True))

    def answer(dialog: Dialog) -> None:
        asked.append(dialog.message)
        if next(answers):
            dialog.accept()
        else:
            dialog.dismiss()

    page.on("dialog", answer)
    row = setting(managing(page, "Settings"), "model.provider")
    row.get_by_label("Provider").fill("mine")
    with page.expect_event("dialog"):
        row.get_by_role("button", name="Save", exact=True).click()
    row.get_by_role("button", name="Discard").click()
    expect(row.get_by_label("Provider")).to_have_value("loopback")
    assert "provider: loopback   # free" in written(server)
    row.get_by_label("Provider").fill("mine")
    saved(row)
    assert len(asked) == 2
    assert all("may cost money" in each for each in asked)
    row.get_by_label("Provider").fill("loopback")
    saved(row)


def test_settings_are_found_by_their_words(visit: Visit) -> None:
    page = visit()
    dialog = managing(page, "Settings")
    dialog.get_by_label("Find a setting").fill("fork bomb")
    expect(dialog.locator(".setting:visible")).to_have_count(1)
    expect(dialog.locator(".setting:visible")).to_have_attribute("data-key", "terminal.processes")
    dialog.get_by_label("Find a setting").fill("no such words")
    expect(dialog).to_contain_text("No setting fits.")
    dialog.get_by_label("Find a setting").fill("")
    dialog.get_by_label("Only what is set in the file").check()
    expect(dialog.locator(".setting:visible [class*='badge own']")).not_to_have_count(0)
    for row in dialog.locator(".setting:visible").all():
        expect(row).to_contain_text("set in the file")


def test_every_setting_has_a_field_and_reads_back_as_it_is(visit: Visit) -> None:
    """For each profile as it stands: nothing has changed before somebody changes it, and nothing needs raw JSON."""
    page = visit()
    for profile in ("default", "second"):
        dialog = managing(page, "Settings", profile)
        dialog.locator("details.section").evaluate_all("all => { for (const each of all) each.open = true; }")
        for row in dialog.locator(".setting").all():
            row.dispatch_event("change")
        expect(dialog.get_by_role("button", name="Save", exact=True)).to_have_count(0)
        expect(dialog.locator(".setting textarea[spellcheck=false][rows='2']").filter(has_text="null")).to_have_count(0)
