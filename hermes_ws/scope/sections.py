"""The sections of `config.yaml`, one frozen model each. The description of a field is what the reference prints.

A setting that is marked secret may refer to `${NAME}`; it is kept as written, and expanded by whoever uses it, from the
scope that is bound then. Numbers are seconds and bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast, final

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema

from hermes_ws.scope.setting_docs import setting_docs

Name = Annotated[str, Field(min_length=1, max_length=200)]
Seconds = Annotated[float, Field(gt=0, le=31_536_000, allow_inf_nan=False, json_schema_extra={"unit": "seconds"})]
"""More than nothing and at most a year: larger numbers are milliseconds by mistake, and overflow timers."""
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Bytes = Annotated[int, Field(ge=1024, le=1 << 50, json_schema_extra={"unit": "bytes"})]
PathText = Annotated[str, Field(min_length=1, max_length=4096)]
Origin = Annotated[str, Field(pattern=r"^[a-z][a-z0-9+.-]*://[^/\s]+$")]
Host = Annotated[str, Field(pattern=r"^[^/\s@]+$")]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class Section(BaseModel):
    """A section of ours: a key that it does not declare is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Its shape, with what stands below each setting as the description."""
        shape = handler(core_schema)
        properties = cast("dict[str, dict[str, Any]]", handler.resolve_ref_schema(shape)["properties"])
        for name, text in setting_docs(cls).items():
            properties[name].setdefault("description", text)
        return shape


@final
class FallbackConfig(Section):
    """Another model, at the same or another provider."""

    provider: Name
    """Where it answers."""
    name: Name
    """The model, as that provider calls it."""


@final
class PriceConfig(Section):
    """US dollars for a million tokens."""

    input: Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)]
    """Of what the model reads."""
    output: Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)]
    """Of what it writes."""
    cached: Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)] | None = None
    """Of input that the provider had in its cache; absent means as other input."""


@final
class ModelConfig(Section):
    """Which model answers, and how long it may take."""

    provider: Name = "loopback"
    """The provider that answers: `loopback` needs no key and no network; others are described under `providers`."""
    name: Name = "loopback"
    """The model, as the provider calls it."""
    fallbacks: tuple[FallbackConfig, ...] = ()
    """What is tried, in this order, when the provider fails before it has answered anything."""
    reasoning: Literal["none", "low", "medium", "high"] | None = None
    """How much the model is asked to think; absent leaves it to the provider."""
    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] | None = None
    """How freely it chooses its words; absent leaves it to the provider."""
    max_tokens: Count | None = None
    """Tokens that one answer may have."""
    context_tokens: Annotated[int, Field(ge=256, le=100_000_000)] = 128_000
    """Tokens that the model reads at once; what compaction and the context meter go by."""
    price: PriceConfig | None = None
    """What this model costs; absent means that the cost of a step is not known. Other models have their prices under
    `providers`."""
    small: FallbackConfig | None = None
    """A cheaper model for what is done beside a conversation, such as its title; absent means its own model."""
    connect_s: Seconds = 10
    """Until a connection to the provider stands."""
    first_piece_s: Seconds = 120
    """Until the first piece of an answer: a large model on a small machine takes its time to read."""
    idle_s: Seconds = 60
    """Between two pieces of an answer."""


@final
class ProviderConfig(Section):
    """Where models answer, and with which key."""

    kind: Literal["openai", "anthropic", "local", "loopback"] | None = None
    """The protocol that is spoken; absent means that the provider's name tells it."""
    base_url: Name | None = Field(default=None, repr=False, json_schema_extra={"secret": True})
    """Where the provider answers, for example http://127.0.0.1:11434/v1."""
    api_key: Name | None = Field(default=None, repr=False, json_schema_extra={"secret": True})
    """A reference to the key, for example ${MY_KEY}, with MY_KEY in .env."""
    headers: Mapping[str, str] = Field(default={}, repr=False, json_schema_extra={"secret": True})
    """Further headers of each request."""
    key_command: tuple[Annotated[str, Field(min_length=1, max_length=4096)], ...] = ()
    """A program and its arguments that print a key, where keys are made for the moment. It is run in the profile's
    confined child, once a turn, and again when the key is refused."""
    key_env: tuple[Variable, ...] = ()
    """The names of secrets that `key_command` finds in its environment."""
    prices: Mapping[Name, PriceConfig] = {}
    """What its models cost, by their names."""


@final
class SubagentsConfig(Section):
    """How many agents an agent may start."""

    depth: Annotated[int, Field(ge=0, le=8)] = 2
    """How deep subagents may start further ones; 0 means that there are none."""
    at_once: Annotated[int, Field(ge=1, le=64)] = 4
    """Subagents of one session that may run at the same time."""


