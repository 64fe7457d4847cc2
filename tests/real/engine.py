"""A container engine of the tests' own: podman's service behind a socket, with one image that holds busybox.

Nothing is fetched and nothing of this machine's engines is touched: images, containers and settings lie in a directory
of the tests. Two things are put right for machines that are themselves confined: a limit that nobody without
CAP_SYS_RESOURCE may raise is not raised, and a cgroup hierarchy that crun cannot read is not there.
"""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

NEEDED = {
    "/usr/bin/podman": "podman",
    "/usr/bin/crun": "crun",
    "/usr/bin/catatonit": "catatonit",
    "/bin/busybox": "busybox-static",
    "/usr/bin/unshare": "util-linux",
}
"""The programs of the engine, and the Debian packages that they are in."""

IMAGE = "small:1"

CLIENTS = {"docker": ("/usr/bin/docker", "/usr/local/bin/docker"), "podman": ("/usr/bin/podman",)}

_PATIENCE_S = 60.0

_RUNTIME = """#!{python} -IS
import json, os, sys
words = sys.argv[1:]
for option, name in (("--bundle", "config.json"), ("--process", ""), ("-p", "")):
    if option in words:
        path = os.path.join(words[words.index(option) + 1], name).rstrip("/")
        with open(path) as file:
            told = json.load(file)
        process = told.get("process", told)
        process["rlimits"] = [each for each in process.get("rlimits", []) if each["type"] != "RLIMIT_NPROC"]
        with open(path, "w") as file:
            json.dump(told, file)
os.execv("/usr/bin/crun", ["crun", *words])
"""

_SETTINGS = """[containers]
default_ulimits = ["nofile=1024:1024"]
[engine]
runtime = "crun"
cgroup_manager = "cgroupfs"
events_logger = "none"
[engine.runtimes]
crun = ["{runtime}"]
"""


@dataclass(frozen=True)
class Engine:
    """Where it answers."""

    socket: Path

    def containers(self) -> list[str]:
        """The names of all containers that there are."""
        told = _client(self.socket, "ps", "--all", "--format", "{{.Names}}")
        return told.split()


def missing() -> str:
    """Why no engine can be had here; empty when one can."""
    packages = sorted(package for program, package in NEEDED.items() if not os.access(program, os.X_OK))
    if packages:
        return f"not installed: {', '.join(packages)}"
    return "" if os.geteuid() == 0 else "an engine of its own needs root"


def clients() -> list[str]:
    """The kinds of clients on this machine; podman is one that every engine of ours comes with."""
    return [kind for kind, places in CLIENTS.items() if kind == "podman" or any(map(os.path.exists, places))]


@contextmanager
def served(place: Path) -> Generator[Engine]:
    """The engine, with its image, for the length of a block."""
    runtime = place / "crun"
    runtime.write_text(_RUNTIME.format(python=sys.executable))
    runtime.chmod(0o755)
    settings = place / "containers.conf"
    settings.write_text(_SETTINGS.format(runtime=runtime))
    socket = place / "engine.sock"
    # No longer than 50 characters: there are sockets in it.
    run = tempfile.mkdtemp(prefix="engine-")
    own = ["--root", str(place / "store"), "--runroot", run, "--storage-driver", "vfs"]
    script = 'umount /sys/fs/cgroup/unified 2>/dev/null; exec /usr/bin/podman "$@"'
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(place), "CONTAINERS_CONF": str(settings)}
    with (place / "log").open("wb") as log:
        service = subprocess.Popen(
            [
                *("/usr/bin/unshare", "--mount", "/bin/sh", "-c", script, "sh", *own),
                *("system", "service", "--time", "0", f"unix://{socket}"),
            ],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        until = time.monotonic() + _PATIENCE_S
        while not socket.exists():
            assert service.poll() is None, (place / "log").read_text()
            assert time.monotonic() < until, (place / "log").read_text()
            time.sleep(0.05)
        image = place / "image.tar"
        image.write_bytes(_image())
        _client(socket, "import", str(image), IMAGE)
        engine = Engine(socket)
        yield engine
        assert engine.containers() == []
    finally:
        with suppress(ProcessLookupError):
            os.killpg(service.pid, signal.SIGTERM)
        service.wait(_PATIENCE_S)
        subprocess.run(
            ["/usr/bin/podman", *own, "rm", "--all", "--force"], env=environment, capture_output=True, check=False
        )
        shutil.rmtree(place / "store", ignore_errors=True)


def _client(socket: Path, *words: str) -> str:
    done = subprocess.run(
        ["/usr/bin/podman", "--remote", "--url", f"unix://{socket}", *words],
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _image() -> bytes:
    """A root with busybox under the names of all that it does."""
    listed = subprocess.run(["/bin/busybox", "--list"], capture_output=True, text=True, check=True).stdout.split()
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for directory, mode in (("bin", 0o755), ("etc", 0o755), ("root", 0o700), ("tmp", 0o1777), ("work", 0o755)):
            entry = tarfile.TarInfo(directory)
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            archive.addfile(entry)
        archive.add("/bin/busybox", "bin/busybox")
        for name in {*listed, "sh"} - {"busybox"}:
            entry = tarfile.TarInfo(f"bin/{name}")
            entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
            archive.addfile(entry)
        for name, content in (("etc/os-release", b"NAME=small\n"), ("etc/passwd", b"root:x:0:0::/root:/bin/sh\n")):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return data.getvalue()
