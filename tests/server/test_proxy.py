"""Whose address counts when proxies stand in front."""

from __future__ import annotations

import pytest
import trio

from hermes_ws.contract.errors import ProfileUnusable
from hermes_ws.server.entry import Peer
from hermes_ws.server.proxy import LONGEST_CHAIN, Proxies
from tests.server.stage import TOKEN, stage

NAMED = Proxies.parse(["10.0.0.2", "192.168.0.0/24", "fd00::/8"])


def head(*forwarded: str) -> bytes:
    return b"".join((b"GET /ws HTTP/1.1\r\nHost: x", *(f"\r\nX-Forwarded-For: {each}".encode() for each in forwarded)))


@pytest.mark.parametrize(
    ("peer", "forwarded", "found"),
    [
        ("10.0.0.2", ["203.0.113.7"], "203.0.113.7"),
        ("10.0.0.2", ["198.51.100.1, 203.0.113.7"], "203.0.113.7"),
        ("10.0.0.2", ["203.0.113.7, 192.168.0.9"], "203.0.113.7"),
        ("10.0.0.2", ["203.0.113.7", "192.168.0.9"], "203.0.113.7"),
        ("10.0.0.2", ["192.168.0.8, 192.168.0.9"], "192.168.0.8"),
        ("fd00::1", ["2001:db8::7"], "2001:db8::7"),
        ("::ffff:10.0.0.2", ["203.0.113.7"], "203.0.113.7"),
        ("10.0.0.2", ["[2001:db8::7]"], "2001:db8::7"),
        ("10.0.0.2", [], "10.0.0.2"),
        ("10.0.0.2", [""], "10.0.0.2"),
        ("10.0.0.2", ["unknown"], "10.0.0.2"),
        ("10.0.0.2", ["203.0.113.7, evil, 192.168.0.9"], "192.168.0.9"),
        ("10.0.0.3", ["203.0.113.7"], "10.0.0.3"),
        ("127.0.0.1", ["203.0.113.7"], "127.0.0.1"),
        ("unheard-of", ["203.0.113.7"], "unheard-of"),
        ("10.0.0.2", [", ".join(["203.0.113.7", *["192.168.0.9"] * LONGEST_CHAIN])], "192.168.0.9"),
    ],
)
def test_a_named_proxy_is_believed_and_nobody_else(peer: str, forwarded: list[str], found: str) -> None:
    assert NAMED.behind(Peer(peer), head(*forwarded)) == Peer(found)


def test_on_a_unix_socket_nobody_speaks_for_others() -> None:
    peer = Peer("unix:1000", 1000)
    assert NAMED.behind(peer, head("203.0.113.7")) == peer
    assert NAMED.admits(peer)


def test_with_proxies_named_no_other_machine_comes_in() -> None:
    assert [NAMED.admits(Peer(each)) for each in ("10.0.0.2", "192.168.0.77", "127.0.0.1", "10.0.0.3", "8.8.8.8")] == [
        True,
        True,
        True,
        False,
        False,
    ]
    assert Proxies().admits(Peer("8.8.8.8"))


@pytest.mark.parametrize("text", ["", "proxy.example", "10.0.0.2/8", "10.0.0", "*"])
def test_what_is_no_address_and_no_network_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(ProfileUnusable) as refused:
        Proxies.parse([text])
    assert "10.0.0.0/24" in refused.value.hint


async def test_failures_count_for_those_on_whose_behalf_the_proxy_calls() -> None:
    async with stage(proxies=Proxies.parse(["127.0.0.1"])) as on:
        for address in ("203.0.113.7", "203.0.113.8"):
            client = await on.raw()
            await client.send(client.upgrade_head(token="wrong", X_Forwarded_For=address))
            while not on.late.waiting(address):  # noqa: ASYNC110
                await trio.sleep(0.001)
            assert not on.late.waiting("127.0.0.1")
            status, _, _ = await client.response()
            assert status == 401


async def test_a_machine_that_is_no_proxy_is_refused_whatever_it_shows() -> None:
    async with stage(proxies=Proxies.parse(["10.0.0.2"]), peer="203.0.113.7") as on:
        client = await on.raw()
        await client.send(client.upgrade_head(token=TOKEN))
        status, _, _ = await client.response()
        assert status == 403
