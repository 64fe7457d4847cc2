"""What is wrong gets the answer that says so, and the server goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from hermes_ws.contract.catalog import METHODS
from tests.e2e.gateway_client import Client, Refused
from tests.e2e.process import Server, write_home
from tests.permissions.examples import example

Serve = Callable[..., Server]


@pytest.fixture
def client(shared_server: Server) -> Iterator[Client]:
    """A connection of its own to a server that several tests use: none of them may harm it."""
    client = shared_server.connect()
    yield client
    client.close()


def raw(client: Client, text: str | bytes) -> dict[str, Any]:
    client.socket.send(text)
    while True:
        frame = client.pump()
        if "error" in frame or "result" in frame:
            return frame


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", -32700),
        ("nonsense", -32700),
        ("[]", -32600),
        ('[{"jsonrpc":"2.0","id":1,"method":"gateway.ping"}]', -32600),
        ('{"id":1,"method":"gateway.ping"}', -32600),
        ('{"jsonrpc":"2.0","id":1,"method":7}', -32600),
        ('{"jsonrpc":"2.0","method":"gateway.ping"}', -32600),
        ('{"jsonrpc":"2.0","id":1,"method":"profiles.list","params":[1]}', -32602),
        ('{"jsonrpc":"2.0","id":1,"method":"no.such"}', -32601),
    ],
)
def test_a_malformed_frame_is_refused_and_the_connection_stays(client: Client, text: str, code: int) -> None:
    assert raw(client, text)["error"]["code"] == code
    assert client.call("gateway.ping") == {"ok": True}


def test_an_unknown_key_is_named(client: Client) -> None:
    with pytest.raises(Refused) as caught:
        client.call("session.list", colour="red")
    assert (caught.value.code, caught.value.type, caught.value.data["path"]) == (4000, "unknown_parameter", "colour")


def test_a_frame_that_is_too_large_closes_the_connection_and_no_other(shared_server: Server) -> None:
    client, other = shared_server.connect(), shared_server.connect()
    client.socket.send("x" * (client.ready["payload"]["limits"]["frame_bytes"] + 1))
    with pytest.raises(Exception, match="1009"):
        client.pump()
    assert other.call("gateway.ping") == {"ok": True}


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic eDp5"}])
def test_without_the_token_there_is_no_upgrade(shared_server: Server, headers: dict[str, str]) -> None:
    server = shared_server
    with pytest.raises(InvalidStatus) as caught:
        connect(server.url, additional_headers=headers, proxy=None, legacy=True)
    assert caught.value.response.status_code == 401
    assert server.connect().call("gateway.ping") == {"ok": True}


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:1", "https://127.0.0.1"])
def test_a_foreign_origin_is_refused_even_with_the_token(shared_server: Server, origin: str) -> None:
    """AUTH-01, AUTH-08, AUTH-09."""
    server = shared_server
    headers = {"Authorization": f"Bearer {server.token}", "Origin": origin}
    with pytest.raises(InvalidStatus) as caught:
        connect(server.url, additional_headers=headers, proxy=None, legacy=True)
    assert caught.value.response.status_code == 403


@pytest.mark.parametrize(
    "name",
    ["../second", "..", "/etc", "a/b", "sec\u043end", "x" * 65, "SECOND", "second.", "con", "root", "nope", "%2e%2e"],
)
def test_a_profile_that_is_not_served_is_unknown_whatever_its_name(
    client: Client, shared_server: Server, name: str
) -> None:
    """IDENT-01, IDENT-05, IDENT-06: one error, no path, nothing created."""
    before = sorted(shared_server.homes.parent.iterdir())
    with pytest.raises(Refused) as caught:
        client.call("session.create", profile=name)
    assert caught.value.code in {4000, 4064}
    assert sorted(shared_server.homes.parent.iterdir()) == before
    assert client.call("gateway.ping") == {"ok": True}


def test_every_method_that_takes_a_profile_refuses_an_unknown_one_alike(client: Client) -> None:
    """IDENT-06."""
    asked = 0
    for method in METHODS.values():
        if "profile" not in method.params.model_fields:
            continue
        with pytest.raises(Refused) as caught:
            client.call(method.name, **{**example(method), "profile": "nope"})
        assert caught.value.code == 4064, method.name
        asked += 1
    assert asked > 5


def test_a_broken_profile_says_what_is_wrong_and_harms_no_other(serve: Serve, homes: Path) -> None:
    write_home(homes / "typo", env={}, config="terminal:\n  netwrok: deny\n")
    write_home(homes / "broken", env={}, config="terminal: [unclosed\n")
    write_home(homes / "open", env={"KEY": "value-of-open-123"}, config="")
    (homes / "open" / ".env").chmod(0o644)
    client = serve().connect()
    for name, words in (("typo", "network"), ("broken", "config.yaml"), ("open", "chmod")):
        with pytest.raises(Refused) as caught:
            client.call("session.create", profile=name)
        assert caught.value.code == 4064, name
        assert words in json.dumps(caught.value.data) + str(caught.value), name
        assert "value-of-open" not in str(caught.value.data)
    session = client.call("session.create", profile="second")["session_id"]
    client.finished(client.submit(session, "still here?")["admission_id"])


def test_a_line_of_env_that_does_not_parse_is_told_and_the_others_load(serve: Serve, homes: Path) -> None:
    with (homes / "second" / ".env").open("a") as file:
        file.write("this is no assignment ~ \nAFTER=value-after-4321\n")
    client = serve().connect()
    described = client.call("profiles.describe", profile="second")
    assert "AFTER" in described["secret_names"]
    assert any("3" in problem for problem in described["problems"])
    assert "this is no assignment" not in json.dumps(described)
