"""What a profile's terminal may do: the policy, with its paths resolved, and the rule for working directories.

The kernel rules of a warden are made from this, and they follow directories down. A directory that contains a home, or
lies in one, would open it; so it is refused here, with what to do instead.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, final

from hermes_ws.contract.errors import DirectoryRefused, ProfileUnusable
from hermes_ws.scope.environment import is_steering
from hermes_ws.scope.home import ProfileHome
from hermes_ws.scope.terminal_sections import ContainerConfig, RemoteConfig, TerminalConfig

TOOL_ROOTS = (
    *(".pyenv", ".nvm", ".cargo/bin", ".rustup", ".local/bin", ".local/share/uv", ".local/share/mise"),
    *(".bun", ".deno", "go", ".asdf", ".volta", "miniconda3"),
)
"""Where people's tools live below their home; those on PATH are granted for reading and executing."""


@final
@dataclass(frozen=True, slots=True)
class TerminalPolicy:
    """The terminal section of one profile. Paths are absolute and, where they must exist, resolved.

    `directories` is None where the user may work anywhere; empty, nowhere but below the home's own home/. `env` are
    names of secrets, not values. Times are seconds, sizes bytes; None is no limit.
    """

    backend: Literal["local", "ssh", "docker"]
    directories: tuple[Path, ...] | None
    read: tuple[Path, ...]
    write: tuple[Path, ...]
    env: tuple[str, ...]
    network: Literal["allow", "deny"]
    confine: Literal["auto", "required", "off"]
    unix_sockets: Literal["deny", "allow"]
    deadline_s: float
    output_bytes: int
    memory_bytes: int | None
    processes: int | None
    open_files: int
    file_bytes: int | None
    cpu_s: int | None
    cwd: Path | None
    disk_bytes: int | None = None
    user: str | None = None
    background: Literal["end", "keep"] = "end"
    home: Literal["profile", "user"] = "profile"
    caches: Literal["profile", "shared"] = "profile"
    ssh: tuple[Path, ...] = ()
    toolchains: tuple[Path, ...] = ()
    user_home: Path = Path("/")
    remote: RemoteConfig | None = None
    container: ContainerConfig | None = None

    def check_directory(self, directory: Path, *, home: ProfileHome, homes: Iterable[Path]) -> Path:
        """Resolve a directory to work in, or raise DirectoryRefused.

        It must exist, lie below one of `directories` or the home's own home/, and neither contain nor lie in one of
        `homes` (see HomesRoot.homes_paths) or this home. There is no fall-back (cases TERM-01 to 05).
        """
        if self.backend != "local":
            return _remote(directory, home)
        if not directory.is_absolute():
            raise _refused(directory, "it is not an absolute path")
        try:
            resolved = directory.resolve(strict=True)
        except (OSError, ValueError, RuntimeError):
            raise _refused(directory, "it does not exist or cannot be reached") from None
        if not resolved.is_dir():
            raise _refused(directory, "it is not a directory")
        because = _opens_a_home(resolved, home=home, homes=homes)
        if because is not None:
            raise _refused(directory, because)
        if not os.access(resolved, os.R_OK | os.X_OK):
            raise _refused(directory, "the user of this server may not read it")
        if self.directories is not None and not resolved.is_relative_to(home.user.resolve()):
            granted = [path.resolve() for path in self.directories]
            if not any(resolved.is_relative_to(path) for path in granted):
                raise _refused(directory, "it lies below none of terminal.directories")
        return resolved


def load_policy(
    config: TerminalConfig, *, home: ProfileHome, homes: Iterable[Path], user_home: Path | None = None
) -> TerminalPolicy:
    """The policy that a configuration states. `~` is `user_home`, by default that of the server's user.

    A relative path is meant from the home's own home/. Raises ProfileUnusable, naming the key, for a grant that would
    open a home or that does not exist, and for a secret whose name would steer programs.
    """
    places = _Places(home, tuple(homes), user_home or Path(pwd.getpwuid(os.getuid()).pw_dir))
    for index, name in enumerate(config.env):
        if is_steering(name):
            raise _unusable(home, f"terminal.env[{index}]", f"{name} would change what programs do; call it otherwise")
    directories = None
    if config.directories is not None:
        directories = tuple(
            places.path(text, f"terminal.directories[{n}]") for n, text in enumerate(config.directories)
        )
    return TerminalPolicy(
        backend=config.backend,
        directories=directories,
        read=tuple(places.granted(text, f"terminal.read[{n}]") for n, text in enumerate(config.read)),
        write=tuple(places.granted(text, f"terminal.write[{n}]") for n, text in enumerate(config.write)),
        env=config.env,
        network=config.network,
        confine=config.confine,
        unix_sockets=config.unix_sockets,
        deadline_s=config.deadline_s,
        output_bytes=config.output_bytes,
        memory_bytes=config.memory_bytes,
        processes=config.processes,
        open_files=config.open_files,
        file_bytes=config.file_bytes,
        cpu_s=config.cpu_s,
        cwd=_cwd(config, places),
        disk_bytes=config.disk_bytes,
        user=config.user,
        background=config.background,
        home=config.home,
        caches=config.caches,
        ssh=tuple(places.granted(text, f"terminal.ssh[{n}]") for n, text in enumerate(config.ssh)),
        toolchains=places.toolchains() if config.toolchains == "auto" else (),
        user_home=places.user_home,
        remote=_remote_config(config, home),
        container=_container_config(config, places),
    )