@final
class CompactionConfig(Section):
    """What becomes of old messages when the context of the model is nearly full."""

    automatic: bool = True
    """Whether a summary takes the place of the older messages when the model's context is nearly full."""
    at: Annotated[float, Field(gt=0.1, le=1, allow_inf_nan=False)] = 0.8
    """The share of the context after which that is done."""
    keep: Annotated[int, Field(ge=1, le=1000)] = 6
    """Messages that stay verbatim, counted from the end; the rest is summarised."""
    fork: Literal["disabled", "soft", "hard"] = "disabled"
    """What a fork that says nothing about it does with the history that it takes over."""


@final
class HookConfig(Section):
    """A command that is run at its moment."""

    command: Annotated[str, Field(min_length=1, max_length=16_384)]
    """A command line, run in the session's directory and confined like any other."""
    deadline_s: Seconds = 30
    """Until it is ended."""


@final
class HooksConfig(Section):
    """Commands that run when something happens."""

    session_start: tuple[HookConfig, ...] = ()
    """Run before the first input of a session."""
    turn_end: tuple[HookConfig, ...] = ()
    """Run when an execution has ended."""
    tool_before: tuple[HookConfig, ...] = ()
    """Run before each tool call; one that fails keeps the call from being made."""
    session_end: tuple[HookConfig, ...] = ()
    """Run when a session is closed, put away for idleness, or the server drains."""

    def __bool__(self) -> bool:
        """Whether there is any hook at all."""
        return any((self.session_start, self.turn_end, self.tool_before, self.session_end))


@final
class QuickCommandConfig(Section):
    """A command of your own behind a slash."""

    type: Literal["exec", "alias", "prompt"]
    """What it is: a command line, another name for a command, or words for the agent."""
    command: Annotated[str, Field(min_length=1, max_length=16_384)] | None = None
    """What `exec` runs, in the warden."""
    target: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """The command that an `alias` stands for, with its slash."""
    prompt: Annotated[str, Field(min_length=1, max_length=100_000)] | None = None
    """What a `prompt` says; {args} stands for what follows the command."""
    description: Annotated[str, Field(max_length=500)] = ""
    """Shown where commands are completed."""

    @model_validator(mode="after")
    def _has_what_it_does(self) -> QuickCommandConfig:
        wanted = {"exec": self.command, "alias": self.target, "prompt": self.prompt}[self.type]
        if wanted is None:
            raise ValueError(f"a quick command of type {self.type} lacks what it does")
        return self


@final
class AgentConfig(Section):
    """How the agents of this profile work."""

    default: Name | None = None
    """The definition under agents/ that a session begins with; absent means the built-in one."""
    max_turns: Annotated[int, Field(ge=1, le=10_000)] = 40
    """Steps after which the person is asked whether to go on."""
    after_crash: Literal["resume", "unknown"] = "resume"
    """What becomes of an execution that a crash of the server ended: `resume` goes on, once, where no tool call was
    under way; `unknown` always waits for a person."""
    run_budget_seconds: Seconds | None = None
    """Ends an execution that takes longer."""
    subagents: SubagentsConfig = SubagentsConfig()
    directory_rules: Literal["checked", "trusted", "none"] = "checked"
    """What becomes of rules that a directory holds for agents, such as AGENTS.md. `checked` leaves out what does not
    show, and withholds a file that tries to turn the agent against its user; `trusted` takes them as they are."""
    titles: bool | Literal["words"] = True
    """Whether a session without a title gets one after its first turn: from a model, `words` from the first words that
    were said in it. Until a model has answered, and where it does not, they are the first words as well."""
    toolsets: tuple[Name, ...] = (
        *("terminal", "files", "ask", "plan", "memory", "delegate", "skills"),
        *("mcp", "client"),
    )
    """The toolsets of an agent that does not name its own."""


@final
class RuleConfig(Section):
    """What becomes of calls that fit."""

    tool: Name
    """The tool it is about; `*` is every one."""
    command: Name | None = None
    """A pattern over the words of a command, for example `git status *`."""
    argv: tuple[Annotated[str, Field(max_length=16_384)], ...] | None = None
    """The first words of a command, exactly; what the choice `always` writes."""
    path: PathText | None = None
    """A pattern over the resolved path that a file tool is given."""
    decision: Literal["allow", "ask", "deny"]
    """What becomes of the call."""

    @model_validator(mode="after")
    def _is_about_one_thing(self) -> RuleConfig:
        if sum(each is not None for each in (self.command, self.argv, self.path)) > 1:
            raise ValueError("a rule is about one of `command`, `argv` and `path`")
        if self.argv is not None and not (self.argv and self.argv[0]):
            raise ValueError("`argv` begins with the name of a program")
        return self


