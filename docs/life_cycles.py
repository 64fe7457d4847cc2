"""The life cycles of the reference, drawn from the tables that the server goes by."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from types import ModuleType
from typing import Any

from hermes_ws.hosting import runtime_life
from hermes_ws.journal import admission_life
from hermes_ws.server import life, subscription_life
from hermes_ws.session import execution, questions


@dataclass(frozen=True, slots=True)
class Cycle:
    """One life cycle: what it is of, the module whose first words tell what its states mean, and where it begins."""

    of: str
    module: ModuleType
    start: Enum
    table: Mapping[tuple[Any, Any], Enum]


CYCLES = (
    Cycle("admission", admission_life, admission_life.State.QUEUED, admission_life.TRANSITIONS),
    Cycle("execution", execution, execution.State.QUEUED, execution.TRANSITIONS),
    Cycle("question", questions, questions.State.OPEN, questions.TRANSITIONS),
    Cycle("connection", life, life.Life.OPEN, life.TRANSITIONS),
    Cycle("subscription", subscription_life, subscription_life.Phase.FOLLOWING, subscription_life.TRANSITIONS),
    Cycle("runtime of a profile", runtime_life, runtime_life.State.OPENING, runtime_life.TRANSITIONS),
)


def page(note: str) -> Iterator[str]:
    """The page, in pieces."""
    yield f"# Life cycles\n\n{note}\n"
    yield "What is in none of the tables does not happen: it is refused, or changes nothing.\n\n"
    for cycle in CYCLES:
        yield f"## Of a{'n' if cycle.of[0] in 'ae' else ''} {cycle.of}\n\n"
        told = (inspect.getdoc(cycle.module) or "").partition("\n\n")[2]
        yield f"{told}\n\n```mermaid\n{''.join(_diagram(cycle))}```\n\n"


def _diagram(cycle: Cycle) -> Iterator[str]:
    yield f"stateDiagram-v2\n    [*] --> {cycle.start.value}\n"
    for (state, happened), then in cycle.table.items():
        yield f"    {state.value} --> {then.value}: {happened.value}\n"
    for end in dict.fromkeys(cycle.table.values()):
        if all(state is not end for state, _ in cycle.table):
            yield f"    {end.value} --> [*]\n"
