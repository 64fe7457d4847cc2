"""How one tool server is reached, with all references expanded: made of a profile's settings and secrets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

from hermes_ws.contract.errors import HermesError, ProfileUnusable
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.scope.server_sections import McpServerConfig


@final
@dataclass(frozen=True, slots=True)
class ServerPlan:
    """One server: a program with pipes to it, or an address. `problem` says why it cannot be reached at all."""

    name: str
    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    url: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    connect_s: float = 30.0
    deadline_s: float = 120.0
    include: frozenset[str] | None = None
    exclude: frozenset[str] = frozenset()
    problem: str = ""

    def offers(self, tool: str) -> bool:
        """Whether a tool of the server is to be used."""
        return tool not in self.exclude and (self.include is None or tool in self.include)


def plans_of(scope: ProfileScope) -> Mapping[str, ServerPlan]:
    """The servers of a profile that are on, by name."""
    return {name: _plan(scope, name, each) for name, each in scope.config.mcp_servers.items() if each.enabled}


def _plan(scope: ProfileScope, name: str, config: McpServerConfig) -> ServerPlan:
    where = f"mcp_servers.{name}"

    def expanded(values: Mapping[str, str], key: str) -> Mapping[str, str]:
        return {each: scope.secrets.expand(value, where=f"{where}.{key}.{each}") for each, value in values.items()}

    try:
        return ServerPlan(
            name,
            argv=() if config.command is None else (config.command, *config.args),
            env=expanded(config.env, "env"),
            url=None if config.url is None else scope.secrets.expand(config.url, where=f"{where}.url").strip(),
            headers=expanded(config.headers, "headers"),
            connect_s=config.connect_timeout,
            deadline_s=config.timeout,
            include=None if config.tools.include is None else frozenset(config.tools.include),
            exclude=frozenset(config.tools.exclude),
        )
    except ProfileUnusable as missing:
        return ServerPlan(name, problem=f"{missing.message} {missing.hint}".strip())


def explained(error: HermesError) -> str:
    """An error in one line."""
    return f"{error.message} {error.hint}".strip()
