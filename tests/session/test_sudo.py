"""The password of a person: asked where a command can use it, given to sudo's input, and kept nowhere."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from hermes_ws.contract.methods.questions import AnswerParams
from hermes_ws.session import remote_scripts as scripts
from hermes_ws.session.elevating import PASSWORD_SHOWN, with_password
from tests.session.house import OWNER, House, People, Viewer, new_session, say

PASSWORD = "pass-of-the-person-4711"

FAKE = r"""#!/bin/sh
# Knows one password, asks for it on standard input alone, and lets nothing else through.
asks=; never=
while :; do
  case "$1" in
    -S) asks=1; shift;;
    -n) never=1; shift;;
    -k) shift;;
    -p) shift 2;;
    *) break;;
  esac
done
[ -e "$(dirname "$0")/free" ] && exec "$@"
[ -n "$never" ] && exit 1
[ -n "$asks" ] || { echo "sudo: a terminal is required"; exit 1; }
IFS= read -r given
if [ "$given" != "pass-of-the-person-4711" ]; then echo "sudo: 1 incorrect password attempt"; exit 1; fi
echo "became root"
exec "$@"
"""

OFF = "terminal:\n  confine: 'off'\n"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A directory with a sudo that is first on the path of commands."""
    place = tmp_path / "programs"
    place.mkdir()
    fake = place / "sudo"
    fake.write_text(FAKE)
    fake.chmod(0o755)
    return place


def placed(house: House, programs: Path, config: str = OFF) -> None:
    house.path = f"{programs}:{house.path}"
    house.home("default", config=config)


async def answered(house: House, people: People, viewer: Viewer, value: str | None) -> str:
    question = await people.question()
    assert question.kind == "sudo"
    runtime = await house.runtime()
    await runtime.sessions.answer(AnswerParams(id=question.id, result={"value": value}), OWNER)
    complete = await viewer.until("tool.complete")
    await viewer.until("execution.finished")
    return str(complete["payload"]["output"])


async def test_the_password_goes_to_the_input_of_sudo_and_nowhere_else(
    house: House, people: People, programs: Path
) -> None:
    placed(house, programs)
    async with house.served():
        runtime = await house.runtime()
        _, thread, viewer = await new_session(runtime, yolo=True)
        # Two of them, one in a pipe: each gets the password, and what is piped still comes through; the rest sees none.
        line = "sudo id -u; echo piped | sudo cat; cat; env; set; cat /proc/$$/cmdline"
        await say(thread, f"/do run {line}", "one")
        output = await answered(house, people, viewer, PASSWORD)
        assert output.count("became root") == 2
        assert "piped" in output
        assert PASSWORD not in output
        assert PASSWORD_SHOWN in output  # The shell's own variable, as `set` shows it, is hidden.
        told = json.dumps([dict(event) for event in viewer.events])
        assert PASSWORD not in told
        assert people.asked[0].params["command"] == line
    held = [file for file in house.root.rglob("*") if file.is_file() and PASSWORD.encode() in file.read_bytes()]
    assert held == []


async def test_a_wrong_password_is_told_by_sudo(house: House, people: People, programs: Path) -> None:
    placed(house, programs)
    async with house.served():
        _, thread, viewer = await new_session(await house.runtime(), yolo=True)
        await say(thread, "/do run sudo id -u", "one")
        assert "incorrect password" in await answered(house, people, viewer, "another")


async def test_who_would_not_give_it_has_nothing_run(house: House, people: People, programs: Path) -> None:
    placed(house, programs)
    async with house.served():
        _, thread, viewer = await new_session(await house.runtime(), yolo=True)
        await say(thread, "/do run touch made; sudo id -u", "one")
        assert "would not give" in await answered(house, people, viewer, None)
        assert not (house.root / "default" / "home" / "made").exists()


async def test_a_sudo_that_wants_no_password_is_not_asked_for(house: House, people: People, programs: Path) -> None:
    placed(house, programs)
    (programs / "free").touch()
    async with house.served():
        _, thread, viewer = await new_session(await house.runtime(), yolo=True)
        await say(thread, "/do run echo in | sudo cat", "one")
        complete = await viewer.until("tool.complete")
        assert complete["payload"]["output"].strip() == "in"
        assert people.asked == []


async def test_a_confined_command_is_told_that_it_can_gain_no_rights(
    house: House, people: People, programs: Path
) -> None:
    placed(house, programs, "")
    async with house.served():
        _, thread, viewer = await new_session(await house.runtime(), yolo=True)
        await say(thread, "/do run sudo id -u", "one")
        complete = await viewer.until("tool.complete", is_error=True)
        assert "can gain no rights" in complete["payload"]["output"]
        assert "terminal.confine: off" in complete["payload"]["output"]
        assert people.asked == []


def test_over_there_the_password_is_read_before_the_command_and_given_to_sudo_alone(
    tmp_path: Path, programs: Path
) -> None:
    """The script as a shell elsewhere takes it; its input stays open, since its end would be the sign to end."""
    line = with_password("sudo id -u; echo piped | sudo cat; cat")
    script = scripts.command(line, tmp_path, {"PATH": f"{programs}:/usr/bin:/bin"}, lines=1)
    with subprocess.Popen(
        ["/bin/sh", "-c", scripts.READER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as shell:
        assert shell.stdin is not None
        assert shell.stdout is not None
        shell.stdin.write(scripts.spoken(script) + PASSWORD.encode() + b"\n")
        shell.stdin.flush()
        output = shell.stdout.read().decode()
    assert shell.returncode == 0
    assert output.split("\n") == ["became root", str(os.getuid()), "became root", "piped", ""]
