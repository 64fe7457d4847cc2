"""Profiles leave as one file and come in from one: whole, sealed, and with nothing that reaches beyond a home."""

from __future__ import annotations

import os
import sqlite3
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio

from hermes_ws.contract.errors import (
    HermesError,
    InvalidParams,
    NotFound,
)
from hermes_ws.contract.methods.profile_life import Part
from hermes_ws.hosting import profile_copy
from hermes_ws.scope.identity import ProfileName
from tests.session.house import House, new_session, say

WORK, OTHER, NEW = ProfileName("work"), ProfileName("other"), ProfileName("new")
AUTO = "approvals:\n  mode: auto\n"
PASSPHRASE = "correct horse battery"
EVERYTHING: Sequence[Part] = ("config", "soul", "agents", "skills", "memory", "files", "secrets", "sessions")


async def test_a_profile_goes_out_and_comes_in_with_its_sessions_and_sealed_secrets(house: House) -> None:
    home = house.home(
        "work", config=f"{AUTO}terminal:\n  env: [KEY]\n", env="KEY=canary-value-of-work-0001\nB=other-value-0002\n"
    )
    (home / "home").mkdir()
    (home / "home" / "notes.txt").write_text("notes")
    async with house.served() as host:
        runtime = await host.open(WORK)
        session, thread, viewer = await new_session(runtime, title="past")
        await say(thread, "/do say remember the blue door", "one")
        await viewer.until("execution.finished")
        origin = runtime.scope.identity.origin
        with pytest.raises(InvalidParams, match="passphrase"):
            await host.life.take_out(WORK, EVERYTHING, None)
        written = await host.life.take_out(WORK, EVERYTHING, PASSPHRASE)
        assert written.path.stat().st_mode & 0o777 == 0o600
        assert b"canary-value" not in written.path.read_bytes()
        assert b"blue door" not in written.path.read_bytes()
        assert sorted(os.listdir(written.path.parent)) == [written.path.name]

        before = house.names()
        for passphrase in (None, "wrong horse battery"):
            with pytest.raises(InvalidParams):
                await host.life.bring_in(written.path, NEW, passphrase, take_secrets=True)
        assert house.names() == before

        copy = await host.life.bring_in(written.path, NEW, PASSPHRASE, take_secrets=True)
        assert copy.off
        assert copy.identity.origin != origin
        opened = await host.open(NEW)
        assert opened.scope.secrets.get("KEY") == "canary-value-of-work-0001"
        found = await opened.sessions.find(title="past")
        assert found.session_id.startswith(copy.identity.origin)
        assert (house.root / "new" / "home" / "notes.txt").read_text() == "notes"
        assert (house.root / "new" / ".env").stat().st_mode & 0o777 == 0o600

        await host.life.delete(WORK, 0)
        back = await host.life.bring_in(written.path, WORK, PASSPHRASE, take_secrets=False)
        assert back.identity.origin == origin
        returned = await host.open(WORK)
        assert (await returned.sessions.get(session.session_id)).record.title == "past"
        assert returned.scope.secrets.names() == frozenset()


async def test_an_archive_that_was_changed_or_cut_is_refused(house: House, tmp_path: Path) -> None:
    house.home("work", config=AUTO)
    async with house.served() as host:
        written = await host.life.take_out(WORK, ["config"], PASSPHRASE)
        data = bytearray(written.path.read_bytes())
        data[-20] ^= 1
        for name, content in (("changed", bytes(data)), ("cut", written.path.read_bytes()[:-30]), ("none", b"")):
            (tmp_path / name).write_bytes(content)
            with pytest.raises(InvalidParams):
                await host.life.bring_in(tmp_path / name, NEW, PASSPHRASE, take_secrets=False)
        assert house.names() == ["default", "work"]


async def test_what_an_imported_home_would_start_is_off_until_confirmed(house: House) -> None:
    house.home("work", config='secrets:\n  sources:\n  - kind: command\n    command: [echo, "KEY=from-a-command-01"]\n')
    async with house.served() as host:
        assert (await host.open(WORK)).scope.secrets.get("KEY") == "from-a-command-01"
        written = await host.life.take_out(WORK, ["config"], None)
        await host.life.bring_in(written.path, NEW, None, take_secrets=False)
        runtime = await host.open(NEW)
        assert runtime.scope.secrets.get("KEY") is None
        assert runtime.scope.off == ("secrets.sources",)
        assert any("secrets.sources is off" in problem for problem in runtime.problems)
        assert await host.life.confirm(NEW)
        await runtime.reload()
        assert runtime.scope.secrets.get("KEY") == "from-a-command-01"
        assert not await host.life.confirm(NEW)


