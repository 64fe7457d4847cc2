"""The client of the `ssh` backend: OpenSSH, with what the profile itself knows of other machines and nothing else.

Config, known_hosts and keys are those in the home's own home/.ssh, and the keys that `terminal.ssh` names. A machine
that known_hosts does not hold is refused: nobody is there to compare a fingerprint when a tool runs. There is no agent.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import final

from hermes_ws.contract.errors import ProfileUnusable
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.session.ports import Granted, Runtime
from hermes_ws.warden.grants import Finished, Grants

PROGRAM = "/usr/bin/ssh"

_OPTIONS = (
    *("BatchMode=yes", "StrictHostKeyChecking=yes", "GlobalKnownHostsFile=/dev/null", "IdentityAgent=none"),
    *("ForwardAgent=no", "ForwardX11=no", "ClearAllForwardings=yes", "PermitLocalCommand=no", "ControlMaster=no"),
    *("ControlPath=none", "ServerAliveInterval=15", "ServerAliveCountMax=3", "LogLevel=ERROR"),
)
"""Nobody to ask, no machine that is not known, nothing of ours that is passed on, and a dead line is noticed."""

_FAILED = 255
"""How OpenSSH ends when it was OpenSSH that failed."""


@final
class SshClient:
    """OpenSSH for one load of a profile."""

    def __init__(self, runtime: Runtime, scope: ProfileScope) -> None:
        self._runtime = runtime
        self._scope = scope
        self._own = scope.home.user / ".ssh"

    @property
    def cwd(self) -> Path:
        return self._own

    @property
    def watches(self) -> bool:
        return True

    async def granted(self) -> Granted:
        """Raises `ProfileUnusable` when the profile has no `.ssh`, where what it knows of the machine would stand."""
        grants = Grants(
            read=(self._own, *self._scope.terminal.ssh),
            network="allow",
            confine=self._scope.terminal.confine,
            unix_sockets="deny",
        )
        return await self._runtime.warden_for_client(self._scope, grants)

    def standing(self) -> Granted | None:
        return None

    def argv(self, words: Sequence[str], *, terminal: bool) -> tuple[str, ...]:
        """`words` are quoted once more: OpenSSH joins them, and a shell over there takes them apart."""
        remote = self._scope.terminal.remote
        if remote is None:
            raise ProfileUnusable("terminal.remote names no host.", hint="Add terminal.remote.host to config.yaml.")
        said = [PROGRAM, "-tt" if terminal else "-T", "-F", self._config()]
        for option in (
            *_OPTIONS,
            f"UserKnownHostsFile={self._own}/known_hosts",
            f"ConnectTimeout={remote.connect_s:.0f}",
        ):
            said += ["-o", option]
        for key in self._keys():
            said += ["-i", str(key)]
        if remote.port is not None:
            said += ["-p", str(remote.port)]
        if remote.user is not None:
            said += ["-l", remote.user]
        return (*said, "--", remote.host, shlex.join(words))

    def environment(self) -> Mapping[str, str]:
        base = {
            name: value for name, value in self._runtime.base_environment.items() if name in ("PATH", "LANG", "TERM")
        }
        return {**base, "HOME": str(self._scope.home.user)}

    def failure(self, finished: Finished) -> str | None:
        if finished.exit_code != _FAILED:
            return None
        remote = self._scope.terminal.remote
        said = finished.output[-600:].decode(errors="replace").strip() or "it said nothing"
        return (
            f"{remote.host if remote else 'The machine'} cannot be reached over SSH: {said}. Its key must stand in"
            f" {self._own}/known_hosts (ssh-keyscan prints it; compare it first), and it must accept one of the"
            " profile's keys."
        )

    def _config(self) -> str:
        config = self._own / "config"
        return str(config) if config.is_file() else "none"

    def _keys(self) -> tuple[Path, ...]:
        named = tuple(self._own / name for name in ("id_ed25519", "id_ecdsa", "id_rsa"))
        return (*self._scope.terminal.ssh, *(key for key in named if key.is_file()))
