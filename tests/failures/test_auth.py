"""AUTH: who comes in, by what, and how far."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from tests.e2e.conftest import two_homes
from tests.e2e.gateway_client import PATIENCE, Client, Refused
from tests.e2e.process import Server
from tests.server.stage import stage


@pytest.fixture
def server(tmp_path: Path, base_environment: dict[str, str]) -> Server:
    return Server(two_homes(tmp_path / "homes"), tmp_path / "server.log", base_environment)


def status_of(url: str, **headers: str) -> int:
    with pytest.raises(InvalidStatus) as refused:
        connect(url, additional_headers=headers, compression=None, proxy=None, legacy=True)
    return refused.value.response.status_code


def test_auth_01_an_upgrade_is_looked_at_like_any_request(shared_server: Server) -> None:
    """With a right token, from a foreign page, and for a foreign name."""
    token = {"Authorization": f"Bearer {shared_server.token}"}
    assert status_of(shared_server.url, Origin="http://evil.example", **token) == 403
    address = shared_server.url.removeprefix("ws://").removesuffix("/ws")
    connection = http.client.HTTPConnection(address, timeout=PATIENCE)
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    key = {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    connection.request("GET", "/ws", headers={"Host": "evil.example", **upgrade, **key, **token})
    assert connection.getresponse().status == 403
    connection.close()


async def test_auth_02_a_page_behind_a_proxy_is_let_in_when_it_is_listed() -> None:
    """The proxy's name is a Host and an Origin of somebody else as long as the settings do not name them."""
    told = {"host": "p.example", "Origin": "https://p.example"}
    async with stage(hosts=("p.example",), origins=("https://p.example",)) as listed:
        assert (await (await listed.raw()).upgrade(**told))[0] == 101
        assert (await (await listed.raw()).upgrade(**{**told, "Origin": "https://q.example"}))[0] == 403
    async with stage() as unlisted:
        assert (await (await unlisted.raw()).upgrade(**told))[0] == 403


def test_auth_03_a_token_in_the_address_opens_nothing_and_is_written_nowhere(server: Server) -> None:
    """The server's own log and all files of its homes, after a refusal and an error."""
    assert status_of(f"{server.url}?token={server.token}") == 401
    with pytest.raises(Refused):
        server.connect().call("no.such.method")
    assert server.stop() == 0
    assert server.token not in server.log.read_text()
    holding = [file for file in server.homes.rglob("*") if file.is_file() and server.token in _text(file)]
    assert holding == [Path(server.announced["token_file"])]


def test_auth_04_what_stands_in_a_link_opens_nothing_by_itself_and_is_used_once(shared_server: Server) -> None:
    """A browser's ticket as a token, in an address, and exchanged twice."""
    owner = shared_server.connect()
    ticket = owner.call("ticket.issue", purpose="browser")["ticket"]
    assert status_of(shared_server.url, Authorization=f"Bearer {ticket}") == 401
    assert status_of(f"{shared_server.url}?ticket={ticket}") == 401
    connection = http.client.HTTPConnection(urlsplit(shared_server.url).netloc, timeout=PATIENCE)
    statuses = []
    for _ in range(2):
        connection.request("POST", "/login", json.dumps({"ticket": ticket}))
        answer = connection.getresponse()
        answer.read()
        statuses.append(answer.status)
    assert statuses == [200, 401]
    connection.close()
    (session,) = [row for row in owner.call("token.list")["tokens"] if row["kind"] == "session"]
    owner.call("token.revoke", token_id=session["token_id"])
    owner.close()


def test_auth_07_each_attempt_takes_a_ticket_of_its_own(shared_server: Server) -> None:
    """The second connection with one is refused, and the code for a credential that holds no more is documented."""
    owner = shared_server.connect()
    ticket = owner.call("ticket.issue")["ticket"]
    guest = Client(shared_server.url, ticket)
    assert status_of(shared_server.url, Authorization=f"Bearer {ticket}") == 401
    connection = http.client.HTTPConnection(urlsplit(shared_server.url).netloc, timeout=PATIENCE)
    connection.request("POST", "/login", json.dumps({"ticket": owner.call("ticket.issue")["ticket"]}))
    assert connection.getresponse().status == 401, "one that connects signs nobody in"
    connection.close()
    document = owner.call("rpc.discover")["document"]
    assert 4501 in {row["code"] for row in document["x-close-codes"]}
    for each in (owner, guest):
        each.close()


