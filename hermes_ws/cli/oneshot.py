"""One prompt, one reply: for scripts, and for a quick question.

Standard output is the reply; everything else goes to standard error. On a terminal the text is printed as it comes; for
a program it is the final reply alone, once the execution has come to its end. It declares that it shows questions and
answers none: when one is asked, it prints the question and how to answer it, and leaves. The question waits.
"""

from __future__ import annotations

import signal
import uuid
from dataclasses import replace
from typing import Final, final

import anyio
from anyio.abc import TaskGroup
from pydantic import ValidationError

from hermes_ws.cli import exits
from hermes_ws.cli.locating import Where
from hermes_ws.cli.opening import Opened, Wanted, open_session, resume_line, status_of
from hermes_ws.cli.question_text import describe, opened_question
from hermes_ws.cli.sanitise import harmless
from hermes_ws.cli.screen import Screen, Style
from hermes_ws.cli.stream_json import StreamJson
from hermes_ws.cli.usage_file import UsageFile
from hermes_ws.cli.view import AWAY, LOST, tool_line
from hermes_ws.client.connect import Abilities
from hermes_ws.client.failures import ClientError
from hermes_ws.client.follow import Away, Item, Resumed, follow
from hermes_ws.client.link import Link, linked
from hermes_ws.client.live_text import Ending, LiveTexts
from hermes_ws.contract.events import (
    Envelope,
    ExecutionFinished,
    ExecutionLost,
    MessageComplete,
    MessageStart,
    TextDelta,
    ToolComplete,
    ToolStart,
)
from hermes_ws.contract.methods.prompts import PROMPT_SUBMIT, SubmitParams
from hermes_ws.contract.methods.threads import Snapshot
from hermes_ws.contract.questions import QUESTIONS, OpenQuestion

KINDS: Final = tuple(QUESTIONS)
"""It shows every kind of question, by printing it, and answers none."""

AWAY_SECONDS = 120.0
"""How long a lost connection may stay lost: a server that restarts is back by then, and a script wants an end."""

GONE_SECONDS = 10.0
"""How long a home may be without a server before nobody is expected to start one: a supervisor takes less."""

GONE: Final = (
    "The server ended in the middle of it and none runs any more. What became of it shows when the session is opened, "
    "which starts one:"
)


