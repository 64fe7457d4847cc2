"""Cases about what is reaped, and what outlived its session elsewhere: workers, helpers, hooks, handles."""

from __future__ import annotations

import os
import socket
import struct
import time
import urllib.parse

import pytest

from hermes_ws.contract.methods.mutations import MutateParams
from hermes_ws.session import commands
from tests.e2e.gateway_client import PATIENCE
from tests.e2e.process import Server
from tests.session.house import OWNER, House, eventually, new_session, say
from tests.session.slashing import SIGN, below, command_line, environment_of, type_in, workers

CONFIG = """terminal: {{env: [{name}]}}
quick_commands:
  show: {{type: exec, command: env}}
  long: {{type: exec, command: 'echo begun; sleep 1000'}}
"""


async def test_env_06_a_slash_worker_sees_its_own_profile_and_no_other(house: House) -> None:
    """In the order A, B, A: B's name and not A's, in the commands and in the worker itself."""
    house.launch_secrets = {"PARENT_KEY": "parent-value-0000"}
    for home, name in (("default", "ONLY_A"), ("work", "ONLY_B")):
        house.home(home, config=CONFIG.format(name=name), env=f"{name}=value-of-{name.lower()}-0001\n")
    async with house.served():
        runtimes = [await house.runtime("default"), await house.runtime("work")]
        sessions = [(await new_session(runtime))[0] for runtime in runtimes]
        for number in (0, 1, 0):
            own, foreign = (("ONLY_A", "ONLY_B"), ("ONLY_B", "ONLY_A"))[number]
            shown = await type_in(runtimes[number], sessions[number], "/show")
            assert f"{own}=«secret:{own}»" in shown
            assert foreign not in shown
            assert "PARENT_KEY" not in shown
            (worker,) = await workers(runtimes[number])
            environment = environment_of(worker)
            assert f"{own}=value-of-{own.lower()}-0001" in environment
            assert foreign not in environment
            assert "PARENT_KEY" not in environment


async def test_reap_07_fifty_commands_have_one_worker_and_a_closed_session_none(house: House) -> None:
    house.home("default", config=CONFIG.format(name="X"))
    async with house.served():
        runtime = await house.runtime()
        session, _, _ = await new_session(runtime)
        seen: set[int] = set()
        for _ in range(50):
            await type_in(runtime, session, "/show")
            now = await workers(runtime)
            assert len(now) == 1
            seen.update(now)
        assert len(seen) == 1
        await runtime.sessions.close(session.session_id)
        await eventually(lambda: runtime.ongoing.slash.count == 0)
        assert await workers(runtime) == []


async def test_reap_09_resetting_a_session_leaves_it_one_helper(house: House) -> None:
    house.home("default", config=CONFIG.format(name="X"))
    async with house.served():
        runtime = await house.runtime()
        session, thread, viewer = await new_session(runtime)
        for number in range(5):
            await say(thread, f"/do say {number}", f"input-{number}")
            await viewer.until("execution.finished")
            await type_in(runtime, session, "/show")
            reset = {
                "session_id": session.session_id,
                "request_id": f"reset-{number}",
                "expected_revision": session.record.revision,
                "operation": "reset",
            }
            params = MutateParams.model_validate(reset)
            await runtime.sessions.mutate(params, OWNER)
            assert len(await workers(runtime)) <= 1
        await type_in(runtime, session, "/show")
        assert len(await workers(runtime)) == 1


async def test_reap_14_the_end_of_a_session_is_had_once_in_its_own_profile(house: House) -> None:
    """It is put aside first and closed later."""
    home = house.home("work", config="hooks: {session_end: [{command: 'echo $HERMES_HOME >> ends.txt'}]}\n")
    async with house.served():
        runtime = await house.runtime("work")
        await house.runtime("default")
        session, thread, viewer = await new_session(runtime, accept_hooks=True)
        await say(thread, "hello", "one")
        await viewer.until("execution.finished")
        await runtime.sessions.wait_until_idle()
        viewer.leave()
        runtime.sessions.forget_idle(-1.0)
        await eventually((home / "home" / "ends.txt").exists)
        await runtime.sessions.get(session.session_id)
        await runtime.sessions.close(session.session_id)
    assert (home / "home" / "ends.txt").read_text().split() == [str(home)]


async def test_reap_17_a_command_past_its_time_is_over_and_its_answer_says_so(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.home("default", config=CONFIG.format(name="X"))
    async with house.served():
        runtime = await house.runtime()
        session, _, _ = await new_session(runtime)
        granted = await runtime.warden_for(runtime.scope, runtime.home.user)
        await type_in(runtime, session, "/show")
        monkeypatch.setattr(commands, "DEADLINE_S", 1.0)
        assert "ended after 1 s" in await type_in(runtime, session, "/long")
        alive = [command_line(pid) for pid in below(granted.warden.statistics().pid)]
        assert not any(b"sleep" in line or SIGN in line for line in alive)


def _handles(server: Server) -> int:
    return len(os.listdir(f"/proc/{server.pid}/fd"))


@pytest.mark.skipif(os.getuid() != 0, reason="a server may not be looked into, by nobody but root")
def test_reap_19_peers_that_go_away_at_any_moment_leave_no_handle(shared_server: Server) -> None:
    """In the middle of the handshake, after it, with a reset, and one that never says anything before it goes."""
    address = urllib.parse.urlsplit(shared_server.url)
    asked = (
        f"GET {address.path} HTTP/1.1\r\nHost: {address.netloc}\r\nAuthorization: Bearer {shared_server.token}\r\n"
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        "Sec-WebSocket-Version: 13\r\n\r\n"
    ).encode()
    shared_server.connect().socket.close()
    before = _handles(shared_server)
    for number in range(40):
        with socket.create_connection((address.hostname, address.port)) as peer:
            said = (b"", asked[:60], asked, asked)[number % 4]
            peer.sendall(said)
            if said is asked:
                assert b"101" in peer.recv(20)
            if number % 2:
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    until = time.monotonic() + PATIENCE
    while _handles(shared_server) > before and time.monotonic() < until:
        time.sleep(0.05)
    assert _handles(shared_server) <= before
