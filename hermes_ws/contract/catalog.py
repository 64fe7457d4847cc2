"""All that may be said, in one read-only table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, cast

from hermes_ws.contract.methods import TOPICS
from hermes_ws.contract.model import Params, Result
from hermes_ws.contract.registry import Method

AnyMethod = Method[Params, Result]


def _declared() -> Iterator[AnyMethod]:
    for topic in TOPICS:
        for value in vars(import_module(f"hermes_ws.contract.methods.{topic}")).values():
            if isinstance(value, Method):
                yield cast("AnyMethod", cast("Method[Any, Any]", value))


def _collect() -> Mapping[str, AnyMethod]:
    methods: dict[str, AnyMethod] = {}
    for each in _declared():
        if methods.setdefault(each.name, each) is not each:
            raise ImportError(f"{each.name} is declared twice; a method has one declaration")
    return MappingProxyType(dict(sorted(methods.items())))


METHODS: Mapping[str, AnyMethod] = _collect()