@final
class OneShot:
    """One run. `run` gives the exit status and raises nothing."""

    def __init__(
        self,
        where: Where,
        wanted: Wanted,
        out: Screen,
        err: Screen,
        *,
        quiet: bool,
        unattended: bool,
        stream: StreamJson | None,
        usage: UsageFile,
    ) -> None:
        self._where = where
        self._wanted = wanted
        self._named_profile = wanted.profile
        self._out = out
        self._err = err
        self._quiet = quiet
        self._unattended = unattended
        self._stream = stream
        self._growing = out.interactive and not quiet and stream is None
        self._usage = usage
        self._texts = LiveTexts()
        self._own_messages: set[str] = set()
        self._outcome = "failed"
        self._failure: str | None = None
        self._opened: Opened | None = None
        self._submitting = False
        self._admission = ""
        self._reply = ""
        self._status = exits.FAILED
        self._tasks: TaskGroup | None = None

    async def run(self, text: str) -> int:
        """Say `text`, wait for the outcome, print the reply."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            tasks.start_soon(self._watch_keyboard, tasks.cancel_scope, name="keyboard")
            try:
                await self._where.ensured(self._err)
                self._wanted = replace(self._wanted, profile=self._wanted.profile or self._where.profile)
                live = "full" if self._stream is not None or self._growing else "none"
                abilities = Abilities("hermes-ws chat -q", KINDS, live=live)
                async with linked(self._where.locate, abilities) as link:
                    self._status = await self._converse(link, text)
            except ClientError as error:
                self._tell(error)
                self._status = status_of(error)
            tasks.cancel_scope.cancel()
        self._end()
        return self._status

    def _end(self) -> None:
        """Whatever came of it: one result, one usage file, and the session's id as the last line."""
        failure = None if self._status == exits.DONE else self._failure or "The run did not come to its end."
        self._usage.write(self._outcome, failure)
        if self._stream is not None:
            self._stream.result(self._status, failure)
        if self._opened is not None:
            self._err.line()
            self._err.line(f"session_id: {harmless(self._opened.session_id)}")

    async def _watch_keyboard(self, scope: anyio.CancelScope) -> None:
        with anyio.open_signal_receiver(signal.SIGINT) as signals:
            async for _ in signals:
                accepted = "; what the server accepted goes on" if self._submitting else ""
                self._fail(f"Detached{accepted}.")
                self._outcome = "detached"
                self._status = exits.DETACHED
                scope.cancel()

    async def _watch_for_end(self, scope: anyio.CancelScope) -> None:
        if not await self._where.gone(GONE_SECONDS) or self._opened is None:
            return
        self._fail(GONE)
        self._err.line(resume_line(self._opened, self._wanted))
        self._outcome, self._status = "unknown", exits.NEEDS_A_PERSON
        scope.cancel()

    async def _converse(self, link: Link, text: str) -> int:
        opened = self._opened = await open_session(link, self._wanted, self._err.line)
        self._err.line(f"Session: {harmless(opened.session_id)}")
        self._where.leave_breadcrumb(self._named_profile, opened.session_id)
        self._usage.bind(opened.session_id, opened.info)
        if self._stream is not None:
            self._stream.bind(opened.session_id)
        if opened.snapshot is not None:
            self._history(opened.snapshot)
            if _lost(opened.snapshot):
                self._err.line("Nothing was submitted.")
                return self._lose()
        params = SubmitParams(
            session_id=opened.session_id,
            thread_id=opened.thread_id,
            input_id=uuid.uuid4().hex,
            text=text,
            finite=True,
            unattended=self._unattended,
        )
        self._submitting = True
        self._admission = (await link.call(PROMPT_SUBMIT, params)).admission_id
        items = follow(link, opened.session_id, opened.thread_id, after=opened.cursor)
        patience = float("inf")
        while True:
            with anyio.move_on_after(patience):
                item = await anext(items)
                patience = AWAY_SECONDS if isinstance(item, Away) else float("inf")
                status = self._take(item)
                if status is None:
                    continue
                return self._finish(opened) if status == exits.DONE else status
            self._fail("The server did not come back. What it accepted goes on when it does; see:")
            self._err.line(resume_line(opened, self._wanted))
            return exits.FAILED

    def _history(self, snapshot: Snapshot) -> None:
        if self._quiet:
            return
        for message in snapshot.messages or []:
            if message.role != "tool" and message.text:
                self._out.line(f"{message.role}: {harmless(message.text)}")

    def _take(self, item: Item) -> int | None:
        """What this means for the run: an exit status when it is over."""
        if isinstance(item, Away):
            self._err.line(f"{item.reason.message} {AWAY}", Style.WARNING)
            assert self._tasks is not None, "it runs"
            self._tasks.start_soon(self._watch_for_end, self._tasks.cancel_scope, name="end of the server")
            return None
        try:
            return self._resumed(item) if isinstance(item, Resumed) else self._event(item)
        except ValidationError:
            self._fail(f"The server's event {item.type if isinstance(item, Envelope) else ''} cannot be read.")
            return exits.FAILED

    def _resumed(self, item: Resumed) -> int | None:
        for question in item.snapshot.questions:
            return self._ask(question)
        if _lost(item.snapshot):
            return self._lose()
        growing = item.snapshot.in_progress
        if growing is not None and growing.message_id in self._own_messages:
            self._grow(growing.message_id, 0, growing.text)
        return None

    def _grow(self, message_id: str, offset: int, piece: str) -> None:
        new = self._texts.grow(message_id, offset, piece)
        if self._stream is not None:
            self._stream.text(new)
        elif self._growing:
            self._out.write(harmless(new))

    def _end_text(self, ending: Ending) -> None:
        if self._stream is not None:
            self._stream.text(ending.rest)
        elif self._growing:
            if ending.anew:
                self._out.line("(the message, whole:)", Style.DIM)
            self._out.write(harmless(ending.rest))
            self._out.finish_line()

    def _event(self, event: Envelope) -> int | None:
        own = event.admission_id == self._admission
        match event.type:
            case "request.opened":
                return self._ask(opened_question(event))
            case "execution.lost":
                if not ExecutionLost.model_validate(event.payload).resumes:
                    return self._lose()
            case "message.complete" if own:
                message = MessageComplete.model_validate(event.payload)
                if message.role == "assistant" and message.text:
                    self._reply = message.text
                    self._end_text(self._texts.end(message.message_id, message.text))
            case "message.start" if own:
                self._own_messages.add(MessageStart.model_validate(event.payload).message_id)
            case "message.delta":
                delta = TextDelta.model_validate(event.payload)
                if delta.message_id in self._own_messages:
                    self._grow(delta.message_id, delta.offset, delta.text)
            case "tool.start" if own:
                call = ToolStart.model_validate(event.payload)
                if self._stream is not None:
                    self._stream.tool_use(call)
                elif not self._quiet:
                    self._err.line(tool_line(call, self._err.columns), Style.DIM)
            case "tool.complete" if own and self._stream is not None:
                self._stream.tool_result(ToolComplete.model_validate(event.payload))
            case "execution.finished" if own:
                return self._finished(ExecutionFinished.model_validate(event.payload))
            case _:
                pass
        return None

    def _finished(self, finished: ExecutionFinished) -> int:
        self._outcome = finished.outcome
        self._usage.used(finished.usage)
        if self._stream is not None:
            self._stream.used(finished.usage)
        if finished.outcome == "completed":
            return exits.DONE
        if finished.error is not None:
            self._fail(f"Error: {harmless(finished.error.message)}")
            if finished.error.hint:
                self._err.line(harmless(finished.error.hint))
        else:
            self._fail(f"Error: the execution was {finished.outcome}.")
        return exits.FAILED

    def _ask(self, question: OpenQuestion) -> int:
        assert self._opened is not None
        self._failure = f"A question waits for a person: {question.id}."
        self._outcome = "waiting"
        for line in describe(question):
            self._err.line(line, Style.STRONG)
        self._err.line("It waits for that. To answer, open the session and type it there:")
        self._err.line(resume_line(self._opened, self._wanted))
        return exits.NEEDS_A_PERSON

    def _lose(self) -> int:
        self._err.line(LOST, Style.WARNING)
        self._failure, self._outcome = LOST, "unknown"
        if self._opened is not None:
            self._err.line(harmless(f"hermes-ws session discard {self._opened.session_id} --yes"))
        return exits.NEEDS_A_PERSON

    def _finish(self, opened: Opened) -> int:
        if self._stream is not None:
            return exits.DONE
        if self._unattended and not self._reply.strip():
            self._fail("Error: the agent said nothing.")
            return exits.FAILED
        if not self._growing:
            self._out.line(harmless(self._reply).rstrip("\n"))
        if not self._quiet:
            self._out.line()
            self._out.line("Resume this session with:")
            self._out.line(f"  {resume_line(opened, self._wanted)}")
        return exits.DONE

    def _fail(self, sentence: str) -> None:
        self._failure = sentence.removeprefix("Error: ")
        self._err.line(sentence, Style.ERROR)

    def _tell(self, error: ClientError) -> None:
        self._failure = harmless(error.message)
        self._where.tell(self._err, error)
        if self._opened is not None:
            self._err.line(f"The session: {resume_line(self._opened, self._wanted)}")


def _lost(snapshot: Snapshot) -> bool:
    return any(row.status == "unknown" for row in snapshot.pending)
