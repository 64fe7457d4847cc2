"""Many connections, too many connections, and no descriptor for another one."""

from __future__ import annotations

import errno
import logging
import os
import resource

import pytest
import trio
from trio.testing import MockClock

from hermes_ws.server import descriptors, listener
from hermes_ws.server.limits import Limits
from tests.server.stage import RawClient, publish, stage

MANY = 500
"""Connections of one test, if the descriptors allow it: both ends of each are in this process."""


async def listening(client: RawClient) -> None:
    await client.call(1, "listen")
    assert (await client.message())["id"] == 1


async def answered(client: RawClient, asked: bytes = b"POST /rpc") -> int:
    body = b'{"jsonrpc":"2.0","id":1,"method":"echo","params":{}}'
    head = client.head("/", Content_Length=str(len(body))).replace(b"GET /", asked, 1)
    await client.send(head + body)
    return (await client.response())[0]


async def test_each_of_very_many_subscribers_gets_every_event() -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    many = min(MANY, (soft - 200) // 2)
    async with stage() as on:
        clients: list[RawClient] = []
        for _ in range(many):
            client = await on.opened()
            await listening(client)
            clients.append(client)
        assert on.listener.statistics().connections == many
        for number in range(3):
            publish(on.desk.tail, str(number))
        for client in clients:
            texts = [(await client.message())["params"]["payload"]["message"] for _ in range(3)]
            assert texts == ["0", "1", "2"]


async def test_one_more_than_there_is_room_for_is_told_to_come_back(caplog: pytest.LogCaptureFixture) -> None:
    async with stage(limits=Limits(connections=2)) as on:
        inside = [await on.opened() for _ in range(2)]
        with caplog.at_level(logging.WARNING):
            for _ in range(2):
                late = await on.raw()
                assert (await late.upgrade())[0] == 101
                assert await late.closed_with() == 4429
                await late.close()
        assert caplog.text.count("no more than 2 connections") == 1
        await inside[0].call(1, "echo")
        assert (await inside[0].message())["id"] == 1
        await inside[1].close()
        while on.listener.statistics().connections > 1:
            await trio.lowlevel.checkpoint()
        await listening(await on.opened())


async def test_who_asks_by_plain_http_takes_room_as_long_as_it_stays() -> None:
    async with stage(limits=Limits(connections=2)) as on:
        guest = await on.raw()
        for _ in range(2):  # the second time it is known
            assert await answered(guest) == 200
        listener = await on.opened()
        for refused in (b"POST /rpc", b"GET /events?session_id=s-1"):
            late = await on.raw()
            assert await answered(late, refused) == 503
        await guest.close()
        while on.listener.statistics().guests:
            await trio.lowlevel.checkpoint()
        assert await answered(await on.raw()) == 200
        await listener.call(1, "echo")
        assert (await listener.message())["id"] == 1


async def test_without_a_descriptor_left_nobody_is_cut_off_and_the_health_says_so(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    """Case RES-01."""
    async with stage(ready=lambda: True) as on:
        inside = await on.opened()
        assert not on.listener.out_of_room
        refused = 2
        accept = on.bound.listener.accept

        async def full() -> trio.SocketStream:
            nonlocal refused
            if refused:
                refused -= 1
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            return await accept()

        monkeypatch.setattr(type(on.bound.listener), "accept", lambda bound: full())
        await on.opened()
        await on.opened()
        assert refused == 0
        assert on.listener.out_of_room
        await inside.call(1, "echo")
        assert (await inside.message())["id"] == 1
        await trio.sleep(listener.OUT_OF_ROOM_TOLD + 1)
        assert not on.listener.out_of_room


async def test_a_process_that_really_has_no_descriptor_left_recovers_when_one_is_free() -> None:
    """Case RES-01: the limit itself, not a fake of it."""
    async with stage() as on:
        inside = await on.opened()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        spare = [await on.raw()]
        taken: list[int] = []
        low = max(int(name) for name in os.listdir("/proc/self/fd")) + 8
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (low, hard))
            with pytest.raises(OSError, match="Too many open files"):
                while True:
                    taken.append(os.dup(0))
            os.close(taken.pop())
            waiting = await on.raw()
            while not on.listener.out_of_room:
                await trio.lowlevel.checkpoint()
            await inside.call(1, "echo")
            assert (await inside.message())["id"] == 1
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            for fd in taken:
                os.close(fd)
        assert (await waiting.upgrade())[0] == 101
        await spare[0].close()


@pytest.mark.parametrize(
    ("limit", "configured", "room", "encrypted"),
    [
        (20_000, None, 18_976, 6325),
        (1024, None, 512, 170),
        (100, None, 64, 64),
        (20_000, 50, 50, 50),
        (1024, 10_000, 512, 170),
    ],
)
def test_connections_leave_descriptors_for_everything_else(
    limit: int, configured: int | None, room: int, encrypted: int
) -> None:
    assert descriptors.room_for(limit, configured) == room
    assert descriptors.room_for(limit, configured, encrypted=True) == encrypted


def test_what_the_system_grants_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    granted = (1024, 4096)
    monkeypatch.setattr(descriptors.resource, "getrlimit", lambda which: granted)
    monkeypatch.setattr(descriptors.resource, "setrlimit", lambda which, limits: asked.append(limits))
    assert descriptors.raise_limit() == 4096
    assert asked == [(4096, 4096)]
    granted = (4096, 4096)
    assert descriptors.raise_limit() == 4096
    granted = (1024, resource.RLIM_INFINITY)
    assert descriptors.raise_limit() == descriptors.HIGHEST
    granted = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    assert descriptors.raise_limit() == descriptors.HIGHEST

    def refuse(which: int, limits: tuple[int, int]) -> None:
        raise ValueError("not allowed")

    monkeypatch.setattr(descriptors.resource, "setrlimit", refuse)
    granted = (1024, 4096)
    assert descriptors.raise_limit() == 1024
