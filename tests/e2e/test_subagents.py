"""Subagents over a crash: nothing is repeated on a guess, and what was done can still be read."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.e2e.process import Server, all_gone, children


def test_after_a_crash_the_parent_waits_to_be_resolved_and_its_subagent_can_be_read(
    serve: Callable[..., Server],
) -> None:
    """The call was under way, so that the parent is not resumed; the roster is as it was, from the journal."""
    server = serve()
    client = server.connect()
    session = client.call("session.create")["session_id"]
    task = json.dumps({"goal": "/do say halfway\n/do ask well?"})
    admitted = client.submit(session, f"/do tool delegate_task {task}")
    question = client.question()
    subagent = question["params"]["thread_id"]
    left = children(server.pid)
    server.kill()
    assert all_gone(left)
    client.close()
    client = serve().connect()
    state = client.call("session.resume", session_id=session, after="1:0")
    assert [(row["admission_id"], row["status"]) for row in state["pending"]] == [(admitted["admission_id"], "unknown")]
    assert question["id"] not in [each["id"] for each in state["questions"]]
    (row,) = client.call("subagent.list", session_id=session)["subagents"]
    assert (row["subagent_id"], row["goal"]) == (subagent, "/do say halfway\n/do ask well?")
    page = client.call("thread.messages", session_id=session, thread_id=subagent)
    assert any("halfway" in message["text"] for message in page["messages"])
    lost = client.until(lambda e: e["type"] == "execution.lost" and e["thread_id"] == "main")
    resolved = client.call(
        "prompt.resolve_unknown",
        session_id=session,
        admission_id=admitted["admission_id"],
        execution_generation=lost["payload"]["execution_generation"],
    )
    assert resolved["status"] == "finished"
    again = client.submit(session, "/do say and on we go")
    assert client.finished(again["admission_id"])["outcome"] == "completed"
    client.close()
