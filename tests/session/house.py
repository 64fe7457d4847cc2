"""A served root of homes for tests: real homes on disk, real databases, real wardens; only the people are twins."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, final

import trio

from hermes_ws.contract.events import ToolStart
from hermes_ws.contract.methods.connection import ClientTool
from hermes_ws.contract.methods.prompts import Admitted, SubmitParams
from hermes_ws.contract.methods.sessions import CreateParams
from hermes_ws.contract.questions import OpenQuestion
from hermes_ws.hosting.host import Host
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.journal import admissions, questions, sessions
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.database import Database, Transaction
from hermes_ws.journal.tail import LiveMarks
from hermes_ws.scope.environment import StartEnvironment
from hermes_ws.scope.home import HomesRoot, ProfileHome
from hermes_ws.scope.identity import ProfileName, mint_identity
from hermes_ws.session import identifiers
from hermes_ws.session.ports import Counted
from hermes_ws.session.session import Session
from hermes_ws.session.thread import Thread
from hermes_ws.wire.cursor import Cursor

PATIENCE_S = 30.0
"""How long a test waits for what must happen. A bound for a hung test, not an expectation."""

OWNER = "owner"


@final
class People:
    """The twin of the connections: who could be asked, what was asked, and what was called off."""

    def __init__(self) -> None:
        self.counted = Counted(with_right=1, capable=1)
        self.asked: list[OpenQuestion] = []
        self.tools: tuple[ClientTool, ...] = ()
        self.told: list[tuple[str, str, str]] = []
        self.changed: list[tuple[str, str | None]] = []
        self.skins: list[tuple[str, str]] = []
        self._news = trio.Event()

    def ask(self, question: OpenQuestion, profile: str) -> Counted:
        self.asked.append(question)
        self._news.set()
        self._news = trio.Event()
        return self.counted

    def client_tools(self, profile: str) -> tuple[ClientTool, ...]:
        return self.tools

    def skin_changed(self, profile: str, name: str) -> None:
        self.skins.append((profile, name))

    def sessions_changed(self, profile: str, session_id: str | None) -> None:
        self.changed.append((profile, session_id))

    def settled(self, question_id: str, reason: str, profile: str) -> None:
        self.told.append((question_id, reason, profile))

    async def question(self, number: int = 0) -> OpenQuestion:
        """The question of this number, when it has been asked."""
        with trio.fail_after(PATIENCE_S):
            while len(self.asked) <= number:
                await self._news.wait()
        return self.asked[number]


Event = Mapping[str, Any]


@final
class Viewer:
    """Reads a thread as a client does: from a cursor on, what is committed and what is live."""

    def __init__(self, thread: Thread, start: Cursor, marks: LiveMarks) -> None:
        self.events: list[Event] = []
        self._thread = thread
        self._cursor = start
        self._marks = marks
        self._news = trio.Event()
        self._seen = 0
        thread.tail.attach(self._wake)

    @classmethod
    async def of(cls, thread: Thread, after: Cursor | None = None) -> Self:
        _, start, marks = await thread.subscription_start(after, messages=False)
        return cls(thread, start, marks)

    def _wake(self) -> None:
        self._news.set()

    def leave(self) -> None:
        self._thread.tail.detach(self._wake)

    async def pull(self) -> None:
        """Take what there is now: from the tail, or from disk for what is older."""
        while True:
            taken = self._thread.tail.take(self._cursor, self._marks, 1 << 20)
            if taken.missing:
                frames, self._cursor = await self._thread.page(self._cursor, 1 << 20)
                self.events += [json.loads(frame.json)["params"] for frame in frames]
                continue
            self._cursor = taken.cursor
            self.events += [json.loads(frame.json)["params"] for frame in taken.frames]
            if not taken.more:
                return

    async def until(self, type: str, **payload: object) -> Event:
        """The next event of this type, after those that were waited for before."""
        with trio.fail_after(PATIENCE_S):
            while True:
                await self.pull()
                while self._seen < len(self.events):
                    event = self.events[self._seen]
                    self._seen += 1
                    if event["type"] == type and payload.items() <= event["payload"].items():
                        return event
                self._news = trio.Event()
                await self._news.wait()

    def types(self) -> list[str]:
        return [event["type"] for event in self.events]

    def live_text(self, message_id: str) -> str:
        """The text that its deltas spell, each checked against its offset."""
        text = ""
        for event in self.events:
            if event["type"] == "message.delta" and event["payload"]["message_id"] == message_id:
                assert event["payload"]["offset"] == len(text)
                text += event["payload"]["text"]
        return text


@final
@dataclass
class House:
    """A root with homes, and the host that serves it while `serving`."""

    root: Path
    people: People = field(default_factory=People)
    launch_secrets: Mapping[str, str] = field(default_factory=dict[str, str])
    host: Host | None = None
    path: str = "/usr/local/bin:/usr/bin:/bin"

    def home(self, name: str, *, config: str = "", env: str = "") -> Path:
        """Make a home, or change the files of one."""
        path = self.root / name
        path.mkdir(mode=0o700, exist_ok=True)
        if config:
            (path / "config.yaml").write_text(config)
        if env:
            secrets = path / ".env"
            secrets.touch(mode=0o600)
            secrets.write_text(env)
        return path

    def names(self) -> list[str]:
        """What lies in the root, in order."""
        return sorted(os.listdir(self.root))

    def make_host(self) -> Host:
        start = StartEnvironment(
            base={"PATH": self.path, "LANG": "C.UTF-8"},
            parameters={},
            launch_secrets=self.launch_secrets,
        )
        root = HomesRoot.directory(self.root)
        return Host(root, start, instance_id="instance", audience=self.people)

    @asynccontextmanager
    async def served(self) -> AsyncIterator[Host]:
        """Serve for the length of a block, then shut down in order."""
        async with trio.open_nursery() as nursery:
            host = self.host = self.make_host()
            await nursery.start(host.run)
            yield host
            with trio.fail_after(PATIENCE_S):
                await host.drain(0)
            nursery.cancel_scope.cancel()

    async def runtime(self, name: str = "default") -> ProfileRuntime:
        assert self.host is not None
        with trio.fail_after(PATIENCE_S):
            return await self.host.open(ProfileName.parse(name))


async def eventually(holds: Callable[[], bool]) -> None:
    """Wait for what nothing announces."""
    with trio.fail_after(PATIENCE_S):
        while not holds():  # noqa: ASYNC110
            await trio.sleep(0.01)


async def new_session(runtime: ProfileRuntime, **options: Any) -> tuple[Session, Thread, Viewer]:
    """A session, its thread, and somebody who watches it."""
    session, _ = await runtime.sessions.create(CreateParams(**options), OWNER)
    thread = await session.thread("main")
    return session, thread, await Viewer.of(thread)


async def say(thread: Thread, text: str, input_id: str, **options: Any) -> Admitted:
    """Submit an input."""
    params = SubmitParams(session_id=thread.key.session_id, input_id=input_id, text=text, **options)
    return await thread.submit(params, OWNER)


@dataclass(frozen=True)
class LeftBehind:
    """What an owner that was killed left in a home: one execution that ran, one input that waited, one question."""

    session_id: str
    running: str
    queued: str
    question_id: str


async def leave_behind(
    house: House, name: str = "default", *, under_way: bool = True, before: int = 0, **options: bool
) -> LeftBehind:
    """Write what a server that is killed in the middle of a turn leaves behind: with a tool call under way, or not.

    `before` executions of the same input were lost already; `options` are those of the input.
    """
    home = ProfileHome(house.home(name).resolve())
    home.prepare()
    identity = mint_identity(home, ProfileName(name))
    session_id = identifiers.session_id(identity.origin)
    key = ThreadKey(session_id, "main")

    def work(tx: Transaction) -> LeftBehind:
        sessions.create(
            tx,
            sessions.NewSession(
                session_id=session_id,
                title="left behind",
                agent="default",
                cwd=str(home.user),
                source="api",
                principal=OWNER,
                digest="",
            ),
        )
        admitted = [
            admissions.admit(
                tx, admissions.NewAdmission(key, OWNER, input_id, input_id, f"/do say {input_id}", **options)
            )[0]
            for input_id in ("one", "two")
        ]
        claimed = admissions.claim(tx, key)
        assert claimed is not None
        for _ in range(before):
            tx.connection.execute(
                "UPDATE admission SET status = 'queued' WHERE admission_id = ?", (claimed.admission_id,)
            )
            claimed = admissions.claim(tx, key)
            assert claimed is not None
        if under_way:
            call = ToolStart(call_id="call-1", name="terminal", arguments={"command": "make"})
            generation = claimed.execution_generation
            tx.append(key, "tool.start", call, execution_generation=generation, admission_id=claimed.admission_id)
        question_id = questions.next_id(tx, identity.origin)
        asked = questions.NewQuestion(question_id, key, "approval", 1, {"choices": ["once", "deny"]})
        questions.open(tx, asked)
        return LeftBehind(session_id, admitted[0].admission_id, admitted[1].admission_id, question_id)

    database = await Database.open(home.path, home.database, home.lock, instance_id="before", profile=name)
    left = await database.transact(work)
    await database.close()
    return left
