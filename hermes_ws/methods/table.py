"""All handlers in one read-only table, complete at import or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from types import MappingProxyType, ModuleType

from hermes_ws.contract.catalog import METHODS
from hermes_ws.contract.methods import TOPICS
from hermes_ws.methods.handler import Handler


def collect(topics: Iterable[ModuleType]) -> Mapping[str, Handler]:
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


HANDLERS: Mapping[str, Handler] = collect(import_module(f"hermes_ws.methods.{topic}") for topic in TOPICS)
"""Of every method that is declared."""
