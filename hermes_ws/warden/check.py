"""What is said to a warden: checked before anything is started, so that an error names what is wrong."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from hermes_ws.contract import errors
from hermes_ws.warden import landlock, orders, places
from hermes_ws.warden.grants import Command, Confinement, Grants


def checked_command(command: Command, *, stdin_bytes: int) -> dict[str, object]:
    """The order for a command; raises `InvalidParams`."""
    if not command.argv or not command.argv[0]:
        raise errors.InvalidParams("A command needs a program.")
    if math.isnan(command.deadline_s) or command.deadline_s < 0:
        raise errors.InvalidParams("A deadline is a number of seconds, from 0 on.")
    if command.output_bytes < 0:
        raise errors.InvalidParams("A limit of output is a number of bytes, from 0 on.")
    if len(command.stdin) > stdin_bytes:
        raise errors.InvalidParams(f"A command is given at most {stdin_bytes} bytes of input.")
    for word in command.argv:
        _passable(word, "An argument")
    for name, value in command.env.items():
        if not name or "=" in name:
            raise errors.InvalidParams("The name of an environment variable is empty or holds an equals sign.")
        _passable(name, "The name of an environment variable")
        _passable(value, "An environment variable")
    return {
        "op": orders.RUN,
        "argv": list(command.argv),
        "cwd": checked_path(command.cwd),
        "env": dict(command.env),
    }


def checked_path(path: Path) -> str:
    """The path as text for an order; raises `InvalidParams` when it is relative or no path at all."""
    if not path.is_absolute():
        raise errors.InvalidParams("A path for the warden is absolute.")
    _passable(str(path), "A path")
    return str(path)


def wishes(grants: Grants, probed: Confinement | None, *, namespaces: bool) -> dict[str, object]:
    """The first order to a warden: what it shall confine itself to. Raises `InvalidParams` for what is no path."""
    limits = grants.limits
    return {
        "op": orders.CONFINE,
        "confine": grants.confine,
        "network": grants.network,
        "unix_sockets": grants.unix_sockets,
        "read": [checked_path(path) for path in grants.read],
        "write": [checked_path(path) for path in grants.write],
        "prefixes": list(prefixes()),
        "abi_ceiling": landlock.KNOWN_ABI if probed is None else probed.landlock_abi,
        "seccomp": probed is None or probed.seccomp,
        "namespaces": namespaces,
        "user": None if grants.user is None else {"uid": grants.user[0], "gid": grants.user[1]},
        "disk": None if grants.disk is None else {"path": checked_path(grants.disk[0]), "bytes": grants.disk[1]},
        "limits": {
            "memory_bytes": limits.memory_bytes,
            "processes": limits.processes,
            "open_files": limits.open_files,
            "file_bytes": limits.file_bytes,
            "cpu_s": limits.cpu_s,
        },
    }


def prefixes() -> tuple[str, ...]:
    """Where this interpreter lives; children may use it."""
    return tuple(sorted({sys.prefix, sys.base_prefix}))


def refuse_granted_homes(roots: Iterable[Path]) -> None:
    """Raise `ProfileUnusable` for a root of homes in a place that every child of every profile may read."""
    for root in roots:
        for place in (*places.SYSTEM, *prefixes()):
            real = Path(os.path.realpath(place))
            if str(real) != "/" and root.is_relative_to(real):
                raise errors.ProfileUnusable(
                    f"Homes cannot lie in {root}: commands of every profile may read {place}.",
                    hint="Move the homes, for example to /var/lib or below your own home directory.",
                    path=str(root),
                )


def user(grants: Grants, bubblewrap: Path | None) -> None:
    """Raise `ConfinementUnavailable` when the children are to be somebody whom this server cannot make them."""
    if grants.user is None:
        return
    if os.geteuid() != 0:
        raise errors.ConfinementUnavailable(
            "terminal.user names another user, and only a server of root can become one.",
            hint="Leave terminal.user out, or start the server as root.",
        )
    if bubblewrap is None:
        raise errors.ConfinementUnavailable(
            "terminal.user needs bubblewrap: without it the other user cannot pass through the profile's home.",
            hint="Install bubblewrap, or leave terminal.user out.",
        )


def require(found: Confinement) -> None:
    """Raise `ConfinementUnavailable` unless the kernel confines."""
    if found.level != "kernel":
        raise errors.ConfinementUnavailable(
            "terminal.confine is required, and this kernel has no Landlock.",
            hint="Use a kernel with Landlock (5.13 or newer, not disabled), or set terminal.confine to auto.",
        )


def _passable(word: str, what: str) -> None:
    """A lone surrogate or a zero byte can be in a string of the model and in nothing that the kernel takes."""
    try:
        encoded = os.fsencode(word)
    except UnicodeEncodeError as error:
        raise errors.InvalidParams(f"{what} holds characters that cannot be encoded.") from error
    if b"\0" in encoded:
        raise errors.InvalidParams(f"{what} holds a zero byte.")
