"""One prompt, one reply: for scripts, and for a quick question.

Standard output is the reply; everything else goes to standard error. It declares that it shows questions and answers
none: when one is asked, it prints the question and how to answer it, and leaves. The question waits.
"""

from __future__ import annotations

import signal
import uuid
from typing import final

import anyio
from pydantic import ValidationError

from hermes_ws.cli import exits
from hermes_ws.cli.locating import Where
from hermes_ws.cli.opening import Opened, Wanted, open_session, resume_line
from hermes_ws.cli.question_text import ANSWERABLE, describe, opened_question
from hermes_ws.cli.sanitise import harmless
from hermes_ws.cli.screen import Screen, Style
from hermes_ws.cli.view import LOST, tool_line
from hermes_ws.client.connect import Abilities
from hermes_ws.client.failures import ClientError
from hermes_ws.client.follow import Away, Item, Resumed, follow
from hermes_ws.client.link import Link, linked
from hermes_ws.contract.events import Envelope, ExecutionFinished, ExecutionLost, MessageComplete, ToolStart
from hermes_ws.contract.methods.prompts import PROMPT_SUBMIT, SubmitParams
from hermes_ws.contract.methods.threads import Snapshot
from hermes_ws.contract.questions import OpenQuestion

AWAY_SECONDS = 120.0
"""How long a lost connection may stay lost: a server that restarts is back by then, and a script wants an end."""


@final
class OneShot:
    """One run. `run` gives the exit status and raises nothing."""

    def __init__(self, where: Where, wanted: Wanted, out: Screen, err: Screen, *, quiet: bool) -> None:
        self._where = where
        self._wanted = wanted
        self._out = out
        self._err = err
        self._quiet = quiet
        self._opened: Opened | None = None
        self._submitting = False
        self._admission = ""
        self._reply = ""
        self._status = exits.FAILED

    async def run(self, text: str) -> int:
        """Say `text`, wait for the outcome, print the reply."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch_keyboard, tasks.cancel_scope, name="keyboard")
            try:
                abilities = Abilities("hermes-ws chat -q", ANSWERABLE, live="none")
                async with linked(self._where.locate, abilities) as link:
                    self._status = await self._converse(link, text)
            except ClientError as error:
                self._tell(error)
            tasks.cancel_scope.cancel()
        return self._status

    async def _watch_keyboard(self, scope: anyio.CancelScope) -> None:
        with anyio.open_signal_receiver(signal.SIGINT) as signals:
            async for _ in signals:
                accepted = "; what the server accepted goes on" if self._submitting else ""
                self._err.line(f"Detached{accepted}.")
                self._status = exits.DETACHED
                scope.cancel()

    async def _converse(self, link: Link, text: str) -> int:
        opened = self._opened = await open_session(link, self._wanted, self._err.line)
        self._err.line(f"Session: {harmless(opened.session_id)}")
        if opened.snapshot is not None:
            self._history(opened.snapshot)
            if _lost(opened.snapshot):
                self._err.line(LOST, Style.WARNING)
                self._err.line("Nothing was submitted.")
                return exits.NEEDS_A_PERSON
        params = SubmitParams(
            session_id=opened.session_id, thread_id=opened.thread_id, input_id=uuid.uuid4().hex, text=text, finite=True
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
                if status == exits.DONE:
                    self._finish(opened)
                return status
            self._err.line("The server did not come back. What it accepted goes on when it does; see:", Style.ERROR)
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
            self._err.line(f"{item.reason.message} Connecting again; nothing is lost.", Style.WARNING)
            return None
        try:
            return self._resumed(item) if isinstance(item, Resumed) else self._event(item)
        except ValidationError:
            self._err.line(f"The server's event {item.type if isinstance(item, Envelope) else ''} cannot be read.")
            return exits.FAILED

    def _resumed(self, item: Resumed) -> int | None:
        for question in item.snapshot.questions:
            return self._ask(question)
        if _lost(item.snapshot):
            return self._lose()
        return None

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
            case "tool.start" if own and not self._quiet:
                self._err.line(tool_line(ToolStart.model_validate(event.payload), self._err.columns), Style.DIM)
            case "execution.finished" if own:
                return self._outcome(ExecutionFinished.model_validate(event.payload))
            case _:
                pass
        return None

    def _outcome(self, finished: ExecutionFinished) -> int:
        if finished.outcome == "completed":
            return exits.DONE
        if finished.error is not None:
            self._err.line(f"Error: {harmless(finished.error.message)}", Style.ERROR)
            if finished.error.hint:
                self._err.line(harmless(finished.error.hint))
        else:
            self._err.line(f"Error: the execution was {finished.outcome}.", Style.ERROR)
        return exits.FAILED

    def _ask(self, question: OpenQuestion) -> int:
        assert self._opened is not None
        for line in describe(question):
            self._err.line(line, Style.STRONG)
        self._err.line("It waits for that. To answer, open the session and type it there:")
        self._err.line(resume_line(self._opened, self._wanted))
        return exits.NEEDS_A_PERSON

    def _lose(self) -> int:
        self._err.line(LOST, Style.WARNING)
        return exits.NEEDS_A_PERSON

    def _finish(self, opened: Opened) -> None:
        self._out.line(harmless(self._reply).rstrip("\n"))
        if not self._quiet:
            self._out.line()
            self._out.line("Resume this session with:")
            self._out.line(f"  {resume_line(opened, self._wanted)}")

    def _tell(self, error: ClientError) -> None:
        self._where.tell(self._err, error)
        if self._opened is not None:
            self._err.line(f"The session: {resume_line(self._opened, self._wanted)}")


def _lost(snapshot: Snapshot) -> bool:
    return any(row.status == "unknown" for row in snapshot.pending)
