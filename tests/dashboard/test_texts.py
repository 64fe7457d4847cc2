"""Every word that the page says stands in one file, so that it can be said in another language."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hermes_ws.contract.methods.mcp import ServerRow
from hermes_ws.contract.methods.profiles import ProfileRow
from hermes_ws.contract.methods.schedules import ScheduleRow
from hermes_ws.contract.methods.sessions import SessionRow
from hermes_ws.contract.methods.tokens import TokenRow

PLACE = Path(__file__).parent.parent.parent / "hermes_ws" / "dashboard"
MODULES = sorted(path for path in PLACE.glob("*.js") if path.name != "texts.js")

LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`')
WORDS = re.compile(r"[A-Za-z]{2,},? [A-Za-z]{2,}|^[A-Z][a-z]{2,}[.!?…:]?$")

NO_WORDS = {
    *("Alt", "Backspace", "Control", "Delete", "End", "Enter", "Escape", "Home", "Insert", "Meta", "Shift", "Space"),
    *("Tab", "ArrowDown", "ArrowUp", "PageDown", "PageUp"),
    *("Files", "Notification"),
    *("signed out", "signed in"),
    *("input, select, textarea", "input, select, textarea, button"),
}
"""Names of keys, of things of the browser, of states and of elements: nobody reads them on the page."""


def code(path: Path) -> str:
    """A module without its comments."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text("utf-8"), flags=re.DOTALL)
    return re.sub(r"(?m)(^|[\s;{}(,])//[^\n]*", r"\1", text)


def said(text: str) -> list[str]:
    """The literals that read like words for a person."""
    literals = [one if one or not two else re.sub(r"\$\{[^}]*\}", "\0", two) for one, two in LITERAL.findall(text)]
    return [each for each in literals if WORDS.search(each) and each not in NO_WORDS]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_no_other_file_says_anything(path: Path) -> None:
    assert said(code(path)) == [], "put it into texts.js"


def test_words_elsewhere_are_noticed() -> None:
    assert said('button("Save it"); put(x, `Done with ${name} now`); label("Close")') == [
        "Save it",
        "Done with \0 now",
        "Close",
    ]
    assert said('element("div.row.open", { role: "tab" }, text("save")); key === "Escape"') == []


def test_every_text_that_is_asked_for_is_there() -> None:
    source = (PLACE / "texts.js").read_text("utf-8")
    known = {one or two for one, two in re.findall(r'^  (?:"([^"]+)"|(\w+)): "', source, flags=re.MULTILINE)}
    assert len(known) > 200
    missing = []
    for path in MODULES:
        text = code(path)
        asked = re.findall(r'\btext\("([^"]+)"', text)
        missing += [f"{path.name}: {key}" for key in asked if key not in known]
        for one, two in re.findall(r'\btext\([^()"]*\? "([^"]+)" : "([^"]+)"\)', text):
            missing += [f"{path.name}: {key}" for key in (one, two) if key not in known]
        for prefix in re.findall(r"\btext\(`([\w.]+)\$\{", text):
            if not any(key.startswith(prefix) for key in known):
                missing.append(f"{path.name}: {prefix}…")
    assert missing == []


@pytest.mark.parametrize(
    ("model", "field", "prefix"),
    [
        (SessionRow, "state", ""),
        (ServerRow, "state", ""),
        (ScheduleRow, "state", ""),
        (ProfileRow, "state", "profile."),
        (TokenRow, "kind", "token."),
    ],
)
def test_every_state_that_the_server_tells_has_a_text(model: type, field: str, prefix: str) -> None:
    source = (PLACE / "texts.js").read_text("utf-8")
    for value in model.model_json_schema()["properties"][field]["enum"]:  # pyright: ignore
        assert re.search(rf'^  "?{re.escape(prefix + value)}"?: "', source, flags=re.MULTILINE), prefix + value
