"""The option table: what is refused before anything is loaded or contacted, and how quick help is."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from hermes_ws import __version__
from hermes_ws.cli.main import hermes_ws
from hermes_ws.server.serve import ServeOptions
from tests.cli.conftest import Run

COMMANDS = sorted(hermes_ws.commands)


def invoke(*arguments: str) -> click.testing.Result:
    return CliRunner().invoke(hermes_ws, list(arguments))


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_examples(name: str) -> None:
    shown = invoke(name, "--help")
    assert shown.exit_code == 0
    assert f"hermes-ws {hermes_ws.commands[name].name}" in shown.output.split("Examples:")[1]


def test_windows_is_refused_with_a_sentence_before_anything_is_loaded() -> None:
    script = "import sys; sys.platform = 'win32'\nimport hermes_ws.cli.main"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("hermes-ws does not run on Windows")
    assert "WSL 2" in done.stderr


def test_the_version_is_the_version_of_the_package() -> None:
    assert invoke("--version").output == f"hermes-ws, version {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["chat", "-Q"], "-Q goes with -q"),
        (["chat", "-q", "  "], "-q is blank"),
        (["chat", "-q", "x" * 500_001], "at most 500000"),
        (["chat", "--profile", ""], "--profile is blank"),
        (["chat", "--resume", ""], "--resume is blank"),
        (["chat", "--compact"], "No such option"),
        (["chat", "hello"], "unexpected extra argument"),
        (["status", "--yaml"], "No such option"),
        (["serve", "--port", "70000"], "not in the range"),
        (["serve", "--announce", "xml"], "is not 'json'"),
        (["start"], "No such command"),
    ],
)
def test_refused_options_end_with_two_and_a_sentence(arguments: list[str], told: str) -> None:
    done = invoke(*arguments)
    assert done.exit_code == 2
    assert told in done.output


def test_serve_hands_its_options_on(monkeypatch: pytest.MonkeyPatch) -> None:
    handed: list[ServeOptions] = []

    def main(options: ServeOptions) -> int:
        handed.append(options)
        return 7

    monkeypatch.setattr("hermes_ws.server.serve.main", main)
    assert invoke("serve").exit_code == 7
    assert (
        invoke(
            "serve",
            "--profiles-root",
            "/homes",
            "--profile",
            "work",
            "--port",
            "0",
            "--socket",
            "/s",
            "--announce",
            "json",
        ).exit_code
        == 7
    )
    assert handed[0] == ServeOptions()
    told = handed[1]
    assert (str(told.profiles_root), told.profile, told.port, str(told.socket), told.announce) == (
        "/homes",
        "work",
        0,
        "/s",
        True,
    )


def test_the_module_runs_like_the_command(run: Run) -> None:
    done = run("--version")
    assert (done.stdout, done.returncode) == (f"hermes-ws, version {__version__}\n", 0)
