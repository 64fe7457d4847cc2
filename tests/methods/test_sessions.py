"""Looking at sessions, taking them along, and several threads in one."""

from __future__ import annotations

import base64
import json
import uuid
from typing import Any

import pytest

from tests.e2e.gateway_client import Client, Refused


def said(client: Client, session: str, text: str, **where: str) -> None:
    client.finished(client.submit(session, text, **where)["admission_id"])


def test_the_newest_session_is_found_by_its_source(client: Client) -> None:
    session = client.call("session.create", source="tui", title="Newest")["session_id"]
    assert client.call("session.most_recent", source="tui")["session"]["session_id"] == session
    assert client.call("session.most_recent", source="desktop")["session"] is None


def test_a_list_is_paged_and_filtered(client: Client) -> None:
    made = [client.call("session.create", source="dashboard", subscribe=False)["session_id"] for _ in range(5)]
    seen: list[str] = []
    before = None
    while True:
        more = {} if before is None else {"before": before}
        page = client.call("session.list", source="dashboard", limit=2, profile="default", **more)
        seen += [row["session_id"] for row in page["sessions"]]
        before = page["next"]
        if before is None:
            break
    assert seen == made[::-1]
    assert client.call("session.list", source="dashboard", state="running")["sessions"] == []
    assert client.call("session.list", agent="no-such-agent")["sessions"] == []


def test_the_list_of_all_profiles_is_paged_with_the_pinned_ones_first(client: Client) -> None:
    made = [
        client.call("session.create", source="desktop", subscribe=False, profile=("default", "second")[at % 2])
        for at in range(7)
    ]
    for one in (made[0], made[1]):
        client.call(
            "session.mutate",
            session_id=one["session_id"],
            request_id=f"pin-{one['session_id']}",
            expected_revision=one["revision"],
            operation="pin",
            payload={"pinned": True},
        )
    seen: list[dict[str, Any]] = []
    before = None
    while True:
        page = client.call("session.list", source="desktop", limit=3, profile="*", before=before)
        seen += page["sessions"]
        before = page["next"]
        assert len(page["sessions"]) == 3 or before is None
        if before is None:
            break
    ids = [row["session_id"] for row in seen]
    assert sorted(ids) == sorted(each["session_id"] for each in made), "each of them once"
    assert {row["session_id"] for row in seen[:2]} == {made[0]["session_id"], made[1]["session_id"]}
    assert ids[2:] == [each["session_id"] for each in made[:1:-1]]
    assert {row["profile"] for row in seen} == {"default", "second"}
    with pytest.raises(Refused) as refused:
        client.call("session.list", profile="*", before="nowhere")
    assert refused.value.type == "invalid_params"


def test_an_open_session_is_in_the_list_of_those(client: Client, session: str) -> None:
    row = next(e for e in client.call("session.active_list")["sessions"] if e["session_id"] == session)
    assert row["watched"]
    assert row["threads"] == ["main"]


def test_a_session_tells_what_it_is_and_what_it_consumed(client: Client, session: str) -> None:
    said(client, session, "hello")
    info = client.call("session.info", session_id=session)
    assert [each["thread_id"] for each in info["threads"]] == ["main"]
    usage = client.call("session.usage", session_id=session)
    assert usage["executions"] == 1
    assert usage["outcomes"] == {"completed": 1}
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"] > 0
    assert usage["by_model"] == {"loopback": 1}


def test_a_conversation_is_taken_along_and_put_back(client: Client, session: str) -> None:
    said(client, session, "first words")
    exported = client.call("session.export", session_id=session, format="json")
    content = json.loads(exported["text"])
    messages = [
        {"role": each["role"], "text": each["text"]} for each in content["threads"][0]["messages"] if each["text"]
    ]
    assert messages[0] == {"role": "user", "text": "first words"}
    other = client.call("session.create", subscribe=False)
    client.call(
        "session.mutate",
        session_id=other["session_id"],
        request_id=uuid.uuid4().hex,
        expected_revision=other["revision"],
        operation="import",
        payload={"messages": messages},
    )
    back = client.call("thread.messages", session_id=other["session_id"])["messages"]
    assert [(each["role"], each["text"]) for each in back] == [(e["role"], e["text"]) for e in messages]


