"""The examples that the documentation gives to users are carried out."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import click
import pytest

from hermes_ws.cli.main import hermes_ws
from hermes_ws.scope.config import parse_config
from tests.cli.conftest import PATIENCE, environment
from tests.client.peer import Peer

ROOT = Path(__file__).parents[2]
PAGES = (
    "README.md",
    *sorted(
        page.relative_to(ROOT).as_posix()
        for part in ("tutorial", "how-to", "explanation")
        for page in (ROOT / "docs" / part).glob("*.md")
    ),
)


def blocks(page: str, language: str) -> list[str]:
    """The code blocks of a page, without their indentation."""
    text = (ROOT / page).read_text("utf-8")
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(body) for _, body in found]


COMMANDS = [
    (page, line)
    for page in PAGES
    for language in ("", "sh")
    for block in blocks(page, language)
    for line in block.splitlines()
    if re.match(r"(HERMES_HOME=\S+ )?(\.venv/bin/)?hermes-ws ", line)
]

SETTINGS = [(page, block) for page in PAGES for block in blocks(page, "yaml")]


def test_there_are_examples() -> None:
    assert len(COMMANDS) >= 20
    assert len(SETTINGS) >= 12


@pytest.mark.parametrize(("page", "line"), COMMANDS)
def test_a_command_that_is_shown_has_options_that_exist(page: str, line: str) -> None:
    words = shlex.split(line, comments=True)
    name, *arguments = words[words.index(next(word for word in words if word.endswith("hermes-ws"))) + 1 :]
    command = hermes_ws.commands[name]
    with click.Context(command) as parent:
        command.make_context(name, arguments, parent=parent)


@pytest.mark.parametrize(("page", "settings"), SETTINGS)
def test_settings_that_are_shown_are_accepted(page: str, settings: str) -> None:
    whole = settings
    if "providers:" not in settings:
        whole += "providers:\n  mine: {kind: openai, base_url: 'http://127.0.0.1/v1'}\n"
    if "model:" not in settings:
        whole += "model: {provider: mine, name: any}\n"
    assert parse_config(whole.encode(), Path("config.yaml")).model.provider == "mine"


def test_the_python_example_runs(peer: Peer, home: Path) -> None:
    (example,) = blocks("README.md", "python")
    (home.parent / ".hermes").symlink_to(home)
    done = subprocess.run(
        [sys.executable, "-c", example],
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("['default', 'research']\n", "")
