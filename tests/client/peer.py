"""A small server that speaks the contract over real sockets, for tests of the client and the command line.

It is a twin, not the server: one thread per connection, a journal in a list, and an agent that does what the words of
the prompt say. Everything it sends is made from the contract's own models, so that it cannot drift from it. What a
test wants to go wrong is armed beforehand (`lose_reply_of`, `close_on`, `events_before_cut`), never timed.
"""

from __future__ import annotations

import json
import socket as sockets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path

from pydantic import BaseModel
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import Server, ServerConnection, serve, unix_serve

from hermes_ws.contract import events as E
from hermes_ws.contract.catalog import METHODS
from hermes_ws.contract.errors import HermesError, InvalidParams, MethodUnknown, ProfileUnknown, SessionUnknown
from hermes_ws.contract.methods import connection, prompts, questions, runtime, sessions, threads
from hermes_ws.contract.methods.profiles import ProfileList, ProfileRow
from hermes_ws.contract.version import PROTOCOL_MAJOR
from tests.client.happenings import Conversation, Happenings, envelope

TOKEN = "a-token-of-the-tests"
"""Into how many live pieces an answer is cut."""


class Peer(Happenings):
    """The server. `requests` is what clients asked, in order; `answers` what they answered to its own requests."""

    def __init__(self) -> None:
        super().__init__()
        self.token = TOKEN
        self.conversations: dict[str, Conversation] = {}
        self.requests: list[tuple[str, dict[str, object]]] = []
        self.replies: list[dict[str, object]] = []
        self.declared: list[dict[str, object]] = []
        self.admitted: dict[str, prompts.Admitted] = {}
        self.created: dict[str, sessions.Created] = {}
        self.lose_reply_of: set[str] = set()
        self.close_on: dict[str, int] = {}
        self.refuse: dict[str, HermesError] = {}
        self.answers: dict[str, BaseModel] = {}
        self.doctor: Callable[[str, dict[str, object]], dict[str, object]] = lambda _, result: result
        self.major = PROTOCOL_MAJOR
        self.boot_id = "another-machine"
        self.parameters = ["cwd", "title", "source"]
        self.port = 0
        self._server: Server | None = None

    # --- its life --------------------------------------------------------------------------------------------------

    def start(self, path: Path | None = None) -> None:
        options = {"process_request": self._admit, "compression": None, "subprotocols": ["hermes.v1"]}
        if path is None:
            self._server = serve(self._handle, "127.0.0.1", self.port, **options)
            self.port = self._server.socket.getsockname()[1]
        else:
            self._server = unix_serve(self._handle, str(path), **options)
        self._spawn(self._server.serve_forever)

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.socket.close()
        for conversation in self.conversations.values():
            conversation.interrupted.set()
        for event in self.answered.values():
            event.set()
        self.cut()
        for each in list(self._threads):
            each.join(10)
            assert not each.is_alive()
        self._threads.clear()

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/ws"

    def close_all(self, code: int, reason: str = "") -> None:
        for each in list(self.connections):
            each.close(code, reason)

    def asked(self, method: str) -> list[dict[str, object]]:
        with self.lock:
            return [params for name, params in self.requests if name == method]

    def wait_for(self, condition: Callable[[], bool], seconds: float = 20) -> None:
        with self.changed:
            assert self.changed.wait_for(condition, seconds), "it did not happen"

    def _spawn(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _admit(self, connection: ServerConnection, request: Request) -> Response | None:
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return connection.respond(HTTPStatus.UNAUTHORIZED, "")
        return None

    # --- frames ----------------------------------------------------------------------------------------------------

    def _handle(self, ws: ServerConnection) -> None:
        with self.changed:
            self.connections.append(ws)
            self.subscribed[ws] = set()
        try:
            ready = E.Ready(
                protocol=E.Protocol(major=self.major, minor=0),
                server=E.ServerInfo(name="peer", version="0"),
                instance_id="instance-1",
                profiles=["default"],
                capabilities=[],
                limits=E.Limits(frame_bytes=100_000, in_flight=64, waiting=256, waiting_bytes=4 << 20),
                contract_digest="",
                skin={},
                heartbeat=True,
            )
            self.send(ws, {"method": "event", "params": envelope("gateway.ready", ready)})
            for message in ws:
                self._take(ws, json.loads(message))
        except ConnectionClosed:
            pass
        finally:
            with self.changed:
                self.connections.remove(ws)
                del self.subscribed[ws]
                self.changed.notify_all()

    def _take(self, ws: ServerConnection, frame: dict[str, object]) -> None:
        method = frame.get("method")
        if not isinstance(method, str):
            with self.changed:
                self.replies.append(frame)
                self.changed.notify_all()
            return
        given = frame.get("params", {})
        assert isinstance(given, dict)
        with self.changed:
            self.requests.append((method, given))
            self.changed.notify_all()
        if self.close_on.get(method):
            self.close_on[method] -= 1
            ws.socket.shutdown(sockets.SHUT_RDWR)
            return
        with self.lock:  # until all is said: what happens meanwhile comes after the reply to a subscription
            answer, after = self._replied(ws, method, given)
            if method in self.lose_reply_of:
                self.lose_reply_of.discard(method)
                ws.socket.shutdown(sockets.SHUT_RDWR)
            else:
                self.send(ws, {"id": frame["id"], **answer})
                if isinstance(after, list):
                    for event in after:
                        self.send(ws, {"method": "event", "params": event})
        if callable(after):
            after()

    def _replied(self, ws: ServerConnection, method: str, given: dict[str, object]) -> tuple[dict[str, object], object]:
        try:
            if method in self.refuse:
                raise self.refuse[method]
            if method not in METHODS:
                raise MethodUnknown(f"there is no {method}")
            params = METHODS[method].params.model_validate(given)
            result, after = self._do(ws, method, params)
            return {"result": self.doctor(method, result.model_dump(mode="json"))}, after
        except HermesError as error:
            return {"error": error.to_wire()}, None

    # --- methods ---------------------------------------------------------------------------------------------------

    def _do(self, ws: ServerConnection, method: str, params: BaseModel) -> tuple[BaseModel, object]:
        if method in self.answers:
            return self.answers[method], None
        if isinstance(params, connection.CapabilitiesParams):
            self.declared.append(params.model_dump(mode="json"))
            kinds = params.server_requests if isinstance(params.server_requests, list) else []
            return connection.CapabilitiesResult(
                protocol=params.protocol, server_requests=kinds, live=params.live, batch=False, opt_out=[]
            ), None
        if method == "gateway.ping":
            return connection.Pong(), None
        if method == "runtime.describe":
            return self.description(), None
        if method == "profiles.list":
            row = ProfileRow(id="p1", name="default", state="open", confinement="kernel", sessions=1)
            rest = ProfileRow(id=None, name="research", state="closed", confinement=None, sessions=None)
            return ProfileList(launch="default", profiles=[row, rest]), None
        if isinstance(params, sessions.CreateParams):
            return self._create(ws, params), None
        if isinstance(params, sessions.ResumeParams):
            named = params.session_id or (next(reversed(self.conversations), "") if params.latest else "")
            return self._subscribe(ws, self._find(named), params.after)
        if isinstance(params, threads.SubscribeParams):
            return self._subscribe(ws, self._find(params.session_id), params.after)
        if isinstance(params, prompts.SubmitParams):
            return self._submit(params)
        if isinstance(params, questions.AnswerParams):
            return self._settle(params), None
        if isinstance(params, sessions.InterruptParams):
            conversation = self._find(params.session_id)
            if conversation.active is None:
                return sessions.ControlResult(outcome="no_active_execution"), None
            return sessions.ControlResult(outcome="accepted"), conversation.interrupted.set
        raise MethodUnknown(f"the peer has no {method}")

    def description(self) -> runtime.Description:
        return runtime.Description(
            protocol=E.Protocol(major=self.major, minor=0),
            server=E.ServerInfo(name="hermes-ws", version="9.9"),
            instance_id="instance-1",
            boot_id=self.boot_id,
            pid=4242,
            started_at=time.time() - 3700,
            durability="full",
            launch="default",
            session_create=runtime.SessionCreateOptions(parameters=self.parameters, sources=["cli", "oneshot", "api"]),
        )

    def _find(self, session_id: str) -> Conversation:
        if session_id not in self.conversations:
            raise SessionUnknown(f"There is no session {session_id}.")
        return self.conversations[session_id]

    def _create(self, ws: ServerConnection, params: sessions.CreateParams) -> sessions.Created:
        if params.profile not in (None, "default", "research"):
            raise ProfileUnknown(f"There is no profile {params.profile}.")
        if params.request_id in self.created:
            return self.created[params.request_id]
        made = Conversation(f"s-{next(self._numbers)}", params.profile or "default", params.cwd or "/nowhere")
        self.conversations[made.session_id] = made
        if params.subscribe:
            self.subscribed[ws].add(made.session_id)
        created = sessions.Created(
            session_id=made.session_id,
            thread_id="main",
            profile=made.profile,
            revision=1,
            cursor=made.cursor,
            info={"cwd": made.cwd},
        )
        if params.request_id is not None:
            self.created[params.request_id] = created
        return created

    def _subscribe(self, ws: ServerConnection, at: Conversation, after: str | None) -> tuple[BaseModel, object]:
        position, start = "fresh", len(at.journal)
        if after is not None:
            generation, seq = map(int, after.split(":"))
            ok = generation == at.generation and seq <= len(at.journal)
            position, start = ("ok", seq) if ok else ("rebased", 0)
        self.subscribed[ws].add(at.session_id)
        return threads.Snapshot(
            session_id=at.session_id,
            thread_id="main",
            profile=at.profile,
            position=position,
            generation=at.generation,
            cursor=at.cursor,
            execution=at.active,
            questions=list(at.questions.values()),
            pending=at.pending,
            in_progress=threads.InProgress(message_id=at.live[0], text=at.live[1]) if at.live else None,
            messages=at.messages if position == "fresh" else None,
            revision=1,
            info={},
        ), at.journal[start:]

    def _submit(self, params: prompts.SubmitParams) -> tuple[BaseModel, object]:
        if params.input_id in self.admitted:
            return self.admitted[params.input_id], None
        at = self._find(params.session_id)
        admission = f"a-{next(self._numbers)}"
        receipt = prompts.Admitted(admission_id=admission, status="queued", cursor=at.cursor)
        self.admitted[params.input_id] = receipt
        text = params.plain_text()
        queued = E.ExecutionQueued(admission_id=admission, input_id=params.input_id, text=text)
        self.commit(at, "execution.queued", queued, admission)
        before, at.ended = at.ended, threading.Event()
        return receipt, lambda: self._spawn(self.run_after, before, at.ended, at, admission, text)

    def _settle(self, params: questions.AnswerParams) -> questions.Answered:
        if params.id in self.results:
            return questions.Answered(outcome="already_settled", result=self.results[params.id])
        for at in self.conversations.values():
            question = at.questions.get(params.id)
            if question is None:
                continue
            if question.kind == "approval" and params.result.get("choice") not in question.params["choices"]:
                raise InvalidParams("That is no choice.", path="result.choice")
            self.results[params.id] = params.result
            self.settle(at, params.id, params.result)
            return questions.Answered(outcome="settled", result=params.result)
        raise InvalidParams("There is no such question.", path="id")


@contextmanager
def peer_at(path: Path | None = None) -> Iterator[Peer]:
    """A running peer on loopback, or on a Unix socket at `path`."""
    peer = Peer()
    peer.start(path)
    try:
        yield peer
    finally:
        peer.stop()


@contextmanager
def home_with_peer(home: Path) -> Iterator[Peer]:
    """A running peer that a home's clients find: `run/gateway.sock` and `run/token`."""
    run = home / "run"
    run.mkdir(parents=True, mode=0o700)
    with peer_at(run / "gateway.sock") as peer:
        (run / "gateway.sock").chmod(0o600)
        (run / "token").touch(0o600)
        (run / "token").write_text(peer.token + "\n")
        yield peer
