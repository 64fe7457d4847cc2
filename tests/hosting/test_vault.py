"""The vault in a home: closed to everybody without its password, and to a copy of the home."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from hermes_ws.contract.errors import InvalidParams, LimitReached, NotFound, PermissionDenied, ProfileUnusable
from hermes_ws.hosting import vault
from hermes_ws.hosting.vault import IDLE_S, FileVault
from hermes_ws.scope.home import ProfileHome

PASSWORD = "correct horse"
SECRET = {"username": "ada", "password": "canary-of-the-vault"}


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vault, "SCRYPT_N", 2**4)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def home(tmp_path: Path) -> ProfileHome:
    (tmp_path / "state").mkdir()
    return ProfileHome(tmp_path)


def opened(home: ProfileHome, clock: Clock | None = None) -> FileVault:
    made = FileVault(home, clock or Clock())
    assert made.unlock(PASSWORD)
    return made


def test_what_is_put_in_is_found_by_whoever_has_the_password(home: ProfileHome) -> None:
    first = opened(home)
    item = first.add("login", "Example", "https://example.org", SECRET)
    again = FileVault(home)
    assert not again.unlocked
    assert not again.unlock("wrong horse")
    assert not again.unlocked
    assert again.unlock(PASSWORD)
    assert again.items() == [item]


def test_the_file_gives_nothing_away(home: ProfileHome) -> None:
    made = opened(home)
    made.add("login", "Example", "https://example.org", SECRET)
    data = made.path.read_text()
    assert not any(each in data for each in ("canary", "ada", "example", PASSWORD))
    assert stat.S_IMODE(made.path.stat().st_mode) == 0o600
    assert "canary" not in repr(made.items())


def test_a_closed_vault_gives_and_takes_nothing(home: ProfileHome) -> None:
    made = opened(home)
    item = made.add("login", "Example", None, SECRET)
    made.lock()
    for attempt in (made.items, lambda: made.add("login", "x", None, SECRET), lambda: made.remove(item.item_id)):
        with pytest.raises(PermissionDenied):
            attempt()


def test_it_closes_by_itself_when_nobody_uses_it(home: ProfileHome) -> None:
    clock = Clock()
    made = opened(home, clock)
    clock.now += IDLE_S - 1
    assert made.items() == []
    clock.now += IDLE_S - 1
    assert made.unlocked
    clock.now += 1
    assert not made.unlocked


def test_a_login_replaces_the_one_of_the_same_site_and_user(home: ProfileHome) -> None:
    made = opened(home)
    made.add("login", "Example", "https://example.org", SECRET)
    newer = made.add("login", "Example", "https://example.org", {"username": "ada", "password": "new"})
    other = made.add("login", "Example", "https://example.org", {"username": "bob", "password": "x"})
    card = made.add("payment", "Card", None, {"number": "1"})
    assert made.items() == [newer, other, card]
    made.remove(other.item_id)
    assert made.items() == [newer, card]
    with pytest.raises(NotFound):
        made.remove(other.item_id)


def test_a_new_vault_wants_a_password_that_is_not_guessed(home: ProfileHome) -> None:
    made = FileVault(home)
    with pytest.raises(InvalidParams):
        made.unlock("short")
    assert not made.exists()


def test_an_old_file_keeps_the_cost_it_was_made_with(home: ProfileHome, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(home).add("login", "Example", None, SECRET)
    monkeypatch.setattr(vault, "SCRYPT_N", 2**5)
    later = opened(home)
    later.add("login", "Other", None, {"username": "b", "password": "c"})
    assert len(opened(home).items()) == 2


@pytest.mark.parametrize("change", [{"n": 2**40}, {"box": "x", "n": "many"}, {"version": 2}, {"more": 1}])
def test_a_file_that_is_no_vault_is_refused_and_costs_nothing(home: ProfileHome, change: dict[str, object]) -> None:
    made = opened(home)
    made.path.write_text(json.dumps({**json.loads(made.path.read_text()), **change}))
    with pytest.raises(ProfileUnusable):
        FileVault(home).unlock(PASSWORD)


def test_a_file_that_was_replaced_closes_the_vault(home: ProfileHome, tmp_path: Path) -> None:
    made = opened(home)
    made.path.unlink()
    other = FileVault(home)
    other.unlock("another password")
    with pytest.raises(PermissionDenied):
        made.items()
    assert not made.unlocked


def test_a_vault_is_bounded(home: ProfileHome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vault, "MOST_ITEMS", 1)
    made = opened(home)
    made.add("login", "Example", None, SECRET)
    with pytest.raises(LimitReached):
        made.add("address", "Home", None, {"street": "x"})
    made.add("login", "Example", None, SECRET)