@final
class ApprovalsConfig(Section):
    """Which calls a person is asked about."""

    mode: Literal["ask", "auto", "deny"] = "ask"
    """What becomes of a call that no rule names."""
    rules: tuple[RuleConfig, ...] = ()
    """Tried in order; the first that fits decides."""
    dangers: bool = True
    """Whether what deletes, gains privileges, runs what a network gives, touches credentials or rewrites history is
    asked about also where a rule with a pattern, or `mode: auto`, would allow it."""
    git_programs: Literal["ask", "trusted"] = "ask"
    """What becomes of a git command that would run unasked in a repository whose own settings or hooks name programs
    that it would run. `trusted` runs it, whatever repository it is."""


@final
class QuestionsConfig(Section):
    """Questions to the person."""

    deadline_s: Seconds | None = None
    """After which a question that nobody answered expires; absent means that it waits. The agent is told that nobody
    answered, which is no refusal."""
    connection_deadline_s: Seconds = 86_400
    """After which a request to connect something expires, for which the agent does not wait: a day, so that it can be
    seen to in the evening."""


@final
class DisplayConfig(Section):
    """How terminals look."""

    skin: Name = "default"
    """The colours of the terminal UI."""


@final
class ServerConfig(Section):
    """Who may reach the server. Counts in the launch profile only."""

    hosts: tuple[Host, ...] = ()
    """Names under which the server may be addressed, besides those of this machine's loopback."""
    origins: tuple[Origin, ...] = ()
    """Web pages of other origins that may connect, for example https://desk.example."""
    drain_s: Seconds = 30
    """What runs when the server is told to stop has this long to finish; then it is interrupted."""


@final
class LimitsConfig(Section):
    """What one connection may take. Counts in the launch profile only."""

    frame_bytes: Annotated[int, Field(ge=65_536, le=16_777_216)] = 1_048_576
    """The largest message in and out: what client libraries take without being asked."""
    in_flight: Annotated[int, Field(ge=1, le=4096)] = 64
    """Requests of one connection that are worked on at once."""
    send_deadline_s: Seconds = 30
    """A connection that takes nothing for so long is closed."""
    connections: Count | None = None
    """At once; whoever comes then is told to come back. Absent means as many as the open files of the process allow."""
    ping_s: Seconds = 20
    """Between two pings of a connection."""


@final
class ProfilesConfig(Section):
    """How many profiles are open. Counts in the launch profile only."""

    idle_s: Seconds = 900
    """After which a profile without work is closed."""
    max_open: Annotated[int, Field(ge=1, le=10_000)] = 64
    """Profiles that are open at once; those in use are never closed."""


@final
class SessionsConfig(Section):
    """How long sessions stay in memory."""

    idle_s: Seconds = 300
    """After which a session without viewers and work leaves memory; it stays stored."""


@final
class RetentionConfig(Section):
    """What becomes of old conversations. Pinned ones, and those that run or wait for something, are always kept."""

    days: Count | None = None
    """Sessions that were not used for so many days are removed; absent means that age removes none."""
    bytes: Bytes | None = None
    """When conversations and their blobs take more, those not used for longest are removed, archived ones first."""


@final
class WardenConfig(Section):
    """The confined child that runs commands."""

    idle_s: Seconds = 120
    """After which a warden without work ends."""


@final
class SourceConfig(Section):
    """Where secrets come from besides .env."""

    kind: Literal["command", "credentials"]
    """`command` prints NAME=value lines; `credentials` are what systemd handed to the server: files called
    `<profile>.NAME`, for the launch profile also `NAME`."""
    command: tuple[Annotated[str, Field(min_length=1, max_length=4096)], ...] = ()
    """The program and its arguments, run in the profile's confined child."""
    env: tuple[Variable, ...] = ()
    """The names of secrets in .env that the command finds in its environment."""
    deadline_s: Seconds = 20
    """Until the command is ended."""

    @model_validator(mode="after")
    def _commands_are_whole(self) -> SourceConfig:
        if (self.kind == "command") != bool(self.command):
            raise ValueError("`command` is what a source of kind command runs, and no other")
        if any("${" in word for word in self.command):
            raise ValueError("arguments can be read by other processes; name the secret in `env` instead")
        return self


@final
class SecretsConfig(Section):
    """Where secrets come from, and what is none."""

    plain: tuple[Variable, ...] = ()
    """Names in .env that are no secrets and stay readable in what is stored and shown."""
    sources: tuple[SourceConfig, ...] = ()
    """Where further secrets come from; they fill in what .env does not define. One that fails is tried again."""
