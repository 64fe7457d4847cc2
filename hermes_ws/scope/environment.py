"""The process environment: read once at start, taken apart, handed on out of sight; and what children get of it.

Only the standard library is imported here, since `serve` does this before it imports anything else. Afterwards the
process environment is neither read nor written; whoever needs something of it is given `StartEnvironment`.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, cast, final

if TYPE_CHECKING:
    from hermes_ws.scope.profile_scope import ProfileScope

BASE_NAMES = frozenset({"PATH", "HOME", "LANG", "TZ", "TERM", "TMPDIR", "USER", "SHELL"})
"""What every process gets, besides `LC_*`: how to find programs and how to speak to the person."""

PARAMETER_NAMES = frozenset({"NOTIFY_SOCKET", "CREDENTIALS_DIRECTORY"})
PARAMETER_PREFIXES = ("HERMES_", "LISTEN_", "WATCHDOG_", "SSL_CERT_")
"""What a service manager or a person says to the server itself, and to no profile."""

STEERING_NAMES = frozenset({
    "BASH_ENV", "ENV", "GCONV_PATH", "IFS", "NODE_OPTIONS", "PERL5LIB", "PERL5OPT", "PROMPT_COMMAND", "PS4",
    "RUBYOPT", "SHELLOPTS", "BASHOPTS", "GIT_SSH_COMMAND", "GIT_SSH", "GIT_EXEC_PATH", "NPM_CONFIG_CACHE",
})  # fmt: skip
STEERING_PREFIXES = ("LD_", "DYLD_", "LC_", "HERMES_", "XDG_", "PYTHON", "BASH_FUNC_", "GLIBC_")
"""Names that change what a program is or does. A secret of such a name would be code; it is refused."""

MEMORY_NAME = "start-environment"
"""What the memory is called in which the environment is handed on; the name is how it is found again."""

PACKED_BYTES = 16 * 1024 * 1024
"""More than the kernel lets an environment be."""


@final
@dataclass(frozen=True, slots=True)
class StartEnvironment:
    """The environment that the server was started with, in its three parts. Only `base` can be printed."""

    base: Mapping[str, str]
    parameters: Mapping[str, str] = field(repr=False)
    launch_secrets: Mapping[str, str] = field(repr=False)


def split(environ: Mapping[str, str]) -> StartEnvironment:
    """Take an environment apart. What is neither a base name nor a start parameter is a secret of the launch profile.

    The rule knows no origin: a name that nobody declared is a secret like any other (cases ENV-03, ENV-05).
    """
    base: dict[str, str] = {}
    parameters: dict[str, str] = {}
    launch_secrets: dict[str, str] = {}
    for name, value in environ.items():
        if _is_base(name):
            base[name] = value
        elif name in PARAMETER_NAMES or name.startswith(PARAMETER_PREFIXES):
            parameters[name] = value
        else:
            launch_secrets[name] = value
    return StartEnvironment(*map(MappingProxyType, (base, parameters, launch_secrets)))


def pack(start: StartEnvironment) -> int:
    """Put it into memory that no other process sees, and return the descriptor; it survives an exec."""
    data = json.dumps([dict(start.base), dict(start.parameters), dict(start.launch_secrets)]).encode("ascii")
    fd = os.memfd_create(MEMORY_NAME, os.MFD_CLOEXEC)
    with open(os.dup(fd), "wb") as file:
        file.write(data)
    os.set_inheritable(fd, True)
    return fd


def unpack(fd: int) -> StartEnvironment:
    """Take what `pack` put there, and close the descriptor. Raises ValueError when it holds something else."""
    with open(fd, "rb") as file:
        file.seek(0)
        data = file.read(PACKED_BYTES + 1)
    if len(data) > PACKED_BYTES:
        raise ValueError("the start environment is larger than an environment can be")
    parts = cast("object", json.loads(data))
    if not isinstance(parts, list) or len(cast("list[object]", parts)) != 3:
        raise ValueError("the descriptor does not hold a start environment")
    base, parameters, launch_secrets = map(_as_names, cast("list[object]", parts))
    return StartEnvironment(base, parameters, launch_secrets)


def is_steering(name: str) -> bool:
    """Whether a variable of this name, in any case (ENV-13), steers programs, so that no secret may be called so."""
    upper = name.upper()
    return upper in BASE_NAMES or upper in STEERING_NAMES or upper.startswith(STEERING_PREFIXES)


def child_environment(
    base: Mapping[str, str], *, scope: ProfileScope, secrets: Iterable[str] | None = None
) -> dict[str, str]:
    """The environment of a child of the profile, built from nothing. Every child's is made here (cases ENV-01 to 07).

    Of `base` only the base names are taken. `secrets` are the names that this child is given; without it, those that
    the terminal policy names. A name that the profile does not define is left out. Raises ProfileUnusable for a name
    that would steer programs.
    """
    home = scope.home
    environment = {name: value for name, value in base.items() if _is_base(name)}
    policy = scope.terminal
    user = str(home.user if policy.home == "profile" else policy.user_home)
    cache = f"{policy.user_home if policy.caches == 'shared' else user}/.cache"
    environment |= {
        "GIT_SSH_COMMAND": _ssh(scope),
        "HERMES_HOME": str(home.path),
        "HOME": user,
        "TMPDIR": str(home.temporary),
        "XDG_CACHE_HOME": cache,
        "npm_config_cache": f"{cache}/npm",
        "XDG_CONFIG_HOME": f"{user}/.config",
        "XDG_DATA_HOME": f"{user}/.local/share",
        "XDG_RUNTIME_DIR": str(home.temporary),
        "XDG_STATE_HOME": f"{user}/.local/state",
    }
    for name in scope.terminal.env if secrets is None else secrets:
        if is_steering(name):
            raise _steers(name)
        value = scope.secrets.get(name)
        if value is not None:
            environment[name] = value
    return environment


def _ssh(scope: ProfileScope) -> str:
    """What git has a shell run to reach another machine. OpenSSH ignores HOME, so the profile's own files are named one
    by one; its config only if there is one, since a missing one is an error. Whether there is, the child finds out.
    """
    own = scope.home.user / ".ssh"
    config = shlex.quote(str(own / "config"))
    words = ["-o", f"UserKnownHostsFile={own / 'known_hosts'}", "-o", "GlobalKnownHostsFile=/dev/null"]
    words += ["-o", "IdentityAgent=none", *(word for key in scope.terminal.ssh for word in ("-i", str(key)))]
    return f'ssh -F "$(test -r {config} && echo {config} || echo none)" {shlex.join(words)}'


def _steers(name: str) -> Exception:
    # Imported when it is needed: the errors bring Pydantic with them, and `serve` imports this module before all else.
    from hermes_ws.contract.errors import ProfileUnusable

    return ProfileUnusable(
        f"{name} cannot be given to a child: a variable of this name changes what programs do.",
        hint="Call the secret something else in .env and in config.yaml.",
        secret=name,
    )


def _is_base(name: str) -> bool:
    return name in BASE_NAMES or name.startswith("LC_")


def _as_names(part: object) -> Mapping[str, str]:
    if not isinstance(part, dict):
        raise ValueError("the descriptor does not hold a start environment")
    names: dict[str, str] = {}
    for name, value in cast("dict[str, object]", part).items():
        if not isinstance(value, str):
            raise ValueError("the descriptor does not hold a start environment")
        names[name] = value
    return MappingProxyType(names)
