"""TERM: where a terminal is, its working directory, and what it calls home."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from hermes_ws.agent.deeds import Ran
from hermes_ws.contract import errors
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.session.backends import backend_for
from hermes_ws.session.hands import SessionHands
from hermes_ws.session.remote import Remote
from tests.session.house import House, new_session


@pytest.fixture
def house(tmp_path: Path) -> House:
    root = tmp_path / "homes"
    root.mkdir()
    house = House(root)
    house.home("default", config="{}")
    return house


def place(tmp_path: Path, name: str) -> Path:
    path = tmp_path / name
    path.mkdir(exist_ok=True)
    return path


async def run(runtime: ProfileRuntime, command: str, **options: str) -> Ran:
    """What a command of a new session says."""
    session, _, _ = await new_session(runtime, **options)
    hands = SessionHands(runtime, runtime.scope, Path(session.record.cwd))
    return await hands.run(command, cwd=None, deadline_s=60, on_output=lambda _text: None)


async def cwd(runtime: ProfileRuntime, **options: str) -> str:
    return (await run(runtime, "pwd", **options)).output.strip()


async def test_term_01_another_profiles_backend_is_never_a_sessions_own(house: House, tmp_path: Path) -> None:
    """A container configured for one profile is neither used nor seen by a local one, before and after."""
    volume = place(tmp_path, "volume")
    house.home(
        "boxed", config=f"terminal:\n  backend: docker\n  container:\n    image: x\n    volumes: ['{volume}:/v']\n"
    )
    async with house.served():
        local, boxed = await house.runtime(), await house.runtime("boxed")
        before = (await run(local, "env | sort")).output
        assert isinstance(backend_for(boxed, boxed.scope, Path("/v"), "s"), Remote)
        assert not isinstance(backend_for(local, local.scope, local.home.user), Remote)
        assert (await run(local, "env | sort")).output == before
        assert (await run(local, f"ls {volume} /v")).exit_code != 0


async def test_term_02_a_session_without_a_directory_never_takes_anothers(house: House, tmp_path: Path) -> None:
    """After work in a profile with a directory, one without still begins in its own home/."""
    house.home("second", config=f"terminal:\n  cwd: {place(tmp_path, 'b')}\n")
    async with house.served():
        first, second = await house.runtime(), await house.runtime("second")
        assert await cwd(second) == str(tmp_path / "b")
        assert await cwd(first) == str(first.home.user)


async def test_term_03_the_request_comes_first_then_the_profile_then_its_home(house: House, tmp_path: Path) -> None:
    """Switching profiles takes no directory along."""
    a, b, asked = (place(tmp_path, name) for name in ("a", "b", "asked"))
    house.home("default", config=f"terminal:\n  cwd: {a}\n")
    house.home("second", config=f"terminal:\n  cwd: {b}\n")
    async with house.served():
        first, second = await house.runtime(), await house.runtime("second")
        assert [await cwd(first), await cwd(second), await cwd(first)] == [str(a), str(b), str(a)]
        assert await cwd(second, cwd=str(asked)) == str(asked)


async def test_term_04_three_profiles_have_their_own_directories_in_every_order(house: House, tmp_path: Path) -> None:
    """Whoever was first decides nothing for the others."""
    names = ("one", "two", "three")
    for name in names:
        house.home(name, config=f"terminal:\n  cwd: {place(tmp_path, name)}\n")
    async with house.served():
        for order in itertools.permutations(names):
            for name in order:
                session, _, _ = await new_session(await house.runtime(name))
                assert session.record.cwd == str(tmp_path / name)


async def test_term_05_a_directory_that_is_missing_is_an_error_and_no_fall_back(house: House, tmp_path: Path) -> None:
    """A reference in `cwd` is not expanded, the directory it names is not there, and that is said."""
    house.home("default", config="terminal:\n  cwd: ${D}/w\n", env=f"D={tmp_path}\n")
    async with house.served():
        runtime = await house.runtime()
        with pytest.raises(errors.DirectoryRefused) as caught:
            await new_session(runtime)
        assert "${D}/w" in caught.value.message


async def test_term_06_where_the_server_was_started_from_matters_to_nobody(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server whose own directory is `/` begins sessions where the profile says."""
    house.home("default", config=f"terminal:\n  cwd: {place(tmp_path, 'configured')}\n")
    monkeypatch.chdir("/")
    async with house.served():
        assert await cwd(await house.runtime()) == str(tmp_path / "configured")


async def test_term_07_a_session_keeps_its_directory_over_a_restart(house: House, tmp_path: Path) -> None:
    """What another session was asked to use is remembered for that one alone."""
    house.home("default", config=f"terminal:\n  cwd: {place(tmp_path, 'b')}\n")
    async with house.served():
        runtime = await house.runtime()
        session, _, _ = await new_session(runtime)
        await new_session(runtime, cwd=str(place(tmp_path, "g")))
    async with house.served():
        runtime = await house.runtime()
        assert (await runtime.sessions.get(session.session_id)).record.cwd == str(tmp_path / "b")
        assert await cwd(runtime) == str(tmp_path / "b")


@pytest.mark.parametrize("setting", ["profile", "user"])
async def test_term_08_what_is_called_home_is_one_setting_and_the_profiles_has_its_own_name(
    house: House, setting: str
) -> None:
    """HOME is the home's own home/, or the user's by choice; HERMES_HOME is the profile's, always."""
    house.home("default", config=f"terminal:\n  home: {setting}\n")
    async with house.served():
        runtime = await house.runtime()
        home, own = (await run(runtime, "echo $HOME; echo $HERMES_HOME")).output.split()
        assert own == str(runtime.home.path)
        assert home == str(runtime.home.user if setting == "profile" else runtime.scope.terminal.user_home)


@pytest.mark.parametrize("path", ["C:\\x", "c:/x", "\\\\server\\share"])
async def test_term_09_a_path_of_windows_is_refused_when_the_profile_is_opened(house: House, path: str) -> None:
    """It reaches no shell."""
    house.home("default", config=f"terminal:\n  cwd: '{path}'\n")
    async with house.served():
        with pytest.raises(errors.ProfileUnusable, match="Windows"):
            await house.runtime()


async def test_term_10_the_base_is_never_wider_than_what_was_named(house: House, tmp_path: Path) -> None:
    """Nothing falls back to `/`: a file beside the session's directory is out of reach."""
    work = place(tmp_path, "work")
    (tmp_path / "beside").write_text("canary-beside")
    async with house.served():
        runtime = await house.runtime()
        if runtime.confinement.level != "kernel":
            pytest.skip("nothing confines commands on this machine")
        ran = await run(runtime, f"pwd; cat ../beside {tmp_path}/beside", cwd=str(work))
        assert ran.output.splitlines()[0] == str(work)
        assert "canary" not in ran.output
