"""The built-in tools and their families, as this installation has them. Asks no server."""

from __future__ import annotations

import sys

from hermes_ws.agent.tools.registry import TOOLS
from hermes_ws.cli import exits


def print_tools(*, families: bool) -> int:
    """One line per tool, or per family with its tools."""
    toolsets: dict[str, list[str]] = {}
    for tool in TOOLS.values():
        toolsets.setdefault(tool.toolset, []).append(tool.name)
    for toolset, names in sorted(toolsets.items()):
        if families:
            sys.stdout.write(f"{toolset}: {', '.join(names)}\n")
        else:
            sys.stdout.writelines(f"{name}  ({toolset})\n" for name in names)
    return exits.DONE
