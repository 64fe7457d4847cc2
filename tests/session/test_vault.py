"""Fetching a login: what is missing on the way is asked for, and what a person would not say stops it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio

from hermes_ws.contract.errors import PermissionDenied
from hermes_ws.contract.model import Params, Result
from hermes_ws.contract.questions import ValueResult, VaultLoginResult
from hermes_ws.contract.registry import Question
from hermes_ws.hosting import vault as file_vault
from hermes_ws.hosting.vault import FileVault
from hermes_ws.journal.address import ThreadKey
from hermes_ws.scope.home import ProfileHome
from hermes_ws.session.vault import ATTEMPTS, Logins

PASSWORD = "correct horse"
LOGIN = json.dumps({"username": "ada", "password": "secret"})
SITE = ("https://a.example", "a.example")


class Person:
    """Answers by kind, in order."""

    def __init__(self, **answers: list[str | None]) -> None:
        self.asked: list[tuple[str, Result]] = []
        self._answers = answers

    async def ask(self, question: Question, params: Result, *, deadline_s: float | None = None) -> Params:
        await trio.lowlevel.checkpoint()
        self.asked.append((question.kind, params))
        value = self._answers[question.kind.partition(".")[2]].pop(0)
        return VaultLoginResult(value=value) if question.kind == "vault.save_login" else ValueResult(value=value)

    @property
    def kinds(self) -> list[str]:
        return [kind.partition(".")[2] for kind, _ in self.asked]


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileVault:
    monkeypatch.setattr(file_vault, "SCRYPT_N", 2**4)
    (tmp_path / "state").mkdir()
    return FileVault(ProfileHome(tmp_path))


def logins(vault: FileVault, person: Person) -> Logins:
    asker: Any = person
    return Logins(vault, asker, ThreadKey("s-1", "main"), trio.CapacityLimiter(1))


async def test_all_that_is_missing_is_asked_for_once(vault: FileVault) -> None:
    person = Person(unlock_prompt=[PASSWORD], save_login=[LOGIN], code=["123", "456"])
    fetch = logins(vault, person)
    first = await fetch.login(*SITE, code=True)
    assert (first.username, first.password, first.code) == ("ada", "secret", "123")
    again = await fetch.login(*SITE, code=True)
    assert (again.password, again.code) == ("secret", "456")
    assert person.kinds == ["unlock_prompt", "save_login", "code", "code"]
    assert "new" in person.asked[0][1].model_dump()["display_name"]


async def test_a_wrong_password_is_asked_for_again_and_then_no_more(vault: FileVault) -> None:
    vault.unlock(PASSWORD)
    vault.lock()
    person = Person(unlock_prompt=["wrong", "wrong again", PASSWORD], save_login=[LOGIN])
    assert (await logins(vault, person).login(*SITE, code=False)).username == "ada"
    assert "new" not in person.asked[0][1].model_dump()["display_name"]
    vault.lock()
    stubborn = Person(unlock_prompt=["wrong"] * ATTEMPTS)
    with pytest.raises(PermissionDenied, match="wrong each time"):
        await logins(vault, stubborn).login(*SITE, code=False)
    assert len(stubborn.asked) == ATTEMPTS


async def test_a_password_that_is_too_short_for_a_new_vault_is_asked_for_again(vault: FileVault) -> None:
    person = Person(unlock_prompt=["short", PASSWORD], save_login=[LOGIN])
    await logins(vault, person).login(*SITE, code=False)
    assert person.kinds == ["unlock_prompt", "unlock_prompt", "save_login"]


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        ({"unlock_prompt": [None]}, "open the vault"),
        ({"unlock_prompt": [PASSWORD], "save_login": [None]}, "no login"),
        ({"unlock_prompt": [PASSWORD], "save_login": [LOGIN], "code": [None]}, "no code"),
    ],
)
async def test_what_a_person_would_not_say_ends_it(
    vault: FileVault, answers: dict[str, list[str | None]], says: str
) -> None:
    with pytest.raises(PermissionDenied, match=says):
        await logins(vault, Person(**answers)).login(*SITE, code=True)
