"""What becomes of a conversation at the twin of the server: its events, its questions, and an agent of few words.

Prompts: `say TEXT` answers TEXT; `ask COMMAND` asks for approval first; `clarify` asks a question; `fail` fails;
`lose` is lost; `hang` runs until it is interrupted. Anything else is echoed.
"""

import itertools
import json
import socket as sockets
import threading
from contextlib import suppress

from pydantic import BaseModel
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection

from hermes_ws.contract import events as E
from hermes_ws.contract.content import Message, Usage
from hermes_ws.contract.methods import threads
from hermes_ws.contract.questions import ApprovalParams, ClarifyItem, ClarifyParams, OpenQuestion

PIECES = 8
"""Live pieces of an answer."""


class Conversation:
    """One session with its only thread."""

    def __init__(self, session_id: str, profile: str, cwd: str) -> None:
        self.session_id = session_id
        self.profile = profile
        self.cwd = cwd
        self.generation = 1
        self.journal: list[dict[str, object]] = []
        self.messages: list[Message] = []
        self.questions: dict[str, OpenQuestion] = {}
        self.pending: list[threads.PendingRow] = []
        self.live: tuple[str, str] | None = None
        self.execution = 0
        self.active: threads.ActiveExecution | None = None
        self.interrupted = threading.Event()
        self.ended = threading.Event()
        self.ended.set()

    @property
    def cursor(self) -> str:
        return f"{self.generation}:{len(self.journal)}"


