"""The docker backend: its command lines, the life of a session's container, and what is said where no engine runs.

The engine is a program that runs containers as plain processes; `test_docker_engine.py` has a real one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes_ws.contract import errors
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.session import docker
from hermes_ws.session.docker import DockerClient
from hermes_ws.session.remote import Remote
from hermes_ws.warden import descendants
from tests.session.house import House, eventually

ENGINE = """#!/bin/sh
printf '%s\\n' "$*" >>"$HOME/calls"
env >>"$HOME/env"
[ -e "$HOME/broken" ] && { echo "no such image" >&2; exit 125; }
shift 2
what=$1; shift
if [ "$what" = run ]; then
  while [ "$1" != "small:1" ]; do shift; done
  shift; exec "$@"
fi
while [ "${1#-}" != "$1" ]; do shift; done
shift; exec "$@"
"""

CONFIG = """terminal:
  backend: docker
  cwd: {work}
  env: [TOKEN]
  network: deny
  memory_bytes: 500000000
  file_bytes: 1000000
  cpu_s: 60
  container:
    image: small:1
    volumes: ['{data}:/data:ro']
"""


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[ProfileRuntime]:
    root = tmp_path / "homes"
    root.mkdir()
    (tmp_path / "data").mkdir()
    house = House(root)
    home = house.home("default", config="{}", env="TOKEN=value-of-the-token\n")
    own = home / "state" / docker.OWN
    (own / "work").mkdir(parents=True)
    engine = own / "docker"
    engine.write_text(ENGINE)
    engine.chmod(0o700)
    house.home("default", config=CONFIG.format(work=own / "work", data=tmp_path / "data"))
    async with house.served():
        yield await house.runtime()


def own_of(runtime: ProfileRuntime) -> Path:
    return runtime.home.state / docker.OWN


def client_of(runtime: ProfileRuntime) -> DockerClient:
    scope = runtime.scope
    program = str(own_of(runtime) / "docker")
    return runtime.ongoing.containers.get(scope, "s1", lambda name: DockerClient(runtime, scope, name, program))


def backend_of(runtime: ProfileRuntime) -> Remote:
    assert runtime.scope.terminal.cwd is not None
    return Remote(runtime.scope, runtime.scope.terminal.cwd, client_of(runtime))


async def test_the_container_gets_what_the_policy_says_and_nothing_of_the_servers(
    runtime: ProfileRuntime, tmp_path: Path
) -> None:
    words = client_of(runtime).run_argv()
    said = " ".join(words)
    assert f"--volume {tmp_path / 'data'}:/data:ro" in said
    for option in ("--rm", "--init", "--cap-drop ALL", "--network none", "--memory 500000000", "no-new-privileges",
                   "--ulimit fsize=1000000:1000000", "--ulimit cpu=60:60"):  # fmt: skip
        assert option in said
    assert "--pids-limit 512" in said
    assert "-H unix:///run/docker.sock" in said
    assert "value-of-the-token" not in said
    assert "--privileged" not in said
    told = client_of(runtime).environment()
    assert set(told) == {"PATH", "HOME", "DOCKER_CONFIG"}
    granted = await client_of(runtime).granted()
    assert granted.grants.write == (Path(told["HOME"]),) == (Path(told["DOCKER_CONFIG"]),)
    others = await runtime.warden_for(runtime.scope, runtime.home.user)
    assert not any(granted.grants.write[0].is_relative_to(each) for each in others.grants.write)


async def test_one_container_serves_a_session_until_it_ends(runtime: ProfileRuntime) -> None:
    backend = backend_of(runtime)
    for expected in (b"one\n", b"two\n"):
        word = expected.decode().strip()
        done, _ = await backend.run(f"echo {word}", backend.directory(None), 60, lambda _piece: None)
        assert (done.exit_code, done.output) == (0, expected)
    done, _ = await backend.run("pwd; echo $TOKEN; exit 4", backend.directory(None), 60, lambda _piece: None)
    assert done.exit_code == 4
    assert done.output.decode().split() == [str(own_of(runtime) / "work"), "value-of-the-token"]
    calls = (own_of(runtime) / "calls").read_text()
    assert sum(" run --rm " in line for line in calls.splitlines()) == 1
    assert sum(" exec -i hermes-s1-" in line for line in calls.splitlines()) == 3
    assert "value-of-the-token" not in calls
    assert "value-of-the-token" not in (own_of(runtime) / "env").read_text()
    await backend.write(Path("a/b.txt"), b"content")
    assert (await backend.read(Path("a/b.txt"), 0, 100)).data == b"content"
    granted = await client_of(runtime).granted()
    assert granted.warden.statistics().running == 1
    await runtime.ongoing.end_session("s1")
    await eventually(lambda: granted.warden.statistics().running == 0)


async def test_a_container_does_not_outlive_its_policy(runtime: ProfileRuntime, tmp_path: Path) -> None:
    backend = backend_of(runtime)
    await backend.run("true", backend.directory(None), 60, lambda _piece: None)
    granted = await client_of(runtime).granted()
    runtime.home.config.write_text("terminal:\n  network: deny\n")
    await runtime.reload()
    await eventually(lambda: granted.warden.statistics().running == 0)


async def test_what_the_engine_says_is_told(runtime: ProfileRuntime) -> None:
    (own_of(runtime) / "broken").touch()
    backend = backend_of(runtime)
    with pytest.raises(errors.WardenFailed, match="no such image"):
        await backend.run("true", backend.directory(None), 60, lambda _piece: None)


async def test_a_machine_without_a_client_is_told_so(runtime: ProfileRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docker, "PROGRAMS", ())
    client = DockerClient(runtime, runtime.scope, "none")
    with pytest.raises(errors.WardenFailed, match="no container client"):
        await client.granted()


@pytest.mark.parametrize("volume", ["{homes}:/h", "{homes}/default/state:/s", "/nowhere/at/all:/n", "relative", "/a:b"])
async def test_a_volume_that_opens_a_home_or_is_none_is_refused(
    runtime: ProfileRuntime, tmp_path: Path, volume: str
) -> None:
    said = volume.format(homes=tmp_path / "homes")
    runtime.home.config.write_text(
        f"terminal:\n  backend: docker\n  container:\n    image: x\n    volumes: ['{said}']\n"
    )
    with pytest.raises(errors.ProfileUnusable, match="volumes"):
        await runtime.reload()


async def test_podman_is_asked_over_the_socket_as_well(runtime: ProfileRuntime) -> None:
    """By itself it would make the container below the warden; and it fails when DOCKER_CONFIG names no file."""
    client = DockerClient(runtime, runtime.scope, "one", "/usr/bin/podman")
    assert client.run_argv()[:4] == ("/usr/bin/podman", "--remote", "--url", "unix:///run/docker.sock")
    assert set(client.environment()) == {"PATH", "HOME"}


async def test_nothing_of_a_container_is_left_when_the_profile_closes(runtime: ProfileRuntime) -> None:
    backend = backend_of(runtime)
    await backend.run("true", backend.directory(None), 60, lambda _piece: None)
    granted = await client_of(runtime).granted()
    below = descendants.below(granted.warden.statistics().pid)
    assert below
    await granted.warden.close()
    assert not any(descendants.lives(seen) for seen in below)
