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
