"""Pictures and files with an input: checked, kept, and given to the model."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import trio

from hermes_ws.contract.errors import AdmissionConflict, InvalidParams
from hermes_ws.hosting.runtime import ProfileRuntime
from tests.agent.chat_model import saying
from tests.agent.chat_server import ChatServer
from tests.session.house import House, new_session, say

PICTURE = b"\x89PNG\r\n\x1a\n" + b"x" * 100


async def test_the_model_gets_pictures_and_the_text_of_files(house: House, nursery: trio.Nursery) -> None:
    server = ChatServer()
    listeners = await nursery.start(partial(trio.serve_tcp, server.handle, 0, host="127.0.0.1"))
    server.port = listeners[0].socket.getsockname()[1]
    server.answers = [saying("a cat"), saying("still a cat")]
    provider = f'{{kind: openai, base_url: "{server.base_url}", api_key: x}}'
    settings = f"agent: {{titles: words}}\nmodel: {{provider: mine, name: m}}\nproviders: {{mine: {provider}}}\n"
    house.home("default", config=settings, env="MY_KEY=abcdef1234567890\n")
    async with house.served():
        runtime = await house.runtime()
        _, thread, viewer = await new_session(runtime)
        picture = await runtime.journal.blobs.put(PICTURE)
        notes = await runtime.journal.blobs.put(b"my key is abcdef1234567890")
        attached = [
            {"blob": picture.hash, "media_type": "image/png", "name": "cat.png"},
            {"blob": notes.hash, "media_type": "text/plain", "name": "notes.txt"},
        ]
        await say(thread, "What is this?", "one", attached=attached)
        told = await viewer.until("message.complete", role="user")
        assert [block["type"] for block in told["payload"]["content"]] == ["image", "file"]
        await viewer.until("execution.finished", outcome="completed")
        await say(thread, "And now?", "two")
        await viewer.until("execution.finished", outcome="completed")
        for asked in server.asked:
            said = next(each for each in asked.body["messages"] if each["role"] == "user")["content"]
            assert said[0]["text"].startswith("What is this?\n\n[The user attached notes.txt: text/plain, 26 bytes:]")
            assert said[1]["image_url"]["url"].startswith("data:image/png;base64,iVBORw0KGg")
            assert "abcdef1234567890" not in str(asked.body)
            assert "«secret:MY_KEY»" in said[0]["text"]


@pytest.mark.parametrize(
    ("attached", "problem"),
    [
        ({"blob": "0" * 64, "media_type": "image/png"}, "no such blob"),
        ({"blob": "../x", "media_type": "image/png"}, "blob"),
        ({"blob": "0" * 64, "media_type": "nonsense"}, "media_type"),
    ],
)
async def test_what_is_not_there_cannot_be_attached(
    runtime: ProfileRuntime, attached: dict[str, Any], problem: str
) -> None:
    _, thread, _ = await new_session(runtime)
    with pytest.raises((InvalidParams, ValueError), match=problem):
        await say(thread, "look", "one", attached=[attached])


async def test_the_same_input_with_other_attachments_is_another(runtime: ProfileRuntime) -> None:
    _, thread, viewer = await new_session(runtime)
    first, second = [await runtime.journal.blobs.put(content) for content in (b"one", b"two")]
    one, two = ([{"blob": each.hash, "media_type": "text/plain"}] for each in (first, second))
    admitted = await say(thread, "look", "one", attached=one)
    assert (await say(thread, "look", "one", attached=one)).admission_id == admitted.admission_id
    with pytest.raises(AdmissionConflict):
        await say(thread, "look", "one", attached=two)
    await viewer.until("execution.finished", outcome="completed")
    # What a thread refers to is kept, however old it is; what nobody refers to is not.
    await runtime.journal.blobs.collect(runtime.journal.transact, grace=-1)
    assert await runtime.journal.blobs.size(first.hash) == 3
    assert await runtime.journal.blobs.size(second.hash) is None
