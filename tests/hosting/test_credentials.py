"""Tokens and tickets: what they give, to whom, for how long, and what is kept of them."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from hermes_ws.contract.errors import AlreadyExists, LimitReached, NotFound, PermissionDenied, StorageUnavailable
from hermes_ws.contract.registry import Right
from hermes_ws.hosting import credentials
from hermes_ws.hosting.credentials import LOOK_EVERY_S, OWNER, SESSION_S, TICKET_S, Credentials
from hermes_ws.hosting.server_store import ServerStore
from hermes_ws.hosting.tokens import Grant
from hermes_ws.scope.home import ProfileHome

ALL = frozenset(Right)
THE_OWNER = Grant(OWNER, None, ALL)
LOOK = frozenset({Right.OBSERVE})


class Wall:
    """The clock on the wall."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def wall() -> Wall:
    return Wall()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[ServerStore]:
    store = ServerStore(ProfileHome(tmp_path))
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def book(store: ServerStore, wall: Wall) -> Credentials:
    book = Credentials(store, wall)
    await book.load()
    return book


async def test_a_token_gives_what_it_was_made_for_and_no_more(book: Credentials) -> None:
    secret, token = await book.create(THE_OWNER, "desk", frozenset({"p-1"}), LOOK, None)
    grant = book.verify(secret)
    assert grant == Grant("desk", frozenset({"p-1"}), LOOK, token.token_id)
    assert book.verify(secret + "x") is None
    assert book.verify("") is None


async def test_it_is_found_again_after_a_restart_and_only_its_hash_is_kept(
    book: Credentials, store: ServerStore, wall: Wall, tmp_path: Path
) -> None:
    secret, token = await book.create(THE_OWNER, "desk", None, LOOK, 60)
    again = Credentials(store, wall)
    await again.load()
    assert again.verify(secret) == token.grant
    assert again.seen_by(THE_OWNER) == [token]
    for file in (tmp_path / "state").iterdir():
        assert secret.encode() not in file.read_bytes()
    assert secret not in repr(token)


async def test_nobody_gives_what_they_do_not_have(book: Credentials) -> None:
    mine = Grant("some", frozenset({"p-1"}), frozenset({Right.OBSERVE, Right.ADMIN}), None)
    for profiles, rights in ((None, ALL), (frozenset({"p-2"}), LOOK), (frozenset({"p-1"}), frozenset({Right.SUBMIT}))):
        with pytest.raises(PermissionDenied):
            await book.create(mine, "more", profiles, rights, None)
        with pytest.raises(PermissionDenied):
            book.issue(mine, "connect", profiles, rights)
    _, token = await book.create(mine, "less", None, LOOK, None)
    assert token.grant.profiles == {"p-1"}, "without a choice it is what the maker may address"


async def test_two_tokens_have_two_names_and_none_is_called_owner(book: Credentials) -> None:
    await book.create(THE_OWNER, "desk", None, LOOK, None)
    for name in ("desk", OWNER):
        with pytest.raises(AlreadyExists):
            await book.create(THE_OWNER, name, None, LOOK, None)


async def test_a_revoked_token_takes_along_what_was_made_by_it(book: Credentials, store: ServerStore) -> None:
    told: list[frozenset[str]] = []
    book.follow(lambda ids, sparing: told.append(ids))
    secret, first = await book.create(THE_OWNER, "first", None, ALL, None)
    second_secret, second = await book.create(first.grant, "second", None, ALL, None)
    ticket, _ = book.issue(second.grant, "browser", None, LOOK)
    signed_in = await book.login(ticket)
    assert signed_in is not None
    waiting, _ = book.issue(second.grant, "connect", None, LOOK)
    ended = await book.revoke(THE_OWNER, first.token_id)
    assert ended == {first.token_id, second.token_id, signed_in[1].token_id}
    assert told == [ended]
    assert [book.verify(each) for each in (secret, second_secret, signed_in[0], waiting)] == [None] * 4
    assert all(book.withdrawn(each) for each in ended)
    assert await store.tokens() == []


async def test_what_gives_more_than_one_has_is_answered_like_what_does_not_exist(book: Credentials) -> None:
    _, token = await book.create(THE_OWNER, "desk", None, ALL, None)
    other = Grant("other", frozenset({"p-1"}), frozenset({Right.ADMIN}), None)
    assert book.seen_by(other) == []
    problems: list[str] = []
    for token_id in (token.token_id, "tok-0000000000000000"):
        with pytest.raises(NotFound) as refused:
            await book.revoke(other, token_id)
        problems.append(refused.value.message.replace(token_id, ""))
    assert problems[0] == problems[1]
    assert book.verify("x") is None


