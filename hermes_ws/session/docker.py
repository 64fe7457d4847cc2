"""The client of the `docker` backend: one container for each session, made when it is first needed.

The container's own process reads its input to the end. The client that started it holds that input, so the container
ends with the session, with the profile, and with a server that is killed. It is given no capability, no credential of
the server, and none of its directories but those that `terminal.container.volumes` names.

Whoever speaks to the engine can do anything to the machine. So the client has a directory of its own that no command,
tool server or hook of the profile can write: its settings name programs that it starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import final

import trio

from hermes_ws.contract.errors import ProfileUnusable, WardenFailed
from hermes_ws.scope.current import in_thread
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.scope.terminal_sections import ContainerConfig
from hermes_ws.session.ports import Granted, Runtime
from hermes_ws.warden.grants import Command, Finished, Grants
from hermes_ws.warden.running import Running

PROGRAMS = ("/usr/bin/docker", "/usr/local/bin/docker", "/usr/bin/podman")
"""Where the client is found; not by PATH, since it is granted the engine's socket."""

OWN = "engine"
"""The client's directory below a home's state/: credentials of registries can be put there."""

READY_WITHIN_S = 120.0
"""Seconds until a container runs; an image may have to be fetched first."""

_SIGN = "hermes-ws-ready"
"""What the container's process prints when it runs."""

_PROCESS = ("/bin/sh", "-c", f"echo {_SIGN}; exec cat >/dev/null")

_ENGINE_FAILED = (125,)
"""How the client ends when it was the engine that failed."""


@final
class DockerClient:
    """The container of one session. Owned by the profile's `Containers`."""

    def __init__(self, runtime: Runtime, scope: ProfileScope, name: str, program: str | None = None) -> None:
        self._runtime = runtime
        self._scope = scope
        self._program = program
        self._running: Running | None = None
        self._granted: Granted | None = None
        self._starting = trio.Lock()
        self.name = name

    @property
    def cwd(self) -> Path:
        return self._scope.home.state / OWN

    @property
    def watches(self) -> bool:
        return False

    async def granted(self) -> Granted:
        """The warden of the client, with the container running. Raises `WardenFailed` with what the engine says."""
        container = self._container
        grants = Grants(
            read=(Path(container.socket),),
            write=(self.cwd,),
            confine=self._scope.terminal.confine,
            network="allow",
            unix_sockets="allow",
        )
        await in_thread(self._runtime.limiter, self._prepare)
        granted = await self._runtime.warden_for_client(self._scope, grants)
        async with self._starting:
            if self._running is None or self._running.ended:
                self._running = await self._start(granted)
            self._granted = granted
        return granted

    def standing(self) -> Granted | None:
        return None if self._running is None or self._running.ended else self._granted

    def argv(self, words: Sequence[str], *, terminal: bool) -> tuple[str, ...]:
        options = ("-i", "-t") if terminal else ("-i",)
        return (*self._engine(), "exec", *options, self.name, *words)

    def run_argv(self) -> tuple[str, ...]:
        """What makes the container."""
        policy, container = self._scope.terminal, self._container
        network = "none" if policy.network == "deny" else container.network
        words = [*self._engine(), "run", "--rm", "-i", "--init", "--name", self.name, "--network", network]
        words += ["--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--pull", "missing"]
        if policy.memory_bytes is not None:
            words += ["--memory", str(policy.memory_bytes)]
        if policy.processes is not None:
            words += ["--pids-limit", str(policy.processes)]
        words += ["--ulimit", f"nofile={policy.open_files}:{policy.open_files}"]
        for limit, value in (("fsize", policy.file_bytes), ("cpu", policy.cpu_s)):
            if value is not None:
                words += ["--ulimit", f"{limit}={value}:{value}"]
        for volume in container.volumes:
            words += ["--volume", volume]
        return (*words, container.image, *_PROCESS)

    def environment(self) -> Mapping[str, str]:
        """Nothing of the server's: its own directory for what the client keeps, and no credentials."""
        path = self._runtime.base_environment.get("PATH", "/usr/bin:/bin")
        usual = {"PATH": path, "HOME": str(self.cwd)}
        # Podman takes the same name, and fails when there is no such file.
        return usual if self._is_podman() else {**usual, "DOCKER_CONFIG": str(self.cwd)}

    def failure(self, finished: Finished) -> str | None:
        if finished.exit_code not in _ENGINE_FAILED:
            return None
        return f"The container engine failed: {finished.output[-600:].decode(errors='replace').strip()}."

    def _prepare(self) -> None:
        self.cwd.mkdir(mode=0o700, exist_ok=True)

    async def aclose(self) -> None:
        """End the container."""
        if self._running is not None:
            await self._running.aclose()

    async def _start(self, granted: Granted) -> Running:
        running = await granted.warden.open(Command(self.run_argv(), self.cwd, self.environment()))
        said = b""
        try:
            with trio.move_on_after(READY_WITHIN_S):
                while piece := await running.receive():
                    said = (said + piece)[-4096:]
                    if _SIGN.encode() in said:
                        return running
        except BaseException:
            await running.aclose()
            raise
        await running.aclose()
        because = said[-600:].decode(errors="replace").strip() or "it did not answer in time"
        raise WardenFailed(f"The container of this session cannot be started: {because}.")

    def _client(self) -> str | None:
        return self._program or next((path for path in PROGRAMS if Path(path).is_file()), None)

    def _is_podman(self) -> bool:
        program = self._client()
        return program is not None and Path(program).name == "podman"

    def _engine(self) -> tuple[str, ...]:
        program = self._client()
        if program is None:
            raise WardenFailed(
                "There is no container client on this machine.",
                hint="Install docker or podman, or set terminal.backend to local.",
            )
        reached = f"unix://{self._container.socket}"
        # Podman without --remote would make the container itself, below the warden, where it may not.
        return (program, "--remote", "--url", reached) if self._is_podman() else (program, "-H", reached)

    @property
    def _container(self) -> ContainerConfig:
        container = self._scope.terminal.container
        if container is None:
            raise ProfileUnusable("terminal.container names no image.", hint="Add terminal.container.image.")
        return container
