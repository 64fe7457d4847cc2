"""The table of tools, and which of them an agent may use."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from hermes_ws.agent.tools.clarify import CLARIFY_TOOL
from hermes_ws.agent.tools.delegate import DELEGATE_TASK
from hermes_ws.agent.tools.files import READ_FILE, WRITE_FILE
from hermes_ws.agent.tools.library import SESSION_SEARCH, SKILL_VIEW, SKILLS_LIST
from hermes_ws.agent.tools.login import RUN_WITH_LOGIN
from hermes_ws.agent.tools.looking import LIST_FILES, SEARCH_FILES
from hermes_ws.agent.tools.memory import MEMORY
from hermes_ws.agent.tools.patch import PATCH
from hermes_ws.agent.tools.process import PROCESS
from hermes_ws.agent.tools.secret import REQUEST_CONNECTION, REQUEST_SECRET
from hermes_ws.agent.tools.terminal import TERMINAL
from hermes_ws.agent.tools.todo import PLAN
from hermes_ws.agent.tools.tool import Tool
from hermes_ws.contract.errors import InvalidParams

_ALL: Final = (
    *(TERMINAL, PROCESS),
    *(READ_FILE, WRITE_FILE, PATCH, LIST_FILES, SEARCH_FILES),
    *(CLARIFY_TOOL, REQUEST_SECRET, REQUEST_CONNECTION),
    PLAN,
    *(MEMORY, SESSION_SEARCH),
    DELEGATE_TASK,
    *(SKILLS_LIST, SKILL_VIEW),
    RUN_WITH_LOGIN,
)

TOOLS: Final[Mapping[str, Tool]] = MappingProxyType({each.name: each for each in _ALL})

TOOLSETS: Final[frozenset[str]] = frozenset(each.toolset for each in TOOLS.values())


OFFERED: Final = ("mcp", "client")
"""Toolsets whose tools come from elsewhere: of tool servers, and of clients."""


def check_toolsets(names: Sequence[str], servers: Collection[str]) -> None:
    """See that there is each of these toolsets, for a profile with these tool servers. Raises `InvalidParams`: a
    misspelt one would be a session without tools, which looks like a model that will not use them.
    """
    known = (*sorted(TOOLSETS), *OFFERED, *(f"mcp:{each}" for each in sorted(servers)))
    for name in names:
        if name not in known:
            raise InvalidParams(
                f"There is no toolset {name[:100]!r}.", path="toolsets", hint=f"There are {', '.join(known)}."
            )


def enabled(
    toolsets: Collection[str] | None, offered: Sequence[Tool] = (), withheld: Collection[str] = ()
) -> Mapping[str, Tool]:
    """The tools of these toolsets, in the table's order, but for those that are withheld; all of them for None.

    `offered` are tools from elsewhere: of tool servers, and of clients. A session has those unless it names its
    toolsets without theirs (`mcp:<server>`, `mcp` for all servers, `client`). One that is called like ours is left out.
    """
    tools = {
        name: each
        for name, each in TOOLS.items()
        if (toolsets is None or each.toolset in toolsets) and name not in withheld
    }
    for each in offered:
        family = each.toolset.partition(":")[0]
        if each.name not in TOOLS and (toolsets is None or each.toolset in toolsets or family in toolsets):
            tools.setdefault(each.name, each)
    return MappingProxyType(tools)
