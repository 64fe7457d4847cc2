"""A server that other machines can reach: only encrypted or behind a proxy, and only when somebody has a token."""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path

from websockets.sync.client import connect

from tests.e2e.process import SERVE, Server
from tests.server.certificates import certificate


def refused(homes: Path, environment: dict[str, str], *args: str) -> str:
    """What a server says that does not start."""
    ended = subprocess.run(
        [*SERVE, "--profiles-root", str(homes), "--port", "0", *args],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    return ended.stderr


def test_it_opens_to_others_only_encrypted_and_with_a_token(
    serve: Callable[..., Server], homes: Path, base_environment: dict[str, str], tmp_path: Path
) -> None:
    cert_file, key_file = certificate(tmp_path)
    encrypted = ("--tls-cert", str(cert_file), "--tls-key", str(key_file))
    everywhere = ("--host", "0.0.0.0")
    assert "nobody there has a token" in refused(homes, base_environment, *everywhere, *encrypted)
    server = serve()
    owner = server.connect()
    token = owner.call("token.create", name="desk", rights=["observe"])["token"]
    owner.close()
    assert server.stop() == 0
    open_to_all = serve(*everywhere, *encrypted)
    assert open_to_all.url.startswith("wss://0.0.0.0:")
    url = open_to_all.url.replace("0.0.0.0", "localhost")
    with connect(
        url,
        additional_headers={"Authorization": f"Bearer {token}"},
        ssl=ssl.create_default_context(cafile=str(cert_file)),
        proxy=None,
    ) as client:
        assert "gateway.ready" in str(client.recv(timeout=30))
    assert open_to_all.stop() == 0