def test_a_text_to_read_cannot_be_broken_by_what_is_in_it(client: Client) -> None:
    session = client.call("session.create", title="Fences")["session_id"]
    said(client, session, "/do run echo '````'")
    text = client.call("session.export", session_id=session)["text"]
    assert text.startswith("# Fences\n")
    assert "## User\n\n/do run echo" in text
    assert "`````\n````" in text
    assert client.call("session.export", session_id=session)["filename"] == "Fences.md"


def test_a_long_export_is_fetched_in_pieces(client: Client, session: str) -> None:
    said(client, session, "x" * 300_000)
    exported = client.call("session.export", session_id=session)
    assert exported["text"] is None
    content = b""
    while len(content) < exported["size"]:
        piece = client.call("blob.get", blob=exported["blob"], offset=len(content))
        content += base64.b64decode(piece["data"])
    assert b"x" * 300_000 in content


def test_threads_of_one_session_are_side_by_side(client: Client, session: str) -> None:
    made = client.call("thread.create", session_id=session, title="Beside", request_id="once")
    again = client.call("thread.create", session_id=session, title="Beside", request_id="once")
    thread = made["thread_id"]
    assert again["thread_id"] == thread
    client.call("thread.subscribe", session_id=session, thread_id=thread, after=made["cursor"])
    said(client, session, "in the other", thread_id=thread)
    texts = [each["text"] for each in client.call("thread.messages", session_id=session, thread_id=thread)["messages"]]
    assert texts[0] == "in the other"
    assert client.call("thread.messages", session_id=session)["messages"] == []
    client.call("thread.rename", session_id=session, thread_id=thread, title="Renamed")
    listed = {each["thread_id"]: each for each in client.call("thread.list", session_id=session)["threads"]}
    assert listed[thread] == {**listed[thread], "title": "Renamed", "kind": "side", "state": "idle"}
    graph = client.call("session.graph", session_id=session)
    assert {each["thread_id"] for each in graph["threads"]} == {"main", thread}
    client.call("thread.delete", session_id=session, thread_id=thread)
    gone = client.until(lambda e: e["type"] == "session.closed" and e["thread_id"] == thread)
    assert gone["payload"]["reason"] == "deleted"
    with pytest.raises(Refused) as refused:
        client.call("thread.state", session_id=session, thread_id=thread)
    assert refused.value.type == "thread_unknown"


def test_main_stays_as_long_as_its_session(client: Client, session: str) -> None:
    with pytest.raises(Refused) as refused:
        client.call("thread.delete", session_id=session)
    assert refused.value.type == "invalid_params"


def test_what_was_said_is_read_back_page_by_page(client: Client, session: str) -> None:
    for number in range(3):
        said(client, session, f"number {number}")
    page = client.call("thread.messages", session_id=session, limit=4)
    assert page["more"]
    first = page["messages"][0]["message_id"]
    rest = client.call("thread.messages", session_id=session, before=first)
    assert not rest["more"]
    everything = [each["text"] for each in (*rest["messages"], *page["messages"]) if each["role"] == "user"]
    assert everything == ["number 0", "number 1", "number 2"]
    with pytest.raises(Refused) as refused:
        client.call("thread.messages", session_id=session, before="msg-of-nobody")
    assert refused.value.type == "not_found"


def test_a_session_is_made_with_toolsets_that_exist_alone(client: Client) -> None:
    """A misspelt one would be a session without tools, which looks like a model that will not use them."""
    made = client.call("session.create", toolsets=["files", "mcp", "client"], subscribe=False)
    known = client.call("session.info", session_id=made["session_id"])
    assert known["launch"]["toolsets"] == ["files", "mcp", "client"]
    for name in ("fiels", "mcp:nobody", ""):
        with pytest.raises(Refused) as refused:
            client.call("session.create", toolsets=["files", name])
        assert (refused.value.type, refused.value.data["path"]) == ("invalid_params", "toolsets")
        assert "files" in refused.value.data["hint"]
