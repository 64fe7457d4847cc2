"""The plain HTTP side of the port, and the way from there to a WebSocket."""

from __future__ import annotations

import errno
import logging
import os

import pytest
import trio
import trio.lowlevel

from hermes_ws.server.limits import Limits
from tests.server.stage import HungUp, RawClient, stage


def _get(client: RawClient, path: str, method: str = "GET", *, more: str = "", version: str = "1.1") -> bytes:
    return f"{method} {path} HTTP/{version}\r\nHost: 127.0.0.1:{client.port}\r\n{more}\r\n".encode()


@pytest.mark.parametrize(
    ("path", "status", "kind", "part"),
    [
        ("/", 200, "text/html", b"/app.js"),
        ("/app.js", 200, "text/javascript", b"import"),
        ("/style.css", 200, "text/css", b"--ink"),
        ("/healthz", 200, "text/plain", b"ok"),
        ("/readyz", 200, "text/plain", b"ready"),
        ("/openrpc.json", 200, "application/json", b"openrpc"),
        ("/healthz?x=1", 200, "text/plain", b"ok"),
        ("/nothing", 404, "text/plain", b"Not Found"),
        ("/../etc/passwd", 404, "text/plain", b"Not Found"),
        ("/ws", 426, "text/plain", b"Upgrade"),
    ],
)
async def test_a_page_is_shown_to_anybody_past_the_host_check(path: str, status: int, kind: str, part: bytes) -> None:
    async with stage() as on:
        client = await on.raw()
        await client.send(_get(client, path))
        answered, headers, body = await client.response()
        assert answered == status
        assert headers["content-type"].startswith(kind)
        assert part in body
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["cache-control"] == "no-store"
        assert not any(name.startswith("access-control") for name in headers)


async def test_readiness_is_one_word_and_a_status() -> None:
    async with stage(ready=lambda: False) as on:
        client = await on.raw()
        await client.send(_get(client, "/readyz"))
        status, _, body = await client.response()
        assert (status, body) == (503, b"not ready\n")


async def test_a_foreign_host_sees_nothing() -> None:
    async with stage() as on:
        client = await on.raw()
        await client.send(b"GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        status, _, body = await client.response()
        assert (status, body) == (403, b"Forbidden\n")


async def test_a_connection_is_kept_and_requests_may_come_together() -> None:
    async with stage() as on:
        client = await on.raw()
        await client.send(_get(client, "/healthz") * 3)
        assert [(await client.response())[2] for _ in range(3)] == [b"ok\n"] * 3
        await client.send(_get(client, "/readyz", more="Connection: close\r\n"))
        assert (await client.response())[2] == b"ready\n"
        with pytest.raises(HungUp):
            await client.more()


async def test_an_old_client_gets_its_answer_and_the_end() -> None:
    async with stage() as on:
        client = await on.raw()
        await client.send(_get(client, "/healthz", version="1.0"))
        assert (await client.response())[2] == b"ok\n"
        with pytest.raises(HungUp):
            await client.more()


async def test_head_is_get_without_the_body() -> None:
    async with stage() as on:
        client = await on.raw()
        await client.send(_get(client, "/", "HEAD"))
        status, headers, _ = await client.response(body=False)
        assert status == 200
        assert int(headers["content-length"]) > 100
        await client.send(_get(client, "/healthz"))
        assert (await client.response())[2] == b"ok\n"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
async def test_other_methods_are_refused_and_the_connection_goes_on(method: str) -> None:
    async with stage() as on:
        client = await on.raw()
        await client.send(_get(client, "/", method, more="Content-Length: 5\r\n") + b"hello")
        status, headers, _ = await client.response()
        assert (status, headers["allow"]) == (405, "get, head")
        await client.send(_get(client, "/", method, more="Transfer-Encoding: chunked\r\n") + b"5\r\nhello\r\n0\r\n\r\n")
        assert (await client.response())[0] == 405
        await client.send(_get(client, "/healthz"))
        assert (await client.response())[2] == b"ok\n"


@pytest.mark.parametrize("more", ["Content-Length: 5000\r\n", "Transfer-Encoding: chunked\r\n"])
async def test_a_large_body_is_not_read(more: str) -> None:
    async with stage(limits=Limits(body_bytes=1000)) as on:
        client = await on.raw()
        body = b"x" * 5000 if more.startswith("Content") else b"1388\r\n" + b"x" * 5000 + b"\r\n0\r\n\r\n"
        await client.send(_get(client, "/", "POST", more=more) + body)
        status, headers, _ = await client.response()
        assert (status, headers["connection"]) == (413, "close")


async def test_who_waits_to_be_told_to_go_on_is_told_not_to() -> None:
    async with stage() as on:
        client = await on.raw()
        await client.send(_get(client, "/", "POST", more="Content-Length: 50\r\nExpect: 100-continue\r\n"))
        assert (await client.response())[0] == 413


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01", 400),
        (b"hello\r\n\r\n", 400),
        (b"GET\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\n x: folded\r\nbad header\r\n\r\n", 400),
        (b"GET / HTTP/1.1\nHost: a\n\nGET /ws HTTP/1.1\r\nHost: b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: a\rHost: b\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x\r\ncontent-length: 3\r\n\r\nabc", 400),
        (b"GET /\xff HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n", 400),
        (b"G" * 20_000, 431),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 20_000 + b"\r\n\r\n", 431),
        (b"GET /ws HTTP/1.1\r\nUpgrade: websocket\r\nX: " + b"x" * 20_000 + b"\r\n\r\n", 431),
    ],
)
async def test_what_is_no_request_is_answered_once_and_ended(data: bytes, status: int) -> None:
    async with stage() as on:
        client = await on.raw()
        await client.send(data)
        assert (await client.response())[0] == status
        with pytest.raises(HungUp):
            await client.more()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec_WebSocket_Version": "8"}, 400),
        ({"Sec_WebSocket_Key": "short"}, 400),
        ({"Connection": "keep-alive"}, 426),
        ({"Upgrade": "notwebsocket"}, 426),
    ],
)
async def test_a_handshake_that_is_not_in_order_is_refused(headers: dict[str, str], status: int) -> None:
    async with stage() as on:
        client = await on.raw()
        answered, _ = await client.upgrade(**headers)
        assert answered == status