def evil(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    import io

    with tarfile.open(path, "w:gz") as tar:
        manifest = b'{"format": 1, "profile": "x", "id": "1", "origin": "aaaaaaaa", "user": "/x", "parts": []}'
        head = tarfile.TarInfo("manifest.json")
        head.size = len(manifest)
        tar.addfile(head, io.BytesIO(manifest))
        for member, content in members:
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content) if content else None)
    return path


def link(name: str, to: str, kind: bytes = tarfile.SYMTYPE) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, to
    return member, b""


def file(name: str) -> tuple[tarfile.TarInfo, bytes]:
    return tarfile.TarInfo(name), b"content"


@pytest.mark.parametrize(
    "members",
    [
        [file("../outside")],
        [file("/etc/outside")],
        [file("skills/../../outside")],
        [file("run/token")],
        [file("profile.json")],
        [file("state/server.db")],
        [link("skills/l", "/etc")],
        [link("skills/l", "../../other")],
        [link("skills/l", "skills/x", tarfile.LNKTYPE)],
        [link("skills/d", "", tarfile.CHRTYPE)],
        [link("skills/l", ".."), file("skills/l/../../outside")],
        [link("config.yaml", "SOUL.md")],
        [link("skills/a/d", "../.."), link("skills/a/l", "d/../outside")],
        [link("skills/a/l", "d/../../outside"), link("skills/a/d", "../..")],
        [file("skills/twice"), file("skills/twice")],
    ],
    ids=lambda members: "+".join(member.name for member, _ in members),
)
async def test_an_archive_cannot_reach_beyond_the_home_it_makes(
    house: House, tmp_path: Path, members: list[tuple[tarfile.TarInfo, bytes]]
) -> None:
    path = evil(tmp_path / "evil.hermes", *members)
    async with house.served() as host:
        before = house.names()
        with pytest.raises(InvalidParams):
            await host.life.bring_in(path, NEW, None, take_secrets=False)
        assert house.names() == before
    assert not (house.root / "outside").exists()
    assert not (house.root.parent / "outside").exists()


@pytest.mark.parametrize(
    ("what", "refused"), [("missing", NotFound), ("directory", InvalidParams), ("pipe", InvalidParams)]
)
async def test_what_is_no_archive_is_refused_and_waited_for_by_nobody(
    house: House, tmp_path: Path, what: str, refused: type[HermesError]
) -> None:
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "pipe")
    async with house.served() as host:
        before = house.names()
        with trio.fail_after(30), pytest.raises(refused):
            await host.life.bring_in(tmp_path / what, NEW, None, take_secrets=False)
        assert house.names() == before


async def test_an_archive_larger_than_a_home_is_refused(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = evil(tmp_path / "many.hermes", *(file(f"skills/{number}") for number in range(20)))
    monkeypatch.setattr(profile_copy, "FILES", 10)
    async with house.served() as host:
        with pytest.raises(HermesError):
            await host.life.bring_in(path, NEW, None, take_secrets=False)
        assert house.names() == ["default", "work"]


async def test_nothing_of_a_foreign_schema_comes_along(house: House, tmp_path: Path) -> None:
    async with house.served() as host:
        runtime = await host.open(WORK)
        await new_session(runtime, title="past")
        await host.life.delete(WORK, 0)
    house.home("work")
    async with house.served() as host:
        runtime = await host.open(WORK)
        await new_session(runtime, title="past")
        async with host.closed(WORK, 0):
            with sqlite3.connect(house.root / "work" / "state" / "sessions.db") as database:
                database.execute("CREATE TRIGGER evil AFTER INSERT ON session BEGIN DELETE FROM admission; END")
                database.execute("CREATE TABLE evil_table (x)")
            database.close()
        written = await host.life.take_out(WORK, ["sessions"], None)
        await host.life.bring_in(written.path, NEW, None, take_secrets=False)
        opened = await host.open(NEW)
        found = await opened.journal.read(
            lambda connection: connection.execute("SELECT name FROM sqlite_master WHERE name LIKE 'evil%'").fetchall()
        )
        assert found == []
        assert (await opened.sessions.find(title="past")).record.title == "past"
