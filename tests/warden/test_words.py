"""The parts without a process: orders and answers, the filter, what is kept of an output, explanations."""

from __future__ import annotations

import contextlib
import errno
import json
import signal
import socket
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_ws.contract import errors
from hermes_ws.warden import answers, orders, seccomp
from hermes_ws.warden.denied import explain_denied
from hermes_ws.warden.grants import Finished, Grants, Limits
from hermes_ws.warden.output import Bounded, HeadAndTail

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["id", "exit", "signal", "stage", "errno", "over", "ready", "fatal", "landlock_abi", "notes"])


@given(st.binary(max_size=200) | st.dictionaries(KEYS, JSON).map(lambda value: json.dumps(value).encode()))
def test_any_answer_is_read_or_refused(data: bytes) -> None:
    try:
        ended = answers.ended(data)
    except orders.Malformed:
        pass
    else:
        assert ended.number >= 0
        assert ended.exit_code is None or 0 <= ended.exit_code <= 255
    with contextlib.suppress(orders.Malformed, errors.WardenFailed):
        answers.confinement(data, bubblewrap=True)


@given(st.dictionaries(st.text(), st.text()))
def test_orders_survive_the_way_whatever_their_text_holds(env: dict[str, str]) -> None:
    order = {"op": orders.RUN, "env": {**env, "\udcff": "\udc80"}}
    data = orders.encode(order)
    assert data.isascii()
    assert orders.pairs(orders.decode(data), "env") == order["env"]


@pytest.mark.parametrize(
    "read",
    [
        lambda order: orders.text(order, "x"),
        lambda order: orders.flag(order, "x"),
        lambda order: orders.integer(order, "x"),
        lambda order: orders.texts(order, "x"),
        lambda order: orders.pairs(order, "x"),
        lambda order: orders.section(order, "x"),
    ],
)
@pytest.mark.parametrize("value", [None, 1.5, -1, [1], {"a": 1}, "text", True, []])
def test_a_field_of_the_wrong_kind_is_refused_or_is_of_the_kind(
    read: Callable[[dict[str, object]], object], value: object
) -> None:
    right = {str: "text", bool: True, list: [], tuple: []}
    try:
        got = read({"x": value})
    except orders.Malformed:
        return
    assert got == value or got == tuple(right.get(type(got), ()))


def run_filter(program: bytes, machine: int, number: int, *arguments: int) -> int:
    """The classic BPF that the filter uses, in a few lines."""
    words = [word & (2**64 - 1) for word in (*arguments, 0, 0, 0, 0, 0, 0)][:6]
    data = struct.pack("<IIQ6Q", number, machine, 0, *words)
    steps = list(struct.iter_unpack("=HBBI", program))
    value = at = 0
    while True:
        code, then, otherwise, k = steps[at]
        at += 1
        if code == 0x20:
            (value,) = struct.unpack_from("<I", data, k)
        elif code == 0x54:
            value &= k
        elif code == 0x15:
            at += then if value == k else otherwise
        elif code == 0x35:
            at += then if value >= k else otherwise
        else:
            assert code == 0x06
            return k


ALLOW, KILL = 0x7FFF0000, 0x80000000


def refusal(number: int) -> int:
    return 0x50000 | number


@pytest.mark.parametrize("name", ["x86_64", "aarch64"])
@pytest.mark.parametrize("deny_network", [True, False])
@pytest.mark.parametrize("deny_unix", [True, False])
@pytest.mark.parametrize("own", [True, False])
def test_the_filter_refuses_what_it_should_on_each_machine(
    name: str, deny_network: bool, deny_unix: bool, own: bool
) -> None:
    numbers = seccomp.machine(name)
    assert numbers is not None
    program = seccomp.program(numbers, deny_network=deny_network, deny_unix=deny_unix, own_processes=own)

    def call(number: int, *arguments: int) -> int:
        return run_filter(program, numbers.audit, number, *arguments)

    assert run_filter(program, 0x40000003, 20) == KILL
    assert call(0x40000000 + 1) == refusal(errno.ENOSYS)
    for number in (425, numbers.keyctl, numbers.add_key, numbers.request_key):
        assert call(number) == refusal(errno.EPERM)
    no_family = refusal(errno.EAFNOSUPPORT)
    assert call(numbers.socket, socket.AF_UNIX, 1) == (no_family if deny_unix else ALLOW)
    for family in (socket.AF_INET, socket.AF_INET6, 40, 43):
        assert call(numbers.socket, family, 1) == (no_family if deny_network else ALLOW)
    assert call(numbers.socket, socket.AF_NETLINK, 3) == ALLOW
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
        assert call(numbers.socketpair, socket.AF_UNIX, kind | socket.SOCK_CLOEXEC) == ALLOW
    assert call(numbers.socketpair, socket.AF_UNIX, socket.SOCK_DGRAM) == (no_family if deny_unix else ALLOW)
    assert call(numbers.prlimit64, 0) == ALLOW
    assert call(numbers.prlimit64, 4711) == refusal(errno.EPERM)
    assert call(numbers.setpriority, 0, 0, 5) == ALLOW
    assert call(numbers.setpriority, 0, 4711, 5) == refusal(errno.EPERM)
    assert call(numbers.setpriority, 2, 0, 5) == refusal(errno.EPERM)
    for number in numbers.scheduling:
        assert call(number, 0) == ALLOW
        assert call(number, 4711) == (ALLOW if own else refusal(errno.EPERM))
    assert call(numbers.ioprio_set, 1, 0) == ALLOW
    for arguments in ((1, 4711), (2, 0), (3, 1000)):
        assert call(numbers.ioprio_set, *arguments) == (ALLOW if own else refusal(errno.EPERM))
    for number in numbers.ipc:
        assert call(number) == (ALLOW if own else refusal(errno.ENOSYS))
    assert call(0) == call(56) == call(57) == ALLOW


