"""What a client was told before the server died, and the exact comparison with what the next one knows."""

from __future__ import annotations

import contextlib
import time
from typing import Any

from websockets.exceptions import WebSocketException

from tests.e2e.gateway_client import PATIENCE, Client, Refused

DIED = (WebSocketException, OSError, EOFError)
"""What a client meets whose server ends, at whatever moment."""


class Record:
    """One session, as its client saw it: what was acknowledged, what was delivered, and what had no answer."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.acknowledged: dict[str, dict[str, Any]] = {}
        self.unanswered: list[str] = []
        self.texts: dict[str, str] = {}
        self.delivered: list[dict[str, Any]] = []
        self.deeds = 0
        """Submits that were answered; each of them stands in the audit log from then on."""

    def submit(self, client: Client, input_id: str, text: str, **options: Any) -> None:
        """Submit, and remember whether the answer came. Raises what ends the connection."""
        self.texts[input_id] = text
        self.unanswered.append(input_id)
        told = client.call("prompt.submit", session_id=self.session_id, input_id=input_id, text=text, **options)
        self.deeds += 1
        self.unanswered.remove(input_id)
        self.acknowledged[input_id] = told

    def keep(self, client: Client) -> None:
        """Take what was delivered, also what still lay in the socket when the server died."""
        with contextlib.suppress(*DIED, TimeoutError):
            while True:
                client.pump(timeout=0.2)
        self.delivered += [event for event in client.events if event.get("session_id") == self.session_id]
        client.close()


def events(client: Client, session_id: str) -> list[dict[str, Any]]:
    """All committed events of a session's main thread, from the beginning of its generation."""
    generation = client.call("thread.state", session_id=session_id)["generation"]
    found: list[dict[str, Any]] = []
    after, more = f"{generation}:0", True
    while more:
        page = client.call("session.events.since", session_id=session_id, after=after)
        found += page["events"]
        after, more = page["cursor"], page["more"]
    return found


def resolve(client: Client, session_id: str) -> None:
    """Say of every lost execution that it was interrupted, and wait until the queue is empty."""
    until = time.monotonic() + PATIENCE
    while True:
        pending = client.call("thread.state", session_id=session_id)["pending"]
        if not pending:
            return
        assert time.monotonic() < until, pending
        for row in pending:
            if row["status"] == "unknown":
                named = {"admission_id": row["admission_id"], "execution_generation": row["execution_generation"]}
                client.call("prompt.resolve_unknown", session_id=session_id, **named)
        with contextlib.suppress(TimeoutError):
            client.pump(timeout=0.2)  # some event of it, or none: what ended may have been told already


def compare(client: Client, record: Record) -> None:
    """Nothing acknowledged is lost, nothing delivered is taken back, nothing is run twice."""
    log = client.call("runtime.audit", method_name="prompt.submit", limit=1000)["entries"]
    done = [row for row in log if (row["session_id"], row["outcome"]) == (record.session_id, "ok")]
    assert len(done) >= record.deeds
    known = {event["cursor"]: event for event in events(client, record.session_id)}
    generation = next(iter(known), "0:0").partition(":")[0]
    for event in record.delivered:
        if "cursor" in event and event["cursor"].partition(":")[0] == generation:
            assert known[event["cursor"]] == event
    for input_id, told in record.acknowledged.items():
        receipt = client.call("prompt.receipt", session_id=record.session_id, input_id=input_id)
        assert receipt["admission_id"] == told["admission_id"]
    for input_id in record.unanswered:
        text = record.texts[input_id]
        told = client.call("prompt.submit", session_id=record.session_id, input_id=input_id, text=text)
        record.acknowledged[input_id] = told
    client.call("thread.subscribe", session_id=record.session_id)
    resolve(client, record.session_id)
    ended = events(client, record.session_id)
    assert [event["seq"] for event in ended] == list(range(1, len(ended) + 1))
    for input_id, told in record.acknowledged.items():
        of_it = [event for event in ended if event.get("admission_id") == told["admission_id"]]
        said = [event for event in of_it if event["type"] == "message.complete" and event["payload"]["role"] == "user"]
        finished = [event for event in of_it if event["type"] == "execution.finished"]
        lost = [event for event in of_it if event["type"] == "execution.lost"]
        started = [event for event in of_it if event["type"] == "execution.started"]
        if of_it:
            assert [event["payload"]["text"] for event in said] == [record.texts[input_id]]
            assert len(finished) == 1
            resumed = [event for event in lost if event["payload"]["resumes"]]
            assert len(started) == 1 + len(resumed)
        with contextlib.suppress(Refused):
            again = client.call(
                "prompt.submit", session_id=record.session_id, input_id=input_id, text=record.texts[input_id]
            )
            assert again["admission_id"] == told["admission_id"]