async def test_an_upgrade_may_follow_on_a_kept_connection() -> None:
    async with stage() as on:
        client = await on.raw()
        await client.send(_get(client, "/healthz"))
        await client.response()
        await client.send(_get(client, "/healthz") + client.upgrade_head() + client.request(1, "echo"))
        assert (await client.response())[2] == b"ok\n"
        assert (await client.response(body=False))[0] == 101
        assert (await client.message())["params"]["type"] == "gateway.ready"
        assert (await client.message())["id"] == 1


async def test_a_head_that_never_ends_is_ended_at_the_deadline() -> None:
    async with stage(limits=Limits(handshake_deadline=0.1)) as on:
        slow, silent = await on.raw(), await on.raw()
        await slow.send(b"GET / HTTP/1.1\r\n")
        assert (await slow.response())[0] == 408
        with pytest.raises(HungUp):
            await silent.more()


async def test_a_body_that_never_ends_is_ended_at_the_deadline() -> None:
    async with stage(limits=Limits(handshake_deadline=0.1)) as on:
        client = await on.raw()
        await client.send(_get(client, "/", "POST", more="Content-Length: 50\r\n"))
        assert (await client.response())[0] == 413


async def test_a_kept_connection_that_rests_too_long_is_ended() -> None:
    async with stage(limits=Limits(keep_alive=0.05)) as on:
        client = await on.raw()
        await client.send(_get(client, "/healthz"))
        await client.response()
        with pytest.raises(HungUp):
            await client.more()


async def test_a_client_that_hangs_up_in_the_middle_leaves_nothing() -> None:
    async with stage() as on:
        host = f"Host: 127.0.0.1:{on.port}\r\n".encode()
        for data in (b"", b"GET / HT", b"POST / HTTP/1.1\r\n" + host + b"Content-Length: 9\r\n\r\nx"):
            client = await on.raw()
            await client.send(data)
            await client.close()
        while on.listener.statistics().visitors:
            await trio.lowlevel.checkpoint()


async def test_a_flood_of_silent_connections_pushes_out_its_oldest_and_keeps_nobody_out() -> None:
    async with stage(limits=Limits(visitors=10)) as on:
        flood = [await on.raw() for _ in range(30)]
        client = await on.opened()
        await client.call(1, "echo")
        assert (await client.message())["id"] == 1
        with pytest.raises(HungUp):
            await flood[0].more()
        assert on.listener.statistics().visitors <= 10
        assert on.listener.statistics().connections == 1


async def test_running_out_of_descriptors_is_logged_once_and_survived(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage() as on:
        failures = 3
        accept = on.bound.listener.accept

        async def full() -> trio.SocketStream:
            nonlocal failures
            if failures:
                failures -= 1
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            return await accept()

        with caplog.at_level(logging.WARNING):
            # The listener is waiting inside the real accept; the first client lets it go round.
            monkeypatch.setattr(type(on.bound.listener), "accept", lambda listener: full())
            await on.opened()
            second = await on.opened()
            await second.call(1, "echo")
            assert (await second.message())["id"] == 1
        assert caplog.text.count("no connection can be accepted") == 1
        assert caplog.text.count("accepted again") == 1


async def test_stopping_to_accept_turns_visitors_away_and_leaves_those_inside() -> None:
    async with stage() as on:
        inside = await on.opened()
        visitor = await on.raw()
        while not on.listener.statistics().visitors:
            await trio.lowlevel.checkpoint()
        on.listener.stop_accepting()
        with pytest.raises(HungUp):
            await visitor.more()
        await inside.call(1, "echo")
        assert (await inside.message())["id"] == 1
        with pytest.raises(OSError, match=r"refused|connect"):
            await on.raw()