def test_an_architecture_that_was_never_tried_has_no_filter() -> None:
    assert seccomp.machine("vax") is None


@given(st.integers(0, 50), st.lists(st.binary(max_size=20)))
def test_head_and_tail_are_kept_however_the_pieces_come(limit: int, pieces: list[bytes]) -> None:
    heard: list[bytes] = []
    kept = HeadAndTail(limit, heard.append)
    for piece in pieces:
        kept.feed(piece)
    whole = b"".join(pieces)
    assert b"".join(heard) == whole
    assert kept.over == (len(whole) > limit)
    if kept.over:
        head, tail = limit - limit // 2, limit // 2
        missing = b"\n[... %d bytes left out ...]\n" % (len(whole) - limit)
        assert kept.result() == whole[:head] + missing + whole[len(whole) - tail :]
    else:
        assert kept.result() == whole


@given(st.integers(0, 50), st.lists(st.binary(max_size=20)))
def test_a_bounded_answer_says_when_it_is_too_long(limit: int, pieces: list[bytes]) -> None:
    kept = Bounded(limit)
    for piece in pieces:
        kept.feed(piece)
    whole = b"".join(pieces)
    assert kept.result() == whole[:limit]
    assert kept.over == (len(whole) > limit)


def finished(output: bytes, exit_code: int = 1) -> Finished:
    return Finished(exit_code, None, False, False, output, 1)


def test_a_refusal_is_explained_with_what_is_granted_and_what_grants_more() -> None:
    grants = Grants(write=(Path("/w"),), read=(Path("/r"),))
    said = explain_denied(finished(b"cat: /x: Permission denied\n"), grants)
    assert said is not None
    for word in ("/w", "/r", "terminal.directories", "terminal.read", "terminal.write"):
        assert word in said
    network = explain_denied(finished(b"Address family not supported by protocol"), Grants(network="deny"))
    assert network is not None
    assert "terminal.network" in network
    assert "terminal.unix_sockets" in network


@pytest.mark.parametrize(
    ("name", "value", "output"),
    [
        ("processes", 12, b"bash: fork: Resource temporarily unavailable\n"),
        ("memory_bytes", 4096, b"Traceback ...\nMemoryError\n"),
        ("open_files", 64, b"OSError: [Errno 24] Too many open files: 'x'\n"),
        ("file_bytes", 1000, b"dd: error writing 'x': File too large\n"),
    ],
)
def test_a_limit_that_was_met_is_named_with_its_setting(name: str, value: int, output: bytes) -> None:
    grants = Grants(limits=Limits(open_files=64)) if name == "open_files" else Grants(limits=Limits(**{name: value}))
    said = explain_denied(finished(output), grants)
    assert said == f"It may have met the limit terminal.{name}, which is {value}."
    if name != "open_files":
        assert explain_denied(finished(output), Grants()) is None, "without a limit it was something else"


def test_an_end_by_the_kernel_is_taken_for_the_limit_of_processor_time() -> None:
    killed = Finished(None, signal.SIGKILL, False, False, b"", 1)
    said = explain_denied(killed, Grants(limits=Limits(cpu_s=5)))
    assert said == "It may have met the limit terminal.cpu_s, which is 5."
    assert explain_denied(killed, Grants()) is None
    late = Finished(None, signal.SIGKILL, True, False, b"", 1)
    assert explain_denied(late, Grants(limits=Limits(cpu_s=5))) is None


def test_nothing_is_explained_where_nothing_was_refused() -> None:
    assert explain_denied(finished(b"Permission denied", 0), Grants()) is None
    assert explain_denied(finished(b"no such file"), Grants()) is None
    assert explain_denied(finished(b"Permission denied"), Grants(confine="off")) is None


@pytest.mark.parametrize(
    ("command", "output", "explained"),
    [
        ("cat /homes/b/x", b"cat: /homes/b/x: No such file or directory", True),
        ("cat /tmp/homes/b/x", b"cat: /tmp/homes/b/x: No such file or directory", True),
        ("cat /w/x", b"cat: /w/x: No such file or directory", False),
        ("cat /etc/x", b"cat: /etc/x: No such file or directory", False),
        ("cat x > /tmp/y", b"cat: x: No such file or directory", False),
        ("cat /homes/b/x", b"cat: that did not work", False),
    ],
)
def test_what_a_namespace_hides_is_explained_and_what_is_only_missing_is_not(
    command: str, output: bytes, explained: bool
) -> None:
    """The machine's /tmp is hidden as well: a namespace has an empty one of its own."""
    grants = Grants(write=(Path("/w"),))
    said = explain_denied(finished(output), grants, command=command, hidden=True)
    assert (said is not None and "not even visible" in said and "terminal.read" in said) is explained
    assert explain_denied(finished(output), grants, command=command) is None


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOENT, errors.NotFound),
        (errno.EACCES, errors.PermissionDenied),
        (errno.EXDEV, errors.PermissionDenied),
        (errno.ENOSPC, errors.StorageFull),
        (errno.EISDIR, errors.InvalidParams),
        (errno.ELOOP, errors.InvalidParams),
        (errno.EIO, errors.FileFailed),
        (4095, errors.FileFailed),
    ],
)
def test_each_errno_has_its_error(number: int, kind: type[errors.HermesError]) -> None:
    assert isinstance(answers.file_error(number, Path("/p")), kind)
