"""Requests that are answered where they are read: as scoped and as guarded as those that get a task."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import trio

from hermes_ws.contract.methods.config import ConfigValue
from hermes_ws.contract.registry import Right
from hermes_ws.methods.handler import Handler
from hermes_ws.methods.table import HANDLERS
from hermes_ws.scope.current import NothingBound, bound
from hermes_ws.scope.identity import ProfileName
from hermes_ws.server.entry import Principal
from tests.server.test_dispatch import Visitor, desk_over, incidents


async def opened(visitor: Visitor, *profiles: str) -> None:
    for profile in profiles:
        await visitor.call("config.get", key="model.provider", profile=profile)


async def test_the_answer_is_there_when_the_request_is_taken(tmp_path: Path) -> None:
    async with desk_over(tmp_path) as desk:
        visitor = Visitor(desk)
        await opened(visitor, "default")
        visitor.sent.clear()
        id = visitor.send("config.get", key="model.provider")
        assert [each["id"] for each in visitor.sent] == [id]


async def test_requests_of_one_read_get_the_profile_that_each_of_them_names(tmp_path: Path) -> None:
    async with desk_over(tmp_path) as desk:
        visitor = Visitor(desk)
        await opened(visitor, "default", "work")
        visitor.sent.clear()
        for each in ({"profile": "work"}, {}, {}, {"profile": "work"}, {"profile": "default"}, {"profile": "work"}):
            visitor.send("config.get", key="model.provider", **each)
        got = [each["result"]["profile"] for each in visitor.sent]
        assert got == ["work", "default", "default", "work", "default", "work"]
        sources = {Path(each["result"]["source"]).parent.name for each in visitor.sent}
        assert sources == {"work", "default"}
        visitor.sent.clear()
        at_work = Visitor(desk, profile="work")
        at_work.send("config.get", key="model.provider")
        assert at_work.sent[0]["result"]["profile"] == "work"
        assert (await at_work.refused("config.get", profile="default"))["code"] == 4064


async def test_its_profile_is_bound_while_it_is_answered_and_not_afterwards(tmp_path: Path) -> None:
    seen: list[tuple[str, bool]] = []

    def look(call: Any, params: Any) -> ConfigValue:
        here = bound()
        seen.append((here.scope.profile.text, here.connection == call.attachment.id))
        return ConfigValue(profile="", key=None, value=None, source="")

    method = HANDLERS["config.get"].method
    handlers = {**HANDLERS, "config.get": Handler(method, HANDLERS["config.get"].run, look)}
    async with desk_over(tmp_path, handlers=handlers) as desk:
        visitor = Visitor(desk)
        await opened(visitor, "default", "work")
        for profile in ("work", "default", "work"):
            visitor.send("config.get", profile=profile)
            try:
                leaked = bound()
            except NothingBound:
                leaked = None
            assert leaked is None
    assert seen == [("work", True), ("default", True), ("work", True)]


async def test_what_one_principal_may_opens_nothing_to_another(tmp_path: Path) -> None:
    async with desk_over(tmp_path) as desk:
        owner = Visitor(desk)
        await opened(owner, "default", "work")
        nobody = Visitor(desk, Principal("nobody", None, frozenset()))
        narrow = Visitor(desk, Principal("narrow", frozenset({"work"}), frozenset({Right.OBSERVE})))
        assert (await nobody.refused("config.get"))["data"]["right"] == "observe"
        assert (await narrow.refused("config.get", profile="default"))["code"] == 4064
        assert (await narrow.refused("config.get"))["code"] == 4064
        assert (await narrow.call("config.get", profile="work"))["profile"] == "work"
        assert (await nobody.refused("config.get", profile="work"))["data"]["right"] == "observe"


async def test_what_does_not_fit_is_told_with_its_path(tmp_path: Path) -> None:
    async with desk_over(tmp_path) as desk:
        visitor = Visitor(desk)
        await opened(visitor, "default")
        visitor.sent.clear()
        visitor.send("config.get", kee="model.provider")
        visitor.send("config.get", key="model.providr")
        visitor.send("config.get", key=7)
        told = [(each["error"]["code"], each["error"]["data"].get("path")) for each in visitor.sent]
        assert told == [(4000, "kee"), (4004, None), (4000, "key")]


async def test_a_bug_in_the_answer_is_an_incident_and_not_the_clients_fault(tmp_path: Path) -> None:
    def broken(call: Any, params: Any) -> ConfigValue:
        return ConfigValue.model_validate({"profile": 7})

    method = HANDLERS["config.get"].method
    handlers = {**HANDLERS, "config.get": Handler(method, HANDLERS["config.get"].run, broken)}
    async with desk_over(tmp_path, handlers=handlers) as desk:
        visitor = Visitor(desk)
        await opened_by_another_method(visitor)
        error = await visitor.refused("config.get")
        assert error["code"] == -32603
        assert error["data"]["incident"] in desk.log.getvalue()
    assert len(incidents(tmp_path / "default", error)) == 1


async def opened_by_another_method(visitor: Visitor) -> None:
    await visitor.call("setup.status")


async def test_a_profile_that_closes_is_kept_by_no_connection_that_asked_for_it(tmp_path: Path) -> None:
    async with desk_over(tmp_path) as desk:
        visitor = Visitor(desk)
        await opened(visitor, "work")
        visitor.send("config.get", profile="work")
        desk.dispatch.rested(visitor)
        (runtime,) = (each for each in desk.host.open_runtimes() if each.name.text == "work")
        kept = weakref.ref(runtime)
        runtime.close()
        with trio.fail_after(20):
            await runtime.ended.wait()
        del runtime
        async with desk.host.closed(ProfileName("work"), 0):
            pass  # the host lets it go
        gc.collect()
        assert kept() is None
