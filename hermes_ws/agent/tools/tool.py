"""How a tool is declared, and what it is given when it runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Literal, TypeVar, cast, final

from pydantic import JsonValue

from hermes_ws.agent.deeds import ToolOutcome
from hermes_ws.agent.models.model import ToolSpec
from hermes_ws.agent.ports import Asker, Hands, Library
from hermes_ws.agent.support import Delegates, Memory
from hermes_ws.agent.tools.plan import Plan
from hermes_ws.contract.errors import InvalidParams
from hermes_ws.contract.model import Params
from hermes_ws.contract.validation import read_params

P = TypeVar("P", bound=Params)

Need = Literal["reads", "writes", "runs", "asks", "delegates", "remembers", "network"]


@final
@dataclass(frozen=True, slots=True)
class Subject:
    """What an approval is about: the tool, and the command line or the path that it would act on.

    `cwd` is the directory that the call asks for, where it asks for one. `description` is a sentence for the person.
    """

    tool: str
    description: str
    needs: frozenset[Need]
    command: str | None = None
    path: str | None = None
    cwd: str | None = None
    typed: str | None = None
    """What a program that runs already is given to read, where the call is that."""

    lasting: bool = False
    """Whether a yes may be for every further call of the tool: where the tool is what is decided about."""


@final
@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a running tool may use. `progress` shows output before it is committed; `redact` removes secrets."""

    hands: Hands
    asker: Asker
    session_id: str
    thread_id: str
    deadline_s: float
    progress: Callable[[str], None]
    redact: Callable[[str], str]
    call_id: str = ""
    delegates: Delegates | None = None
    memory: Memory | None = None
    library: Library | None = None
    plan: Plan = field(default_factory=Plan)


Run = Callable[[ToolContext], Awaitable[ToolOutcome]]


@final
@dataclass(frozen=True, slots=True)
class Prepared:
    """One call with its arguments checked: what it would do, and doing it."""

    subject: Subject
    run: Run


@final
@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `prepare` checks arguments and raises InvalidParams with the path of what does not fit."""

    name: str
    toolset: str
    needs: frozenset[Need]
    doc: str
    shape: Callable[[], Mapping[str, JsonValue]]
    """Gives `parameters`, which are made when a model is told of the tool for the first time."""
    prepare: Callable[[Mapping[str, JsonValue]], Prepared]

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        """The arguments, as a JSON schema."""
        return self.shape()

    @property
    def spec(self) -> ToolSpec:
        """The tool as a model is told of it."""
        return ToolSpec(self.name, self.doc, self.parameters)

    @property
    def reads_only(self) -> bool:
        """Whether calls may run beside others of this kind: they change nothing, or have somebody else do so."""
        return self.needs <= {"reads", "delegates"}


def tool(
    name: str,
    shape: type[P],
    *,
    toolset: str,
    needs: frozenset[Need],
    doc: str,
    subject: Callable[[P], Subject],
    run: Callable[[P, ToolContext], Awaitable[ToolOutcome]],
) -> Tool:
    """Declare a tool. The schema for the model is made of `shape`."""

    def prepare(arguments: Mapping[str, JsonValue]) -> Prepared:
        params = read_params(shape, arguments)
        return Prepared(subject(params), lambda context: run(params, context))

    return Tool(name, toolset, needs, doc, cache(partial(_schema, shape)), prepare)


def _schema(shape: type[Params]) -> Mapping[str, JsonValue]:
    """A JSON schema without the titles and notes that only cost tokens."""
    return cast("dict[str, JsonValue]", _bare(shape.model_json_schema()))


def _bare(node: object, *, named: bool = False) -> object:
    """`node` without `title`, and without `description` of whole models. Under `named`, keys are names of fields."""
    if isinstance(node, dict):
        entries = cast("dict[str, object]", node)
        return {
            key: _bare(value, named=key in ("properties", "$defs") and not named)
            for key, value in entries.items()
            if named or key != "title"
        }
    if isinstance(node, list):
        return [_bare(each) for each in cast("list[object]", node)]
    return node


def refused(error: InvalidParams, spec: ToolSpec) -> ToolOutcome:
    """The result of a call whose arguments do not fit: what is wrong, and what would fit."""
    fields = spec.parameters.get("properties")
    names = ", ".join(fields) if isinstance(fields, dict) else ""
    return ToolOutcome(f"The call was not made: {error.message} Arguments of {spec.name}: {names}.", is_error=True)