class Happenings:
    """What happens at the server, told to everybody who is subscribed."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.connections: list[ServerConnection] = []
        self.subscribed: dict[ServerConnection, set[str]] = {}
        self.answered: dict[str, threading.Event] = {}
        self.results: dict[str, dict[str, object]] = {}
        self.events_before_cut: int | None = None
        self._numbers = itertools.count(1)
        self._threads: list[threading.Thread] = []

    def send(self, ws: ServerConnection, frame: dict[str, object]) -> None:
        with suppress(ConnectionClosed):
            ws.send(json.dumps({"jsonrpc": "2.0", **frame}))

    def cut(self) -> None:
        """End all connections without a word."""
        with self.lock:
            for each in self.connections:
                with suppress(OSError):
                    each.socket.shutdown(sockets.SHUT_RDWR)

    def commit(self, at: Conversation, type: str, payload: BaseModel, admission: str | None = None) -> None:
        with self.changed:
            seq = len(at.journal) + 1
            event = envelope(type, payload) | {
                "profile": at.profile,
                "session_id": at.session_id,
                "thread_id": "main",
                "cursor": f"{at.generation}:{seq}",
                "seq": seq,
                "execution_generation": at.execution,
            }
            if admission is not None:
                event["admission_id"] = admission
            at.journal.append(event)
            self._tell(at, event)
            self.changed.notify_all()

    def _tell(self, at: Conversation, event: dict[str, object]) -> None:
        for ws, held in list(self.subscribed.items()):
            if at.session_id in held:
                self.send(ws, {"method": "event", "params": event})
        if self.events_before_cut is not None:
            self.events_before_cut -= 1
            if self.events_before_cut == 0:
                self.events_before_cut = None
                self.cut()
                if threading.current_thread() in self._threads:  # else it would wait for its own connection
                    self.changed.wait_for(lambda: not self.subscribed, 10)

    def live(self, at: Conversation, message_id: str, piece: str) -> None:
        with self.lock:
            had = at.live[1] if at.live and at.live[0] == message_id else ""
            at.live = (message_id, had + piece)
            delta = E.TextDelta(message_id=message_id, offset=len(had), text=piece)
            self._tell(at, envelope("message.delta", delta) | {"session_id": at.session_id, "thread_id": "main"})

    def message(self, at: Conversation, role: str, text: str, admission: str | None) -> None:
        message_id = f"m-{next(self._numbers)}"
        if role == "assistant":
            self.commit(at, "message.start", E.MessageStart(message_id=message_id, role=role), admission)
            size = max(1, -(-len(text) // PIECES))
            for start in range(0, len(text), size):
                self.live(at, message_id, text[start : start + size])
        with self.lock:
            at.live = None
            at.messages.append(Message(message_id=message_id, role=role, text=text))
            whole = E.MessageComplete(message_id=message_id, role=role, text=text)
            self.commit(at, "message.complete", whole, admission)

    def open_question(self, at: Conversation, kind: str, params: BaseModel) -> str:
        """Commit a question, send it to whoever declared its kind, and give its id."""
        id = f"srq-peer-{next(self._numbers)}"
        with self.lock:
            self.answered[id] = threading.Event()
            given = params.model_dump(mode="json")
            at.questions[id] = OpenQuestion(
                id=id,
                kind=kind,
                session_id=at.session_id,
                thread_id="main",
                execution_generation=at.execution,
                params=given,
                asked_at=1.0,
            )
            opened = E.RequestOpened(id=id, kind=kind, execution_generation=at.execution, params=given, asked_at=1.0)
            self.commit(at, "request.opened", opened)
            for ws in list(self.connections):
                self.send(ws, {"id": id, "method": kind, "params": given})
        return id

    def settle(self, at: Conversation, id: str, result: dict[str, object]) -> None:
        with self.lock:
            kind = at.questions.pop(id).kind
            settled = E.RequestSettled(id=id, kind=kind, state="settled", result=result)
            self.commit(at, "request.settled", settled)
            for ws in list(self.connections):
                cancel = envelope("request.cancel", E.RequestCancel(id=id, reason="resolved"))
                self.send(ws, {"method": "event", "params": cancel})
            self.answered[id].set()

    def run_after(
        self, before: threading.Event, ended: threading.Event, at: Conversation, admission: str, text: str
    ) -> None:
        """Run it when the one before it is over: a thread has one execution at a time."""
        before.wait(20)
        try:
            self.run(at, admission, text)
        finally:
            ended.set()

    def run(self, at: Conversation, admission: str, text: str) -> None:
        word, _, rest = text.partition(" ")
        with self.lock:
            at.execution += 1
            at.interrupted.clear()
            at.active = threads.ActiveExecution(
                execution_generation=at.execution, admission_id=admission, started_at=1.0, state="running"
            )
            started = E.ExecutionStarted(admission_id=admission, execution_generation=at.execution)
            self.commit(at, "execution.started", started, admission)
            self.message(at, "user", text, admission)
        outcome, error = "completed", None
        if word == "lose":
            with self.lock:
                at.active = None
                lost = E.ExecutionLost(admission_id=admission, execution_generation=at.execution)
                self.commit(at, "execution.lost", lost, admission)
            return
        if word == "fail":
            outcome = "failed"
            error = E.ExecutionError(type="model_failed", message="The model broke off.", hint="Try again.")
        elif word == "hang":
            at.interrupted.wait(20)
            outcome = "interrupted"
        else:
            self.message(at, "assistant", self._answer(at, word, rest, text, admission), admission)
        with self.lock:
            at.active = None
            done = E.ExecutionFinished(outcome=outcome, error=error, usage=Usage(model="peer"))
            self.commit(at, "execution.finished", done, admission)

    def _answer(self, at: Conversation, word: str, rest: str, text: str, admission: str) -> str:
        if word == "say":
            return rest
        if word == "clarify":
            items = [ClarifyItem(qid="q1", question="Which colour?", choices=["red", "blue"])]
            params = ClarifyParams(session_id=at.session_id, thread_id="main", questions=items)
            id = self.open_question(at, "clarify", params)
            self.answered[id].wait(20)
            return f"You said {self.results.get(id, {}).get('answers')}."
        if word != "ask":
            return f"You said: {text}"
        asked = ApprovalParams(
            session_id=at.session_id,
            thread_id="main",
            tool="terminal",
            command=rest,
            description="Run a command",
            rule="approvals.mode is ask",
            choices=["once", "session", "deny"],
        )
        id = self.open_question(at, "approval", asked)
        self.answered[id].wait(20)
        choice = self.results.get(id, {}).get("choice")
        if choice == "deny":
            return "I did not run it."
        call = E.ToolStart(call_id="c-1", name="terminal", arguments={"command": rest})
        self.commit(at, "tool.start", call, admission)
        result = E.ToolComplete(call_id="c-1", name="terminal", output="done\n", is_error=False, duration_ms=3)
        self.commit(at, "tool.complete", result, admission)
        return f"I ran it: {choice}."


def envelope(type: str, payload: BaseModel) -> dict[str, object]:
    return {"type": type, "ts": 1.0, "payload": payload.model_dump(mode="json")}
