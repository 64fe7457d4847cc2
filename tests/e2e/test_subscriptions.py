"""Cursors and subscriptions over a socket of a real server: where a client stands, and what follows."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.gateway_client import Client, Refused
from tests.e2e.process import Server


@pytest.fixture
def client(shared_server: Server) -> Iterator[Client]:
    made = shared_server.connect()
    yield made
    made.close()


def created(client: Client, **options: Any) -> str:
    session_id: str = client.call("session.create", **options)["session_id"]
    return session_id


def say(client: Client, session_id: str, text: str) -> None:
    assert client.finished(client.submit(session_id, f"/do say {text}")["admission_id"])["outcome"] == "completed"


def mutate(client: Client, session_id: str, operation: str, **payload: Any) -> dict[str, Any]:
    """An edit; consent is given where it is asked for."""
    revision = client.call("thread.state", session_id=session_id)["revision"]
    asked = {
        "session_id": session_id,
        "request_id": uuid.uuid4().hex,
        "expected_revision": revision,
        "operation": operation,
        "payload": payload,
    }
    try:
        return client.call("session.mutate", **asked)
    except Refused as refused:
        if refused.type != "consent_required":
            raise
        return client.call("session.mutate", **asked, consent=refused.data["consent"])


def cursors(client: Client, session_id: str) -> list[str]:
    return [e["cursor"] for e in client.events if e.get("session_id") == session_id and "cursor" in e]


def test_every_position_is_told_and_followed_by_what_belongs_to_it(client: Client, shared_server: Server) -> None:
    session_id = created(client)
    say(client, session_id, "one")
    head = client.call("thread.state", session_id=session_id)["cursor"]
    last = int(head.split(":")[1])
    for after, position in ((None, "fresh"), (head, "ok"), ("1:0", "ok"), (f"1:{last + 5}", "ahead"), ("7:3", "ahead")):
        other = shared_server.connect()
        given = {} if after is None else {"after": after}
        snapshot = other.call("thread.subscribe", session_id=session_id, **given)
        assert (snapshot["position"], snapshot["cursor"]) == (position, head)
        if after == "1:0" or position == "ahead":
            other.until(lambda e: e.get("cursor") == head)
            assert cursors(other, session_id) == [f"1:{seq}" for seq in range(1, last + 1)]
        else:
            other.call("gateway.ping")
            assert cursors(other, session_id) == []
        other.close()


@pytest.mark.parametrize("after", ["", "1", "1:", ":1", "a:b", "1:-1", "0:1", "1:1:1", "1:99999999999999999999999"])
def test_a_cursor_that_does_not_parse_is_refused(client: Client, after: str) -> None:
    session_id = created(client, subscribe=False)
    for method in ("thread.subscribe", "session.events.since", "session.resume"):
        with pytest.raises(Refused) as refused:
            client.call(method, session_id=session_id, after=after)
        assert refused.value.code == 4000


def test_a_request_that_starts_work_returns_the_cursor_to_listen_from(client: Client, shared_server: Server) -> None:
    session_id = created(client, subscribe=False)
    admitted = client.submit(session_id, "/do say hello")
    other = shared_server.connect()
    other.call("thread.subscribe", session_id=session_id, after=admitted["cursor"])
    assert other.finished(admitted["admission_id"])["outcome"] == "completed"
    mine = [e for e in other.events if e.get("admission_id") == admitted["admission_id"]]
    assert mine[0]["type"] == "execution.queued"
    other.close()


def test_one_connection_follows_many_threads_and_many_connections_one(client: Client, shared_server: Server) -> None:
    others = [shared_server.connect() for _ in range(3)]
    sessions = [created(client) for _ in range(5)]
    for other in others:
        for session_id in sessions:
            other.call("thread.subscribe", session_id=session_id)
    for session_id in sessions:
        say(client, session_id, "hello")
    for session_id in sessions:
        head = client.call("thread.state", session_id=session_id)["cursor"]
        for other in others:
            other.until(lambda e, s=session_id, head=head: e.get("session_id") == s and e.get("cursor") == head)
            assert cursors(other, session_id) == cursors(client, session_id)
    for other in others:
        other.close()


def test_a_subscriber_of_a_rewound_thread_is_rebased_and_has_the_new_history(client: Client) -> None:
    session_id = created(client)
    say(client, session_id, "first")
    say(client, session_id, "second")
    old = client.call("thread.state", session_id=session_id)["cursor"]
    said = [
        e["payload"]["message_id"]
        for e in client.events
        if e["type"] == "message.complete" and e["payload"]["role"] == "user"
    ]
    mutate(client, session_id, "rewind", message_id=said[1])
    rebased = client.until(lambda e: e["type"] == "thread.rebased")
    assert rebased["cursor"] == "2:1"
    head = client.call("thread.state", session_id=session_id)["cursor"]
    client.until(lambda e: e.get("cursor") == head)
    new = [each for each in cursors(client, session_id) if each.startswith("2:")]
    assert new == [f"2:{seq}" for seq in range(1, len(new) + 1)]
    again = client.call("session.events.since", session_id=session_id, after=old)
    assert (again["position"], again["generation"]) == ("rebased", 2)
    assert [event["cursor"] for event in again["events"]] == new


def test_who_follows_a_session_that_is_deleted_is_told_so_and_the_connection_stays(
    client: Client, shared_server: Server
) -> None:
    session_id = created(client)
    say(client, session_id, "hello")
    watcher = shared_server.connect()
    watcher.call("thread.subscribe", session_id=session_id, after="1:0")
    mutate(client, session_id, "delete")
    closed = watcher.until(lambda e: e["type"] == "session.closed")
    assert closed["session_id"] == session_id
    with pytest.raises(Refused) as refused:
        watcher.call("thread.subscribe", session_id=session_id)
    assert refused.value.type == "session_unknown"
    watcher.close()


def test_a_client_that_wants_no_live_text_gets_the_whole_alone(client: Client, shared_server: Server) -> None:
    quiet = shared_server.connect(live="none")
    merged = shared_server.connect(live="coalesced")
    session_id = created(client)
    for other in (quiet, merged):
        other.call("thread.subscribe", session_id=session_id)
    admitted = client.submit(session_id, "/do stream 60 0.002 5")
    texts: list[str] = []
    for each in (client, quiet, merged):
        assert each.finished(admitted["admission_id"])["outcome"] == "completed"
        (whole,) = [
            e["payload"]["text"]
            for e in each.events
            if e["type"] == "message.complete" and e["payload"]["role"] == "assistant"
        ]
        texts.append(whole)
        reached = 0
        for event in each.events:
            if event["type"] == "message.delta":
                assert event["payload"]["offset"] == reached
                reached += len(event["payload"]["text"])
    assert len(set(texts)) == 1
    assert not [e for e in quiet.events if e["type"].endswith(".delta")]
    assert len([e for e in merged.events if e["type"] == "message.delta"]) <= len(
        [e for e in client.events if e["type"] == "message.delta"]
    )
    quiet.close()
    merged.close()


def test_what_was_said_is_found_in_its_own_profile_alone(client: Client) -> None:
    session_id = created(client, title="About teapots")
    say(client, session_id, "the porcelain teapot is cracked")
    hits = client.call("session.search", query="porcelain teap")["hits"]
    assert {hit["session_id"] for hit in hits} == {session_id}
    begin, end = hits[0]["matches"][0]
    assert hits[0]["snippet"][begin:end].lower() == "porcelain"
    assert client.call("session.search", query="porcelain", profile="second")["hits"] == []


def test_who_shows_a_list_of_sessions_learns_when_to_look_again(client: Client, shared_server: Server) -> None:
    other = shared_server.connect()
    uninterested = shared_server.connect(opt_out=["sessions.changed"])
    made = client.call("session.create", profile="second", title="A new one")["session_id"]

    def about(event: dict[str, Any]) -> bool:
        return event["type"] == "sessions.changed" and event["payload"].get("session_id") in (made, None)

    told = other.until(lambda event: about(event) and event["profile"] == "second")
    assert "cursor" not in told
    assert made in [row["session_id"] for row in other.call("session.list", profile="second")["sessions"]]
    uninterested.call("gateway.ping")
    assert [each for each in uninterested.events if each["type"] == "sessions.changed"] == []
    for number in range(2):
        title = f"Title {number}"
        other.events.clear()
        mutate(client, made, "rename", title=title)
        other.until(about)
        rows = {row["session_id"]: row["title"] for row in other.call("session.list", profile="second")["sessions"]}
        assert rows[made] == title
    other.close()
    uninterested.close()


def test_a_skin_that_is_changed_is_told_to_those_who_are_there_and_to_those_who_come(
    client: Client, shared_server: Server
) -> None:
    before = client.ready["payload"]["skin"]["name"]
    for name in ("midnight", before):
        client.call("config.set", key="display.skin", value=name)
        told = client.until(
            lambda event, name=name: event["type"] == "skin.changed" and event["payload"]["name"] == name
        )
        assert told["payload"].keys() == client.ready["payload"]["skin"].keys()
        comer = shared_server.connect()
        assert comer.ready["payload"]["skin"] == told["payload"]
        comer.close()
