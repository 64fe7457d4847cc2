"""The tools that ask the person for a secret, or for what a service needs. The agent never sees a value: it goes from
the person into the profile's `.env`."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from hermes_ws.agent.deeds import ToolOutcome
from hermes_ws.agent.ports import NoAnswerer, QuestionExpired
from hermes_ws.agent.tools.tool import Need, Subject, ToolContext, tool
from hermes_ws.contract.model import Params
from hermes_ws.contract.questions import (
    SECRET,
    ConnectionField,
    ConnectionParams,
    ConnectionTarget,
    SecretParams,
    ValueResult,
)

TARGETS: Final = 10
"""Most services asked for together: what fits on a screen."""

_NEEDS: Final[frozenset[Need]] = frozenset({"asks"})

Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=100)]

NOBODY: Final = "Nobody who could answer is connected. This is no refusal: go on without it, or say what is missing."
FOUND: Final = "Commands find it in their environment from the next message on, if terminal.env names it."


class SecretAsked(Params):
    """One secret."""

    name: Variable = Field(description="The name that it gets in the profile's .env, for example GITHUB_TOKEN.")
    prompt: str = Field(min_length=1, max_length=2000, description="What it is for, and where the person finds it.")


class Needed(Params):
    """One value that a service needs."""

    name: Variable
    prompt: str = Field(default="", max_length=500)


class Target(Params):
    """One service."""

    name: str = Field(min_length=1, max_length=100)
    kind: Literal["connector", "mcp", "plugin", "skill"] = "connector"
    detail: str = Field(default="", max_length=1000, description="What it is wanted for.")
    required_env: list[Needed] = Field(default=[], max_length=20)


class ConnectionAsked(Params):
    """One to ten services."""

    targets: list[Target] = Field(min_length=1, max_length=TARGETS)


def _secret_subject(params: SecretAsked) -> Subject:
    return Subject("request_secret", f"Ask for {params.name}", _NEEDS)


async def _ask_secret(params: SecretAsked, context: ToolContext) -> ToolOutcome:
    asked = SecretParams(
        session_id=context.session_id,
        thread_id=context.thread_id,
        name=params.name,
        prompt=context.redact(params.prompt),
    )
    try:
        result = await context.asker.ask(SECRET, asked)
    except NoAnswerer:
        return ToolOutcome(NOBODY, is_error=True)
    except QuestionExpired:
        return ToolOutcome("It was not given in time. This is no refusal.", is_error=True)
    if not isinstance(result, ValueResult):
        raise TypeError(f"an answer to a secret is a ValueResult, not {type(result).__name__}")
    if result.value is None:
        return ToolOutcome("The person would not give it.", is_error=True)
    return ToolOutcome(f"{params.name} is in the profile's .env now. {FOUND}")


def _connection_subject(params: ConnectionAsked) -> Subject:
    return Subject("request_connection", f"Ask to connect {', '.join(each.name for each in params.targets)}", _NEEDS)


async def _ask_connection(params: ConnectionAsked, context: ToolContext) -> ToolOutcome:
    targets = [
        ConnectionTarget(
            name=each.name,
            kind=each.kind,
            detail=context.redact(each.detail),
            required_env=[
                ConnectionField(name=one.name, prompt=context.redact(one.prompt)) for one in each.required_env
            ],
        )
        for each in params.targets
    ]
    asked = ConnectionParams(session_id=context.session_id, thread_id=context.thread_id, targets=targets)
    try:
        op_id = await context.asker.post(asked)
    except NoAnswerer:
        return ToolOutcome(NOBODY, is_error=True)
    return ToolOutcome(f"Asked, as {op_id}. Go on meanwhile; what is given lands in the profile's .env. {FOUND}")


REQUEST_SECRET: Final = tool(
    "request_secret",
    SecretAsked,
    toolset="ask",
    needs=_NEEDS,
    doc="Ask the person for a key or password that is missing, and wait. You will not see it.",
    subject=_secret_subject,
    run=_ask_secret,
)

REQUEST_CONNECTION: Final = tool(
    "request_connection",
    ConnectionAsked,
    toolset="ask",
    needs=_NEEDS,
    doc="Ask the person to connect services that you would like to use, with the keys that they need. Nothing waits.",
    subject=_connection_subject,
    run=_ask_connection,
)
