"""The few calls of the kernel that Python has no name for.

Each raises `OSError` with the errno of the call. Nothing here decides anything.
"""

from __future__ import annotations

import ctypes
import os
from typing import Final

PR_SET_PDEATHSIG: Final = 1
PR_SET_DUMPABLE: Final = 4
PR_SET_SECCOMP: Final = 22
PR_CAPBSET_READ: Final = 23
PR_CAPBSET_DROP: Final = 24
PR_SET_CHILD_SUBREAPER: Final = 36
PR_SET_NO_NEW_PRIVS: Final = 38
PR_CAP_AMBIENT: Final = 47
PR_CAP_AMBIENT_CLEAR_ALL: Final = 4

_LIBC = ctypes.CDLL(None, use_errno=True)
_SYSCALL = _LIBC.syscall
_PRCTL = _LIBC.prctl
_ULONG_MAX: Final = (1 << (8 * ctypes.sizeof(ctypes.c_ulong))) - 1


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def syscall(number: int, *arguments: int | bytes | ctypes.Array[ctypes.c_char] | None) -> int:
    """Call the kernel by number; integers go as machine words, bytes as pointers."""
    words = [ctypes.c_ulong(word & _ULONG_MAX) if isinstance(word, int) else word for word in arguments]
    function = _LIBC.syscall
    function.restype = ctypes.c_long
    return _checked(int(function(ctypes.c_long(number), *words)))


def quick(number: int, first: int, second: int, third: int = 0) -> None:
    """`syscall` for numbers that fit 32 bits, without any conversion.

    Between fork and exec each page of code that is touched costs a fault; this saves a fifth of a millisecond.
    """
    _checked(int(_SYSCALL(number, first, second, third)))


def die_with_parent(number: int) -> None:
    """Have the kernel send the signal `number` to this process when the thread that forked it is gone."""
    _checked(int(_PRCTL(PR_SET_PDEATHSIG, number, 0, 0, 0)))


def adopt_orphans() -> None:
    """Have orphans below this process become its children, also after an exec; its own children do not inherit it."""
    _checked(int(_PRCTL(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)))


def default_signal(number: int) -> None:
    """Give one signal its default handling again, behind the interpreter's back: for a child that is about to exec."""
    _LIBC.signal(number, 0)


def prctl(option: int, second: int = 0, third: int = 0, fourth: int = 0, fifth: int = 0) -> int:
    """`prctl(2)` with numbers alone."""
    words = [ctypes.c_ulong(word) for word in (second, third, fourth, fifth)]
    return _checked(int(_LIBC.prctl(ctypes.c_int(option), *words)))


def capset(header: bytes, data: bytes) -> None:
    """`capset(2)`, from the packed structures."""
    _checked(int(_LIBC.capset(header, data)))


def capget(header: bytes, size: int) -> bytes:
    """`capget(2)`: the packed structures, `size` bytes of them."""
    buffer = ctypes.create_string_buffer(size)
    _checked(int(_LIBC.capget(header, buffer)))
    return buffer.raw


def install_filter(program: bytes) -> None:
    """`prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER)` with a packed BPF program."""
    code = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

    header = Program(len(program) // 8, ctypes.addressof(code))
    prctl(PR_SET_SECCOMP, 2, ctypes.addressof(header))
