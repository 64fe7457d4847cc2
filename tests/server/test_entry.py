"""Who is let in: Host, Origin and credential, at the door and over real sockets."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock
from websockets.exceptions import InvalidStatus
from websockets.trio.client import connect

from hermes_ws.contract.errors import AlreadyExists
from hermes_ws.contract.registry import Right
from hermes_ws.server import lateness
from hermes_ws.server.entry import Entry, Peer, Refusal, Visit, host_names, is_loopback
from hermes_ws.server.lateness import Lateness
from hermes_ws.server.sockets import listen_unix, remove_unix
from hermes_ws.server.token import LaunchToken, mint
from tests.server.stage import TOKEN, RawClient, stage

TCP = Peer("127.0.0.1")


def _entry(**settings: object) -> Entry:
    return Entry(
        LaunchToken(TOKEN),
        hosts=host_names("127.0.0.1", 8787, ("gate.example", "proxy.example:8443")),
        origins=("https://gate.example/",),
        uid=1000,
    )


def _visit(
    host: str | None = "127.0.0.1:8787",
    origin: str | None = None,
    authorization: str | None = f"Bearer {TOKEN}",
    subprotocols: tuple[str, ...] = (),
    peer: Peer = TCP,
) -> Visit:
    def some(value: str | None) -> tuple[str, ...]:
        return () if value is None else (value,)

    return Visit(peer, some(host), some(origin), some(authorization), subprotocols)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:8787",
        "localhost:8787",
        "LOCALHOST:8787",
        "[::1]:8787",
        "gate.example",
        "gate.example:8787",
        "proxy.example:8443",
    ],
)
async def test_a_host_of_ours_is_let_in(host: str) -> None:
    assert (await _entry().check(_visit(host))).name == "owner"


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "evil.example",
        "evil.example:8787",
        "127.0.0.1",
        "127.0.0.1:80",
        "127.0.0.1:87870",
        "127.0.0.1.evil.example:8787",
        "localhost.:8787",
        "0.0.0.0:8787",
        "gate.example:9999",
        "proxy.example",
        "user@127.0.0.1:8787",
    ],
)
async def test_any_other_host_is_refused(host: str | None) -> None:
    """AUTH-01."""
    with pytest.raises(Refusal) as refused:
        await _entry().check(_visit(host))
    assert refused.value.status == 403


@pytest.mark.parametrize("origin", [None, "http://127.0.0.1:8787", "http://localhost:8787", "https://gate.example"])
async def test_no_origin_or_one_of_ours_is_let_in(origin: str | None) -> None:
    """AUTH-02."""
    assert (await _entry().check(_visit(origin=origin))).name == "owner"


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "http://evil.example",
        "https://127.0.0.1:8787",
        "http://localhost:9999",
        "http://127.0.0.1",
        "http://gate.example:9999",
        "https://gate.example.evil.example",
        "https://gate.example/path",
    ],
)
async def test_a_foreign_origin_is_refused_whatever_the_token(origin: str) -> None:
    """AUTH-08, AUTH-09."""
    with pytest.raises(Refusal) as refused:
        await _entry().check(_visit(origin=origin))
    assert refused.value.status == 403


async def test_null_cannot_be_allowed_by_setting_it() -> None:
    entry = Entry(LaunchToken(TOKEN), hosts=frozenset({"h"}), origins=("null",))
    with pytest.raises(Refusal):
        await entry.check(_visit("h", "null"))


@pytest.mark.parametrize(
    ("authorization", "subprotocols"),
    [
        (f"Bearer {TOKEN}", ()),
        (f"bearer  {TOKEN}", ()),
        (None, ("hermes.v1", f"hermes.bearer.{TOKEN}")),
        (None, (f"hermes.bearer.{TOKEN}", "hermes.v1")),
    ],
)
async def test_the_token_comes_as_a_header_or_as_a_subprotocol(
    authorization: str | None, subprotocols: tuple[str, ...]
) -> None:
    principal = await _entry().check(_visit(authorization=authorization, subprotocols=subprotocols))
    assert principal.rights == frozenset(Right)
    assert principal.may_address("anything")


@pytest.mark.parametrize(
    ("authorization", "subprotocols"),
    [
        (None, ()),
        ("", ()),
        ("Bearer", ()),
        ("Bearer ", ()),
        (f"Basic {TOKEN}", ()),
        (TOKEN, ()),
        (f"Bearer {TOKEN}x", ()),
        (f"Bearer {TOKEN[:-1]}", ()),
        (f"Bearer {TOKEN} {TOKEN}", ()),
        ("Bearer " + "x" * 100_000, ()),
        ("Bearer ä", ()),
        (None, ("hermes.v1",)),
        (None, ("hermes.bearer.",)),
        (None, (f"hermes.bearer.{TOKEN}", "hermes.bearer.other")),
        ("Bearer wrong", (f"hermes.bearer.{TOKEN}",)),
    ],
)
async def test_anything_else_is_refused_as_a_wrong_credential(
    authorization: str | None, subprotocols: tuple[str, ...]
) -> None:
    with pytest.raises(Refusal) as refused:
        await _entry().check(_visit(authorization=authorization, subprotocols=subprotocols))
    assert (refused.value.status, refused.value.credential) == (401, True)


@pytest.mark.parametrize("which", ["hosts", "origins", "authorizations"])
async def test_a_header_that_comes_twice_is_refused(which: str) -> None:
    visit = _visit(origin="http://127.0.0.1:8787")
    twice = {name: getattr(visit, name) for name in ("hosts", "origins", "authorizations")}
    twice[which] = twice[which] * 2
    with pytest.raises(Refusal):
        await _entry().check(Visit(TCP, twice["hosts"], twice["origins"], twice["authorizations"]))


async def test_on_a_unix_socket_the_user_and_the_token_count_and_no_name() -> None:
    entry = _entry()
    assert (await entry.check(_visit("whatever", peer=Peer("unix:1000", 1000)))).name == "owner"
    with pytest.raises(Refusal) as other_user:
        await entry.check(_visit(peer=Peer("unix:1001", 1001)))
    assert other_user.value.status == 403
    with pytest.raises(Refusal) as no_token:
        await entry.check(_visit(authorization=None, peer=Peer("unix:1000", 1000)))
    assert no_token.value.status == 401


def test_the_names_of_a_server_follow_from_where_it_is_bound() -> None:
    assert "127.0.0.1" in host_names("127.0.0.1", 80)
    assert host_names("192.0.2.7", 8787) == {"192.0.2.7", "192.0.2.7:8787"}
    assert "[2001:db8::7]:8787" in host_names("2001:db8::7", 8787)
    assert host_names("0.0.0.0", 1, ("[2001:db8::7]",)) >= {"127.0.0.1:1", "[2001:db8::7]:1"}
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "gate.example")] == [
        True,
        True,
        True,
        False,
        False,
    ]


# --- over sockets ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"token": None}, 401),
        ({"token": "wrong"}, 401),
        ({"host": "evil.example", "token": None}, 403),
        ({"Origin": "http://evil.example", "token": None}, 403),
    ],
)
async def test_an_upgrade_is_refused_without_a_reason(headers: dict[str, str | None], status: int) -> None:
    async with stage() as on:
        client = await on.raw()
        await client.send(client.upgrade_head(**headers))
        answered, fields, body = await client.response()
        assert answered == status
        assert body.split() in ([b"Forbidden"], [b"Unauthorized"])
        assert fields["connection"] == "close"
        assert on.listener.connections == ()


async def test_a_token_in_the_address_is_not_looked_at() -> None:
    """AUTH-03, AUTH-04."""
    async with stage() as on:
        client = await on.raw()
        status, _ = await client.upgrade(f"/ws?token={TOKEN}", token=None)
        assert status == 401


@pytest.mark.parametrize("path", ["/", "/wss", "/p/other/ws", "/p/../ws", "/p/work%2f..%2fx/ws", "/p//ws", "/ws/"])
async def test_only_the_paths_of_a_websocket_are_upgraded(path: str) -> None:
    async with stage() as on:
        client = await on.raw()
        status, _ = await client.upgrade(path)
        assert status == 404


async def test_only_the_subprotocol_of_the_contract_is_echoed() -> None:
    async with stage() as on:
        client = await on.raw()
        offered = f"hermes.v1, hermes.bearer.{TOKEN}"
        status, headers = await client.upgrade(token=None, Sec_WebSocket_Protocol=offered)
        assert (status, headers["sec-websocket-protocol"]) == (101, "hermes.v1")
        other = await on.raw()
        status, headers = await other.upgrade(Sec_WebSocket_Protocol="chat")
        assert status == 101
        assert "sec-websocket-protocol" not in headers


async def test_a_library_that_is_refused_sees_the_status() -> None:
    async with stage() as on:
        with pytest.raises(InvalidStatus) as refused:
            async with connect(on.url):
                pass
        assert refused.value.response.status_code == 401


async def test_a_valid_credential_is_not_delayed_by_the_failures_of_others(autojump_clock: MockClock) -> None:
    late = Lateness()
    entry = _entry()
    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(late.wait, "127.0.0.1")
        await trio.testing.wait_all_tasks_blocked()
        began = trio.current_time()
        await entry.check(_visit())
        assert trio.current_time() == began


async def test_refusals_of_one_address_come_later_and_later_and_those_of_another_do_not(
    autojump_clock: MockClock,
) -> None:
    late = Lateness()
    delays: list[float] = []
    for _ in range(6):
        began = trio.current_time()
        assert await late.wait("192.0.2.1")
        delays.append(round(trio.current_time() - began, 3))
    assert delays == [0.2, 0.4, 0.8, 1.6, 2.0, 2.0]
    began = trio.current_time()
    await late.wait("192.0.2.2")
    assert trio.current_time() - began == pytest.approx(lateness.SHORTEST)
    await trio.sleep(lateness.FORGOTTEN_AFTER + 1)
    began = trio.current_time()
    await late.wait("192.0.2.1")
    assert trio.current_time() - began == pytest.approx(lateness.SHORTEST)


async def test_refusals_that_wait_are_bounded_per_address(autojump_clock: MockClock) -> None:
    late = Lateness()
    outcomes: list[bool] = []

    async def fail(address: str) -> None:
        outcomes.append(await late.wait(address))

    async with trio.open_nursery() as nursery:
        for number in range(lateness.WAITING + 5):
            # With IPv6 a whole network counts as one.
            nursery.start_soon(fail, f"2001:db8::{number:x}")
        await trio.testing.wait_all_tasks_blocked()
        assert late.waiting("2001:db8::1") == lateness.WAITING
        assert outcomes == [False] * 5
    assert outcomes.count(True) == lateness.WAITING


async def test_addresses_are_forgotten_when_there_are_too_many(autojump_clock: MockClock) -> None:
    late = Lateness()
    await late.wait("192.0.2.1")
    for number in range(lateness.ADDRESSES):
        late._record(f"{number}")  # pyright: ignore[reportPrivateUsage]
    assert len(late._records) == lateness.ADDRESSES  # pyright: ignore[reportPrivateUsage]
    assert late.waiting("192.0.2.1") == 0


# --- the token and the Unix socket -----------------------------------------------------------------------------------


async def test_a_token_is_written_for_its_owner_alone_and_replaces_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "token"
    first, second = mint(path), mint(path)
    assert path.read_text() == second
    assert first != second
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["token"]
    assert await LaunchToken(second).verify(second) is not None
    assert await LaunchToken(second).verify(first) is None
    assert second not in repr(LaunchToken(second))


def test_a_token_that_cannot_be_put_in_place_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.mkdir()
    with pytest.raises(OSError, match="directory"):
        mint(path)
    assert os.listdir(tmp_path) == ["token"]


@pytest.mark.parametrize("length", [10, 180])
async def test_the_unix_socket_is_private_and_works_under_any_path(tmp_path: Path, length: int) -> None:
    directory = tmp_path / ("d" * length)
    directory.mkdir()
    path = directory / "gateway.sock"
    async with stage(unix=path, uid=os.getuid()) as on:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert os.listdir(directory) == ["gateway.sock"]
        fd = os.open(directory, os.O_PATH)
        try:
            dialled = trio.socket.socket(trio.socket.AF_UNIX)
            await dialled.connect(f"/proc/self/fd/{fd}/gateway.sock")
        finally:
            os.close(fd)
        client = on.keep(RawClient(trio.SocketStream(dialled), on.port))
        status, _ = await client.upgrade(host="localhost")
        assert status == 101
        await client.message()
        await client.call(1, "echo")
        assert (await client.message())["id"] == 1


async def test_the_unix_socket_wants_the_token_as_well(tmp_path: Path) -> None:
    path = tmp_path / "gateway.sock"
    async with stage(unix=path, uid=os.getuid()) as on:
        dialled = trio.socket.socket(trio.socket.AF_UNIX)
        await dialled.connect(str(path))
        client = on.keep(RawClient(trio.SocketStream(dialled), on.port))
        status, _ = await client.upgrade(token=None)
        assert status == 401


async def test_what_a_crash_left_is_replaced_and_a_living_server_is_not(tmp_path: Path) -> None:
    path = tmp_path / "gateway.sock"
    first = listen_unix(path)
    with pytest.raises(AlreadyExists):
        listen_unix(path)
    await first.listener.aclose()
    assert path.exists()
    second = listen_unix(path)
    await second.listener.aclose()
    remove_unix(path)
    assert os.listdir(tmp_path) == []
    remove_unix(path)


def test_a_file_in_the_place_of_the_socket_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "gateway.sock"
    path.write_text("mine")
    remove_unix(path)
    assert path.read_text() == "mine"
