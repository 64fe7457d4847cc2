"""The whole command, walked from its own declarations: nothing that is added can be left out of these rules."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from hermes_ws.cli.commands import HELP, IN_VIEW, Slash, parse
from hermes_ws.cli.main import hermes_ws
from hermes_ws.methods.built_in import BUILT_IN

ROOT = Path(__file__).parents[2]


def walked(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command below this one, with the words that lead to it."""
    for name, command in sorted(group.commands.items()):
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from walked(command, (*path, name))


ALL = dict(walked(hermes_ws))

LEAVES = {path: command for path, command in ALL.items() if not isinstance(command, click.Group)}

READING = {
    ("config", "get"), ("doctor",), ("ensure",), ("open",), ("profile", "describe"), ("profile", "list"),
    ("session", "list"), ("session", "search"), ("session", "show"), ("status",), ("token", "list"),
}  # fmt: skip
"""What reads and shows: each takes --json."""

NOT_JSON = {
    ("chat",): "has --format stream-json",
    ("completion",): "prints a script",
    ("config", "check"): "the exit status is the answer",
    ("config", "edit"): "opens an editor",
    ("logs",): "prints lines that are JSON where the log is",
    ("serve",): "has --announce json",
    ("session", "delete"): "changes",
    ("session", "discard"): "changes",
    ("session", "export"): "has --format json",
    ("stdio",): "speaks JSON alone",
    ("stop",): "changes",
}
"""What takes no --json, and why."""