async def test_a_ticket_is_for_one_use(book: Credentials) -> None:
    secret, until = book.issue(THE_OWNER, "connect", None, LOOK)
    assert until == 1000 + TICKET_S["connect"]
    grant = book.verify(secret)
    assert grant is not None
    assert (grant.name, grant.rights, grant.credential) == (OWNER, LOOK, None)
    assert book.verify(secret) is None


async def test_a_ticket_is_for_its_purpose_and_its_time(book: Credentials, wall: Wall) -> None:
    """AUTH-07."""
    to_connect, _ = book.issue(THE_OWNER, "connect", None, LOOK)
    to_sign_in, _ = book.issue(THE_OWNER, "browser", None, LOOK)
    assert await book.login(to_connect) is None
    assert book.verify(to_sign_in) is None
    wall.now += TICKET_S["connect"]
    assert book.verify(to_connect) is None
    assert await book.login(to_sign_in) is not None
    late, until = book.issue(THE_OWNER, "browser", None, LOOK)
    wall.now = until
    assert await book.login(late) is None


async def test_a_browser_stays_signed_in_for_a_working_day(
    book: Credentials, wall: Wall, store: ServerStore, autojump_clock: MockClock
) -> None:
    told: list[frozenset[str]] = []
    book.follow(lambda ids, sparing: told.append(ids))
    ticket, _ = book.issue(THE_OWNER, "browser", None, ALL)
    signed_in = await book.login(ticket)
    assert signed_in is not None
    secret, token = signed_in
    assert (token.kind, token.grant.name, token.expires_at) == ("session", OWNER, wall.now + SESSION_S)
    wall.now += SESSION_S - 1
    assert book.verify(secret) is not None
    wall.now += 1
    assert book.verify(secret) is None
    assert book.seen_by(THE_OWNER) == []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(book.run)
        await trio.sleep(2 * LOOK_EVERY_S)
        nursery.cancel_scope.cancel()
    assert await store.tokens() == []
    assert told == [frozenset({token.token_id})]


async def test_named_tokens_are_counted_and_sessions_are_not(book: Credentials) -> None:
    assert book.named == 0
    ticket, _ = book.issue(THE_OWNER, "browser", None, ALL)
    await book.login(ticket)
    assert book.named == 0
    await book.create(THE_OWNER, "desk", None, LOOK, None)
    assert book.named == 1


async def test_tokens_and_tickets_are_bounded(book: Credentials, wall: Wall, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "MOST_TICKETS", 2)
    monkeypatch.setattr(credentials, "MOST_TOKENS", 1)
    await book.create(THE_OWNER, "a", None, LOOK, None)
    with pytest.raises(LimitReached):
        await book.create(THE_OWNER, "b", None, LOOK, None)
    book.issue(THE_OWNER, "connect", None, LOOK)
    book.issue(THE_OWNER, "browser", None, LOOK)
    with pytest.raises(LimitReached) as refused:
        book.issue(THE_OWNER, "connect", None, LOOK)
    assert refused.value.data["retry_after_s"] == TICKET_S["connect"]
    wall.now += TICKET_S["connect"]
    book.issue(THE_OWNER, "connect", None, LOOK)


async def test_a_token_that_the_disk_did_not_take_opens_nothing(
    book: Credentials, store: ServerStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    class Broken:
        execute = staticmethod(refuse)

        def close(self) -> None: ...

    with monkeypatch.context() as patched:
        patched.setattr(store, "_connection", Broken())
        with pytest.raises(StorageUnavailable):
            await book.create(THE_OWNER, "desk", None, LOOK, None)
    assert book.seen_by(THE_OWNER) == []


async def test_a_token_made_by_one_that_is_taken_back_meanwhile_ends_with_it(
    book: Credentials, store: ServerStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, maker = await book.create(THE_OWNER, "maker", None, ALL, None)
    add = store.add_token

    async def slow(token: object) -> None:
        await add(token)  # type: ignore[arg-type]
        if book.seen_by(THE_OWNER):
            await book.revoke(THE_OWNER, maker.token_id)

    monkeypatch.setattr(store, "add_token", slow)
    secret, _ = await book.create(maker.grant, "made", None, LOOK, None)
    assert book.verify(secret) is None
    assert await store.tokens() == []
