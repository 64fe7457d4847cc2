"""A conversation, line by line: what is typed is said, what happens is printed below, nothing is drawn again.

Three tasks side by side: one prints what happens, one reads what is typed, one hears the keyboard's interrupt. Leaving
only detaches. Where the lines come from a pipe or a file, their end waits for what they started.
"""

from __future__ import annotations

import signal
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, final

import anyio
from pydantic import ValidationError

from hermes_ws.cli import exits
from hermes_ws.cli.commands import HELP, Answer, Approve, Command, Help, Nothing, Quit, Say, Stop, Wrong, parse
from hermes_ws.cli.locating import Where
from hermes_ws.cli.opening import (
    Opened,
    Undecided,
    Wanted,
    newest_generation,
    open_session,
    resume_line,
    status_of,
)
from hermes_ws.cli.question_text import ANSWERABLE, Unanswerable, approval, clarification
from hermes_ws.cli.sanitise import harmless
from hermes_ws.cli.screen import Screen, Style
from hermes_ws.cli.typing_in import Lines
from hermes_ws.cli.view import View
from hermes_ws.client.connect import Abilities
from hermes_ws.client.failures import ClientError, OutcomeUnknown
from hermes_ws.client.follow import Away, follow
from hermes_ws.client.link import Link, linked
from hermes_ws.contract.methods.prompts import PROMPT_SUBMIT, SubmitParams
from hermes_ws.contract.methods.questions import QUESTION_ANSWER, AnswerParams
from hermes_ws.contract.methods.sessions import SESSION_INTERRUPT, InterruptParams
from hermes_ws.contract.questions import OpenQuestion

if TYPE_CHECKING:
    from hermes_ws.cli.acting import Acting

PROMPT = "> "

GONE_SECONDS = 10.0
"""How long a home may be without a server before the person is told; a supervisor takes less to start one."""


