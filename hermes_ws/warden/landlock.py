"""Landlock: what a process and all that it starts may touch in the file system, and nothing it can undo.

The numbers are those of `linux/landlock.h`. A ruleset handles every right that the kernel knows, so that whatever no
rule grants is refused. Rules bind to inodes, not to names: a file that is replaced afterwards has lost its grant.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
from collections.abc import Iterable
from typing import Final, NamedTuple, final

from hermes_ws.warden import libc

KNOWN_ABI: Final = 7
"""The newest version whose rights this module knows; a newer kernel is used as this one."""

SIGNAL_SCOPE_ABI: Final = 6
"""From here on signals and abstract sockets can be kept inside."""

EXECUTE: Final = 1 << 0
WRITE_FILE: Final = 1 << 1
READ_FILE: Final = 1 << 2
READ_DIR: Final = 1 << 3
REMOVE_DIR: Final = 1 << 4
REMOVE_FILE: Final = 1 << 5
MAKE_CHAR: Final = 1 << 6
MAKE_DIR: Final = 1 << 7
MAKE_REG: Final = 1 << 8
MAKE_SOCK: Final = 1 << 9
MAKE_FIFO: Final = 1 << 10
MAKE_BLOCK: Final = 1 << 11
MAKE_SYM: Final = 1 << 12
REFER: Final = 1 << 13
TRUNCATE: Final = 1 << 14
IOCTL_DEV: Final = 1 << 15

LOOK: Final = READ_FILE | READ_DIR
USE: Final = LOOK | EXECUTE
DEVICE: Final = READ_FILE | WRITE_FILE | IOCTL_DEV
CHANGE: Final = (
    USE
    | WRITE_FILE
    | TRUNCATE
    | REFER
    | REMOVE_DIR
    | REMOVE_FILE
    | MAKE_DIR
    | MAKE_REG
    | MAKE_SOCK
    | MAKE_FIFO
    | MAKE_SYM
)
"""All that work in a directory needs; making device files is nobody's work."""

_OF_A_FILE: Final = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
_RIGHTS_BY_ABI: Final = (0, 13, 14, 15, 15, 16, 16, 16)
"""How many of the rights above each version knows, from the lowest bit."""

_CREATE_RULESET: Final = 444
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446
_OPENAT2: Final = 437
_AT_FDCWD: Final = -100
_RESOLVE_NO_SYMLINKS: Final = 0x04
_RULE_PATH_BENEATH: Final = 1
_NET_TCP: Final = 0b11
_SCOPE_ABSTRACT_AND_SIGNAL: Final = 0b11


@final
class Rule(NamedTuple):
    """A path and what may be done at it and below it. `straight` takes no path that goes through a link."""

    path: str
    rights: int
    straight: bool = False


def kernel_abi() -> int:
    """The version that this kernel offers, 0 for none, never above `KNOWN_ABI`."""
    try:
        return min(libc.syscall(_CREATE_RULESET, None, 0, 1), KNOWN_ABI)
    except OSError:
        return 0


def ruleset(abi: int, rules: Iterable[Rule], *, deny_tcp: bool) -> tuple[int, list[str]]:
    """A descriptor of a ruleset with `rules`, and the paths for which there is none, each with the reason.

    Signals and abstract sockets stay inside from version 6 on; with `deny_tcp` no port may be bound or reached from
    version 4 on.
    """
    handled = (1 << _RIGHTS_BY_ABI[abi]) - 1
    attributes = struct.pack("=Q", handled)
    if abi >= 4:
        attributes += struct.pack("=Q", _NET_TCP if deny_tcp else 0)
    if abi >= SIGNAL_SCOPE_ABI:
        attributes += struct.pack("=Q", _SCOPE_ABSTRACT_AND_SIGNAL)
    made = libc.syscall(_CREATE_RULESET, attributes, len(attributes), 0)
    os.set_inheritable(made, False)
    absent: list[str] = []
    for rule in rules:
        try:
            place = open_straight(rule.path) if rule.straight else os.open(rule.path, os.O_PATH | os.O_CLOEXEC)
        except OSError as error:
            absent.append(f"{rule.path} is not granted: {error.strerror}.")
            continue
        try:
            rights = rule.rights & handled
            if not stat.S_ISDIR(os.fstat(place).st_mode):
                rights &= _OF_A_FILE
            libc.syscall(_ADD_RULE, made, _RULE_PATH_BENEATH, struct.pack("=Qi", rights, place), 0)
        finally:
            os.close(place)
    return made, absent


def open_straight(path: str) -> int:
    """Open without following any link: one that a child has put there since the path was checked grants nothing."""
    if "\0" in path:
        # The kernel would take the part before it, which nobody checked.
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    how = struct.pack("=QQQ", os.O_PATH | os.O_CLOEXEC, 0, _RESOLVE_NO_SYMLINKS)
    try:
        return libc.syscall(_OPENAT2, _AT_FDCWD, os.fsencode(path), how, len(how))
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
    return os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)


def restrict(made: int) -> None:
    """Put one more layer around this process, for good. The kernel allows 16; `PR_SET_NO_NEW_PRIVS` must be set."""
    libc.quick(_RESTRICT_SELF, made, 0)
