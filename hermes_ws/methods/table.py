"""All handlers in one read-only table, complete at import or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType, ModuleType

from hermes_ws.contract.catalog import METHODS
from hermes_ws.methods import (
    agents,
    approvals,
    audit,
    blobs,
    config,
    connection,
    forks,
    insights,
    mcp,
    memory,
    models,
    mutations,
    processes,
    profile_life,
    profiles,
    prompts,
    questions,
    render,
    rollback,
    runtime,
    schedules,
    search,
    session_views,
    sessions,
    skills,
    slash,
    subagents,
    terminals,
    thread_life,
    threads,
    tokens,
    vault,
)
from hermes_ws.methods.handler import Handler

_TOPICS: tuple[ModuleType, ...] = (
    approvals,
    mcp,
    connection,
    runtime,
    profiles,
    profile_life,
    config,
    sessions,
    search,
    threads,
    prompts,
    mutations,
    processes,
    terminals,
    questions,
    tokens,
    audit,
    models,
    render,
    blobs,
    insights,
    session_views,
    thread_life,
    forks,
    subagents,
    rollback,
    agents,
    skills,
    memory,
    slash,
    schedules,
    vault,
)


def collect(topics: tuple[ModuleType, ...]) -> Mapping[str, Handler]:
    """The handlers of these modules by method name. Raises `ImportError` for a declaration without a handler, a handler
    without a declaration, or two handlers of one method.
    """
    handlers: dict[str, Handler] = {}
    for topic in topics:
        for value in vars(topic).values():
            if not isinstance(value, Handler):
                continue
            if handlers.setdefault(value.method.name, value) is not value:
                raise ImportError(f"{value.method.name} has two handlers")
    missing = METHODS.keys() - handlers.keys()
    undeclared = handlers.keys() - METHODS.keys()
    if missing or undeclared:
        raise ImportError(f"methods without a handler: {sorted(missing)}; undeclared: {sorted(undeclared)}")
    return MappingProxyType(handlers)


HANDLERS: Mapping[str, Handler] = collect(_TOPICS)
