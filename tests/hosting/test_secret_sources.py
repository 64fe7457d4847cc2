"""Secrets from a command and from the service manager: the own profile's, retried, and never told."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_ws.contract.errors import ProfileUnusable
from hermes_ws.hosting.host import Host
from hermes_ws.scope.environment import StartEnvironment
from hermes_ws.scope.home import HomesRoot
from hermes_ws.scope.identity import ProfileName
from tests.session.house import House

WORK = ProfileName("work")


def command(*words: str, env: str = "") -> str:
    listed = ", ".join(f'"{word}"' for word in words)
    return f"secrets:\n  sources:\n  - kind: command\n    command: [{listed}]\n{env}"


async def test_a_command_fills_in_what_env_does_not_define(house: House) -> None:
    house.home("work", config=command("printf", "A=from-the-command\\nB=from-the-command\\n"), env="A=from-env\n")
    async with house.served() as host:
        scope = (await host.open(WORK)).scope
        assert (scope.secrets.get("A"), scope.secrets.get("B")) == ("from-env", "from-the-command")


async def test_each_profiles_helper_sees_its_own_profile_and_only_what_it_was_given(house: House) -> None:
    """ENV-06, in the order A, B, A."""
    for name in ("default", "work"):
        house.home(
            name,
            config=command("sh", "-c", "echo SEEN=$(env | sort | base64 -w0)", env="    env: [GIVEN]\n"),
            env=f"GIVEN=given-to-{name}-0001\nKEPT=kept-by-{name}-0002\n",
        )
    house.launch_secrets = {"PARENT": "parent-value-0003"}
    async with house.served() as host:
        import base64

        for name, other in (("default", "work"), ("work", "default"), ("default", "work")):
            runtime = await host.open(ProfileName(name))
            await runtime.reload()
            seen = base64.b64decode(runtime.scope.secrets.reveal("SEEN")).decode()
            assert f"GIVEN=given-to-{name}-0001" in seen
            assert "KEPT" not in seen
            assert "PARENT" not in seen
            assert f"-{other}-" not in seen


async def test_a_failed_source_is_named_and_tried_again_at_the_next_use(house: House) -> None:
    """GLOBAL-08: a failure is no result."""
    flag = house.home("work", config=command("sh", "-c", "cat flag")) / "home" / "flag"
    async with house.served() as host:
        runtime = await host.open(WORK)
        assert runtime.scope.secrets.names() == frozenset()
        assert "secrets.sources[0]: the command ended with status 1" in runtime.problems
        flag.write_text("KEY=mended-value-01\n")
        scope = await runtime.fresh_scope()
        assert scope.secrets.get("KEY") == "mended-value-01"
        assert runtime.problems == ()
        loaded = scope.loaded
        assert (await runtime.fresh_scope()).loaded == loaded


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("sh", "-c", "echo secret-value; exit 3"), "status 3"),
        (("/does/not/exist",), "status 127"),
        (("echo", "not a line"), "is not NAME=value"),
        (("sh", "-c", "head -c 400000 /dev/zero"), "printed more than"),
    ],
)
async def test_why_a_source_failed_is_said_without_what_it_printed(
    house: House, words: tuple[str, ...], reason: str
) -> None:
    house.home("work", config=command(*words))
    async with house.served() as host:
        (problem,) = (await host.open(WORK)).problems
        assert reason in problem
        assert "secret-value" not in problem


async def test_a_source_cannot_name_what_steers_programs(house: House) -> None:
    house.home("work", config=command("printf", "PATH=/evil\\nLD_PRELOAD=/evil.so\\nFINE=fine-value-01\\n"))
    async with house.served() as host:
        assert (await host.open(WORK)).scope.secrets.names() == {"FINE"}


@pytest.mark.parametrize(
    "config",
    [
        'secrets:\n  sources:\n  - kind: command\n    command: [echo, "${KEY}"]\n',
        "secrets:\n  sources:\n  - kind: command\n",
        "secrets:\n  sources:\n  - kind: credentials\n    command: [x]\n",
    ],
)
async def test_a_source_that_makes_no_sense_is_refused(house: House, config: str) -> None:
    house.home("work", config=config)
    async with house.served() as host:
        with pytest.raises(ProfileUnusable, match=r"secrets\.sources"):
            await host.open(WORK)


def with_credentials(house: House, directory: Path | None) -> None:
    def make_host() -> Host:
        parameters = {} if directory is None else {"CREDENTIALS_DIRECTORY": str(directory)}
        start = StartEnvironment(base={"PATH": "/usr/bin:/bin"}, parameters=parameters, launch_secrets={})
        return Host(HomesRoot.directory(house.root), start, instance_id="i", audience=house.people)

    house.make_host = make_host  # type: ignore[method-assign]


async def test_credentials_of_the_service_manager_go_to_the_profile_that_they_name(
    house: House, tmp_path: Path
) -> None:
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    for name, value in (("KEY", "of-launch-0001\n"), ("work.KEY", "of-work-0002\n"), ("not a name", "x")):
        (credentials / name).write_text(value)
    for name in ("default", "work"):
        house.home(name, config="secrets:\n  sources:\n  - kind: credentials\n")
    with_credentials(house, credentials)
    async with house.served() as host:
        launch, work = (await host.open(host.launch)).scope.secrets, (await host.open(WORK)).scope.secrets
        assert {name: launch.get(name) for name in launch.names()} == {"KEY": "of-launch-0001"}
        assert {name: work.get(name) for name in work.names()} == {"KEY": "of-work-0002"}


async def test_credentials_that_were_not_handed_over_are_a_problem_that_is_named(house: House) -> None:
    house.home("work", config="secrets:\n  sources:\n  - kind: credentials\n")
    with_credentials(house, None)
    async with house.served() as host:
        (problem,) = (await host.open(WORK)).problems
        assert "without CREDENTIALS_DIRECTORY" in problem
