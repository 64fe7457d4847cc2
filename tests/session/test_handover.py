"""What a lost execution had asked, and the one that goes on with its input."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

import pytest
import trio
from pydantic import JsonValue

from hermes_ws.contract.methods.questions import AnswerParams
from hermes_ws.contract.questions import APPROVAL, ApprovalParams, ApprovalResult
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.journal import questions as rows
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.database import Database, Transaction
from hermes_ws.scope.home import ProfileHome
from hermes_ws.session.questions import Asking, Questions
from tests.session.house import House, LeftBehind, People, Viewer, eventually, leave_behind


def params(left: LeftBehind, command: str = "touch x") -> ApprovalParams:
    return ApprovalParams(
        session_id=left.session_id,
        thread_id="main",
        tool="terminal",
        command=command,
        description=f"Run: {command}",
        rule="no rule",
        choices=["once", "deny"],
    )


async def opened(house: House) -> Database:
    home = ProfileHome((house.root / "default").resolve())
    return await Database.open(home.path, home.database, home.lock, instance_id="other", profile="default")


async def ask_before(house: House, left: LeftBehind, command: str = "touch x") -> str:
    """Have the lost execution ask; the id of its question."""

    def work(tx: Transaction) -> str:
        id = rows.next_id(tx, "origin")
        told = cast("dict[str, JsonValue]", params(left, command).model_dump(mode="json"))
        key = ThreadKey(left.session_id, "main")
        rows.open(tx, rows.NewQuestion(id, key, "approval", 1, told, admission_id=left.running))
        return id

    database = await opened(house)
    id = await database.transact(work)
    await database.close()
    return id


@asynccontextmanager
async def next_owner(house: House, people: People) -> AsyncGenerator[tuple[Database, Questions]]:
    database = await opened(house)
    yield database, Questions(database, people, profile="default", origin="origin")
    await database.close()


async def test_the_same_question_is_asked_under_its_id_and_another_under_one_of_its_own(
    house: House, people: People
) -> None:
    left = await leave_behind(house, under_way=False)
    id = await ask_before(house, left)
    async with next_owner(house, people) as (_, questions), trio.open_nursery() as nursery:
        asking = Asking(ThreadKey(left.session_id, "main"), 2, left.running)
        assert [each.question_id for each in await questions.left(asking)] == [id]
        nursery.start_soon(questions.ask, asking, APPROVAL, params(left, "touch other"))
        assert (await people.question(0)).id != id
        got: list[object] = []

        async def ask() -> None:
            got.append(await questions.ask(asking, APPROVAL, params(left)))

        nursery.start_soon(ask)
        assert (await people.question(1)).id == id
        await questions.answer(AnswerParams(id=id, result={"choice": "once"}))
        await eventually(lambda: bool(got))
        assert got == [ApprovalResult(choice="once")]
        nursery.cancel_scope.cancel()


async def test_an_answer_that_came_while_nobody_asked_is_the_answer_once(house: House, people: People) -> None:
    left = await leave_behind(house, under_way=False)
    id = await ask_before(house, left)
    async with next_owner(house, people) as (_, questions):
        asking = Asking(ThreadKey(left.session_id, "main"), 2, left.running)
        assert (await questions.answer(AnswerParams(id=id, result={"choice": "once"}))).outcome == "settled"
        assert (await questions.answer(AnswerParams(id=id, result={"choice": "deny"}))).outcome == "already_settled"
        assert [each.question_id for each in await questions.left(asking)] == [id]
        assert await questions.ask(asking, APPROVAL, params(left)) == ApprovalResult(choice="once")
        assert people.asked == []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(questions.ask, asking, APPROVAL, params(left))
            assert (await people.question()).id != id
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize("answered", [False, True])
async def test_what_nobody_asks_again_is_withdrawn_with_the_end_of_its_input(
    house: House, people: People, answered: bool
) -> None:
    left = await leave_behind(house, under_way=False)
    id = await ask_before(house, left)
    async with next_owner(house, people) as (database, questions):
        key = ThreadKey(left.session_id, "main")
        asking = Asking(key, 2, left.running)
        if answered:
            await questions.answer(AnswerParams(id=id, result={"choice": "once"}))
        await database.transact(lambda tx: questions.leave(tx, key, left.running))
        assert await questions.left(asking) == []
        assert (id, "resolved" if answered else "interrupted", "default") in people.told


async def test_an_execution_that_asks_nothing_any_more_leaves_no_question(house: House, people: People) -> None:
    """The lost one asked about a call; its message is not in the journal, so the one that goes on does not ask."""
    left = await leave_behind(house, under_way=False)
    id = await ask_before(house, left)
    async with house.served():
        runtime: ProfileRuntime = await house.runtime()
        thread = await (await runtime.sessions.get(left.session_id)).thread("main")
        viewer = await Viewer.of(thread)
        await runtime.sessions.wait_until_idle()
        assert await runtime.sessions.open_questions() == ()
        record = await runtime.journal.read(lambda connection: rows.get(connection, id))
        assert record is not None
        assert (record.state, record.execution_generation) == ("withdrawn", 2)
        viewer.leave()
