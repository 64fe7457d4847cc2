"""FRAME: sizes, encodings and cuts."""

from __future__ import annotations

import json

import pytest

from hermes_ws.contract.content import Message
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.journal import messages
from hermes_ws.journal.blobs import INLINE_BYTES
from hermes_ws.journal.database import Transaction
from tests.e2e.process import Server
from tests.session.house import House, new_session, say

FREE = "approvals:\n  mode: auto\n"
MIB = 1024 * 1024


def test_frame_01_a_lone_surrogate_reaches_the_store_as_a_replacement(shared_server: Server) -> None:
    """In a title and in a prompt, as the escapes that only JSON can carry; and the socket stays."""
    client = shared_server.connect()
    session_id = client.call("session.create", title="half \ud83d a pair")["session_id"]
    admitted = client.submit(session_id, "/do say and \ud83d here")
    assert client.finished(admitted["admission_id"])["outcome"] == "completed"
    again = shared_server.connect()
    snapshot = again.call("session.resume", session_id=session_id, messages=True)
    assert "\ud83d" not in json.dumps(snapshot, ensure_ascii=False)
    assert "\ufffd" in snapshot["messages"][0]["text"]
    client.close()
    again.close()


async def test_frame_03_resuming_a_session_of_megabytes_fits_into_a_frame(runtime: ProfileRuntime) -> None:
    """What does not fit into the snapshot is asked for in pages."""
    _, thread, _ = await new_session(runtime)

    def fill(tx: Transaction) -> None:
        for number in range(60):
            text = f"{number} " + "x" * 100_000
            messages.add(tx, thread.key, Message(message_id=f"m-{number}", role="user", text=text, content=[]))

    await runtime.journal.transact(fill)
    snapshot = await thread.snapshot(None, messages=True)
    assert len(snapshot.model_dump_json()) < MIB
    assert snapshot.more_messages
    assert snapshot.messages is not None
    assert snapshot.messages[-1].message_id == "m-59"


@pytest.mark.parametrize("size", [200_000, 5_000_000])
async def test_frame_06_a_large_output_is_a_small_event_and_a_separate_content(house: House, size: int) -> None:
    """The event holds an excerpt and the hash of the whole, as far as the profile keeps it."""
    house.home("default", config=FREE + "terminal:\n  output_bytes: 1048576\n")
    async with house.served():
        runtime = await house.runtime()
        _, thread, viewer = await new_session(runtime)
        await say(thread, f"/do run head -c {size} /dev/zero | tr '\\0' x", "one")
        complete = (await viewer.until("tool.complete"))["payload"]
        assert not complete["is_error"]
        assert complete["truncated"]
        assert len(complete["output"].encode()) <= INLINE_BYTES
        whole = await runtime.journal.blobs.read(complete["blob"])
        assert min(size, 1_000_000) <= len(whole) <= min(size, 1_048_576) + 1000
        assert (await viewer.until("execution.finished"))["payload"]["outcome"] == "completed"
        assert all(len(json.dumps(event)) < MIB for event in viewer.events)


async def test_frame_07_the_last_event_repeats_nothing_of_the_turn(house: House) -> None:
    """Twenty commands of ten kilobytes each; the end is a few hundred bytes."""
    house.home("default", config=FREE)
    async with house.served():
        _, thread, viewer = await new_session(await house.runtime())
        script = "\n".join("/do run head -c 10000 /dev/zero | tr '\\0' y" for _ in range(20))
        await say(thread, script, "one")
        finished = await viewer.until("execution.finished")
        assert finished["payload"]["outcome"] == "completed"
        assert len(json.dumps(finished)) < 2000
        assert "yyyy" not in json.dumps(finished)


async def test_frame_08_a_result_that_was_cut_is_stored_whole_as_json_and_the_session_goes_on(house: House) -> None:
    """The output is itself JSON, cut in its middle; what is stored around it stays valid."""
    home = house.home("default", config=FREE)
    async with house.served():
        runtime = await house.runtime()
        (home / "home" / "big.json").write_text(json.dumps([{"key": "v" * 50}] * 6000))
        _, thread, viewer = await new_session(runtime)
        await say(thread, "/do run cat big.json", "one")
        assert (await viewer.until("execution.finished"))["payload"]["outcome"] == "completed"
        await say(thread, "/do say still here", "two")
        assert (await viewer.until("execution.finished"))["payload"]["outcome"] == "completed"
        history = await runtime.journal.read(lambda connection: messages.history(connection, thread.key))
        assert all(Message.model_validate_json(message.model_dump_json()) == message for message in history)
