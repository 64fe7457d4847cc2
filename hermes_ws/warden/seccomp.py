"""A seccomp filter for what Landlock does not cover: sockets with a path, keyrings, io_uring, other processes' limits,
and, where the machine's processes and its shared memory are there as well, those.

The filter is classic BPF. Each block begins with the number of the call in the accumulator and either leaves it there
or ends the program, so blocks can be put one after another. The argument words are the lower halves: both machines
here are little-endian, and the kernel looks at no more of an `int`.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from typing import Final, NamedTuple, final

from hermes_ws.warden import libc

_ALLOW: Final = 0x7FFF0000
_ERRNO: Final = 0x00050000
_KILL_PROCESS: Final = 0x80000000

_LOAD: Final = 0x20
_AND: Final = 0x54
_IF_EQUAL: Final = 0x15
_IF_AT_LEAST: Final = 0x35
_RETURN: Final = 0x06

_NUMBER_AT: Final = 0
_MACHINE_AT: Final = 4
_ARGUMENTS_AT: Final = 16
_SOCKET_TYPE_MASK: Final = 0xF
_X32_BIT: Final = 0x40000000
_IOPRIO_WHO_PROCESS: Final = 1

IO_URING_SETUP: Final = 425
"""The same number on every machine; also what the probe calls to see that the filter holds."""


@final
class Machine(NamedTuple):
    """The numbers of one architecture."""

    audit: int
    socket: int
    socketpair: int
    add_key: int
    request_key: int
    keyctl: int
    prlimit64: int
    setpriority: int
    ioprio_set: int
    scheduling: tuple[int, ...]
    """sched_setparam, sched_setscheduler, sched_setaffinity, sched_setattr: each names a process first."""
    ipc: tuple[int, ...]
    """Memory, semaphores and queues of System V, each call by itself: who guesses an id needs no key. And the two that
    open and remove a queue of POSIX."""


_MACHINES: Final = (
    (
        "x86_64",
        Machine(
            *(0xC000003E, 41, 53, 248, 249, 250, 302, 141, 251),
            scheduling=(142, 144, 203, 314),
            ipc=(29, 30, 31, *range(64, 72), 220, 240, 241),
        ),
    ),
    (
        "aarch64",
        Machine(
            *(0xC00000B7, 198, 199, 217, 218, 219, 261, 140, 30),
            scheduling=(118, 119, 122, 274),
            ipc=(180, 181, *range(186, 198)),
        ),
    ),
)


def machine(name: str) -> Machine | None:
    """The numbers for `os.uname().machine`; nothing for an architecture that was never tried."""
    for known, numbers in _MACHINES:
        if known == name:
            return numbers
    return None


def _step(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("=HBBI", code, then, otherwise, value)


def _refuse(number: int) -> bytes:
    return _step(_RETURN, _ERRNO | number)


def _for_call(number: int, *steps: bytes) -> bytes:
    """`steps`, which end the program, for one call; any other passes by."""
    return _step(_IF_EQUAL, number, 0, len(steps)) + b"".join(steps)


def _argument(index: int) -> bytes:
    return _step(_LOAD, _ARGUMENTS_AT + 8 * index)


def _only(values: tuple[int, ...], number: int) -> tuple[bytes, ...]:
    """Allow when the accumulator is one of `values`, otherwise answer with errno `number`."""
    steps = [_step(_IF_EQUAL, value, len(values) - at, 0) for at, value in enumerate(values)]
    return (*steps, _refuse(number), _step(_RETURN, _ALLOW))


def program(numbers: Machine, *, deny_network: bool, deny_unix: bool, own_processes: bool) -> bytes:
    """The packed filter. `own_processes` says that there are no others to be named: in namespaces.

    A foreign architecture ends the process: its numbers mean other calls. A socketpair of datagrams goes with
    `AF_UNIX`, since either end can be sent on to any path; of streams, which everybody uses, it stays.
    """
    code = [
        _step(_LOAD, _MACHINE_AT),
        _step(_IF_EQUAL, numbers.audit, 1, 0),
        _step(_RETURN, _KILL_PROCESS),
        _step(_LOAD, _NUMBER_AT),
        _step(_IF_AT_LEAST, _X32_BIT, 0, 1),
        _refuse(errno.ENOSYS),
    ]
    code += [
        _for_call(call, _refuse(errno.EPERM))
        for call in (IO_URING_SETUP, numbers.add_key, numbers.request_key, numbers.keyctl)
    ]
    # The same user may otherwise set the server's own limits, down to one second of processor time.
    code.append(_for_call(numbers.prlimit64, _argument(0), *_only((0,), errno.EPERM)))
    code.append(
        _for_call(
            numbers.setpriority,
            _argument(0),
            _step(_IF_EQUAL, os.PRIO_PROCESS, 1, 0),
            _refuse(errno.EPERM),
            _argument(1),
            *_only((0,), errno.EPERM),
        )
    )
    if not own_processes:
        code += _for_shared_machine(numbers)
    if deny_network:
        # By a list of what is allowed: AF_SMC, AF_VSOCK and whatever comes next lead outside as well.
        families = (int(socket.AF_NETLINK),) if deny_unix else (int(socket.AF_NETLINK), int(socket.AF_UNIX))
        code.append(_for_call(numbers.socket, _argument(0), *_only(families, errno.EAFNOSUPPORT)))
    elif deny_unix:
        code.append(
            _for_call(
                numbers.socket,
                _argument(0),
                _step(_IF_EQUAL, int(socket.AF_UNIX), 0, 1),
                _refuse(errno.EAFNOSUPPORT),
                _step(_RETURN, _ALLOW),
            )
        )
    if deny_unix:
        streams = (int(socket.SOCK_STREAM), int(socket.SOCK_SEQPACKET))
        code.append(
            _for_call(
                numbers.socketpair,
                _argument(1),
                _step(_AND, _SOCKET_TYPE_MASK),
                *_only(streams, errno.EAFNOSUPPORT),
            )
        )
    code.append(_step(_RETURN, _ALLOW))
    return b"".join(code)


def _for_shared_machine(numbers: Machine) -> list[bytes]:
    """What the kernel asks the user alone about: how fast other processes run, and memory that has a number for a name.

    A program may set its own scheduling as long as it says 0 for itself, as tools do; that the kernel was made without
    System V's calls is what programs are prepared for.
    """
    code = [_for_call(call, _argument(0), *_only((0,), errno.EPERM)) for call in numbers.scheduling]
    code.append(
        _for_call(
            numbers.ioprio_set,
            _argument(0),
            _step(_IF_EQUAL, _IOPRIO_WHO_PROCESS, 1, 0),
            _refuse(errno.EPERM),
            _argument(1),
            *_only((0,), errno.EPERM),
        )
    )
    return code + [_for_call(call, _refuse(errno.ENOSYS)) for call in numbers.ipc]


def install(numbers: Machine, *, deny_network: bool, deny_unix: bool, own_processes: bool) -> None:
    """Put the filter over this process and all that it starts, for good. `PR_SET_NO_NEW_PRIVS` must be set."""
    code = program(numbers, deny_network=deny_network, deny_unix=deny_unix, own_processes=own_processes)
    libc.install_filter(code)


def holds() -> bool:
    """Whether the filter is in force: without it, this call fails for another reason or succeeds."""
    try:
        made = libc.syscall(IO_URING_SETUP, 0, None)
    except OSError as error:
        return error.errno == errno.EPERM
    os.close(made)
    return False