@final
@dataclass(frozen=True, slots=True)
class _Places:
    """Turns the paths of one configuration into paths of this machine."""

    home: ProfileHome
    homes: tuple[Path, ...]
    user_home: Path

    def path(self, text: str, key: str) -> Path:
        if "\0" in text:
            raise _unusable(self.home, key, "a path holds no NUL character")
        if text == "~" or text.startswith("~/"):
            return self.user_home / text[2:]
        if text.startswith("~"):
            raise _unusable(self.home, key, "only `~` and `~/…` are understood, not the home of another user")
        if text[1:3] in (":\\", ":/") or "\\" in text[:2]:
            raise _unusable(self.home, key, "this is a path of Windows, and commands run in Linux")
        return self.home.user / text

    def toolchains(self) -> tuple[Path, ...]:
        """The tool roots of the user that there are, without those that would open a home."""
        found: list[Path] = []
        for name in TOOL_ROOTS:
            resolved = Path(os.path.realpath(self.user_home / name))
            if resolved.is_dir() and _opens_a_home(resolved, home=self.home, homes=self.homes) is None:
                found.append(resolved)
        return tuple(dict.fromkeys(found))

    def granted(self, text: str, key: str) -> Path:
        try:
            resolved = self.path(text, key).resolve(strict=True)
        except (OSError, RuntimeError):
            raise _unusable(self.home, key, f"{text} does not exist") from None
        because = _opens_a_home(resolved, home=self.home, homes=self.homes)
        if because is not None:
            raise _unusable(self.home, key, because)
        return resolved


def _cwd(config: TerminalConfig, places: _Places) -> Path | None:
    if config.cwd is None:
        return None
    # With a remote backend it is a path over there, of which this machine knows nothing.
    return places.path(config.cwd, "terminal.cwd") if config.backend == "local" else Path(config.cwd)


def _remote(directory: Path, home: ProfileHome) -> Path:
    """A directory on another machine is taken as it is; what it holds is found out there."""
    if directory == home.user:
        return Path("~")
    if not directory.is_absolute() and directory.parts[:1] != ("~",):
        raise _refused(directory, "it is neither an absolute path nor one that begins with ~/")
    if "\0" in str(directory):
        raise _refused(directory, "a path holds no NUL character")
    return directory


def _remote_config(config: TerminalConfig, home: ProfileHome) -> RemoteConfig | None:
    if config.backend == "ssh" and config.remote is None:
        raise _unusable(home, "terminal.remote", "the ssh backend needs a host to connect to")
    return config.remote


def _container_config(config: TerminalConfig, places: _Places) -> ContainerConfig | None:
    if config.backend == "docker" and config.container is None:
        raise _unusable(places.home, "terminal.container", "the docker backend needs an image")
    if config.container is None:
        return None
    volumes: list[str] = []
    for number, volume in enumerate(config.container.volumes):
        parts = volume.split(":")
        key = f"terminal.container.volumes[{number}]"
        if len(parts) not in (2, 3) or not parts[1].startswith("/") or parts[2:] not in ([], ["ro"], ["rw"]):
            raise _unusable(places.home, key, "a volume is written /here:/there or /here:/there:ro")
        volumes.append(":".join((str(places.granted(parts[0], key)), *parts[1:])))
    return config.container.model_copy(update={"volumes": tuple(volumes)})


def _opens_a_home(path: Path, *, home: ProfileHome, homes: Iterable[Path]) -> str | None:
    """Why a resolved path cannot be granted, or None. The home's own home/ and what is below may be."""
    if path.is_relative_to(home.user):
        return None
    for other in (home.path, *homes):
        if path == other or path.is_relative_to(other):
            return "it lies in a profile's home or the directory of homes"
        if other.is_relative_to(path):
            return "it contains the homes of profiles"
    return None


def _refused(directory: Path, because: str) -> DirectoryRefused:
    return DirectoryRefused(
        f"{directory} cannot be used as a working directory: {because}.", directory=str(directory), because=because
    )


def _unusable(home: ProfileHome, key: str, because: str) -> ProfileUnusable:
    return ProfileUnusable(
        f"{home.config}: {key}: {because}.", hint=f"Change {key} in config.yaml.", file=str(home.config), key=key
    )
