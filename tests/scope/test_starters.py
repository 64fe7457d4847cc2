"""What a home that came from elsewhere would start by itself: off, and named, until its owner has confirmed it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hermes_ws.scope.config import ProfileConfig, parse_config
from hermes_ws.scope.home import ProfileHome
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.scope.starters import disarmed

STARTING = """\
display: {skin: plain}
mcp_servers:
  files: {command: files-server}
hooks:
  turn_end: [{command: ./notify}]
quick_commands:
  deploy: {type: exec, command: make deploy}
secrets:
  plain: [CITY]
  sources: [{kind: command, command: [vault-reader]}]
providers:
  minted: {kind: openai, base_url: "https://models.example/v1", key_command: [mint]}
  keyed: {kind: openai, base_url: "https://models.example/v1", api_key: "${KEY}"}
"""


def parse(text: str) -> ProfileConfig:
    return parse_config(text.encode(), Path("config.yaml"))


def test_everything_that_starts_a_program_is_off_and_named() -> None:
    config, off = disarmed(parse(STARTING))
    assert off == ("mcp_servers", "hooks", "quick_commands", "secrets.sources", "providers.minted.key_command")
    assert (config.mcp_servers, config.quick_commands, config.secrets.sources) == ({}, {}, ())
    assert not config.hooks
    assert config.providers["minted"].key_command == ()


def test_everything_else_stays() -> None:
    before = parse(STARTING)
    config, _ = disarmed(before)
    assert (config.display.skin, config.secrets.plain) == ("plain", ("CITY",))
    assert config.providers["keyed"] == before.providers["keyed"]
    assert config.providers["minted"].base_url == "https://models.example/v1"


def test_where_nothing_starts_nothing_is_changed() -> None:
    config = parse("display: {skin: plain}\n")
    assert disarmed(config) == (config, ())


def test_an_imported_home_is_loaded_without_what_it_would_start(
    make_home: Callable[..., ProfileHome], load: Callable[..., ProfileScope]
) -> None:
    home = make_home("b", config="hooks: {turn_end: [{command: ./notify}]}\n")
    assert bool(load(home).config.hooks)
    home.imported.touch()
    scope = load(home)
    assert (bool(scope.config.hooks), scope.off) == (False, ("hooks",))
