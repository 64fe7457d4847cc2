"""A thread as lines: what is said, which tools run, what is asked. Prints and never redraws.

Fed with what `follow` gives. It also keeps the little that the commands of a conversation need: which questions were
shown and are open, which execution was last seen, and what became of the inputs of this terminal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar, final

import anyio
from pydantic import JsonValue, ValidationError

from hermes_ws.cli.opening import Opened
from hermes_ws.cli.question_text import describe, opened_question
from hermes_ws.cli.sanitise import harmless, one_line
from hermes_ws.cli.screen import Screen, Style
from hermes_ws.client.follow import Away, Item, Resumed
from hermes_ws.client.live_text import LiveTexts
from hermes_ws.contract.content import Message
from hermes_ws.contract.events import (
    Envelope,
    ExecutionFinished,
    ExecutionLost,
    ExecutionQueued,
    ExecutionStarted,
    MessageComplete,
    MessageStart,
    Notice,
    RequestSettled,
    SessionInfo,
    TextDelta,
    ToolComplete,
    ToolStart,
)
from hermes_ws.contract.methods.threads import Snapshot
from hermes_ws.contract.model import Result
from hermes_ws.contract.news_events import StatusUpdate
from hermes_ws.contract.questions import OpenQuestion

S = TypeVar("S", bound=Result)

LOST = (
    "An execution was lost when the server ended. What it did last is not known, and nothing is repeated. "
    "What is said in this session waits behind it; a new session does not."
)

AWAY = "Connecting again; what it accepted is kept there."
"""What is said of a connection that is lost. That nothing was lost by it is for the server to tell."""


@final
class View:
    """One conversation on one screen; `err` takes what is about the connection and not about the conversation."""

    def __init__(self, out: Screen, err: Screen) -> None:
        self._out = out
        self._err = err
        self._texts = LiveTexts()
        self._shown: set[str] = set()
        self._under_way: set[str] = set()
        self._answered: set[str] = set()
        self._own: set[str] = set()
        self._finished: dict[str, str] = {}
        self._changed = anyio.Event()
        self.questions: dict[str, OpenQuestion] = {}
        self.execution: int | None = None
        self.revision = 1
        self.generation: int | None = None
        self.info: Mapping[str, JsonValue] = {}
        self.said: list[tuple[str, str]] = []
        self.lost_rows: dict[str, int | None] = {}
        self.last_admission: str | None = None
        self._told_of_loss = False
        self._printed: set[str] = set()

    # --- what the commands need ------------------------------------------------------------------------------------

    def submitting(self, input_id: str) -> None:
        """An input of this terminal is on its way; its first events may come before the receipt."""
        self._under_way.add(input_id)

    def submitted(self, input_id: str, admission_id: str | None) -> None:
        """It was accepted as `admission_id`; None where it was not."""
        self._under_way.discard(input_id)
        if admission_id is not None:
            self._own.add(admission_id)

    def answering(self, question_id: str) -> None:
        """A question is being answered from here; that it was settled need not be told."""
        self._answered.add(question_id)

    def answered(self, question_id: str) -> None:
        """The answer was taken, or came late: the question is open no more."""
        self.questions.pop(question_id, None)

    @property
    def busy(self) -> bool:
        """Whether an input of this terminal has not come to its end."""
        return bool(self._under_way) or any(admission not in self._finished for admission in self._own)

    @property
    def failed(self) -> bool:
        """Whether an input of this terminal came to a bad end."""
        return any(self._finished.get(admission, "completed") != "completed" for admission in self._own)

    async def settled(self) -> None:
        """Wait until nothing of this terminal runs any more, or cannot go on without a person."""
        while self.busy and not self.questions and not self.lost:
            await self._changed.wait()

    @property
    def lost(self) -> bool:
        """Whether an execution was lost and nobody has said what became of it."""
        return bool(self.lost_rows)

    def begin(self, opened: Opened, generation: int | None) -> None:
        """What is known of the session before anything of it is followed."""
        self.revision, self.info = opened.revision, opened.info
        self.generation = opened.generation if generation is None else generation

    def resolved(self, admission_id: str) -> None:
        """Somebody has said what became of a lost execution."""
        self.lost_rows.pop(admission_id, None)

    def history(self, messages: list[Message]) -> None:
        """What was said before."""
        for message in messages:
            self._printed.add(message.message_id)
            if message.role == "user":
                self.said.append((message.message_id, message.text))
            if message.role != "tool" and message.text:
                self._out.line(f"{message.role}: {harmless(message.text)}")

    # --- what happens ----------------------------------------------------------------------------------------------

    def show(self, item: Item) -> None:
        """Print one thing that happened."""
        if isinstance(item, Resumed):
            self._resumed(item)
        elif isinstance(item, Away):
            self._err.line(f"{item.reason.message} {AWAY}", Style.WARNING)
        else:
            try:
                self._event(item)
            except ValidationError:
                self._err.line(f"An event of type {harmless(item.type)} could not be read; it is passed over.")
        self._changed.set()
        self._changed = anyio.Event()

    def _resumed(self, item: Resumed) -> None:
        if item.dropped:
            self._texts.drop()
            self._out.finish_line()
            self._err.line("The history was replaced; it follows from its beginning.", Style.WARNING)
            self._forget()
        self._catch_up(item.snapshot)

    def _forget(self) -> None:
        """The journal begins anew. What is printed stays, and is not printed again."""
        self.said.clear()

    def _catch_up(self, snapshot: Snapshot) -> None:
        self.questions = {id: each for id, each in self.questions.items() if id in {q.id for q in snapshot.questions}}
        for question in snapshot.questions:
            self._question(question)
        self.execution = None if snapshot.execution is None else snapshot.execution.execution_generation
        for row in snapshot.pending:
            if row.status == "unknown":
                self._lose(row.admission_id, row.execution_generation)
        self.revision, self.info = snapshot.revision, snapshot.info
        if snapshot.in_progress is not None:
            self._grow(snapshot.in_progress.message_id, 0, snapshot.in_progress.text)

    def _event(self, event: Envelope) -> None:
        match event.type:
            case "message.delta":
                delta = _read(TextDelta, event)
                self._grow(delta.message_id, delta.offset, delta.text)
            case "message.start":
                if _read(MessageStart, event).role == "assistant":
                    self._out.finish_line()
            case "message.complete":
                self._message(_read(MessageComplete, event), event.admission_id)
            case "tool.start":
                self._tool_start(_read(ToolStart, event))
            case "tool.complete":
                self._tool_complete(_read(ToolComplete, event))
            case "request.opened":
                self._question(opened_question(event))
            case "request.settled":
                self._settled(_read(RequestSettled, event))
            case "execution.queued":
                queued = _read(ExecutionQueued, event)
                if queued.input_id in self._under_way:
                    self.submitted(queued.input_id, queued.admission_id)
            case "execution.started":
                self.execution = _read(ExecutionStarted, event).execution_generation
                self.generation = max(self.generation or 0, self.execution)
            case "session.info":
                known = _read(SessionInfo, event)
                self.revision, self.info = known.revision, known.info
            case "thread.rebased":
                self._texts.drop()
                self._forget()
                self._out.line("(the conversation was edited)", Style.DIM)
            case "execution.finished":
                self._end(_read(ExecutionFinished, event), event.admission_id)
                if event.execution_generation in (None, self.execution):
                    self.execution = None
            case "execution.lost":
                self.execution = None
                lost = _read(ExecutionLost, event)
                if not lost.resumes:
                    self._lose(lost.admission_id, lost.execution_generation)
            case "status.update":
                self._out.line(harmless(_read(StatusUpdate, event).text), Style.DIM)
            case "notice":
                self._notice(_read(Notice, event))
            case _:
                pass

    def _grow(self, message_id: str, offset: int, piece: str) -> None:
        if not self._texts.text(message_id):
            self._out.finish_line()
        self._out.write(harmless(self._texts.grow(message_id, offset, piece)))

    def _message(self, message: MessageComplete, admission_id: str | None) -> None:
        if message.role == "user":
            self.said.append((message.message_id, message.text))
        if message.message_id in self._printed:
            return
        self._printed.add(message.message_id)
        if message.role == "tool" or (message.role == "user" and admission_id in self._own):
            return
        if message.role == "user":
            self._out.line(f"user: {harmless(message.text)}", Style.DIM)
            return
        ending = self._texts.end(message.message_id, message.text)
        if ending.anew:
            self._out.line("(the message, whole:)", Style.DIM)
        self._out.write(harmless(ending.rest))
        self._out.finish_line()
        if message.partial:
            self._out.line("(cut off here)", Style.DIM)

    def _tool_start(self, call: ToolStart) -> None:
        self._out.line(tool_line(call, self._out.columns), Style.DIM)

    def _tool_complete(self, done: ToolComplete) -> None:
        word = "failed" if done.is_error else "done"
        line = f"  {word} ({done.duration_ms} ms): {done.output}" if done.output.strip() else f"  {word}"
        self._out.line(one_line_indented(line, self._out.columns), Style.ERROR if done.is_error else Style.DIM)

    def _question(self, question: OpenQuestion) -> None:
        self.questions[question.id] = question
        if question.id not in self._shown:
            self._shown.add(question.id)
            for line in describe(question):
                self._out.line(line, Style.STRONG)

    def _settled(self, settled: RequestSettled) -> None:
        if self.questions.pop(settled.id, None) is not None and settled.id not in self._answered:
            choice = (settled.result or {}).get("choice")
            told = f": {harmless(choice)}" if isinstance(choice, str) else ""
            self._out.line(f"{settled.id} was {settled.state}{told}.", Style.DIM)

    def _end(self, finished: ExecutionFinished, admission_id: str | None) -> None:
        if admission_id is not None:
            self.last_admission = admission_id
            self.resolved(admission_id)
            self._finished[admission_id] = finished.outcome
        self._out.finish_line()
        if finished.error is not None:
            self._out.line(f"Error: {harmless(finished.error.message)}", Style.ERROR)
            if finished.error.hint:
                self._out.line(harmless(finished.error.hint))
        elif finished.outcome != "completed":
            self._out.line(f"({finished.outcome})", Style.WARNING)

    def _lose(self, admission_id: str, generation: int | None) -> None:
        self._finished[admission_id] = "lost"
        if not self._told_of_loss:
            self._told_of_loss = True
            self._out.line(LOST, Style.WARNING)
        if admission_id not in self.lost_rows:
            self._out.line(f"/discard {harmless(admission_id)}", Style.STRONG)
        self.lost_rows[admission_id] = generation

    def _notice(self, notice: Notice) -> None:
        self._out.line(f"{notice.level}: {harmless(notice.message)}", Style.DIM)
        if notice.hint:
            self._out.line(harmless(notice.hint), Style.DIM)


def tool_line(call: ToolStart, columns: int) -> str:
    """A tool call on one line: its name and the argument that says most."""
    told = next((value for value in call.arguments.values() if isinstance(value, str)), "")
    return one_line(f"* {call.name}: {told}" if told else f"* {call.name}", columns)


def one_line_indented(text: str, columns: int) -> str:
    """As `one_line`, two columns to the right."""
    return "  " + one_line(text, columns - 2)


def _read(shape: type[S], event: Envelope) -> S:
    return shape.model_validate(event.payload)
