"""What a client can do, and what is in force because of it."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_ws.contract.errors import ProtocolUnsupported
from hermes_ws.contract.events import Protocol
from hermes_ws.contract.methods.connection import CapabilitiesParams, ClientInfo, ClientTool
from hermes_ws.contract.questions import QUESTIONS
from hermes_ws.contract.version import PROTOCOL_MAJOR, PROTOCOL_MINOR
from hermes_ws.wire.negotiation import UNSPOKEN, negotiate


def _params(major: int = PROTOCOL_MAJOR, minor: int = 0, **more: Any) -> CapabilitiesParams:
    client = ClientInfo(name="a client", version="1")
    return CapabilitiesParams(client=client, protocol=Protocol(major=major, minor=minor), **more)


def test_a_client_that_has_not_spoken_can_do_nothing_extra() -> None:
    assert (UNSPOKEN.spoken, UNSPOKEN.server_requests, UNSPOKEN.batch, UNSPOKEN.live) == (
        False,
        frozenset(),
        False,
        "full",
    )


@pytest.mark.parametrize(
    ("asked", "kinds"),
    [(True, set(QUESTIONS)), (False, set()), ([], set()), (["approval", "of the future"], {"approval"})],
)
def test_questions_are_those_that_both_sides_know(asked: bool | list[str], kinds: set[str]) -> None:
    negotiated = negotiate(_params(server_requests=asked))
    assert negotiated.server_requests == kinds
    assert negotiated.answer().server_requests == sorted(kinds)


def test_the_answer_is_what_is_in_force() -> None:
    negotiated = negotiate(_params(minor=99, live="coalesced", batch=True, opt_out=["usage.update", "unheard.of"]))
    answer = negotiated.answer()
    assert (answer.live, answer.batch, answer.opt_out) == ("coalesced", True, ["usage.update"])
    assert (answer.protocol.major, answer.protocol.minor) == (PROTOCOL_MAJOR, PROTOCOL_MINOR)
    assert (negotiated.spoken, negotiated.client, negotiated.version) == (True, "a client", "1")


def test_another_major_is_refused_with_what_is_supported() -> None:
    with pytest.raises(ProtocolUnsupported) as refused:
        negotiate(_params(major=PROTOCOL_MAJOR + 1))
    assert refused.value.data["supported"] == [{"major": PROTOCOL_MAJOR, "minor": PROTOCOL_MINOR}]


TOOL = ClientTool(name="paint", description="Paints.", parameters={"type": "object"})


def test_a_tool_of_a_client_needs_that_it_takes_the_question() -> None:
    offered = negotiate(_params(server_requests=["client_tool"], client_tools=[TOOL]))
    assert offered.client_tools == (TOOL,)
    assert offered.answer().client_tools == ["paint"]
    assert negotiate(_params(server_requests=["approval"], client_tools=[TOOL])).client_tools == ()


def test_of_two_tools_of_one_name_the_last_counts() -> None:
    other = TOOL.model_copy(update={"description": "Paints well."})
    assert negotiate(_params(server_requests=True, client_tools=[TOOL, other])).client_tools == (other,)


def test_a_kind_that_turned_out_not_to_be_known_is_taken_out() -> None:
    negotiated = negotiate(_params(server_requests=["approval", "clarify"]))
    assert negotiated.without("clarify").server_requests == {"approval"}
    assert negotiated.without("secret") == negotiated
