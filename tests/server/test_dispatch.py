"""From a request to its reply: what is bound, what is refused, and what a failure costs."""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from hermes_ws.contract.catalog import METHODS
from hermes_ws.contract.events import ServerInfo
from hermes_ws.contract.registry import Right
from hermes_ws.hosting.host import Host
from hermes_ws.journal.tail import LiveMarks, ThreadTail
from hermes_ws.methods.handler import Handler
from hermes_ws.methods.ports import ServerFacts
from hermes_ws.methods.table import HANDLERS
from hermes_ws.scope.current import NothingBound, bound
from hermes_ws.scope.environment import StartEnvironment
from hermes_ws.scope.home import HomesRoot
from hermes_ws.server.audience import Audience
from hermes_ws.server.dispatch import Dispatch
from hermes_ws.server.entry import Principal
from hermes_ws.server.ports import ReadPage
from hermes_ws.server.process_log import ProcessLog
from hermes_ws.wire.cursor import Cursor
from hermes_ws.wire.frames import Frame
from hermes_ws.wire.negotiation import UNSPOKEN, Negotiated
from hermes_ws.wire.peer import Request, Response

PATIENCE = 20.0
ALL = Principal("owner", profiles=None, rights=frozenset(Right))


class Visitor:
    """The twin of a connection: it keeps what it is sent, in order."""

    def __init__(self, desk: Desk, principal: Principal = ALL, profile: str | None = None) -> None:
        self.id = uuid.uuid4().hex
        self.principal = principal
        self.profile = profile
        self.lasting = True
        self.askable = True
        self.negotiated: Negotiated = UNSPOKEN
        self.sent: list[dict[str, Any]] = []
        self.subscribed: list[tuple[ThreadTail, Cursor]] = []
        self.closed: tuple[int, str] | None = None
        self._desk = desk
        self._news = trio.Event()
        self._next = 0
        desk.visitors.append(self)

    def may_address(self, profile: str) -> bool:
        return self.profile in (None, profile) and self.principal.may_address(profile)

    def _keep(self, frame: Frame) -> None:
        self.sent.append(json.loads(frame.json))
        self._news.set()
        self._news = trio.Event()

    def reply(self, frame: Frame) -> None:
        self._keep(frame)

    def notify(self, frame: Frame) -> None:
        self._keep(frame)

    def subscribe(self, tail: ThreadTail, start: Cursor, marks: LiveMarks, read: ReadPage) -> None:
        self.sent.append({"subscribed": tail.address.session_id})
        self.subscribed.append((tail, start))

    def unsubscribe(self, address: object) -> bool:
        before = len(self.subscribed)
        self.subscribed = [each for each in self.subscribed if each[0].address != address]
        return len(self.subscribed) < before

    def close(self, code: int, reason: str = "") -> None:
        self.closed = (code, reason)

    async def frame(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        with trio.fail_after(PATIENCE):
            while True:
                for each in self.sent:
                    if wanted(each):
                        return each
                await self._news.wait()

    def send(self, method: str, **params: Any) -> int:
        self._next += 1
        self._desk.dispatch.accept(self, Request(self._next, method, params), 100)
        return self._next

    async def reply_to(self, id: int) -> dict[str, Any]:
        return await self.frame(lambda each: each.get("id") == id and ("result" in each or "error" in each))

    async def call(self, method: str, **params: Any) -> Any:
        return (await self.reply_to(self.send(method, **params)))["result"]

    async def refused(self, method: str, **params: Any) -> dict[str, Any]:
        error: dict[str, Any] = (await self.reply_to(self.send(method, **params)))["error"]
        return error

    async def hello(self, **said: Any) -> None:
        protocol = {"major": 1, "minor": 0}
        await self.call("client.capabilities", client={"name": "t"}, protocol=protocol, **said)


class Desk:
    """A dispatch over two real homes."""

    def __init__(self, dispatch: Dispatch, host: Host, log: io.StringIO) -> None:
        self.dispatch = dispatch
        self.host = host
        self.log = log
        self.visitors: list[Visitor] = []


def replaced(**runs: Callable[..., Awaitable[object]]) -> dict[str, Handler]:
    handlers = dict(HANDLERS)
    for name, run in runs.items():
        method = name.replace("__", ".")
        handlers[method] = Handler(METHODS[method], run)  # type: ignore[arg-type]
    return handlers


@asynccontextmanager
async def desk_over(
    root: Path, *, handlers: dict[str, Handler] | None = None, width: int = 8, frame_bytes: int = 1 << 20
) -> AsyncIterator[Desk]:
    for name in ("default", "work"):
        (root / name).mkdir(exist_ok=True)
    log = io.StringIO()
    audience = Audience(lambda: 1.0)
    start = StartEnvironment({"PATH": "/usr/bin:/bin"}, {}, {})
    host = Host(HomesRoot.directory(root), start, instance_id="i", audience=audience)
    facts = ServerFacts(ServerInfo(name="hermes-ws", version="0"), "i", "b", 1, 1.0)
    dispatch = Dispatch(
        host,
        facts,
        handlers or HANDLERS,
        audience,
        ProcessLog(log),
        width=width,
        frame_bytes=frame_bytes,
        end=lambda reason, deadline_s: None,
    )
    desk = Desk(dispatch, host, log)
    audience.follow(lambda: desk.visitors)
    async with trio.open_nursery() as nursery:
        await nursery.start(host.run)
        await nursery.start(dispatch.run)
        yield desk
        await host.drain(0)
        nursery.cancel_scope.cancel()


async def test_a_handler_finds_its_profile_bound_and_nothing_afterwards(tmp_path: Path) -> None:
    seen: list[str] = []

    async def look(call: Any, params: Any) -> object:
        here = bound()
        seen.append(f"{here.scope.profile} {here.connection == call.attachment.id} {here.session}")
        return {}

    async def unbound(call: Any, params: Any) -> object:
        with pytest.raises(NothingBound):
            bound()
        return {}

    handlers = replaced(config__get=look, profiles__list=unbound)
    async with desk_over(tmp_path, handlers=handlers) as desk:
        visitor = Visitor(desk)
        for profile in ("default", "work", "default"):
            await visitor.call("config.get", profile=profile)
        await visitor.call("profiles.list")
    assert seen == ["default True None", "work True None", "default True None"]


async def test_the_reply_comes_before_the_subscription(tmp_path: Path) -> None:
    async with desk_over(tmp_path) as desk:
        visitor = Visitor(desk)
        created = await visitor.call("session.create")
        await trio.testing.wait_all_tasks_blocked()
        # Besides, everybody is told that the list of sessions has changed.
        said = [each for each in visitor.sent if each.get("method") != "event"]
        assert ["result" in said[0], "subscribed" in said[1]] == [True, True]
        assert created["cursor"] == str(visitor.subscribed[0][1])


async def test_an_unforeseen_error_leaves_an_incident_and_nothing_else(tmp_path: Path) -> None:
    async def broken(call: Any, params: Any) -> object:
        raise ZeroDivisionError("with a secret value in it")

    async with desk_over(tmp_path, handlers=replaced(config__get=broken)) as desk:
        visitor = Visitor(desk)
        error = await visitor.refused("config.get")
        assert error["code"] == -32603
        assert "secret value" not in json.dumps(error)
        assert error["data"]["incident"] in desk.log.getvalue()
        assert "secret value" not in desk.log.getvalue()
        assert (await visitor.call("profiles.list"))["launch"] == "default"
    # The profile's own log tells what happened, and where.
    (line,) = incidents(tmp_path / "default", error)
    assert line["method"] == "config.get"
    assert "ZeroDivisionError: with a secret value in it" in line["stack"]
    assert incidents(tmp_path / "work", error) == []


def incidents(home: Path, error: dict[str, Any]) -> list[dict[str, Any]]:
    """The lines of a profile's log that are about this incident."""
    log = home / "logs" / "profile.log"
    lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    return [line for line in lines if line.get("incident") == error["data"]["incident"]]


async def test_a_request_can_be_taken_back(tmp_path: Path) -> None:
    begun = trio.Event()

    async def slow(call: Any, params: Any) -> object:
        begun.set()
        await trio.sleep_forever()
        return {}

    async with desk_over(tmp_path, handlers=replaced(config__get=slow)) as desk:
        visitor = Visitor(desk)
        id = visitor.send("config.get")
        await begun.wait()
        desk.dispatch.cancelled(visitor, id)
        assert (await visitor.reply_to(id))["error"]["data"]["type"] == "request_cancelled"
        assert desk.dispatch.requests == 0


async def test_one_id_is_under_way_once(tmp_path: Path) -> None:
    release = trio.Event()

    async def slow(call: Any, params: Any) -> object:
        await release.wait()
        return {}

    async with desk_over(tmp_path, handlers=replaced(config__get=slow)) as desk:
        visitor = Visitor(desk)
        id = visitor.send("config.get")
        desk.dispatch.accept(visitor, Request(id, "profiles.list", {}), 10)
        assert visitor.sent[0]["error"]["code"] == -32600
        release.set()
        await visitor.frame(lambda each: "result" in each)


async def test_what_has_begun_is_finished_when_its_connection_goes_and_what_waits_is_dropped(tmp_path: Path) -> None:
    release, finished, ran = trio.Event(), trio.Event(), []

    async def slow(call: Any, params: Any) -> object:
        ran.append(params.key)
        await release.wait()
        ran.append("done")
        finished.set()
        return {}

    async with desk_over(tmp_path, handlers=replaced(config__get=slow), width=1) as desk:
        visitor = Visitor(desk)
        visitor.send("config.get", key="first")
        visitor.send("config.get", key="second")
        await trio.testing.wait_all_tasks_blocked(0.05)
        desk.dispatch.gone(visitor)
        release.set()
        with trio.fail_after(PATIENCE):
            await finished.wait()
        await trio.testing.wait_all_tasks_blocked(0.05)
    assert ran == ["first", "done"]


async def test_an_answer_that_no_frame_can_carry_is_refused(tmp_path: Path) -> None:
    async with desk_over(tmp_path, frame_bytes=500) as desk:
        error = await Visitor(desk).refused("rpc.discover")
        assert error["data"]["type"] == "limit_reached"


async def test_another_major_is_told_what_is_spoken_and_let_go(tmp_path: Path) -> None:
    async with desk_over(tmp_path) as desk:
        visitor = Visitor(desk)
        error = await visitor.refused("client.capabilities", client={"name": "t"}, protocol={"major": 2, "minor": 0})
        assert error["code"] == 4426
        assert error["data"]["supported"] == [{"major": 1, "minor": 0}]
        assert visitor.closed is not None
        assert visitor.closed[0] == 4526


async def test_a_right_that_is_missing_is_named(tmp_path: Path) -> None:
    async with desk_over(tmp_path) as desk:
        visitor = Visitor(desk, Principal("viewer", None, frozenset({Right.OBSERVE})))
        error = await visitor.refused("session.create")
        assert (error["code"], error["data"]["right"]) == (4003, "submit")


async def test_what_may_not_be_addressed_is_answered_like_what_does_not_exist(tmp_path: Path) -> None:
    async with desk_over(tmp_path) as desk:
        owner = Visitor(desk)
        session = (await owner.call("session.create", profile="work"))["session_id"]
        narrow = Visitor(desk, Principal("narrow", frozenset({"default"}), frozenset(Right)))
        foreign = await narrow.refused("thread.state", session_id=session)
        missing = await narrow.refused("thread.state", session_id="zzzzzzzz-1")
        assert foreign["code"] == missing["code"] == 4001
        assert foreign["message"].replace(session, "") == missing["message"].replace("zzzzzzzz-1", "")
        assert (await narrow.refused("config.get", profile="work"))["code"] == 4064
        assert [row["name"] for row in (await narrow.call("profiles.list"))["profiles"]] == ["default"]
        bound_here = Visitor(desk, profile="default")
        assert (await bound_here.refused("thread.state", session_id=session))["code"] == 4001
        assert (await bound_here.refused("session.create", profile="work"))["code"] == 4064


async def test_a_session_of_another_profile_than_the_one_named_is_a_mismatch(tmp_path: Path) -> None:
    async with desk_over(tmp_path) as desk:
        visitor = Visitor(desk)
        session = (await visitor.call("session.create", profile="work"))["session_id"]
        error = await visitor.refused("thread.state", session_id=session, profile="default")
        assert error["data"]["type"] == "profile_mismatch"


async def test_a_question_reaches_who_comes_later_and_the_first_answer_counts(tmp_path: Path) -> None:
    async with desk_over(tmp_path) as desk:
        first, second = Visitor(desk), Visitor(desk)
        await first.hello(server_requests=True)
        session = (await first.call("session.create", profile="work"))["session_id"]
        await first.call("prompt.submit", session_id=session, input_id="i", text="/do run touch x")
        asked = await first.frame(lambda each: each.get("method") == "approval")
        await second.hello(server_requests=["approval"])
        again = await second.frame(lambda each: each.get("method") == "approval")
        assert again["id"] == asked["id"]
        assert again["params"] == asked["params"]
        desk.dispatch.answered(second, Response(asked["id"], {"choice": "deny"}, None))
        cancel = await first.frame(lambda each: each.get("params", {}).get("type") == "request.cancel")
        assert cancel["params"]["payload"] == {"id": asked["id"], "reason": "resolved"}
        late = await first.call("question.answer", id=asked["id"], result={"choice": "once"})
        assert late["outcome"] == "already_settled"
        assert late["result"]["choice"] == "deny"


async def test_an_answer_that_does_not_fit_is_told_and_the_question_stays_open(tmp_path: Path) -> None:
    async with desk_over(tmp_path) as desk:
        visitor = Visitor(desk)
        await visitor.hello(server_requests=True)
        session = (await visitor.call("session.create"))["session_id"]
        await visitor.call("prompt.submit", session_id=session, input_id="i", text="/do run touch x")
        asked = await visitor.frame(lambda each: each.get("method") == "approval")
        desk.dispatch.answered(visitor, Response(asked["id"], {"choice": "perhaps"}, None))
        notice = await visitor.frame(lambda each: each.get("params", {}).get("type") == "notice")
        assert notice["params"]["payload"]["type"] == "invalid_params"
        state = await visitor.call("thread.state", session_id=session)
        assert [each["id"] for each in state["questions"]] == [asked["id"]]
        desk.dispatch.answered(visitor, Response(asked["id"], {"choice": "once"}, None))
        thread = visitor.subscribed[0][0]
        news = trio.Event()
        thread.attach(news.set)
        with trio.fail_after(PATIENCE):
            while (await visitor.call("thread.state", session_id=session))["questions"]:
                await news.wait()


async def test_an_answer_to_nothing_is_nothing(tmp_path: Path) -> None:
    async with desk_over(tmp_path) as desk:
        visitor = Visitor(desk)
        desk.dispatch.answered(visitor, Response("srq-nowhere-1", {"choice": "once"}, None))
        desk.dispatch.answered(visitor, Response(7, {}, None))
        assert (await visitor.call("profiles.list"))["launch"] == "default"
        assert len(visitor.sent) == 1
