"""SKEW: clients and servers of different ages."""

from __future__ import annotations

import json

import pytest
from websockets.exceptions import ConnectionClosed

from hermes_ws.contract.catalog import METHODS
from tests.e2e.gateway_client import Refused
from tests.e2e.process import Server


def test_skew_01_a_client_that_takes_no_questions_ends_them_at_once_and_knows_the_versions(
    shared_server: Server,
) -> None:
    """It says nothing about itself; an approval is raised."""
    client = shared_server.connect(negotiate=False)
    ready = client.ready["payload"]
    assert ready["protocol"]["major"] == 1
    assert ready["contract_digest"]
    session = client.call("session.create")["session_id"]
    admitted = client.submit(session, "/do run touch skew-01")
    client.finished(admitted["admission_id"])
    output = next(e["payload"]["output"] for e in client.events if e["type"] == "tool.complete")
    assert "nobody who is connected can give one. This is no refusal" in output
    client.close()


def test_skew_02_it_is_documented_that_silence_means_no_questions(shared_server: Server) -> None:
    """In the contract that a client's author reads, and in the one that the server gives out."""
    doc = METHODS["client.capabilities"].doc
    assert "until then it is asked no question" in doc
    client = shared_server.connect()
    document = client.call("rpc.discover")["document"]
    assert doc in json.dumps(document)
    client.close()


def test_skew_03_what_a_client_does_not_know_it_is_not_sent(shared_server: Server) -> None:
    """It takes one kind of question and no event of one type; it is sent neither another kind nor that type."""
    client = shared_server.connect(server_requests=["approval", "kind.of.tomorrow"], opt_out=["sessions.changed"])
    session = client.call("session.create", profile="second")["session_id"]
    client.finished(client.submit(session, "/do ask Which?")["admission_id"])
    assert client.questions == []
    assert "sessions.changed" not in {event["type"] for event in client.events}
    client.close()


@pytest.mark.parametrize("major", [0, 2])
def test_skew_05_another_version_is_refused_in_both_directions(shared_server: Server, major: int) -> None:
    """An older client and a newer one learn what is spoken here, and are not to come back as they are."""
    client = shared_server.connect(negotiate=False)
    with pytest.raises(Refused) as refused:
        client.call("client.capabilities", client={"name": "tests"}, protocol={"major": major, "minor": 0})
    assert (refused.value.code, refused.value.data["supported"]) == (4426, [{"major": 1, "minor": 0}])
    with pytest.raises(ConnectionClosed) as closed:
        client.pump()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4526


@pytest.mark.parametrize("method", ["clarify.lock", "setup.ready", "session.activate"])
def test_skew_06_a_method_that_is_not_here_costs_its_caller_that_method_alone(
    shared_server: Server, method: str
) -> None:
    """An older server lacks what a client asks first; the answer names it, and everything else works."""
    client = shared_server.connect()
    with pytest.raises(Refused) as refused:
        client.call(method)
    assert (refused.value.code, refused.value.type) == (-32601, "method_unknown")
    assert method in str(refused.value)
    assert client.call("session.create")["profile"] == "default"
    client.close()


def test_skew_07_the_line_that_launchers_wait_for_carries_the_version(shared_server: Server) -> None:
    """One JSON object with the keys that it always has."""
    assert shared_server.announced["protocol"] == {"major": 1, "minor": 0}
    assert {"url", "socket", "instance_id", "pid", "token_file", "protocol"} <= shared_server.announced.keys()


def test_skew_08_what_a_server_offers_can_be_asked_before_it_is_used(shared_server: Server) -> None:
    """Options of a session and all methods are listed, so that nobody has to try."""
    client = shared_server.connect()
    offered = client.call("runtime.describe")["session_create"]["parameters"]
    assert "title" in offered
    listed = {each["name"] for each in client.call("rpc.discover")["document"]["methods"]}
    assert listed == METHODS.keys()
    client.close()