@final
class LineMode:
    """One conversation. `run` gives the exit status and raises nothing that a server can cause."""

    def __init__(
        self, where: Where, wanted: Wanted, out: Screen, err: Screen, *, descriptor: int, typed_by_hand: bool
    ) -> None:
        self._where = where
        self._wanted = wanted
        self._named_profile = wanted.profile
        self._out = out
        self._err = err
        self._by_hand = typed_by_hand
        self._view = View(out, err)
        self._lines = Lines(descriptor)
        self._opened: Opened | None = None
        self._acting: Acting | None = None
        self._gone = False
        self._obeying = False
        self._interrupted = False
        self._unsure: tuple[str, str] | None = None

    async def run(self) -> int:
        """Converse until the person leaves, the lines end, or the server cannot be spoken with."""
        try:
            await self._where.ensured(self._err)
            self._wanted = replace(self._wanted, profile=self._wanted.profile or self._where.profile)
            async with linked(self._where.locate, Abilities("hermes-ws chat", ANSWERABLE)) as link:
                opened = self._opened = await open_session(link, self._wanted, self._err.line)
                while True:
                    await self._greet(link, opened)
                    status = await self._converse(link, opened)
                    if self._next is None:
                        return status
                    opened = self._opened = self._next
                    self._view, self._acting = View(self._out, self._err), None
        except ClientError as error:
            self._where.tell(self._err, error)
            return status_of(error)

    def detached(self) -> int:
        """The keyboard's interrupt came while the conversation did not hear it; the exit status."""
        if self._opened is None:
            self._err.line("Detached before there was a session.")
        else:
            self._err.line(f"Detached. To come back: {resume_line(self._opened, self._wanted)}")
        return exits.DETACHED

    @property
    def _next(self) -> Opened | None:
        """The session that the view is to move to."""
        return None if self._acting is None else self._acting.next

    async def _converse(self, link: Link, opened: Opened) -> int:
        failure: ClientError | None = None
        status = exits.DONE
        watching = False
        shown = anyio.Event()

        async def show() -> None:
            nonlocal failure
            try:
                async for item in follow(link, opened.session_id, opened.thread_id, after=opened.cursor):
                    self._view.show(item)
                    if isinstance(item, Away) and not watching:
                        tasks.start_soon(watch_for_end, name="end of the server")
                    shown.set()
                    self._invite()
            except ClientError as error:
                failure = error
                tasks.cancel_scope.cancel()

        async def hear_keyboard() -> None:
            nonlocal status
            with anyio.open_signal_receiver(signal.SIGINT) as signals:
                async for _ in signals:
                    self._out.returned()
                    if self._interrupted:
                        status = exits.DETACHED
                        tasks.cancel_scope.cancel()
                        return
                    self._interrupted = True
                    self._err.line("Ctrl-C again leaves; /stop ends what runs.", Style.DIM)
                    self._invite()

        async def watch_for_end() -> None:
            nonlocal status, watching
            watching = True
            self._gone = await self._where.gone(GONE_SECONDS)
            watching = False
            if not self._gone:
                return
            if self._by_hand:
                self._out.finish_line()
                self._err.line("The server ended. What is typed next starts one again; /quit leaves.", Style.WARNING)
                self._invite()
            else:
                self._err.line(f"The server ended, and none runs any more: {resume_line(opened, self._wanted)}")
                status = exits.NEEDS_A_PERSON
                tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(show, name="show")
            tasks.start_soon(hear_keyboard, name="keyboard")
            # What is typed may answer a question that waits, so what waits is shown first.
            await shown.wait()
            status = await self._read(link, opened)
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
        if self._by_hand and self._next is None:
            self._err.line(f"Detached. To come back: {resume_line(opened, self._wanted)}")
        return status

    async def _read(self, link: Link, opened: Opened) -> int:
        async for line in self._lines:
            self._interrupted = False
            if self._by_hand:
                self._out.returned()
            command = parse(line)
            if isinstance(command, Quit):
                return exits.DONE
            self._obeying = True
            try:
                await self._obey(command, line.strip(), link, opened)
            except Undecided as error:
                self._err.line(harmless(error.message), Style.WARNING)
                self._err.line(error.hint)
            except ClientError as error:
                self._where.tell(self._err, error)
            finally:
                self._obeying = False
            if self._next is not None:
                return exits.DONE
            self._invite()
        if self._by_hand:
            return exits.DONE
        await self._view.settled()
        if self._view.questions or self._view.lost:
            self._err.line(f"It waits for a person: {resume_line(opened, self._wanted)}")
            return exits.NEEDS_A_PERSON
        return exits.FAILED if self._view.failed else exits.DONE

    # --- commands --------------------------------------------------------------------------------------------------

    async def _obey(self, command: Command, line: str, link: Link, opened: Opened) -> None:
        if self._acting is not None:
            self._acting.mutations.give_up(line)
        if self._gone and not isinstance(command, Help | Wrong | Nothing):
            await self._where.ensured(self._err)
            self._gone = False
        match command:
            case Say():
                await self._say(command.text, link, opened)
            case Approve() | Answer():
                await self._answer(command, link)
            case Stop():
                await self._stop(link, opened)
            case Help():
                for line in HELP:
                    self._out.line(line)
            case Wrong():
                self._err.line(command.why, Style.WARNING)
            case Quit() | Nothing():
                pass
            case _:
                if not self._by_hand:
                    await self._view.settled()
                follow_up = await self._actor().act(command, line, link, opened)
                if follow_up is not None:
                    await self._obey(follow_up, line, link, opened)

    def _actor(self) -> Acting:
        """Who carries out the commands beyond talking; loaded when the first of them is typed."""
        if self._acting is None:
            from hermes_ws.cli.acting import Acting

            self._acting = Acting(self._view, self._out, self._err, self._wanted, self._give_back)
        return self._acting

    def _give_back(self, text: str) -> None:
        """Text to be said again, otherwise: on a terminal the next line begins with it, else it is printed."""
        if not (self._by_hand and self._out.interactive and self._lines.offer(text, PROMPT)):
            self._out.line(harmless(text))

    async def _say(self, text: str, link: Link, opened: Opened) -> None:
        # The same words, typed next after a receipt that was lost, are the same input: the server takes it once.
        same = self._unsure is not None and self._unsure[0] == text
        input_id = self._unsure[1] if self._unsure is not None and same else uuid.uuid4().hex
        self._unsure = None
        try:
            params = SubmitParams(
                session_id=opened.session_id, thread_id=opened.thread_id, input_id=input_id, text=text
            )
        except ValidationError:
            self._err.line("That is too long to be said at once.", Style.WARNING)
            return
        self._view.submitting(input_id)
        admission_id = None
        try:
            admission_id = (await link.call(PROMPT_SUBMIT, params)).admission_id
        except OutcomeUnknown as error:
            self._unsure = (text, input_id)
            error.hint = "Say the same once more to learn what became of it; it is carried out once."
            raise
        finally:
            self._view.submitted(input_id, admission_id)

    async def _answer(self, command: Approve | Answer, link: Link) -> None:
        question = self._view.questions.get(command.id)
        if question is None:
            self._err.line(f"No question {harmless(command.id)} is open here.", Style.WARNING)
            return
        try:
            params = _answer_params(question, command)
        except (Unanswerable, ValidationError) as error:
            self._err.line(str(error) if isinstance(error, Unanswerable) else "That is no answer.", Style.WARNING)
            return
        self._view.answering(question.id)
        answered = await link.call(QUESTION_ANSWER, params)
        self._view.answered(question.id)
        if answered.outcome != "settled":
            self._err.line(f"Your answer came late: {question.id} is {answered.outcome.replace('_', ' ')}.")

    async def _stop(self, link: Link, opened: Opened) -> None:
        if self._view.execution is None:
            self._err.line("Nothing runs.")
            return
        params = InterruptParams(
            session_id=opened.session_id, thread_id=opened.thread_id, execution_generation=self._view.execution
        )
        result = await link.call(SESSION_INTERRUPT, params)
        if result.outcome != "accepted":
            self._err.line(f"Nothing was stopped: {result.outcome.replace('_', ' ')}.")

    # --- around it -------------------------------------------------------------------------------------------------

    async def _greet(self, link: Link, opened: Opened) -> None:
        self._view.begin(opened, await newest_generation(link, opened))
        self._err.line(f"Session: {harmless(opened.session_id)}")
        self._where.leave_breadcrumb(self._named_profile, opened.session_id)
        if opened.snapshot is not None:
            self._view.history(opened.snapshot.messages or [])
        if self._by_hand:
            self._err.line(f"Profile {harmless(opened.profile)}. /help shows what can be typed.", Style.DIM)

    def _invite(self) -> None:
        idle = not self._view.busy and self._view.execution is None and not self._obeying
        if self._lines.prompting:
            return
        if self._by_hand and self._out.interactive and self._out.at_start and (idle or self._view.questions):
            self._out.write(PROMPT)


def _answer_params(question: OpenQuestion, command: Approve | Answer) -> AnswerParams:
    if isinstance(command, Approve):
        result = approval(question, command.choice, command.reason)
    else:
        result = clarification(question, command.text)
    return AnswerParams(id=question.id, result=result, execution_generation=question.execution_generation)
