"""Commands of the view whose answer may be lost, without a server: what is sent the second time."""

from __future__ import annotations

import io
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from hermes_ws.cli.acting import Acting
from hermes_ws.cli.commands import parse
from hermes_ws.cli.environment import Surroundings
from hermes_ws.cli.opening import Opened, Wanted
from hermes_ws.cli.screen import Screen
from hermes_ws.cli.view import View
from hermes_ws.client.failures import OutcomeUnknown
from hermes_ws.contract.methods.session_views import SessionDescription
from hermes_ws.contract.methods.sessions import Created, CreateParams
from tests.client.peer import Peer

OPENED = Opened("s-1", "main", "default", "1:0")

KNOWN = SessionDescription(
    session_id="s-1", profile="default", title=None, agent="assistant", cwd="/here", source="cli", archived=False,
    pinned=False, revision=1, created_at=1.0, updated_at=1.0, launch={"model": "m"}, info={}, rules=[], threads=[],
)  # fmt: skip


class Losing:
    """A link over which the answer to `session.create` is lost, as often as it is told to. `sent` is what was asked."""

    def __init__(self, times: int) -> None:
        self._left = times
        self.sent: list[CreateParams] = []

    async def call(self, method: Any, params: Any, **_: Any) -> Any:
        if method.name == "session.info":
            return KNOWN
        if method.name == "runtime.describe":
            described = Peer().description()
            options = described.session_create.model_copy(update={"parameters": ["model", "cwd", "title", "source"]})
            return described.model_copy(update={"session_create": options})
        self.sent.append(params)
        self._left -= 1
        if self._left >= 0:
            raise OutcomeUnknown(method.name, "the connection broke")
        return Created(session_id="s-2", thread_id="main", profile="default", revision=1, cursor="1:0", info={})


def typed(link: Losing, *lines: str) -> Acting:
    surroundings = Surroundings(home=Path("/h"))
    out, err = (Screen(io.StringIO(), surroundings) for _ in range(2))
    acting = Acting(View(out, err), out, err, Wanted(None, None, "cli", Path("/here")), lambda _: None)

    async def type_them() -> None:
        for line in lines:
            with suppress(OutcomeUnknown):
                await acting.act(parse(line), line, link, OPENED)  # pyright: ignore[reportArgumentType]

    anyio.run(type_them)
    return acting


def test_a_new_session_whose_answer_was_lost_is_the_same_session_when_it_is_typed_again() -> None:
    link = Losing(2)
    acting = typed(link, "/new Fresh", "/new Fresh", "/new Fresh")
    assert acting.next is not None
    assert acting.next.session_id == "s-2"
    first, second, third = link.sent
    assert first == second == third, "the server knows it by its request_id"
    assert (first.title, first.model, first.cwd, first.source) == ("Fresh", "m", "/here", "cli")


@pytest.mark.parametrize("between", ["/tools", "/new Other"])
def test_another_command_gives_a_new_session_of_unknown_outcome_up(between: str) -> None:
    link = Losing(2)
    typed(link, "/new Fresh", between, "/new Fresh")
    ids = [each.request_id for each in link.sent if each.title == "Fresh"]
    assert len(set(ids)) == 2
