"""What a chat server of the tests says in each of the protocols that models are spoken with."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

import h11

from hermes_ws.agent.models.anthropic import anthropic
from hermes_ws.agent.models.dialect import Dialect
from hermes_ws.agent.models.endpoint import Endpoint, Patience
from hermes_ws.agent.models.http_model import HttpModel
from hermes_ws.agent.models.openai import openai
from hermes_ws.scope.secrets import Secrets
from tests.agent.chat_model import KEY
from tests.agent.chat_server import Answer, ChatServer, Wire

SOURCE = "KEY in .env (providers.mine.api_key)"


def line(value: Any) -> bytes:
    """One event of a stream."""
    name = f"event: {value['type']}\n".encode() if isinstance(value, Mapping) and "type" in value else b""
    return name + b"data: " + json.dumps(value).encode() + b"\n\n"


@final
@dataclass(frozen=True)
class Protocol:
    """How a server speaks. `opening` begins an answer, `stop` tells why it ended, `goodbye` that nothing follows."""

    name: str
    dialect: Callable[..., Dialect]
    path: str
    what: str
    opening: bytes
    stop: bytes
    goodbye: bytes
    nothing: bytes
    """An event without content."""
    word: Callable[[str], bytes]
    call: Callable[[int, str, str, list[str]], bytes]
    """A call: its number, id and name, and its arguments in fragments."""
    trouble: Callable[[str], bytes]
    """An error within the stream."""
    odd: tuple[bytes, ...]
    """What real servers send besides, and what a later version may."""
    whole: Mapping[str, Any]
    """An answer that is not streamed, saying `hi`."""

    def model(self, server: ChatServer, *, key: str | None = KEY, **more: Any) -> HttpModel:
        reach = Endpoint(server.base_url, "127.0.0.1", key, {"X-Extra": "yes"}, SOURCE)
        values: dict[str, Any] = {"patience": Patience(), "redact": Secrets({"KEY": KEY}).redact, **more}
        return HttpModel("tiny-1", reach, self.dialect(), **values)

    def saying(self, *words: str) -> Answer:
        """A whole answer."""
        return self.sending(*(self.word(each) for each in words), self.stop, self.goodbye)

    def sending(self, *pieces: bytes, then: str = "end") -> Answer:
        """The opening and these bytes; `then` the response ends, the connection is cut, or nothing more comes."""

        async def answer(wire: Wire) -> None:
            await wire.begin()
            await wire.raw(self.opening)
            for piece in pieces:
                await wire.raw(piece)
            if then == "cut":
                await wire.cut()
            elif then == "hang":
                await wire.gone()
            else:
                await wire.send(h11.EndOfMessage())

        return answer


def _chunk(finish_reason: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}


def _openai_call(number: int, id: str, name: str, fragments: list[str]) -> bytes:
    first = {"index": number, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}
    rest = [{"index": number, "function": {"arguments": each}} for each in fragments]
    return b"".join(line(_chunk(tool_calls=[each])) for each in [first, *rest])


def _anthropic_call(number: int, id: str, name: str, fragments: list[str]) -> bytes:
    block = {"type": "tool_use", "id": id, "name": name, "input": {}}
    events: list[dict[str, Any]] = [{"type": "content_block_start", "index": number + 1, "content_block": block}]
    for each in fragments:
        delta = {"type": "input_json_delta", "partial_json": each}
        events.append({"type": "content_block_delta", "index": number + 1, "delta": delta})
    return b"".join(map(line, events))


def _text_delta(text: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}


OPENAI = Protocol(
    name="openai",
    dialect=openai,
    path="/v1/chat/completions",
    what="chat completion",
    opening=line(_chunk(role="assistant", content="")),
    stop=line(_chunk("stop")),
    goodbye=b"data: [DONE]\n\n",
    nothing=line({"choices": []}),
    word=lambda text: line(_chunk(content=text)),
    call=_openai_call,
    trouble=lambda message: line({"error": {"message": message}}),
    odd=(
        *(b"data: nonsense\n\n", b"data: [1]\n\n", b"data: 5\n\n", b": still here\n\n", b"event: odd\n\n"),
        *(line({"choices": [None, {"index": 1}]}), line({"choices": [{}]}), line({"choices": None})),
        line({**_chunk(content="", invented="tomorrow"), "unknown": {"deep": [1]}}),
    ),
    whole={"choices": [{"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]},
)

ANTHROPIC = Protocol(
    name="anthropic",
    dialect=anthropic,
    path="/v1/messages",
    what="answer of the messages protocol",
    opening=line({"type": "message_start", "message": {"id": "m"}})
    + line({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
    stop=line({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
    goodbye=line({"type": "message_stop"}),
    nothing=line({"type": "ping"}),
    word=lambda text: line(_text_delta(text)),
    call=_anthropic_call,
    trouble=lambda message: line({"type": "error", "error": {"type": "overloaded_error", "message": message}}),
    odd=(
        *(b"data: nonsense\n\n", b"data: [1]\n\n", b"data: 5\n\n", b": still here\n\n", b"event: odd\n\n"),
        *(line({"type": "ping"}), line({"type": "invented_tomorrow", "index": 7}), line({"kind": "x"})),
        line({"type": "content_block_delta", "index": 0, "delta": None}),
        line({"type": "content_block_delta", "index": 9, "delta": {"type": "invented_delta", "text": "no"}}),
    ),
    whole={"type": "message", "content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn"},
)

PROTOCOLS = (OPENAI, ANTHROPIC)
