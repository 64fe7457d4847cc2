"""With what an endpoint is reached: a session's own key and address, and keys that are made for the moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import trio

from hermes_ws.agent.models.choose import choose
from hermes_ws.agent.models.local import LocalModel
from hermes_ws.agent.models.model import ModelRequest, RetryPiece
from hermes_ws.contract.errors import ModelFailed, ModelUnauthorised
from hermes_ws.scope.config import parse_config
from tests.agent.chat_model import ask, ask_until_failure, refusing, saying, text
from tests.agent.chat_server import ChatServer
from tests.agent.test_choose import scope_of
from tests.agent.twins import user


class Machine:
    """Gives the next key each time, and keeps what it was asked."""

    def __init__(self, *keys: str, url: str = "") -> None:
        self.asked: list[tuple[str, Sequence[str], Mapping[str, str]]] = []
        self.started: list[str] = []
        self._keys = list(keys)
        self._url = url

    async def mint(self, provider: str, command: Sequence[str], env: Mapping[str, str]) -> str:
        await trio.lowlevel.checkpoint()
        self.asked.append((provider, command, env))
        return self._keys.pop(0)

    async def local(self, model: str) -> tuple[str, str]:
        await trio.lowlevel.checkpoint()
        self.started.append(model)
        return self._url, "its-own-key"


def config(server: ChatServer, **provider: Any) -> str:
    described = {"kind": "openai", "base_url": server.base_url, **provider}
    return str({"model": {"provider": "mine", "name": "tiny"}, "providers": {"mine": described}})


async def test_a_session_brings_its_own_key_and_address(server: ChatServer, tmp_path: Path) -> None:
    """The profile's key and headers do not go to an address that a session named."""
    scope = scope_of(
        tmp_path,
        config(server, base_url="http://127.0.0.1:9/v1", api_key="${MY_KEY}", headers={"X-Org": "${MY_KEY}"}),
        "MY_KEY=profiles-own-key\n",
    )
    server.answers = [saying("one"), saying("two")]
    assert text(await ask(choose(scope, {"base_url": server.base_url}))) == "one"
    assert text(await ask(choose(scope, {"base_url": server.base_url, "api_key": "launch-key-1"}))) == "two"
    first, second = (asked.headers for asked in server.asked)
    assert "authorization" not in first
    assert second["authorization"] == "Bearer launch-key-1"
    assert "profiles-own-key" not in str([dict(each.headers) for each in server.asked])


async def test_a_session_brings_a_key_for_the_profiles_address(server: ChatServer, tmp_path: Path) -> None:
    scope = scope_of(tmp_path, config(server))
    server.answers = [refusing(401, "no")]
    _, failed = await ask_until_failure(choose(scope, {"api_key": "launch-key-1"}))
    assert server.asked[0].headers["authorization"] == "Bearer launch-key-1"
    assert "the session's api_key" in failed.hint


def test_a_session_that_names_no_address_is_told(tmp_path: Path) -> None:
    with pytest.raises(ModelFailed, match="base_url is not an address"):
        choose(scope_of(tmp_path), {"provider": "openai", "model": "x", "base_url": "ftp://x", "api_key": "k"})


async def test_a_key_is_made_by_a_command_once_and_anew_when_it_is_refused(server: ChatServer, tmp_path: Path) -> None:
    scope = scope_of(tmp_path, config(server, key_command=["mint", "--now"], key_env=["SEED"]), "SEED=secret-seed\n")
    machine = Machine("key-one", "key-two", "key-three")
    model = choose(scope, {}, machine=machine)
    server.answers = [saying("a"), refusing(401, "key-one has expired"), saying("b")]
    async with model.stream(ModelRequest("", [user("hi")])) as pieces:
        assert text([piece async for piece in pieces]) == "a"
    pieces = await ask(model)
    assert text(pieces) == "b"
    [retry] = [each for each in pieces if isinstance(each, RetryPiece)]
    assert "key-one" not in retry.reason
    assert [asked.headers["authorization"] for asked in server.asked] == [
        "Bearer key-one",
        "Bearer key-one",
        "Bearer key-two",
    ]
    assert machine.asked[0] == ("mine", ("mint", "--now"), {"SEED": "secret-seed"})


async def test_a_fresh_key_that_is_refused_is_not_made_again(server: ChatServer, tmp_path: Path) -> None:
    scope = scope_of(tmp_path, config(server, key_command=["mint"]))
    machine = Machine("key-one", "key-two")
    server.answers = [refusing(401, "no such key: key-one")]
    _, failed = await ask_until_failure(choose(scope, {}, machine=machine))
    assert isinstance(failed, ModelUnauthorised)
    assert "key-one" not in failed.message
    assert "providers.mine.key_command" in failed.hint
    assert len(machine.asked) == 1


async def test_a_local_model_is_started_with_the_first_request(server: ChatServer, tmp_path: Path) -> None:
    machine = Machine(url=server.base_url)
    model = choose(scope_of(tmp_path), {"provider": "local", "model": "smollm2"}, machine=machine)
    assert isinstance(model, LocalModel)
    assert not machine.started
    server.answers = [saying("hi")]
    assert text(await ask(model)) == "hi"
    assert machine.started == ["smollm2"]
    assert server.asked[0].headers["authorization"] == "Bearer its-own-key"


def test_providers_that_need_no_description_can_be_named(tmp_path: Path) -> None:
    for name in ("anthropic", "local", "openai", "loopback"):
        parsed = parse_config(f"model: {{provider: {name}, name: x}}".encode(), tmp_path / "config.yaml")
        assert parsed.model.provider == name


def test_a_key_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelUnauthorised) as missing:
        choose(scope_of(tmp_path), {"provider": "anthropic", "model": "x"})
    assert "ANTHROPIC_API_KEY" in missing.value.hint
