"""Finding what was said."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_ws.contract.content import Message
from hermes_ws.journal import messages, sessions
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.database import Database, Transaction
from hermes_ws.journal.schema import migrate
from hermes_ws.journal.search import Hit, search
from hermes_ws.journal.sessions import NewSession

KEY = ThreadKey("ses-1", "main")


async def said(journal: Database, *texts: str, key: ThreadKey = KEY) -> None:
    def work(tx: Transaction) -> None:
        for text in texts:
            messages.add(tx, key, Message(message_id=messages.new_id(), role="user", text=text, content=[]))

    await journal.transact(work)


async def find(journal: Database, query: str, limit: int = 20) -> list[Hit]:
    return await journal.read(lambda connection: search(connection, query, limit))


async def test_a_message_is_found_by_its_words_whatever_their_case_and_accents(journal: Database) -> None:
    await said(journal, "The Café on the corner opens at eight", "Something else")
    (hit,) = await find(journal, "cafe CORNER")
    assert (hit.session_id, hit.thread_id, hit.role) == ("ses-1", "main", "user")
    assert [hit.snippet[begin:end] for begin, end in hit.matches] == ["Café", "corner"]


async def test_the_last_word_may_be_a_beginning_and_the_others_may_not(journal: Database) -> None:
    await said(journal, "a database migration")
    assert len(await find(journal, "database migr")) == 1
    assert await find(journal, "data migration") == []


async def test_all_words_are_asked_for(journal: Database) -> None:
    await said(journal, "red apples", "red pears")
    assert len(await find(journal, "red")) == 2
    assert len(await find(journal, "red pears")) == 1
    assert await find(journal, "red plums") == []


async def test_no_more_are_given_than_asked_for(journal: Database) -> None:
    await said(journal, *["again and again"] * 5)
    assert len(await find(journal, "again", 3)) == 3


@pytest.mark.parametrize("query", ["", "  ", "?!", '"'])
async def test_a_query_without_words_finds_nothing(journal: Database, query: str) -> None:
    await said(journal, "anything")
    assert await find(journal, query) == []


@pytest.mark.parametrize("query", ['"', "AND", "OR NOT NEAR", "text:x", "x* -y ^z", "(", "a'b", "{x y}: z", "a + b"])
async def test_nothing_in_a_query_is_an_operator(journal: Database, query: str) -> None:
    await said(journal, f"some words {query} more words")
    assert len(await find(journal, query)) == (0 if query in ('"', "(") else 1)


@settings(max_examples=100, deadline=None)
@given(query=st.text(max_size=60))
def test_any_text_is_a_query(query: str) -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection, Path("memory"))
    search(connection, query, 5)
    connection.close()


async def test_a_long_message_is_shown_around_the_match(journal: Database) -> None:
    await said(journal, "before " * 500 + "needle " + "after " * 500)
    (hit,) = await find(journal, "needle")
    assert len(hit.snippet) < 300
    assert [hit.snippet[begin:end] for begin, end in hit.matches] == ["needle"]


async def test_what_is_deleted_is_not_found(journal: Database) -> None:
    await said(journal, "secret plans", "")
    await journal.transact(lambda tx: tx.connection.execute("DELETE FROM session WHERE session_id = 'ses-1'"))
    assert await find(journal, "secret") == []
    assert await journal.read(
        lambda connection: connection.execute(
            "SELECT count(*) FROM message_search WHERE message_search MATCH 'plans'"
        ).fetchone()
    ) == (0,)


async def test_a_work_that_is_undone_leaves_nothing_to_find(journal: Database) -> None:
    def work(tx: Transaction) -> None:
        messages.add(tx, KEY, Message(message_id="m", role="user", text="undone", content=[]))
        raise KeyError

    with pytest.raises(KeyError):
        await journal.transact(work)
    assert await find(journal, "undone") == []


async def test_a_hit_says_in_which_session_and_thread_it_is(journal: Database) -> None:
    new = NewSession("ses-2", "Plans", "default", "/", "api", "owner", "digest-2")
    await journal.transact(lambda tx: sessions.create(tx, new))
    await said(journal, "holiday in spring", key=ThreadKey("ses-2", "main"))
    (hit,) = await find(journal, "spring")
    assert (hit.session_id, hit.title, hit.archived) == ("ses-2", "Plans", False)
