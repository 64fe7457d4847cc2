"""The command line of the reference: what each command says of itself, and what the numbers mean that it ends with."""

from __future__ import annotations

import ast
import inspect
import itertools
from collections.abc import Iterator

import click

from hermes_ws.cli import exits
from hermes_ws.cli.main import hermes_ws

WIDTH = 100
"""Columns: what a page shows without scrolling."""


def page(note: str) -> Iterator[str]:
    """The page, in pieces."""
    yield f"# The command line\n\n{note}\n## How it ends\n\n| code | |\n|---|---|\n"
    for code, meaning in _codes():
        yield f"| {code} | {meaning} |\n"
    yield "\n"
    seen: set[int] = set()
    for names, command in _commands(("hermes-ws",), hermes_ws):
        if id(command) in seen:
            continue
        seen.add(id(command))
        context = click.Context(command, info_name=" ".join(names), terminal_width=WIDTH, max_content_width=WIDTH)
        context.help_option_names = ["-h", "--help"]
        shown = "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
        yield f"## `{' '.join(names)}`\n\n```text\n{shown}\n```\n\n"


def _commands(names: tuple[str, ...], command: click.Command) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield names, command
    if isinstance(command, click.Group):
        for name, each in sorted(command.commands.items()):
            if not each.hidden:
                yield from _commands((*names, name), each)


def _codes() -> Iterator[tuple[int, str]]:
    """Each constant of `exits`, with the sentence that stands below it."""
    body = ast.parse(inspect.getsource(exits)).body
    for constant, told in itertools.pairwise(body):
        match constant, told:
            case (
                ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=str() as meaning)),
            ):
                yield getattr(exits, name), meaning.replace("\n", " ")
            case _:
                pass
