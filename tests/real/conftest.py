"""A real OpenSSH server on loopback, with keys of its own, that ends with the module."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SSHD = "/usr/sbin/sshd"


@dataclass(frozen=True)
class SshServer:
    """Where it listens, whom it knows, and what it shows of itself."""

    port: int
    place: Path
    user_key: Path
    known_hosts: str


def _key(path: Path) -> Path:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return path


@pytest.fixture(scope="module")
def ssh_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    if not os.access(SSHD, os.X_OK) or shutil.which("ssh-keygen") is None:
        pytest.skip("no OpenSSH server is installed")
    place = tmp_path_factory.mktemp("sshd")
    host_key, user_key = _key(place / "host"), _key(place / "user")
    (place / "authorized").write_text((place / "user.pub").read_text())
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = place / "sshd_config"
    config.write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {host_key}\nPidFile {place}/pid\n"
        f"AuthorizedKeysFile {place}/authorized\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n"
        "PermitRootLogin prohibit-password\nMaxStartups 100\nMaxSessions 100\nSubsystem sftp internal-sftp\n"
    )
    Path("/run/sshd").mkdir(exist_ok=True)
    server = subprocess.Popen([SSHD, "-D", "-f", str(config)], stderr=subprocess.DEVNULL)
    try:
        for _ in range(500):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.01)
        public = (place / "host.pub").read_text().split()[:2]
        yield SshServer(port, place, user_key, f"[127.0.0.1]:{port} {' '.join(public)}\n")
    finally:
        server.kill()
        server.wait()