async def test_auth_08_a_loopback_address_is_no_credential() -> None:
    """From this machine: without a token, and with one from a page of somebody else."""
    async with stage() as on:
        assert (await (await on.raw()).upgrade(token=None))[0] == 401
        assert (await (await on.raw()).upgrade(Origin="http://evil.example"))[0] == 403
        assert (await (await on.raw()).upgrade(Origin="null"))[0] == 403


async def test_auth_09_another_port_of_this_machine_is_a_foreign_page() -> None:
    """A development server on the next port, and the page of this server."""
    async with stage() as on:
        for foreign in ("http://localhost:9999", "http://127.0.0.1:9999", "http://localhost"):
            assert (await (await on.raw()).upgrade(Origin=foreign))[0] == 403
        assert (await (await on.raw()).upgrade(Origin=f"http://localhost:{on.port}"))[0] == 101


def test_auth_10_a_token_for_one_profile_opens_no_other_by_its_path(shared_server: Server) -> None:
    """The token of one profile, the path of the other: as if it were not there."""
    owner = shared_server.connect()
    given = owner.call("token.create", name="narrow", profiles=["second"], rights=["observe", "submit"])
    token = {"Authorization": f"Bearer {given['token']}"}
    base = shared_server.url.removesuffix("/ws")
    assert [status_of(f"{base}/p/{name}/ws", **token) for name in ("default", "nowhere")] == [404, 404]
    narrow = Client(f"{base}/p/second/ws", given["token"])
    assert narrow.call("session.create")["profile"] == "second"
    narrow.close()
    owner.call("token.revoke", token_id=given["token_id"])
    owner.close()


def test_auth_11_whoever_may_issue_a_ticket_gives_a_whole_identity(shared_server: Server) -> None:
    """A ticket of the owner's is the owner: what it makes is found by the owner, and it may issue tickets itself."""
    owner = shared_server.connect()
    guest = Client(shared_server.url, owner.call("ticket.issue")["ticket"])
    session = guest.call("session.create", request_id="by-ticket")["session_id"]
    assert owner.call("session.create", request_id="by-ticket")["session_id"] == session
    assert Client(shared_server.url, guest.call("ticket.issue")["ticket"]).call("gateway.ping") == {"ok": True}
    for each in (owner, guest):
        each.close()


def test_ident_07_a_token_for_a_profile_that_is_gone_falls_back_to_no_other(server: Server) -> None:
    """Its profile is renamed and the old name given to a new one; then it is deleted."""
    owner = server.connect()
    given = owner.call("token.create", name="desk", profiles=["second"], rights=["observe", "submit"])
    desk = Client(server.url, given["token"])
    owner.call("profiles.rename", profile="second", name="moved")
    with pytest.raises(ConnectionClosed) as closed:
        while True:
            desk.pump()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4400, "it is to come back, to what it may address now"
    owner.call("profiles.create", name="second")
    again = Client(server.url, given["token"])
    assert again.ready["payload"]["profiles"] == ["moved"]
    assert again.call("session.create", profile="moved")["profile"] == "moved"
    with pytest.raises(Refused) as other:
        again.call("session.create", profile="second")
    assert other.value.type == "profile_unknown"
    owner.call("profiles.delete", profile="moved", confirm="moved")
    left = Client(server.url, given["token"])
    assert left.ready["payload"]["profiles"] == []
    with pytest.raises(Refused) as gone:
        left.call("session.create")
    assert gone.value.type == "profile_unknown"
    assert server.stop() == 0


def test_authority_belongs_to_who_asks_and_not_to_a_connection(shared_server: Server) -> None:
    """One connection starts a turn and drops; another of the same principal ends it."""
    first = shared_server.connect()
    session = first.call("session.create")["session_id"]
    admitted = first.submit(session, "/do wait 600")
    started = first.until(lambda e: e["type"] == "execution.started" and e["admission_id"] == admitted["admission_id"])
    first.cut()
    second = shared_server.connect()
    second.call("session.resume", session_id=session)
    generation = started["payload"]["execution_generation"]
    told = second.call("session.interrupt", session_id=session, execution_generation=generation)
    assert told["outcome"] == "accepted"
    assert second.finished(admitted["admission_id"])["outcome"] == "interrupted"
    second.close()


def _text(file: Path) -> str:
    return file.read_bytes().decode(errors="replace")
