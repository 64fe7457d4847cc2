"""What every child may use of the machine, whoever it works for: programs, devices, and some files that name nobody.

Both sides read it: the warden makes kernel rules of it, the server the mounts of a namespace and the rule that no root
of homes may lie in one of these places.
"""

from __future__ import annotations

import glob
import os
from typing import Final

SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix")
DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty", "ptmx")
PROC_FILES: Final = ("cpuinfo", "meminfo", "stat", "loadavg", "uptime", "version", "filesystems")
"""What programs ask about the machine. Not `/proc` itself: command lines of every process are in there."""

_ETC_FILES: Final = (
    *("passwd", "group", "hosts", "resolv.conf", "nsswitch.conf", "host.conf", "gai.conf", "networks"),
    *("ssl/certs", "ssl/openssl.cnf", "ssl/cert.pem", "ca-certificates", "ca-certificates.conf", "pki/tls/certs"),
    *("ld.so.*", "alternatives", "localtime", "timezone", "gitconfig", "ssh/ssh_config", "ssh/ssh_config.d"),
    *("os-release", "*-release", "*_version", "shells", "magic", "locale.alias"),
    *("protocols", "services", "mime.types", "inputrc", "terminfo", "bash.bashrc", "profile", "python3*"),
)
"""What root's children may read of `/etc`; not `ssl` as a whole, which holds private keys."""


def settings() -> tuple[str, ...]:
    """The paths of `/etc` that children may read: all of it, or by name where this process could read secrets."""
    if os.geteuid() != 0:
        return ("/etc",)
    return tuple(path for pattern in _ETC_FILES for path in sorted(glob.glob(f"/etc/{pattern}")))


def programs(prefixes: tuple[str, ...]) -> tuple[str, ...]:
    """The directories of programs that there are; a prefix that is `/` or lies in another is left out."""
    kept: list[str] = []
    for path in (*SYSTEM, *prefixes):
        real = os.path.realpath(path)
        if real != "/" and os.path.isdir(path) and not any(path.startswith(f"{other}/") for other in kept):
            kept.append(path)
    return tuple(dict.fromkeys(kept))
