"""What a command gets, what comes back of it, and how it ends."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio

from hermes_ws.contract import errors
from hermes_ws.warden import descendants
from hermes_ws.warden.bubblewrap import Choice
from hermes_ws.warden.grants import Command, Grants, Limits
from hermes_ws.warden.hands import Warden

if TYPE_CHECKING:
    from tests.warden.conftest import Place, Shell


class Cancelling(trio.abc.Instrument):
    """Cancels a scope when a task is about to take its n-th step: every await gets its turn."""

    def __init__(self, scope: trio.CancelScope, steps: int) -> None:
        self._task = trio.lowlevel.current_task()
        self._scope = scope
        self._steps = steps

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        if task is self._task:
            self._steps -= 1
            if self._steps == 0:
                self._scope.cancel()


def children(warden: Warden) -> list[descendants.Seen]:
    """What is below a warden. In namespaces it is below a bubblewrap itself, whose number is the one that is known."""
    below = descendants.below(warden.statistics().pid)
    return [seen for seen in below if not warden.confinement.bubblewrap or seen.parent != warden.statistics().pid]


async def no_child_below(warden: Warden) -> None:
    """Zombies of a group that was just killed may take a moment; anything else may not be there."""
    with trio.fail_after(10):
        while children(warden):  # noqa: ASYNC110 - the kernel has no event
            await trio.sleep(0.005)


async def test_the_environment_is_exactly_what_was_given(warden: Warden, place: Place) -> None:
    """ENV-03, ENV-05, ENV-13: nothing is inherited, whatever the server was started with."""
    env = {"ONLY": "this", "EMPTY": "", "ÜMLAUT": "wört", "BYTES": os.fsdecode(b"\xff\xfe"), "NL": "a\nb"}
    done = await warden.run(place.command("/usr/bin/env", "-0", env=env))
    pairs = dict(part.split(b"=", 1) for part in done.output.split(b"\0") if part)
    assert pairs == {os.fsencode(name): os.fsencode(value) for name, value in env.items()}


async def test_a_child_has_three_descriptors(python: Shell) -> None:
    os.set_inheritable(leaked := os.open("/dev/null", os.O_RDONLY), True)
    try:
        done = await python(
            "import os\n"
            "def open_(fd):\n"
            "    try: os.fstat(fd)\n"
            "    except OSError: return False\n"
            "    return True\n"
            "print([fd for fd in range(1024) if open_(fd)])"
        )
    finally:
        os.close(leaked)
    assert done.output == b"[0, 1, 2]\n"


async def test_a_child_leads_its_own_session_with_default_signals(python: Shell) -> None:
    done = await python(
        "import os, signal\n"
        "print(os.getsid(0) == os.getpgid(0) == os.getpid())\n"
        "import subprocess\n"
        "line = subprocess.run(['bash', '-c', 'trap'], capture_output=True, text=True).stdout\n"
        "print(repr(line), signal.getsignal(signal.SIGTERM), signal.pthread_sigmask(0, []))"
    )
    assert done.output.decode().splitlines() == ["True", "'' 0 set()"]


async def test_output_keeps_the_order_in_which_both_streams_were_written(shell: Shell) -> None:
    done = await shell("echo 1; echo 2 >&2; echo 3; echo 4 >&2")
    assert done.output == b"1\n2\n3\n4\n"


async def test_exit_codes_and_signals_are_told_apart(shell: Shell) -> None:
    assert ((await shell("exit 3")).exit_code, (await shell("exit 255")).exit_code) == (3, 255)
    killed = await shell("kill -9 $$")
    assert (killed.exit_code, killed.signal) == (None, 9)


async def test_standard_input_is_given_and_otherwise_empty(shell: Shell) -> None:
    assert (await shell("cat")).output == b""
    big = os.urandom(300_000)
    assert (await shell("wc -c", stdin=big)).output == b"300000\n"


async def test_a_large_order_goes_through_memory(warden: Warden, place: Place) -> None:
    words = ["x" * 100_000] * 3
    done = await warden.run(place.command("bash", "-c", 'echo "${#1} ${#2} ${#3}"', "bash", *words))
    assert done.output == b"100000 100000 100000\n"


async def test_output_past_the_limit_keeps_head_and_tail(shell: Shell) -> None:
    done = await shell("seq 1 100000", output_bytes=1000)
    assert done.truncated
    assert done.output.startswith(b"1\n2\n3\n")
    assert done.output.endswith(b"99999\n100000\n")
    assert b"bytes left out" in done.output
    assert len(done.output) < 1100


async def test_output_is_heard_while_the_command_runs(shell: Shell, warden: Warden, place: Place) -> None:
    heard: list[bytes] = []
    go = place.inside / "go"
    command = place.command("bash", "-c", "echo first; while [ ! -e go ]; do sleep 0.01; done; echo second")

    def listen(piece: bytes) -> None:
        heard.append(piece)
        go.touch()

    done = await warden.run(command, listen)
    assert b"".join(heard) == done.output == b"first\nsecond\n"


async def test_a_program_that_is_not_there_is_said_in_the_output(warden: Warden, place: Place) -> None:
    done = await warden.run(place.command("no-such-program"))
    assert done.exit_code == 127
    assert b"no-such-program could not be started: No such file or directory" in done.output
    (place.inside / "plain").write_text("text")
    assert (await warden.run(place.command("./plain"))).exit_code == 126


async def test_a_missing_working_directory_is_an_error_and_no_fall_back(warden: Warden, place: Place) -> None:
    """TERM-05: a directory that is not there is never replaced by another."""
    with pytest.raises(errors.NotFound, match="gone"):
        await warden.run(Command(("pwd",), place.inside / "gone", {"PATH": "/bin"}, 10, 100))


@pytest.mark.parametrize(
    "change",
    [
        {"argv": ()},
        {"argv": ("",)},
        {"argv": ("a\0b",)},
        {"argv": ("echo", "\ud800")},
        {"env": {"A=B": "c"}},
        {"env": {"": "c"}},
        {"env": {"A": "\0"}},
        {"cwd": Path("relative")},
        {"deadline_s": float("nan")},
        {"deadline_s": -1.0},
        {"output_bytes": -1},
        {"stdin": bytes(17 * 1024 * 1024)},
    ],
    ids=lambda change: next(iter(change)),
)
async def test_what_no_program_can_be_given_is_refused(change: dict[str, object], warden: Warden, place: Place) -> None:
    with pytest.raises(errors.InvalidParams):
        await warden.run(replace(place.command("true"), **change))
    assert (await warden.run(place.command("true"))).exit_code == 0


async def test_the_deadline_ends_the_whole_group(shell: Shell, warden: Warden) -> None:
    done = await shell("echo begun; sleep 1000 & setsid sleep 1000 & sleep 1000", deadline_s=1.0)
    assert done.timed_out
    assert done.signal == signal.SIGTERM
    assert done.output == b"begun\n"
    await no_child_below(warden)


async def test_what_ignores_the_polite_signal_gets_the_other(shell: Shell, warden: Warden) -> None:
    done = await shell("trap '' TERM; sleep 1000 & while :; do wait; done", deadline_s=1.0)
    assert done.timed_out
    assert done.signal == signal.SIGKILL
    await no_child_below(warden)


async def test_last_words_after_the_polite_signal_are_kept(shell: Shell) -> None:
    done = await shell("trap 'echo bye; exit 7' TERM; echo hi; sleep 1000 & wait", deadline_s=1.0)
    assert (done.exit_code, done.timed_out, done.output) == (7, True, b"hi\nbye\n")


async def test_a_group_left_behind_ends_with_its_command_and_holds_up_nothing(shell: Shell, warden: Warden) -> None:
    done = await shell("sleep 1000 & sleep 1000 & echo done")
    assert (done.exit_code, done.output) == (0, b"done\n")
    await no_child_below(warden)


async def test_a_daemon_that_keeps_the_pipe_open_holds_up_nothing(shell: Shell, warden: Warden) -> None:
    done = await shell("setsid sleep 1000 & sleep 0.05; echo done")
    assert done.output == b"done\n"
    assert len(children(warden)) == 1


async def test_cancelling_ends_the_group_before_it_returns(warden: Warden, place: Place) -> None:
    with trio.CancelScope() as scope:
        await warden.run(
            place.command("bash", "-c", "sleep 1000 & setsid sleep 1000 & echo ready; wait"),
            lambda _piece: scope.cancel(),
        )
    assert scope.cancelled_caught
    await no_child_below(warden)
    assert warden.alive
    assert warden.statistics().running == 0


async def test_cancelling_at_any_step_leaves_no_child_and_no_descriptor(warden: Warden, place: Place) -> None:
    before = len(os.listdir("/proc/self/fd"))
    command = place.command("bash", "-c", "echo a; sleep 0.01; echo b", stdin=b"x")
    for steps in range(1, 60):
        with trio.CancelScope() as scope:
            instrument = Cancelling(scope, steps)
            trio.lowlevel.add_instrument(instrument)
            try:
                await warden.run(command)
            finally:
                trio.lowlevel.remove_instrument(instrument)
        await no_child_below(warden)
        assert len(os.listdir("/proc/self/fd")) == before
        if not scope.cancelled_caught:
            break
    assert steps > 3
    assert (await warden.run(command)).output == b"a\nb\n"


async def test_a_listener_that_fails_ends_the_command(warden: Warden, place: Place) -> None:
    def listen(_piece: bytes) -> None:
        raise RuntimeError("cannot listen")

    with pytest.raises(RuntimeError, match="cannot listen"):
        await warden.run(place.command("bash", "-c", "echo a; sleep 1000"), listen)
    await no_child_below(warden)


async def test_many_at_once_do_not_mix(shell: Shell, nursery: trio.Nursery) -> None:
    outputs: dict[int, bytes] = {}

    async def one(number: int) -> None:
        outputs[number] = (await shell(f"echo {number}; sleep 0.01; echo {number}")).output

    async with trio.open_nursery() as group:
        for number in range(80):
            group.start_soon(one, number)
    assert outputs == {number: f"{number}\n{number}\n".encode() for number in range(80)}


async def test_repeating_leaks_neither_descriptors_nor_processes(warden: Warden, shell: Shell) -> None:
    """RES-01: a hundred commands, and the counts are where they were."""
    await shell("true")
    warden_fds = f"/proc/{warden.statistics().pid}/fd"
    # A warden may not be looked into, by nobody but root.
    places = ["/proc/self/fd", *([warden_fds] if os.getuid() == 0 else [])]
    before = [len(os.listdir(each)) for each in places]
    for _ in range(100):
        await shell("true", stdin=b"x")
    assert [len(os.listdir(each)) for each in places] == before
    await no_child_below(warden)


class TestLimits:
    @pytest.fixture
    def grants(self, place: Place) -> Grants:
        limits = Limits(memory_bytes=256 * 2**20, processes=20, open_files=64, file_bytes=100_000, cpu_s=1)
        return Grants(write=(place.inside,), limits=limits)

    async def test_memory_is_bounded(self, python: Shell) -> None:
        done = await python("bytearray(500 * 2**20)")
        assert b"MemoryError" in done.output

    async def test_processor_time_is_bounded(self, shell: Shell) -> None:
        done = await shell("while :; do :; done")
        assert done.signal in (signal.SIGXCPU, signal.SIGKILL)
        assert not done.timed_out

    async def test_files_and_descriptors_are_bounded(self, shell: Shell, place: Place) -> None:
        done = await shell("ulimit -n; ulimit -c; head -c 200000 /dev/zero > big; stat -c %s big")
        assert done.output.splitlines()[:2] == [b"64", b"0"]
        assert (place.inside / "big").stat().st_size == 100_000

    async def test_processes_are_counted_and_all_ended(self, shell: Shell, warden: Warden) -> None:
        if warden.confinement.processes == "kernel":
            pytest.skip("for who is not root the kernel counts, which test_life has")
        done = await shell("for i in $(seq 50); do sleep 1000 & done; wait")
        assert done.signal == signal.SIGKILL
        assert b"more processes than terminal.processes allows" in done.output
        await no_child_below(warden)
        assert (await shell("echo alive")).output == b"alive\n"

    async def test_daemons_are_counted_after_their_command_has_ended(self, shell: Shell, warden: Warden) -> None:
        script = "setsid bash -c 'sleep 0.3; for i in $(seq 40); do sleep 1000 & done; wait' & echo done"
        assert (await shell(script)).output == b"done\n"
        await no_child_below(warden)

    async def test_limits_cannot_be_raised_again(self, python: Shell) -> None:
        done = await python(
            "import resource\n"
            "try: resource.setrlimit(resource.RLIMIT_NOFILE, (1000, 1000))\n"
            "except (OSError, ValueError) as error: print('refused')"
        )
        assert done.output == b"refused\n"


async def test_a_warden_of_another_profile_knows_nothing_of_this_one(
    warden: Warden, place: Place, tmp_path: Path, namespaces: Choice
) -> None:
    other_home = tmp_path / "other"
    other_home.mkdir()
    other = await Warden.start(Grants(write=(other_home,)), namespaces=namespaces)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(other.serve)
        command = Command(("cat", str(place.inside / "secret")), other_home, {"PATH": "/bin:/usr/bin"}, 10, 1000)
        done = await other.run(command)
        assert done.exit_code != 0
        assert b"canary" not in done.output
        await other.close()
