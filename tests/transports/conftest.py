"""One server per transport that needs its own, and a client on each of them."""

from __future__ import annotations

import datetime
import ipaddress
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.e2e.process import Server, write_home
from tests.transports.clients import HttpClient, StdioClient, TransportClient, unix_websocket, websocket

ASKING = """approvals:
  rules:
    - tool: terminal
      decision: ask
"""

BASE = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}

Opened = Callable[..., TransportClient]


def homes(root: Path) -> Path:
    for name in ("default", "second", "third"):
        write_home(root / name, env={}, config=ASKING)
    return root


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """TCP and Unix socket, HTTP on the former, and what `stdio` is a pipe to."""
    place = tmp_path_factory.mktemp("plain")
    server = Server(homes(place / "homes"), place / "server.log", BASE)
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="package")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that vouches for itself, with its key in the same file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hermes-ws tests")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    path.touch(mode=0o600)
    path.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return path


@pytest.fixture(scope="package")
def secured(tmp_path_factory: pytest.TempPathFactory, certificate: Path) -> Iterator[Server]:
    """The same over TLS."""
    place = tmp_path_factory.mktemp("secured")
    server = Server(homes(place / "homes"), place / "server.log", BASE, "--tls-cert", str(certificate))
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="package")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str | None], TransportClient]]:
    """Servers of their parent alone: one process for each profile that is asked for, since it takes time to start."""
    started: dict[str | None, TransportClient] = {}
    with ExitStack() as clients:

        def client(profile: str | None) -> TransportClient:
            if profile not in started:
                place = tmp_path_factory.mktemp("alone")
                arguments = ["--standalone", "--profiles-root", str(homes(place / "homes"))]
                arguments += [] if profile is None else ["--profile", profile]
                started[profile] = StdioClient(arguments, BASE, place / "stdio.log")
                clients.callback(started[profile].close)
            started[profile].events.clear()
            started[profile].questions.clear()
            return started[profile]

        yield client


TRANSPORTS = ("tcp", "tls", "unix", "http", "stdio", "standalone")


@pytest.fixture(params=TRANSPORTS)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    """Opens clients of one transport; each test is run with every transport."""
    kind: str = request.param
    clients = ExitStack()

    def client(profile: str | None = None) -> TransportClient:
        on: Server = request.getfixturevalue("secured" if kind == "tls" else "server")
        if kind == "tls":
            trusted: Path = request.getfixturevalue("certificate")
            return websocket(on.url, on.token, profile=profile, trusted=trusted)
        if kind == "unix":
            return unix_websocket(on.announced["socket"], on.token, profile=profile)
        if kind == "http":
            return HttpClient(on.url, on.token, profile=profile)
        if kind == "stdio":
            bound = [] if profile is None else ["--profile", profile]
            home = {"HERMES_HOME": str(on.homes / "default")}
            return StdioClient(bound, {**BASE, **home}, tmp_path / "stdio.log")
        return websocket(on.url, on.token, profile=profile)

    def opening(profile: str | None = None) -> TransportClient:
        if kind == "standalone":
            shared: Callable[[str | None], TransportClient] = request.getfixturevalue("alone")
            return shared(profile)
        made = client(profile)
        clients.callback(made.close)
        return made

    with clients:
        yield opening


@pytest.fixture
def transport(request: pytest.FixtureRequest) -> str:
    """Which transport the test runs over."""
    name: str = request.node.callspec.params["opened"]
    return name
