"""The table of tools, and which of them an agent may use."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final

from hermes_ws.agent.tools.clarify import CLARIFY_TOOL
from hermes_ws.agent.tools.delegate import DELEGATE_TASK
from hermes_ws.agent.tools.files import READ_FILE, WRITE_FILE
from hermes_ws.agent.tools.memory import MEMORY
from hermes_ws.agent.tools.terminal import TERMINAL
from hermes_ws.agent.tools.tool import Tool

TOOLS: Final[Mapping[str, Tool]] = MappingProxyType(
    {each.name: each for each in (TERMINAL, READ_FILE, WRITE_FILE, CLARIFY_TOOL, DELEGATE_TASK, MEMORY)}
)

TOOLSETS: Final[frozenset[str]] = frozenset(each.toolset for each in TOOLS.values())


def enabled(toolsets: Collection[str] | None) -> Mapping[str, Tool]:
    """The tools of these toolsets, in the table's order; all of them for None."""
    if toolsets is None:
        return TOOLS
    return MappingProxyType({name: each for name, each in TOOLS.items() if each.toolset in toolsets})
