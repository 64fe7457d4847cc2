"""Twins of the ports: small, honest stand-ins that remember what happened, in order."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trio

from hermes_ws.agent.approvals import ApprovalPolicy
from hermes_ws.agent.deeds import (
    Background,
    FoundLine,
    FoundLines,
    ListedEntry,
    Listing,
    Ran,
    ReadFile,
    ToolOutcome,
    Written,
)
from hermes_ws.agent.definition import AgentDefinition
from hermes_ws.agent.ports import Consumed, Level, NoAnswerer, Pipe, Redaction, Said
from hermes_ws.agent.ports import Told as Noted
from hermes_ws.agent.request import TurnRequest, TurnSettings
from hermes_ws.agent.tools.tool import Tool
from hermes_ws.contract.content import Block, Message, Role, TextBlock, ToolCallBlock, ToolResultBlock, Usage
from hermes_ws.contract.errors import InvalidParams, NotFound
from hermes_ws.contract.model import Params, Result
from hermes_ws.contract.questions import ApprovalParams, ApprovalResult, ClarifyParams, ClarifyResult
from hermes_ws.contract.registry import Question
from hermes_ws.scope.secrets import Secrets
from hermes_ws.scope.sections import RuleConfig

DIRECTORY = Path("/srv/project")
NO_SECRETS = Secrets({})


@dataclass
class Told:
    """One thing that was said, as (kind, what)."""

    kind: str
    what: Any


class NarratorTwin:
    """Keeps what it was told, live text apart from what was committed, and builds the history as a journal would."""

    def __init__(self) -> None:
        self.told: list[Told] = []
        self.history: list[Message] = []
        self.live: dict[str, str] = {}
        self.thought: dict[str, str] = {}
        self.progress: dict[str, str] = {}
        self.metered = (0, 0)
        self.rules: list[str] = []
        self.generating: list[str] = []
        self.before: Callable[[str], Awaitable[None]] | None = None
        self._messages = 0

    async def _say(self, kind: str, what: Any) -> None:
        if self.before is not None:
            await self.before(kind)
        await trio.lowlevel.checkpoint()
        self.told.append(Told(kind, what))

    def kinds(self) -> list[str]:
        return [each.kind for each in self.told]

    def all(self, kind: str) -> list[Any]:
        return [each.what for each in self.told if each.kind == kind]

    async def message_start(self, role: Role = "assistant") -> str:
        self._messages += 1
        message_id = f"m{self._messages}"
        await self._say("message_start", message_id)
        self.live[message_id] = ""
        return message_id

    def text(self, message_id: str, piece: str) -> None:
        self.live[message_id] += piece

    def reasoning(self, message_id: str, piece: str) -> None:
        self.thought[message_id] = self.thought.get(message_id, "") + piece

    async def message_complete(
        self, message_id: str, content: Sequence[Block], *, partial: bool = False, used: Consumed | None = None
    ) -> None:
        text = "".join(block.text for block in content if isinstance(block, TextBlock))
        message = Message(message_id=message_id, role="assistant", text=text, content=list(content))
        await self._say("message_complete", (message, partial))
        self.history.append(message)
        if used is not None:
            await self.usage(used.usage, context_tokens=used.context_tokens, context_limit=used.context_limit)

    async def tool_start(self, call: ToolCallBlock) -> None:
        await self._say("tool_start", call)

    def tool_generating(self, name: str) -> None:
        self.generating.append(name)

    async def status(self, kind: str, text: str) -> None:
        await self._say("status", (kind, text))

    def tool_progress(self, call_id: str, piece: str) -> None:
        self.progress[call_id] = self.progress.get(call_id, "") + piece

    async def tool_complete(self, call: ToolCallBlock, outcome: ToolOutcome) -> None:
        await self._say("tool_complete", (call, outcome))

    async def tool_results(self, blocks: Sequence[ToolResultBlock]) -> None:
        await self._say("tool_results", list(blocks))
        self.history.append(Message(message_id=f"t{len(self.history)}", role="tool", text="", content=list(blocks)))

    async def usage(self, usage: Usage, *, context_tokens: int = 0, context_limit: int = 0) -> None:
        self.metered = (context_tokens, context_limit)
        await self._say("usage", usage)

    async def compaction_start(self, reason: str) -> None:
        await self._say("compaction_start", reason)

    async def compaction_complete(
        self, summary: str, first_kept: str, *, covered: int, tokens_before: int, tokens_after: int
    ) -> None:
        await self._say("compaction_complete", (summary, first_kept, covered, tokens_before, tokens_after))

    async def rules_read(self, files: Sequence[str], problems: Sequence[Noted]) -> None:
        self.rules = list(files)
        for each in problems:
            await self.notice("warning", each.type, each.message, each.hint)

    async def notice(self, level: Level, type: str, message: str, hint: str = "") -> None:
        await self._say("notice", (level, type, message, hint))

    @property
    def said(self) -> str:
        """All committed text."""
        return "\n".join(message.text for message in self.history if message.role == "assistant")

    @property
    def outcomes(self) -> list[ToolOutcome]:
        return [outcome for _, outcome in self.all("tool_complete")]


@dataclass
class HandsTwin:
    """A directory of texts and a table of commands. `running` counts what runs right now."""

    cwd: Path = DIRECTORY
    files: dict[str, str | bytes] = field(default_factory=dict)
    commands: Mapping[str, Ran] = field(default_factory=dict)
    delay_s: float = 0.0
    ran: list[tuple[str, Path | None, float]] = field(default_factory=list)
    running: int = 0
    most_running: int = 0
    ended: list[str] = field(default_factory=list)
    background: dict[str, Background] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    passwords: list[str | None] = field(default_factory=list)
    listed: list[Path] = field(default_factory=list)
    gains_rights: bool = False
    here: bool = False

    async def run(
        self,
        command: str,
        *,
        cwd: Path | None,
        deadline_s: float,
        on_output: Callable[[str], None],
        password: str | None = None,
    ) -> Ran:
        self.passwords.append(password)
        self.ran.append((command, cwd, deadline_s))
        try:
            await trio.sleep(self.delay_s)
            ran = self.commands.get(command) or finished("")
            on_output(ran.output)
            return ran
        finally:
            self.ended.append(command)

    async def read(self, path: Path, *, offset: int, limit: int) -> ReadFile:
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await trio.sleep(self.delay_s)
            content = self.files.get(str(path))
            if content is None:
                raise NotFound(f"There is no file {path}.")
            if isinstance(content, bytes):
                return ReadFile(None, len(content))
            return ReadFile(content[offset : offset + limit], len(content))
        finally:
            self.running -= 1

    async def write(self, path: Path, text: str) -> Written:
        await trio.lowlevel.checkpoint()
        created = str(path) not in self.files
        self.files[str(path)] = text
        return Written(len(text.encode()), created)

    async def edit(self, path: Path, change: Callable[[str], str]) -> Written:
        await trio.lowlevel.checkpoint()
        content = self.files.get(str(path))
        if content is None:
            raise NotFound(f"There is no file {path}.")
        if isinstance(content, bytes):
            raise InvalidParams(f"{path} is no text.")
        self.files[str(path)] = changed = change(content)
        return Written(len(changed.encode()), created=False)

    async def list_files(
        self, path: Path, *, depth: int, limit: int, hidden: bool = False, pattern: str | None = None
    ) -> Listing:
        await trio.lowlevel.checkpoint()
        self.listed.append(path)
        names = [Path(name).relative_to(path) for name in self.files if Path(name).is_relative_to(path)]
        found = [name for name in sorted(names) if len(name.parts) <= depth and (not pattern or name.match(pattern))]
        entries = [ListedEntry(str(name), "file", len(self.files[str(path / name)])) for name in found[:limit]]
        folders = {name.parts[0] for name in names if len(name.parts) > 1 and depth == 1 and not pattern}
        entries += [ListedEntry(name, "directory", 0) for name in sorted(folders)] if hidden else []
        return Listing(entries, more=len(found) > limit)

    async def search_files(
        self,
        path: Path,
        expression: str,
        *,
        literal: bool = False,
        ignore_case: bool = False,
        pattern: str | None = None,
        limit: int = 200,
    ) -> FoundLines:
        await trio.lowlevel.checkpoint()
        wanted = re.compile(re.escape(expression) if literal else expression, re.IGNORECASE if ignore_case else 0)
        found = [
            FoundLine(str(Path(name).relative_to(path)), number, line)
            for name, content in self.files.items()
            if isinstance(content, str)
            for number, line in enumerate(content.splitlines(), 1)
            if wanted.search(line)
        ]
        return FoundLines(found[:limit], more=len(found) > limit)

    async def start(self, command: str, *, cwd: Path | None) -> Background:
        await trio.lowlevel.checkpoint()
        started = Background(f"p{len(self.background) + 1}", command, running=True)
        self.background[started.process_id] = started
        return started

    def processes(self) -> Sequence[Background]:
        return list(self.background.values())

    async def process_output(self, process_id: str, *, limit: int) -> str:
        await trio.lowlevel.checkpoint()
        self._known(process_id)
        return self.outputs.get(process_id, "")[-limit:]

    async def process_write(self, process_id: str, text: str) -> None:
        await trio.lowlevel.checkpoint()
        self._known(process_id)
        self.outputs[process_id] = self.outputs.get(process_id, "") + text

    async def process_kill(self, process_id: str) -> Background:
        await trio.lowlevel.checkpoint()
        known = self._known(process_id)
        self.background[process_id] = ended = Background(process_id, known.command, running=False, signal=15)
        return ended

    async def open_pipe(self, argv: Sequence[str], *, env: Mapping[str, str]) -> Pipe:
        raise NotImplementedError("the twin has no programs")

    def _known(self, process_id: str) -> Background:
        if process_id not in self.background:
            raise NotFound(f"There is no process {process_id}.")
        return self.background[process_id]


class LibraryTwin:
    """Skills and messages as they are given."""

    def __init__(self, skills: Mapping[str, str] | None = None, said: Sequence[Said] = ()) -> None:
        self._skills = skills or {}
        self._said = said

    async def skills(self) -> Sequence[tuple[str, str]]:
        await trio.lowlevel.checkpoint()
        return [(name, f"For {name}.") for name in self._skills]

    async def skill(self, name: str, file: str | None) -> str:
        await trio.lowlevel.checkpoint()
        if name not in self._skills:
            raise NotFound(f"This profile has no skill {name!r}.")
        return self._skills[name]

    async def search(self, query: str, limit: int) -> Sequence[Said]:
        await trio.lowlevel.checkpoint()
        return [each for each in self._said if query in each.snippet][:limit]


class RuleBookTwin:
    """Keeps what it is told to write; `problem` is raised instead."""

    def __init__(self, problem: Exception | None = None) -> None:
        self.added: list[tuple[Sequence[RuleConfig], RuleConfig | None]] = []
        self._problem = problem

    async def add(self, rules: Sequence[RuleConfig], before: RuleConfig | None) -> None:
        await trio.lowlevel.checkpoint()
        if self._problem is not None:
            raise self._problem
        self.added.append((rules, before))


class AskerTwin:
    """Answers from a list, in order; when it is used up, nobody is there. `forever` leaves a question open."""

    def __init__(self, *answers: Params | Exception, forever: bool = False) -> None:
        self.asked: list[Result] = []
        self._answers = list(answers)
        self._forever = forever

    async def ask(self, question: Question, params: Result, *, deadline_s: float | None = None) -> Params:
        self.asked.append(params)
        await trio.lowlevel.checkpoint()
        if self._forever:
            await trio.sleep_forever()
        if not self._answers:
            raise NoAnswerer(question.kind)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def approvals(self) -> list[ApprovalParams]:
        return [each for each in self.asked if isinstance(each, ApprovalParams)]

    @property
    def clarifications(self) -> list[ClarifyParams]:
        return [each for each in self.asked if isinstance(each, ClarifyParams)]


ONCE = ApprovalResult(choice="once")
SESSION = ApprovalResult(choice="session")
ALWAYS = ApprovalResult(choice="always")
NO = ApprovalResult(choice="deny", reason="not today")


def answers(**by_qid: str | list[str] | None) -> ClarifyResult:
    return ClarifyResult(answers=dict(by_qid))


def finished(output: str, *, exit_code: int | None = 0, **more: Any) -> Ran:
    values: dict[str, Any] = {"signal": None, "timed_out": False, "truncated": False, "duration_ms": 3, **more}
    return Ran(exit_code=exit_code, output=output, **values)


def user(text: str, message_id: str = "u1") -> Message:
    return Message(message_id=message_id, role="user", text=text, content=[TextBlock(text=text)])


def request(
    *history: Message | str,
    policy: ApprovalPolicy | None = None,
    redaction: Redaction = NO_SECRETS,
    soul: str = "",
    max_turns: int = 10,
    toolsets: tuple[str, ...] = ("terminal", "files", "ask"),
    definition: AgentDefinition | None = None,
    offered: Sequence[Tool] = (),
) -> TurnRequest:
    messages = [user(each) if isinstance(each, str) else each for each in history]
    settings = TurnSettings(policy or ApprovalPolicy(confined=True), redaction, soul, toolsets, deadline_s=120.0)
    return TurnRequest(
        history=messages,
        definition=definition or AgentDefinition("default"),
        session_id="s1",
        thread_id="main",
        profile="work",
        max_turns=max_turns,
        settings=settings,
        offered=offered,
    )