def test_every_command_that_reads_takes_json() -> None:
    taking = {path for path, command in LEAVES.items() if any("--json" in each.opts for each in command.params)}
    expected = {path for path in LEAVES if path not in NOT_JSON and path[0] != "sessions"}
    assert {path for path in taking if path[0] != "sessions"} == expected
    assert expected >= READING
    assert not READING & NOT_JSON.keys()


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_help_tells_what_it_is_for_and_shows_an_example(path: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(hermes_ws, [*path, "--help"], terminal_width=80)
    assert shown.exit_code == 0
    assert "Examples:" in shown.output
    assert all(len(line) <= 80 for line in shown.output.splitlines()), shown.output
    assert (ALL[path].help or "").strip(), "it has a sentence"


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_what_does_not_exist_is_refused_before_anything_is_loaded(path: tuple[str, ...]) -> None:
    done = CliRunner().invoke(hermes_ws, [*path, "--nonsense"], env={"HERMES_HOME": "/nonexistent/home"})
    assert (done.exit_code, done.stdout) == (2, "")
    assert "No such option" in done.stderr


def _lines(text: str) -> Iterator[str]:
    """What begins with the command in a text, up to where it ends."""
    for found in re.finditer(r"hermes-ws(?= )([^\n|>;()`\"“”]*)", text):
        yield found.group(1)


MADE_OF_HELP = ROOT / "docs" / "reference" / "command-line.md"
"""What commands say of themselves, with placeholders where their names would stand."""


def _texts() -> Iterator[tuple[str, str]]:
    """Every text that a person may read a command in: strings of the package, its page, and the documentation."""
    for file in sorted((ROOT / "hermes_ws").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield file.relative_to(ROOT).as_posix(), node.value
            elif isinstance(node, ast.JoinedStr):
                parts = [each.value if isinstance(each, ast.Constant) else "X" for each in node.values]
                yield file.relative_to(ROOT).as_posix(), "".join(map(str, parts))
    for pattern in ("docs/**/*.md", "README.md", "CHANGELOG.md", "hermes_ws/dashboard/**/*.js"):
        for file in sorted(set(ROOT.glob(pattern)) - {MADE_OF_HELP}):
            yield file.relative_to(ROOT).as_posix(), file.read_text("utf-8")


MENTIONS = sorted({(place, line) for place, text in _texts() for line in _lines(text)})

PROSE = frozenset({"", "X.X", "serves", "command", "does", "that", "is", "profile", "server", "and", "X"})
"""Words that follow the name in a sentence; X stands for what is put in when it is said, such as a version."""


def test_there_are_mentions() -> None:
    assert len(MENTIONS) > 80


@pytest.mark.parametrize(("place", "line"), MENTIONS)
def test_a_command_that_is_named_anywhere_exists_with_its_options(place: str, line: str) -> None:
    """Hints, help, errors and pages name only what exists."""
    words = re.split(r"[ ,]+", line.strip())
    command: click.Command = hermes_ws
    while words and isinstance(command, click.Group):
        word = words[0].rstrip(".:,'")
        if word.startswith("-"):
            flags = {flag for each in command.params for flag in (*each.opts, "--help", "-h", "--version")}
            assert word in flags, f"{place}: hermes-ws {line}"
            words = words[2 if word in ("-p", "--profile") else 1 :]
        elif word in command.commands:
            command = command.commands[word]
            words = words[1:]
        else:
            break
    else:
        flags = {flag for each in command.params for flag in (*each.opts, *each.secondary_opts)} | {"--help", "-h"}
        for word in words:
            flag = word.rstrip(".:,'").partition("=")[0]
            if re.fullmatch(r"--?[a-z][a-z-]*", flag):
                assert flag in flags, f"{place}: {flag} of hermes-ws {line}"
        return
    assert command is hermes_ws, f"{place}: hermes-ws {line} names no command"
    assert words[0].rstrip(".:,'") in PROSE, f"{place}: hermes-ws {line} names no command"


def test_the_help_of_the_view_names_what_the_view_does() -> None:
    named = {word for line in HELP if not line.startswith(" ") for word in re.findall(r"/([a-z]+)", line)}
    here = {name for name, _ in IN_VIEW}
    assert here - {"compact", "help"} <= named
    assert named - here <= BUILT_IN.keys(), "a help that names what does not exist helps nobody"


@pytest.mark.parametrize("name", [name for name, _ in IN_VIEW])
def test_what_the_parity_table_calls_the_views_own_is_not_only_passed_on(name: str) -> None:
    needs = {"approve": " id once", "answer": " id text", "discard": " id"}.get(name, "")
    own = [parse(f"/{name}{needs}"), parse(f"/{name} x")]
    assert any(not isinstance(each, Slash) or each.line.split()[0] != f"/{name}" for each in own)


ALLOWED = frozenset({"click", "hermes_ws", "__main__"})
"""What help may load besides the standard library."""

ROOMS = frozenset({"hermes_ws.cli"})


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], *([*path, "--help"] for path in ALL)], ids=" ".join)
def test_help_loads_the_command_line_and_its_parser_alone(arguments: list[str]) -> None:
    script = (
        "import sys\nbefore = set(sys.modules)\n"
        "from hermes_ws.cli.main import hermes_ws\n"
        f"hermes_ws({arguments!r}, standalone_mode=False)\n"
        "new = set(sys.modules) - before\n"
        "ours = {n for n in new if n.startswith('hermes_ws.') and not n.startswith('hermes_ws.cli')}\n"
        f"others = {{n.partition('.')[0] for n in new}} - set(sys.stdlib_module_names) - {set(ALLOWED)!r}\n"
        "slow = {'ssl', 'sqlite3', 'asyncio', 'http', 'email', 'multiprocessing', 'socket'} & new\n"
        "sys.exit(f'loaded {sorted(ours | others | slow)}' if ours | others | slow else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stderr, done.returncode) == ("", 0)


def test_examples_of_help_can_be_carried_out() -> None:
    """Each line of an example parses with the options that there are."""
    tried = 0
    for path, command in ALL.items():
        for line in (command.epilog or "").splitlines():
            found = re.match(r"\s+(?:.*\| )?hermes-ws (.*?)(?: [|>]| &&|$)", line)
            if found is None:
                continue
            _parsed(shlex.split(found.group(1)), path)
            tried += 1
    assert tried >= len(ALL) - 2


def _parsed(words: list[str], where: tuple[str, ...]) -> None:
    command: click.Command = hermes_ws
    context = click.Context(hermes_ws)
    while isinstance(command, click.Group) and words:
        assert words[0] in command.commands, f"{where}: {words[0]}"
        command, words = command.commands[words[0]], words[1:]
    if not isinstance(command, click.Group):
        quiet = [word for word in words if not word.endswith((".txt", "passphrase"))]
        with context:
            command.make_context(where[-1], quiet, parent=context)
