"""The tools that clients offer: a call is a question to whoever is connected and offered it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, cast

from pydantic import JsonValue

from hermes_ws.agent.deeds import ToolOutcome
from hermes_ws.agent.ports import NoAnswerer, QuestionExpired
from hermes_ws.agent.tools.tool import Need, Prepared, Subject, Tool, ToolContext
from hermes_ws.contract.questions import CLIENT_TOOL, ClientToolParams, ClientToolResult

SHOWN_CHARACTERS: Final = 2000
"""Of a call's arguments that a person is shown, should a rule have it asked."""

_NEEDS: Final[frozenset[Need]] = frozenset({"asks"})
"""It is the client that acts, and its own person who lets it."""


def client_tool(name: str, description: str, parameters: Mapping[str, JsonValue]) -> Tool:
    """A tool of the toolset `client`."""

    def prepare(arguments: Mapping[str, JsonValue]) -> Prepared:
        said = json.dumps(arguments, ensure_ascii=False)[:SHOWN_CHARACTERS]

        async def run(context: ToolContext) -> ToolOutcome:
            return await _ask(name, arguments, context)

        return Prepared(Subject(name, f"Have the client do {name}: {said}", _NEEDS, lasting=True), run)

    return Tool(name, "client", _NEEDS, description or f"{name}, done by the client.", lambda: parameters, prepare)


async def _ask(name: str, arguments: Mapping[str, JsonValue], context: ToolContext) -> ToolOutcome:
    shown = cast("dict[str, JsonValue]", json.loads(context.redact(json.dumps(arguments, ensure_ascii=False))))
    asked = ClientToolParams(
        session_id=context.session_id,
        thread_id=context.thread_id,
        call_id=context.call_id,
        tool=name,
        arguments=shown,
    )
    try:
        answer = await context.asker.ask(CLIENT_TOOL, asked, deadline_s=context.deadline_s)
    except NoAnswerer:
        return ToolOutcome("The client that offered this tool is not connected. This is no refusal.", is_error=True)
    except QuestionExpired:
        return ToolOutcome(f"The client did not answer within {context.deadline_s:g} seconds.", is_error=True)
    if not isinstance(answer, ClientToolResult):
        raise TypeError(f"an answer to client_tool is a ClientToolResult, not {type(answer).__name__}")
    return ToolOutcome(answer.output, is_error=answer.is_error)
