"""The doctor finds what is wrong, says what mends it, and changes nothing."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from click.testing import CliRunner

from hermes_ws.cli.main import hermes_ws
from hermes_ws.hosting.doctor.finding import Finding, worst
from hermes_ws.hosting.doctor.homes import look_at_homes
from hermes_ws.hosting.doctor.leak_proof import prove
from hermes_ws.hosting.doctor.machine import look_at_kernel, look_at_machine
from hermes_ws.hosting.doctor.models import look_at_models
from hermes_ws.scope.home import HomesRoot
from hermes_ws.scope.identity import ProfileName
from hermes_ws.warden import libc
from hermes_ws.warden.grants import Confinement
from tests.session.house import House

WORK = ProfileName("work")


def found(house: House) -> dict[tuple[str, str], Finding]:
    return {(each.check, each.subject): each for each in look_at_homes(HomesRoot.directory(house.root))}


def test_homes_in_order_are_said_to_be(house: House) -> None:
    assert {key: each.level for key, each in found(house).items()} == {
        ("home", "default"): "ok",
        ("home", "work"): "ok",
    }


def test_every_serious_finding_has_a_remedy_and_none_a_value(house: House) -> None:
    home = house.home("work", config="model:\n  colour: red\n", env="KEY=canary-value-0001\nbad line\n")
    home.chmod(0o755)
    (home / ".env").chmod(0o644)
    (home / "profile.json").write_text("{")
    (home / "run").mkdir()
    (home / "run" / "token").write_text("canary-token")
    (home / "run" / "token").chmod(0o644)
    (home / "imported.json").write_text("{}")
    (home / "state").mkdir()
    (home / "state" / "sessions.db").write_bytes(b"no database " * 100)
    (house.root / ".staging-0123").mkdir()
    (house.root / "loop").symlink_to("loop")
    findings = found(house)
    for check in ("mode", "settings", "secrets", "identity", "access", "imported", "database"):
        assert findings[check, "work"].remedy, check
    assert findings["leftover", ".staging-0123"].remedy
    assert "canary" not in str(findings)
    (home / ".env").chmod(0o600)
    assert "line 2" in found(house)["secrets", "work"].message


def test_a_copied_home_and_databases_that_are_not_known_are_found(house: House) -> None:
    trio.run(_open_work, house)
    for name in ("zwork", "ywork"):
        shutil.copytree(house.root / "work", house.root / name)
    with sqlite3.connect(house.root / "ywork" / "state" / "sessions.db") as database:
        database.execute("PRAGMA application_id = 7")
    database.close()
    with sqlite3.connect(house.root / "zwork" / "state" / "sessions.db") as database:
        database.execute("PRAGMA user_version = 999")
    database.close()
    findings = found(house)
    assert "adopt zwork" in findings["identity", "zwork"].remedy
    assert "knows versions up to" in findings["database", "zwork"].message
    assert "another program" in findings["database", "ywork"].message
    assert "Nothing was changed" in findings["database", "ywork"].remedy
    assert findings["home", "work"].level == "ok"


async def _open_work(house: House) -> None:
    async with house.served() as host:
        await host.open(WORK)
        owned = found(house)
        assert owned["lock", "work"].level == "info"


def test_a_root_without_homes_is_an_error(tmp_path: Path) -> None:
    (finding,) = look_at_homes(HomesRoot.directory(tmp_path))
    assert (finding.level, bool(finding.remedy)) == ("error", True)


def test_each_layer_that_is_missing_says_how_to_get_it() -> None:
    nothing = tuple(look_at_kernel(Confinement(0, False, False, False, ("a note",))))
    assert [each.level for each in nothing] == ["error", "error", "warning", "warning", "info"]
    assert all(each.remedy for each in nothing[:4])
    everything = tuple(look_at_kernel(Confinement(7, True, True, True)))
    assert worst(everything) == "ok"
    assert {each.check for each in look_at_machine()} >= {"system", "python", "sqlite", "descriptors"}


async def test_an_endpoint_that_does_not_answer_is_named(house: House) -> None:
    listener = (await trio.open_tcp_listeners(0, host="127.0.0.1"))[0]
    port = listener.socket.getsockname()[1]
    template = "model:\n  provider: p\nproviders:\n  p:\n    kind: openai\n    base_url: http://127.0.0.1:{}/v1\n"
    house.home("work", config=template.format(port))
    root = HomesRoot.directory(house.root)
    assert [each.level async for each in look_at_models(root)] == ["ok"]
    await listener.aclose()
    (finding,) = [each async for each in look_at_models(root)]
    assert (finding.level, bool(finding.remedy)) == ("warning", True)


@pytest.fixture
def parent_of_orphans() -> Iterator[None]:
    """The proof makes this process the parent of orphans; for the tests after it they go to whoever reaps them."""
    yield
    libc.prctl(libc.PR_SET_CHILD_SUBREAPER, 0)


@pytest.mark.usefixtures("parent_of_orphans")
async def test_the_proof_holds_here(tmp_path: Path) -> None:
    base = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    (tmp_path / "a").mkdir()
    findings = await prove(tmp_path / "a", base)
    assert worst(findings) == "ok", [each for each in findings if each.level != "ok"]
    assert len(findings) == 14


def test_the_command_prints_one_object_for_programs(house: House) -> None:
    before = sorted(os.listdir(house.root))
    result = CliRunner(env={"HERMES_HOME": str(house.root / "work")}).invoke(hermes_ws, ["doctor", "--json"])
    report = json.loads(result.output)
    assert {each["check"] for each in report["findings"]} >= {"python", "confinement", "home", "server"}
    assert all(each["remedy"] for each in report["findings"] if each["level"] in ("warning", "error"))
    assert result.exit_code == (1 if report["level"] == "error" else 0)
    assert sorted(os.listdir(house.root)) == before
