"""TLS before the listener: the same server behind it, and nothing of it reached without."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import trio
import trio.testing
from websockets.exceptions import InvalidStatus
from websockets.trio.client import connect

from hermes_ws.contract.errors import ProfileUnusable
from hermes_ws.server.limits import Limits
from hermes_ws.server.tls import Secure
from tests.server.certificates import certificate
from tests.server.stage import TOKEN, HungUp, RawClient, Stage, publish, stage

PATIENCE_S = 30


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return certificate(tmp_path_factory.mktemp("tls"))


def trusting(files: tuple[Path, Path]) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(files[0]))


async def secured(on: Stage, files: tuple[Path, Path]) -> RawClient:
    """A client of the tests behind its own TLS."""
    stream = await trio.open_tcp_stream("127.0.0.1", on.port)
    return RawClient(trio.SSLStream(stream, trusting(files), server_hostname="localhost"), on.port)  # type: ignore[arg-type]


async def test_a_websocket_through_tls_is_like_any_other(files: tuple[Path, Path]) -> None:
    async with stage(tls=Secure(*files)) as on:
        with trio.fail_after(PATIENCE_S):
            async with connect(
                on.url.replace("ws://127.0.0.1", "wss://localhost"),
                additional_headers={"Authorization": f"Bearer {TOKEN}"},
                ssl=trusting(files),
                proxy=None,
            ) as client:
                assert "gateway.ready" in str(await client.recv())
                await client.send('{"jsonrpc":"2.0","id":1,"method":"big","params":{"bytes":500000}}')
                assert len(str(await client.recv())) > 500_000
                await client.send('{"jsonrpc":"2.0","id":2,"method":"listen","params":{}}')
                await client.recv()
                publish(on.desk.tail, "news")
                assert "news" in str(await client.recv())
            assert client.close_code == 1000
            while on.desk.gone_ids == []:  # noqa: ASYNC110
                await trio.sleep(0.01)


async def test_its_own_pages_are_those_that_came_encrypted(files: tuple[Path, Path]) -> None:
    async with stage(tls=Secure(*files)) as on:
        for scheme, allowed in (("https", True), ("http", False)):
            client = await secured(on, files)
            status, _ = await client.upgrade(Origin=f"{scheme}://127.0.0.1:{on.port}")
            assert (status == 101) is allowed
            await trio.aclose_forcefully(client.stream)


async def test_plain_text_on_an_encrypted_port_gets_no_answer_in_plain_text(files: tuple[Path, Path]) -> None:
    async with stage(tls=Secure(*files)) as on:
        client = await on.raw()
        await client.send(client.upgrade_head())
        assert b"HTTP/" not in await client.to_the_end()
        assert on.desk.seen == []


async def test_a_last_answer_arrives_though_the_client_was_still_sending(files: tuple[Path, Path]) -> None:
    async with stage(tls=Secure(*files), limits=Limits(head_bytes=2000)) as on:
        client = await secured(on, files)
        with trio.fail_after(PATIENCE_S):
            await client.send(b"GET / HTTP/1.1\r\nX: " + b"y" * 30_000)
            status, _, _ = await client.response()
        assert status == 431
        await trio.aclose_forcefully(client.stream)


async def test_a_client_that_never_agrees_on_keys_is_sent_away(files: tuple[Path, Path]) -> None:
    async with stage(tls=Secure(*files), limits=Limits(handshake_deadline=0.05)) as on:
        client = await on.raw()
        with trio.fail_after(PATIENCE_S), pytest.raises(HungUp):
            while True:
                await client.more()


async def test_a_flood_of_beginners_pushes_out_its_own_oldest(files: tuple[Path, Path]) -> None:
    async with stage(tls=Secure(*files), limits=Limits(visitors=2)) as on:
        idle = [await on.raw() for _ in range(3)]
        with trio.fail_after(PATIENCE_S):
            with pytest.raises(HungUp):
                await idle[0].more()
            client = await secured(on, files)
            status, _ = await client.upgrade()
        assert status == 101
        await trio.aclose_forcefully(client.stream)


async def test_a_client_that_takes_nothing_is_cut_and_the_others_go_on(files: tuple[Path, Path]) -> None:
    async with stage(tls=Secure(*files), limits=Limits(send_deadline=0.3)) as on:
        stalled, lively = await secured(on, files), await secured(on, files)
        with trio.fail_after(PATIENCE_S):
            for client in (stalled, lively):
                await client.upgrade()
                await client.message()
            await stalled.call(1, "big", bytes=900_000)
            for number in range(2, 12):
                await stalled.call(number, "big", bytes=900_000)
            while len(on.listener.connections) > 1:  # noqa: ASYNC110
                await trio.sleep(0.01)
            await lively.call(1, "echo", a=1)
            assert (await lively.message())["result"] == {"a": 1}
        for client in (stalled, lively):
            await trio.aclose_forcefully(client.stream)


async def test_a_client_that_breaks_off_takes_nobody_along(files: tuple[Path, Path]) -> None:
    async with stage(tls=Secure(*files)) as on:
        first, second = await secured(on, files), await secured(on, files)
        with trio.fail_after(PATIENCE_S):
            for client in (first, second):
                await client.upgrade()
                await client.message()
            await trio.aclose_forcefully(first.stream)
            while len(on.listener.connections) > 1:  # noqa: ASYNC110
                await trio.sleep(0.01)
            await second.call(1, "echo", a=1)
            assert (await second.message())["result"] == {"a": 1}
        await trio.aclose_forcefully(second.stream)


async def test_a_goodbye_is_heard_through_tls(files: tuple[Path, Path]) -> None:
    async with stage(tls=Secure(*files)) as on:
        client = await secured(on, files)
        with trio.fail_after(PATIENCE_S):
            await client.upgrade()
            await client.message()
            on.connection.close(4501, "the credential was withdrawn")
            assert await client.closed_with() == 4501
        await trio.aclose_forcefully(client.stream)


async def test_a_renewed_certificate_is_shown_to_those_who_come_then(files: tuple[Path, Path], tmp_path: Path) -> None:
    cert_file, key_file = certificate(tmp_path)
    secure = Secure(cert_file, key_file)
    async with stage(tls=secure) as on:
        certificate(tmp_path)
        secure.load()
        client = await secured(on, (cert_file, key_file))
        with trio.fail_after(PATIENCE_S):
            assert (await client.upgrade())[0] == 101
        await trio.aclose_forcefully(client.stream)


def test_files_that_are_no_certificate_are_refused_with_what_to_give(tmp_path: Path, files: tuple[Path, Path]) -> None:
    other, _ = certificate(tmp_path, "other")
    sealed_cert, sealed = certificate(tmp_path, "sealed", password=b"secret")
    noise = tmp_path / "noise.pem"
    noise.write_text("not a certificate")
    for cert_file, key_file in (
        (tmp_path / "absent.pem", None),
        (noise, None),
        (files[0], None),
        (other, files[1]),
        (sealed_cert, sealed),
    ):
        with pytest.raises(ProfileUnusable) as refused:
            Secure(cert_file, key_file)
        assert "--tls-key" in refused.value.hint


async def test_wrong_credentials_are_refused_through_tls_as_well(files: tuple[Path, Path]) -> None:
    async with stage(tls=Secure(*files)) as on:
        with pytest.raises(InvalidStatus) as refused:
            async with connect(on.url.replace("ws://127.0.0.1", "wss://localhost"), ssl=trusting(files), proxy=None):
                pass
        assert refused.value.response.status_code == 401
