"""What a person does again and again on the page."""

from __future__ import annotations

import os
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.e2e.process import Server, write_home


def managing(page: Page, tab: str, profile: str = "default") -> Locator:
    """The dialog, at a tab of a profile."""
    expect(page.get_by_role("status").first).to_have_text("Connected")
    dialog = page.get_by_role("dialog")
    if dialog.count() == 0:
        unfold = page.locator(".unfold")
        if unfold.is_visible() and unfold.get_attribute("aria-expanded") == "false":
            unfold.click()
        page.get_by_role("button", name="Manage").click()
    chosen = dialog.get_by_label("Profile to manage")
    if chosen.input_value() != profile:
        chosen.select_option(profile)
    dialog.get_by_role("tab", name=tab, exact=True).click()
    expect(dialog.get_by_role("tabpanel")).not_to_have_attribute("aria-busy", "true")
    expect(dialog.locator(".sheet > .problem")).to_have_text("")
    return dialog


def serving(place: Path, **configs: str) -> Server:
    """A server over homes with these settings, by name; each has a secret of its own."""
    for name, config in configs.items():
        write_home(place / "homes" / name, env={"MY_KEY": f"value-of-{name}-1234"}, config=config)
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return Server(place / "homes", place / "server.log", environment)
