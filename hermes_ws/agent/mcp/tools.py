"""The tools of servers as tools of a turn: named `<server>__<tool>`, in the toolset `mcp:<server>`."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pydantic import JsonValue

from hermes_ws.agent.deeds import ToolOutcome
from hermes_ws.agent.tools.tool import Need, Prepared, Subject, Tool, ToolContext

if TYPE_CHECKING:
    from hermes_ws.agent.mcp.server import RemoteTool, ToolServer

NAME_CHARACTERS: Final = 64
"""Longest name of a tool that all providers take."""

SHOWN_CHARACTERS: Final = 2000
"""Of a call's arguments that a person is shown when they are asked."""

_NEEDS: Final[frozenset[Need]] = frozenset({"network"})
_STRANGE: Final = re.compile(r"[^A-Za-z0-9_-]")


def tools_of(server: ToolServer) -> Sequence[Tool]:
    """The tools of a server, each with a name of its own."""
    return [_tool(server, each) for each in server.tools]


def name_of(server: str, tool: str) -> str:
    """What a tool is called: what providers take of both names, and a mark of the rest where something is left out."""
    plain = _STRANGE.sub("_", f"{server}__{tool}")
    if plain == f"{server}__{tool}" and len(plain) <= NAME_CHARACTERS:
        return plain
    mark = hashlib.sha256(f"{server}\0{tool}".encode()).hexdigest()[:8]
    return f"{plain[: NAME_CHARACTERS - 9]}_{mark}"


def _tool(server: ToolServer, remote: RemoteTool) -> Tool:
    name = name_of(server.plan.name, remote.name)

    def prepare(arguments: Mapping[str, JsonValue]) -> Prepared:
        said = json.dumps(arguments, ensure_ascii=False)[:SHOWN_CHARACTERS]

        async def run(context: ToolContext) -> ToolOutcome:
            return await server.call(remote.name, arguments, context.progress)

        described = f"Ask the tool server {server.plan.name} for {remote.name}: {said}"
        return Prepared(Subject(name, described, _NEEDS, lasting=True), run)

    doc = remote.description or f"{remote.name} of {server.plan.name}."
    return Tool(name, f"mcp:{server.plan.name}", _NEEDS, doc, lambda: remote.parameters, prepare)
