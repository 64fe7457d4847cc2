"""All that may be said, in one read-only table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType, ModuleType
from typing import Any, cast

from hermes_ws.contract.methods import (
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
from hermes_ws.contract.model import Params, Result
from hermes_ws.contract.registry import Method

AnyMethod = Method[Params, Result]

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


def _declared() -> Iterator[AnyMethod]:
    for topic in _TOPICS:
        for value in vars(topic).values():
            if isinstance(value, Method):
                yield cast("AnyMethod", cast("Method[Any, Any]", value))


def _collect() -> Mapping[str, AnyMethod]:
    methods: dict[str, AnyMethod] = {}
    for each in _declared():
        if each.name in methods:
            raise ImportError(f"{each.name} is declared twice; a method has one declaration")
        methods[each.name] = each
    return MappingProxyType(dict(sorted(methods.items())))


METHODS: Mapping[str, AnyMethod] = _collect()
