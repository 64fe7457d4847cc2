"""The options that a session is made with and keeps: how they are written, and which request they become."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

import click

if TYPE_CHECKING:
    from pydantic import JsonValue

F = TypeVar("F", bound=Callable[..., object])

SWITCHES: Final = (
    ("checkpoints", "Keep what files were, so that changes can be taken back."),
    ("yolo", "Ask for no approvals in this session."),
    ("accept-hooks", "Run the profile's hooks (also: HERMES_ACCEPT_HOOKS=1)."),
    ("pass-session-id", "Tell the agent its session's id."),
    ("ignore-rules", "Leave the project's instruction files out."),
    ("ignore-user-config", "Leave the profile's settings out; needs --model."),
    ("safe-mode", "Read nothing of the profile and no project; needs --model."),
)

UNCOMPARED: Final = frozenset({"api_key", "accept_hooks"})
"""A key is stored nowhere, and hooks are accepted when a session is made: neither can be compared later."""


def declared(function: F) -> F:
    """Declare all of them."""
    for name, told in reversed(SWITCHES):
        function = click.option(f"--{name}", is_flag=True, help=told)(function)
    skills = click.option("-s", "--skills", multiple=True, metavar="NAME,...", help="Skills that it begins with.")
    turns = click.option("--max-turns", type=click.IntRange(1, 10_000), metavar="N", help="Steps of one execution.")
    toolsets = click.option("-t", "--toolsets", metavar="NAME,...", help="Tools of these families alone.")
    reasoning = click.option("--reasoning", type=click.Choice(["none", "low", "medium", "high"]), help="How hard.")
    key = click.option("--api-key", metavar="KEY", help="For --base-url; kept in the server's memory only.")
    url = click.option("--base-url", metavar="URL", help="Where the model answers.")
    provider = click.option("--provider", metavar="NAME", help="Whose model it is.")
    model = click.option("-m", "--model", metavar="NAME", help="The model.")
    for option in (skills, turns, toolsets, reasoning, key, url, provider, model):
        function = option(function)
    return function


def take_frozen(given: dict[str, object], *, accept_hooks: bool, new: bool) -> Mapping[str, JsonValue]:
    """Take them out of what was given, as fields of `session.create`; only those that were asked for.

    `accept_hooks` is what the environment says, which counts for a `new` session alone. Raises UsageError.
    """
    asked: dict[str, JsonValue] = {}
    for name in ("model", "provider", "base_url", "api_key", "reasoning"):
        text = given.pop(name)
        if isinstance(text, str):
            if not text.strip():
                raise click.UsageError(f"--{name.replace('_', '-')} is blank.")
            asked[name] = text.strip()
    turns = given.pop("max_turns")
    if isinstance(turns, int):
        asked["max_turns"] = turns
    toolsets = given.pop("toolsets")
    if isinstance(toolsets, str):
        names = _names([toolsets])
        if not names:
            raise click.UsageError("--toolsets is blank.")
        asked["toolsets"] = [*names]
    skills = given.pop("skills")
    if isinstance(skills, tuple):
        names = _names([str(each) for each in skills])  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        if names:
            asked["skills"] = [*names]
    for written, _ in SWITCHES:
        name = written.replace("-", "_")
        if given.pop(name):
            asked[name] = True
    if accept_hooks and new:
        asked["accept_hooks"] = True
    _see(asked)
    return asked


def _see(asked: Mapping[str, JsonValue]) -> None:
    for name in ("safe_mode", "ignore_user_config"):
        if name in asked and "model" not in asked:
            raise click.UsageError(f"--{name.replace('_', '-')} needs --model: the profile's own is not read.")
    base_url = asked.get("base_url")
    if isinstance(base_url, str):
        _see_url(base_url)
        if "api_key" not in asked:
            raise click.UsageError("--base-url needs --api-key: a key of the profile is not sent elsewhere.")


def _see_url(text: str) -> None:
    from urllib.parse import urlsplit

    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise click.UsageError("--base-url begins with http:// or https:// and names a host.")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise click.UsageError("--base-url carries neither user, query nor fragment; the key goes into --api-key.")


def _names(lists: list[str]) -> list[str]:
    found = [name.strip() for each in lists for name in each.split(",")]
    return list(dict.fromkeys(name for name in found if name))


def written(field: str) -> str:
    """The option that a field of `session.create` comes from."""
    return "--in" if field == "cwd" else f"--{field.replace('_', '-')}"


def changes(
    asked: Mapping[str, JsonValue], launch: Mapping[str, JsonValue], info: Mapping[str, JsonValue]
) -> list[str]:
    """The options that would change what a session was made with. `launch` has what it was made with, and `info` the
    rest: its directory and its source."""
    changed: list[str] = []
    for name, value in asked.items():
        if name in UNCOMPARED:
            continue
        frozen = info.get(name) if name in ("cwd", "source") else launch.get(name)
        if (frozen or None) != (value or None):
            changed.append(written(name))
    return changed
