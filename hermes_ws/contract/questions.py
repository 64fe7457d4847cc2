"""The questions that the server asks, each with what it tells and what it takes.

A question is a row in the journal, not a waiting socket; see `session/questions.py` for its life. The answer to a kind
that is declared `secret` goes to whoever asked and is kept nowhere: only that it was answered is.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue

from hermes_ws.contract.model import Params, Result
from hermes_ws.contract.registry import Question, question

Choice = Literal["once", "session", "always", "deny"]

Value = Annotated[str, Field(max_length=65536)]
"""What a person typed in and nobody else is to see: a password, a key, a code. 64 KiB hold a long private key."""


class Asked(Result):
    """What every question tells: where it comes from."""

    session_id: str
    thread_id: str


class ApprovalParams(Asked):
    """What is about to be done, and which rule wants a person to look at it."""

    tool: str
    command: str | None = None
    path: str | None = None
    description: str
    rule: str
    choices: list[Choice]


class ApprovalResult(Params):
    """The decision. `reason` is read by the model when it is a refusal."""

    choice: Choice
    reason: str | None = Field(default=None, max_length=2000)


class ClarifyItem(Result):
    """One question for the user. Without `choices` the answer is free text."""

    qid: str
    question: str
    choices: list[str] | None = None
    multi_select: bool = False


class ClarifyParams(Asked):
    """One to five questions, asked together."""

    questions: list[ClarifyItem]


class ClarifyResult(Params):
    """The answers by `qid`; null is "skipped"."""

    answers: dict[str, Annotated[str, Field(max_length=16384)] | list[str] | None]


class ValueResult(Params):
    """What was typed in; null when the person would not say."""

    value: Value | None = Field(repr=False)


class SudoParams(Asked):
    """The command that asks for the user's password."""

    command: str


class SecretParams(Asked):
    """Which secret is missing, and what it is for."""

    name: str
    prompt: str


class ContinueParams(Asked):
    """After how many turns the agent stopped to ask."""

    turns: int


class ContinueResult(Params):
    """Whether it goes on."""

    model_config = ConfigDict(serialize_by_alias=True)

    go_on: bool = Field(alias="continue")


class VaultUnlockParams(Asked):
    """Which vault is locked, and under which name a person knows it. `problem` is why it is asked again."""

    backend: str
    display_name: str
    problem: str | None = None


class VaultLoginParams(Asked):
    """For which site a login is missing. `origin` is its scheme, host and port."""

    origin: str
    site: str


class VaultLoginResult(Params):
    """A JSON object with `username` and `password`, as text; null keeps nothing."""

    value: Value | None = Field(repr=False)


class VaultCodeParams(Asked):
    """For which site a one-time code is needed, and where it is to be found."""

    site: str | None = None
    hint: str | None = None


class ConnectionField(Result):
    """One value that a connection needs, by the name under which the profile keeps it."""

    name: str
    prompt: str = ""


class ConnectionTarget(Result):
    """One thing that is to be connected, and what it needs for that."""

    name: str
    kind: Literal["connector", "mcp", "plugin", "skill"]
    action: Literal["authorize", "connect", "enable", "install", "reconnect"] = "connect"
    detail: str = ""
    required_env: list[ConnectionField] = []


class OperationTarget(ConnectionTarget):
    """How it stands with a target: `pending` until that is decided, `expired` when it was not in time, and
    `not_connected` when nobody was there to decide it or the server ended first."""

    state: Literal["pending", "connected", "skipped", "expired", "not_connected"]


class ConnectionParams(Asked):
    """What the agent would like to use. Nothing waits for the answer."""

    targets: list[ConnectionTarget]


class ConnectionResult(Params):
    """What was decided about each target by its name, and the values that they need by theirs."""

    targets: dict[str, Literal["connected", "skipped"]]
    values: dict[str, Value] = Field(default={}, repr=False)


class ClientToolParams(Asked):
    """A call of a tool that the client offered itself."""

    call_id: str
    tool: str
    arguments: dict[str, JsonValue]


class ClientToolResult(Params):
    """What the tool gave, as the model reads it."""

    output: str = Field(max_length=262_144)
    is_error: bool = False


APPROVAL = question("approval", ApprovalParams, ApprovalResult, doc="May the agent do this?")
CLARIFY = question(
    "clarify",
    ClarifyParams,
    ClarifyResult,
    doc="The agent needs to know something that only a person can tell.",
)
SUDO = question("sudo", SudoParams, ValueResult, secret=True, doc="A command asks for the user's password.")
SECRET = question("secret", SecretParams, ValueResult, secret=True, doc="A key or password is missing.")
CONTINUE = question("continue", ContinueParams, ContinueResult, doc="The agent has used its turns: may it go on?")
VAULT_UNLOCK = question(
    "vault.unlock_prompt", VaultUnlockParams, ValueResult, secret=True, doc="The vault is locked: what opens it?"
)
VAULT_SAVE_LOGIN = question(
    "vault.save_login", VaultLoginParams, VaultLoginResult, secret=True, doc="The vault has no login for a site."
)
VAULT_CODE = question("vault.code", VaultCodeParams, ValueResult, secret=True, doc="A site asks for a one-time code.")
CONNECTION = question(
    "connection",
    ConnectionParams,
    ConnectionResult,
    secret=True,
    told=("targets",),
    doc="The agent would like to use something that is not connected. It goes on meanwhile.",
)
CLIENT_TOOL = question("client_tool", ClientToolParams, ClientToolResult, doc="Run a tool that this client offered.")

QUESTIONS: Mapping[str, Question] = MappingProxyType(
    {
        each.kind: each
        for each in (
            APPROVAL,
            CLARIFY,
            SUDO,
            SECRET,
            CONTINUE,
            VAULT_UNLOCK,
            VAULT_SAVE_LOGIN,
            VAULT_CODE,
            CONNECTION,
            CLIENT_TOOL,
        )
    }
)

QuestionState = Literal["open", "settled", "expired", "withdrawn", "abandoned"]


class OpenQuestion(Result):
    """A question as a resuming client gets it: all that it needs to show it and to answer it."""

    id: str
    kind: str
    session_id: str
    thread_id: str
    execution_generation: int
    params: dict[str, JsonValue]
    asked_at: float
    deadline: float | None = None
