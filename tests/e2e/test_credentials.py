"""Who else may come in: tokens that are given and taken back, tickets, and a browser that signs in."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from hermes_ws.scope.config import parse_config
from tests.e2e.gateway_client import Client, Refused
from tests.e2e.process import Server

DESK = {"name": "desk", "profiles": ["second"], "rights": ["observe", "submit"]}


def closed_with(client: Client) -> int:
    """The close code of a connection that the server ends; what comes before it is passed over."""
    with pytest.raises(ConnectionClosed) as closed:
        while True:
            client.pump()
    assert closed.value.rcvd is not None
    return closed.value.rcvd.code


def post(server: Server, path: str, body: Any, **headers: str) -> tuple[int, dict[str, Any]]:
    address = server.url.removeprefix("ws://").removesuffix("/ws")
    connection = http.client.HTTPConnection(address, timeout=30)
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json", **headers})
    response = connection.getresponse()
    text = response.read()
    connection.close()
    assert response.getheader("Set-Cookie") is None
    assert response.getheader("Access-Control-Allow-Origin") is None
    return response.status, json.loads(text) if text.startswith(b"{") else {}


def refusal(client: Client, method: str, **params: Any) -> dict[str, Any]:
    with pytest.raises(Refused) as refused:
        client.call(method, **params)
    return {"code": refused.value.code, "message": str(refused.value), "data": refused.value.data}


def test_a_token_opens_what_it_was_made_for(shared_server: Server) -> None:
    owner = shared_server.connect()
    made = owner.call("token.create", **DESK)
    assert (made["profiles"], made["rights"], made["principal"]) == (["second"], ["observe", "submit"], "desk")
    desk = Client(shared_server.url, made["token"])
    assert desk.ready["payload"]["profiles"] == ["second"]
    assert [row["name"] for row in desk.call("profiles.list")["profiles"]] == ["second"]
    created = desk.call("session.create", profile="second")
    assert desk.submit(created["session_id"], "/do say hello")["status"] == "queued"
    # Hidden is answered like absent, whether or not it is there.
    theirs = owner.call("session.create", profile="default")["session_id"]
    hidden = refusal(desk, "session.resume", session_id=theirs)
    absent = refusal(desk, "session.resume", session_id="zzzzzzzz-missing")
    assert json.dumps(hidden).replace(theirs, "…") == json.dumps(absent).replace("zzzzzzzz-missing", "…")
    assert refusal(desk, "session.create", profile="default")["data"]["type"] == "profile_unknown"
    assert refusal(desk, "session.create")["data"]["type"] == "profile_unknown"
    # And so are the rights that it lacks.
    denied = refusal(desk, "session.interrupt", session_id=created["session_id"], execution_generation=1)
    assert denied["data"]["right"] == "control"
    assert refusal(desk, "token.list")["data"]["right"] == "admin"
    owner.call("token.revoke", token_id=made["token_id"])
    for each in (owner, desk):
        each.close()


def test_a_revoked_token_sends_its_connections_out(shared_server: Server) -> None:
    owner = shared_server.connect()
    made = owner.call("token.create", **DESK | {"name": "leaving"})
    desk, other = Client(shared_server.url, made["token"]), shared_server.connect()
    assert owner.call("token.revoke", token_id=made["token_id"]) == {"token_ids": [made["token_id"]]}
    assert closed_with(desk) == 4501
    with pytest.raises(InvalidStatus) as refused:
        Client(shared_server.url, made["token"])
    assert refused.value.response.status_code == 401
    assert other.call("gateway.ping") == {"ok": True}
    assert refusal(owner, "token.revoke", token_id=made["token_id"])["data"]["type"] == "not_found"
    for each in (owner, other):
        each.close()


def test_who_gives_has_no_more_to_give_than_it_has(shared_server: Server) -> None:
    owner = shared_server.connect()
    admin = owner.call("token.create", name="admin-of-second", profiles=["second"], rights=["admin", "observe"])
    limited = Client(shared_server.url, admin["token"])
    assert refusal(limited, "token.create", name="x", rights=["submit"])["data"]["type"] == "permission_denied"
    hidden = refusal(limited, "token.create", name="x", profiles=["default"], rights=["observe"])
    absent = refusal(limited, "token.create", name="x", profiles=["nowhere"], rights=["observe"])
    assert json.dumps(hidden).replace("default", "…") == json.dumps(absent).replace("nowhere", "…")
    assert limited.call("token.create", name="less", rights=["observe"])["profiles"] == ["second"]
    mighty = owner.call("token.create", name="mighty", rights=["admin", "submit"])
    assert mighty["token_id"] not in {row["token_id"] for row in limited.call("token.list")["tokens"]}
    assert refusal(limited, "token.revoke", token_id=mighty["token_id"])["data"]["type"] == "not_found"
    ended = owner.call("token.revoke", token_id=admin["token_id"])["token_ids"]
    assert len(ended) == 2, "what it made ends with it"
    owner.call("token.revoke", token_id=mighty["token_id"])
    assert closed_with(limited) == 4501
    owner.close()


def test_a_ticket_lets_one_connection_in(shared_server: Server) -> None:
    """AUTH-07, AUTH-11: each attempt takes a new one, and what comes in by it is a whole identity."""
    owner = shared_server.connect()
    ticket = owner.call("ticket.issue", rights=["observe", "admin"], profiles=["second"])
    guest = Client(shared_server.url, ticket["ticket"])
    assert guest.ready["payload"]["profiles"] == ["second"]
    assert guest.call("ticket.issue")["purpose"] == "connect"
    with pytest.raises(InvalidStatus):
        Client(shared_server.url, ticket["ticket"])
    browser = owner.call("ticket.issue", purpose="browser")
    with pytest.raises(InvalidStatus):
        Client(shared_server.url, browser["ticket"])
    for each in (owner, guest):
        each.close()


def test_a_browser_exchanges_the_ticket_of_its_link_for_a_token(serve: Callable[..., Server], homes: Path) -> None:
    """AUTH-04, AUTH-05: what stands in a link is for one use; what lasts is in no address and outlives a restart."""
    server = serve()
    page = server.url.replace("ws://", "http://").removesuffix("/ws")
    owner = server.connect()
    ticket = owner.call("ticket.issue", purpose="browser")["ticket"]
    foreign, _ = post(server, "/login", {"ticket": ticket}, Origin="http://evil.example")
    rebound, _ = post(server, "/login", {"ticket": ticket}, Host="evil.example")
    wrong, _ = post(server, "/login", {"ticket": "hws_wrong"}, Origin=page)
    malformed, _ = post(server, "/login", ["ticket"], Origin=page)
    assert (foreign, rebound, wrong, malformed) == (403, 403, 401, 400)
    status, signed_in = post(server, "/login", {"ticket": ticket}, Origin=page)
    assert (status, signed_in["principal"]) == (200, "owner")
    assert post(server, "/login", {"ticket": ticket}, Origin=page)[0] == 401, "it was for one use"
    rows = [row for row in owner.call("token.list")["tokens"] if row["kind"] == "session"]
    assert len(rows) == 1
    token = signed_in["token"]
    session = Client(server.url, token).call("session.create")["session_id"]
    sent = {"session_id": session, "input_id": "once", "text": "/do say hello"}
    first = owner.call("prompt.submit", **sent)
    named = owner.call("token.create", **DESK)
    owner.close()
    assert server.stop() == 0
    # A restart changes the launch token and nobody else's, and the owner is who it was (AUTH-05).
    again = serve()
    assert again.token != server.token
    back = Client(again.url, token)
    assert back.call("prompt.submit", **sent)["admission_id"] == first["admission_id"]
    Client(again.url, named["token"]).close()
    with pytest.raises(InvalidStatus):
        Client(again.url, server.token)
    back.call("token.revoke", token_id=rows[0]["token_id"])
    assert closed_with(back) == 4501
    with pytest.raises(InvalidStatus):
        Client(again.url, token)
    assert again.stop() == 0
    secrets = [each.encode() for each in (token, named["token"], ticket)]
    for file in (each for each in homes.rglob("*") if each.is_file()):
        with suppress(OSError):
            content = file.read_bytes()
            assert not any(secret in content for secret in secrets), file
    assert not any(secret in again.log.read_bytes() for secret in secrets)


def test_it_is_written_down_who_did_what(shared_server: Server) -> None:
    owner = shared_server.connect()
    made = owner.call("token.create", name="writer", profiles=["second"], rights=["observe", "submit"])
    writer = Client(shared_server.url, made["token"])
    session = writer.call("session.create", profile="second")["session_id"]
    writer.submit(session, "/do say a-text-that-is-kept-out")
    refusal(writer, "session.create", profile="second", agent="nobody")
    writer.call("session.list", profile="second")
    page = owner.call("runtime.audit", profile="second", principal="writer")
    told = [(each["method"], each["outcome"]) for each in page["entries"]]
    assert told == [("session.create", "not_found"), ("prompt.submit", "ok"), ("session.create", "ok")]
    assert page["entries"][1]["session_id"] == session
    assert page["entries"][1]["credential"] == made["token_id"]
    assert "kept-out" not in json.dumps(page)
    first = owner.call("runtime.audit", profile="second", principal="writer", limit=2)
    rest = owner.call("runtime.audit", profile="second", principal="writer", limit=2, before=first["next"])
    assert first["entries"] + rest["entries"] == page["entries"]
    # What is about the server stands with the launch profile, and with no other.
    assert owner.call("runtime.audit", method_name="token.create")["entries"][0]["principal"] == "owner"
    assert owner.call("runtime.audit", profile="second", method_name="token.create")["entries"] == []
    owner.call("token.revoke", token_id=made["token_id"])
    for each in (owner, writer):
        each.close()


def test_the_documented_way_to_give_a_token_works(shared_server: Server) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "let-others-in.md").read_text("utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (settings,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert parse_config(settings.encode(), Path("config.yaml")).server.hosts == ("gate.example",)
    names: dict[str, Any] = {}
    exec(example.replace('"work"', '"second"'), names)
    made = anyio.run(names["give"], Path(shared_server.announced["socket"]), shared_server.token)
    phone = Client(shared_server.url, made.token)
    assert phone.ready["payload"]["profiles"] == ["second"]
    phone.close()
