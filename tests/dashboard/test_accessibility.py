"""The page for everyone: what axe-core finds, and what it cannot find."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from tests.dashboard.steps import managing
from tests.dashboard.test_stories import say, start_session

Visit = Callable[..., Page]

ALL_TABS = (
    *("Profile", "Models", "Secrets", "Settings", "Agents", "Skills", "Tool servers", "Memory", "Schedules"),
    *("Processes", "Usage", "Tokens", "Server"),
)

RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}


def violations(page: Page) -> list[str]:
    results = Axe().run(page, options=RULES)
    return [
        f"{rule['id']}: {node['target']} {node['failureSummary']}"
        for rule in results.response["violations"]
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_conversation_with_a_question_has_no_violation(visit: Visit, scheme: str) -> None:
    page = visit(color_scheme=scheme)
    start_session(page, "second")
    code = ("```python", "# why", "@made", "def f(x: int) -> str: return f'{x!r}' + str(1.5) or None", "```")
    spoken = "\n".join(f"/do say {line}" for line in ("Some **words**.", *code))
    say(page, f"{spoken}\n/do run touch accessible")
    expect(page.locator(".question")).to_have_count(1)
    expect(page.locator(".part.rendered pre [class^=hl-]")).not_to_have_count(0)
    assert violations(page) == []
    page.locator(".question").get_by_role("button", name="Deny").click()
    expect(page.locator(".question")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_dialog_has_no_violation(visit: Visit, scheme: str) -> None:
    """Every panel of it, with all that can be folded open."""
    page = visit(color_scheme=scheme)
    expect(page.get_by_role("status").first).to_have_text("Connected")
    page.get_by_role("button", name="Manage").click()
    expect(page.get_by_role("tab")).to_have_text(list(ALL_TABS))
    for tab in ALL_TABS:
        managing(page, tab)
        page.locator("details").evaluate_all("all => { for (const each of all) each.open = true; }")
        assert violations(page) == [], tab


def test_right_to_left_text_stands_on_the_right(visit: Visit) -> None:
    page = visit()
    start_session(page, "default")
    say(page, "/do say مرحبا بالعالم")
    body = page.locator(".message:not(.user) .body.rendered").last
    expect(body).to_be_visible()
    assert body.evaluate("node => getComputedStyle(node).direction") == "rtl"


def test_nothing_moves_for_those_who_asked_for_that(visit: Visit) -> None:
    page = visit(reduced_motion="reduce")
    start_session(page, "default")
    say(page, "/do stream 200 20")
    dot = page.locator(".dot.running").first
    expect(dot).to_be_visible()
    assert dot.evaluate("node => getComputedStyle(node).animationName") == "none"
    page.get_by_role("button", name="Stop").click()


CONTRAST = """() => {
  const light = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const read = colour => {
    light.fillStyle = colour; light.fillRect(0, 0, 1, 1);
    const [r, g, b] = light.getImageData(0, 0, 1, 1).data;
    const part = value => { const v = value / 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const place = document.createElement("div");
  place.innerHTML = '<header class="banner"><span class="profile">name</span></header>'
    + '<div class="groups"><section><h2>name</h2></section></div>'
    + '<div class="hit"><span class="profile">name</span></div>';
  document.body.append(place);
  const ground = {banner: "header", groups: "h2", hit: null};
  const low = [];
  for (let hue = 0; hue < 360; hue += 3) {
    place.style.setProperty("--hue", hue);
    for (const [name, over] of Object.entries(ground)) {
      const words = place.querySelector(name === "groups" ? ".groups h2" : `.${name} .profile`);
      const behind = over ? place.querySelector(over) : document.querySelector(".side");
      const one = read(getComputedStyle(words).color);
      const two = read(getComputedStyle(behind).backgroundColor);
      const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
      if (ratio < 4.5) low.push(`${name} ${hue}: ${ratio.toFixed(2)}`);
    }
  }
  place.remove();
  return low;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_name_of_every_profile_can_be_read_in_its_colour(visit: Visit, scheme: str) -> None:
    page = visit(color_scheme=scheme)
    expect(page.get_by_role("status").first).to_have_text("Connected")
    assert page.evaluate(CONTRAST) == []


def overflowing(page: Page) -> list[str]:
    """What is wider than the screen, or than the sheet that holds it."""
    return page.evaluate(
        """() => {
          const wide = [];
          const root = document.documentElement;
          if (root.scrollWidth > innerWidth) wide.push(`page ${root.scrollWidth}`);
          for (const each of document.querySelectorAll(".sheet, .transcript, .side, .groups, .inbox, main")) {
            if (each.scrollWidth > each.clientWidth + 1) wide.push(`${each.className} ${each.scrollWidth}`);
          }
          return wide;
        }"""
    )


@pytest.mark.parametrize("direction", ["ltr", "rtl"])
def test_nothing_is_wider_than_a_phone(visit: Visit, shots: Path, direction: str) -> None:
    page = visit(viewport={"width": 360, "height": 740}, has_touch=True)
    page.evaluate("direction => { document.documentElement.dir = direction; }", direction)
    start_session(page, "second")
    say(page, "/do say " + "Averylongwordwithoutanyspace" * 8 + "\n/do run touch " + "x" * 90)
    expect(page.locator(".question")).to_have_count(1)
    assert overflowing(page) == []
    page.locator(".question").get_by_role("button", name="Deny").click()
    page.screenshot(path=shots / f"phone-{direction}.png")
    for tab in ALL_TABS:
        managing(page, tab)
        page.locator("details").evaluate_all("all => { for (const each of all) each.open = true; }")
        assert overflowing(page) == [], tab
        page.screenshot(path=shots / f"phone-{direction}-{tab.replace(' ', '-').lower()}.png")


def test_right_to_left_names_stand_on_the_right_and_the_page_can_be_turned(visit: Visit) -> None:
    page = visit()
    page.on("dialog", lambda asked: asked.accept("عنوان المحادثة"))
    start_session(page, "default")
    say(page, "مرحبا")
    page.get_by_label("Actions for this session").click()
    page.get_by_role("button", name="Rename").click()
    for name in (page.locator(".banner h1"), page.locator(".session .name", has_text="عنوان")):
        expect(name).to_have_text("عنوان المحادثة")
        assert name.evaluate("node => getComputedStyle(node).direction") == "rtl"
    page.evaluate("() => { document.documentElement.dir = 'rtl'; }")
    side, work = page.locator(".side").bounding_box(), page.locator(".workspace").bounding_box()
    assert side is not None
    assert work is not None
    assert side["x"] > work["x"]


def press_until(page: Page, what: Locator, key: str = "Tab") -> None:
    """Go on with a key until the thing has the focus, as somebody without a mouse does."""
    for _ in range(60):
        if what.count() and what.first.evaluate("node => node === document.activeElement"):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{what} is not reached with {key}")


def test_a_profile_is_looked_after_without_a_mouse(visit: Visit) -> None:
    page = visit()
    expect(page.get_by_role("status").first).to_have_text("Connected")
    press_until(page, page.get_by_role("button", name="New session"))
    page.keyboard.press("Enter")
    expect(page.locator(".pane textarea")).to_be_focused()
    page.keyboard.type("/do say from the keyboard")
    page.keyboard.press("Enter")
    expect(page.locator(".message:not(.user) .body.rendered")).to_have_count(1)
    press_until(page, page.get_by_label("Actions for this session"), "Shift+Tab")
    page.keyboard.press("Enter")
    press_until(page, page.get_by_role("button", name="Pin", exact=True))
    page.keyboard.press("Enter")
    expect(page.locator(".session").get_by_label("pinned")).to_have_count(1)
    manage = page.get_by_role("button", name="Manage")
    press_until(page, manage, "Shift+Tab")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    press_until(page, dialog.get_by_role("tab", name="Profile", exact=True))
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(dialog.get_by_role("tab", name="Secrets")).to_be_focused()
    expect(dialog.get_by_role("tabpanel", name="Secrets")).to_be_visible()
    name = dialog.get_by_label("Name", exact=True)
    expect(name).to_be_visible()
    press_until(page, name)
    page.keyboard.type("BY_KEYS")
    page.keyboard.press("Tab")
    page.keyboard.type("value-by-keys-1")
    page.keyboard.press("Enter")
    expect(dialog.locator("[data-secret='BY_KEYS']")).to_be_visible()
    press_until(page, dialog.get_by_role("tab", name="Secrets"), "Shift+Tab")
    page.keyboard.press("ArrowDown")
    find = dialog.get_by_label("Find a setting")
    expect(find).to_be_visible()
    press_until(page, find)
    page.keyboard.type("max turns")
    box = dialog.get_by_label("Max turns")
    press_until(page, box)
    page.keyboard.press("Control+a")
    page.keyboard.type("39")
    page.keyboard.press("Enter")
    expect(dialog.locator("[data-key='agent.max_turns'] .said")).to_have_text("Saved.")
    expect(box).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(manage).to_be_focused()


def test_what_happens_is_told_to_those_who_do_not_see_it(visit: Visit) -> None:
    page = visit()
    start_session(page, "default")
    expect(page.locator(".connection")).to_have_attribute("aria-live", "polite")
    say(page, "/do run touch told")
    expect(page.locator(".question").first).to_be_visible()
    live = "node => Boolean(node.closest('[aria-live], [role=status], [role=alert], [role=log]'))"
    assert page.locator(".question").first.evaluate(live), "a question is told when it comes"
    assert page.locator(".items").evaluate(live), "what the agent says is told"
    assert page.locator(".pane .problem").evaluate_all(f"all => all.every({live})"), "what went wrong is told"
    for landmark in ("navigation", "main", "complementary"):
        expect(page.get_by_role(landmark)).to_have_count(1)
