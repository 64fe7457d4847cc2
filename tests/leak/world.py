"""A served world of homes with a canary in every place, and what to look for.

Every side has the same names for everything (secrets, sessions, agents, skills, files, processes) and other values.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.gateway_client import Client, Refused
from tests.e2e.process import Server, environment_of, write_home

LAUNCH = "default"
PARENT = "parent-canary-3c9d71e0a4"
"""A secret in the environment that the server is started with: the launch profile's alone."""

MARK = re.compile(r"canary-[a-z0-9]+-[a-z]+-[0-9a-f]{12}")
"""What every canary looks like: one search finds them all."""

TITLE = "the same title"
AGENT = "helper"
SKILL = "the-skill"
FILE = "notes.txt"


def mark(side: str, place: str) -> str:
    """A text that stands in one place of one home, and nowhere else in the world."""
    return f"canary-{side}-{place}-{hashlib.sha256(f'{side} {place}'.encode()).hexdigest()[:12]}"


@dataclass
class Side:
    """One home, what lives in it, and the connection that is bound to it by its path."""

    name: str
    path: Path
    secrets: dict[str, str]
    shown: tuple[str, ...]
    """Canaries that are the home's own to tell: in its settings, texts and files."""
    bound: Client | None = None
    id: str = ""
    session: str = ""
    admission: str = ""
    input: str = ""
    terminal: str = ""
    process: str = ""
    blob: str = "0" * 64

    @property
    def origin(self) -> str:
        return self.session.partition("-")[0]

    @property
    def canaries(self) -> tuple[str, ...]:
        return (*self.secrets.values(), *self.shown, f"{self.path}/")

    @property
    def client(self) -> Client:
        assert self.bound is not None
        return self.bound


def write_side(root: Path, name: str) -> Side:
    """A home with a canary in every place that there is."""
    path = root / name
    secrets = {
        "SHARED": mark(name, "shared"),
        f"ONLY_{name.upper()}": mark(name, "only"),
        "PLACED": mark(name, "placed"),
    }
    shown = tuple(
        mark(name, place)
        for place in ("model", "soul", "agent", "skill", "memory", "file", "text", "reply", "rules", "quick")
    )
    config = (
        f"model:\n  name: {mark(name, 'model')}\n"
        "approvals:\n  mode: auto\n"
        "providers:\n  mine:\n    kind: openai\n    base_url: http://127.0.0.1:9/v1\n    api_key: ${PLACED}\n"
        f"terminal:\n  env: [SHARED, ONLY_{name.upper()}]\n"
        f"quick_commands:\n  shown: {{type: exec, command: 'echo {mark(name, 'quick')}; env; pwd; cat {FILE}'}}\n"
    )
    write_home(path, env=secrets, config=config)
    for place, content in (
        ("SOUL.md", mark(name, "soul")),
        (f"agents/{AGENT}.md", f"---\nname: {AGENT}\ndescription: {mark(name, 'agent')}\n---\nBe.\n"),
        (f"skills/{SKILL}/SKILL.md", f"---\nname: {SKILL}\ndescription: {mark(name, 'skill')}\n---\nDo.\n"),
        ("memories/MEMORY.md", mark(name, "memory")),
        (f"home/{FILE}", mark(name, "file")),
        ("home/AGENTS.md", mark(name, "rules")),
    ):
        file = path / place
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.write_text(content)
    return Side(name, path, secrets, shown)


@dataclass
class World:
    """A server over a launch home and some sides; `owner` is a connection that may address all of them."""

    server: Server
    sides: list[Side]
    launch: Side
    temporary: Path
    owner: Client
    environment: bytes = b""

    @property
    def everyone(self) -> tuple[Side, ...]:
        return (self.launch, *self.sides)

    def connect(self, side: Side) -> Client:
        """A connection that is bound to one profile by its path."""
        url = self.server.url.removesuffix("/ws") + f"/p/{side.name}/ws"
        return Client(url, self.server.token)

    def fresh_session(self, side: Side) -> str:
        session: str = self.owner.call("session.create", profile=side.name, title="throwaway")["session_id"]
        return session

    def fresh_profile(self) -> str:
        name = f"x{uuid.uuid4().hex[:12]}"
        self.owner.call("profiles.create", name=name, git_identity=False)
        return name

    def leaked(self, side: Side | None, text: str) -> list[str]:
        """What `text`, told about one side or about the server, holds that it must not: anything of another side, and a
        secret's value of any.
        """
        found = set(MARK.findall(text)) - (set() if side is None else set(side.shown))
        if PARENT in text:
            found.add(PARENT)
        # The server's own files lie in the launch home, and may be named.
        paths = (f"{other.path}/" for other in self.sides if other is not side)
        return sorted(found | {path for path in paths if path in text})

    def check(self, side: Side | None, told: object, what: str) -> None:
        text = told if isinstance(told, str) else json.dumps(told, ensure_ascii=False)
        leaked = self.leaked(side, text)
        assert not leaked, f"{what}, about {side.name if side else 'the server'}, tells {leaked}:\n{text[:3000]}"

    def outcome(self, client: Client, id: int) -> dict[str, Any]:
        """A reply or an error, whichever comes."""
        try:
            return client.wait(id)
        except Refused as refused:
            return {"refused": str(refused), **refused.data}


def live_in(world: World, side: Side) -> None:
    """Give a side its session, with texts, a finished turn, a tool's output and a terminal."""
    side.bound = world.connect(side)
    client = side.client
    side.id = client.call("profiles.describe")["id"]
    made = client.call("session.create", title=TITLE)
    side.session = made["session_id"]
    side.input = "the-same-input"
    admitted = client.call(
        "prompt.submit",
        session_id=side.session,
        input_id=side.input,
        text=f"{mark(side.name, 'text')}\n/do say {mark(side.name, 'reply')}\n/do run cat {FILE}",
    )
    side.admission = admitted["admission_id"]
    assert client.finished(side.admission)["outcome"] == "completed", client.events
    with suppress(Refused):
        side.terminal = client.call("terminal.open", command=["/bin/cat"])["terminal_id"]


def make_world(place: Path, base_environment: dict[str, str], count: int) -> World:
    root, temporary = place / "homes", place / "tmp"
    temporary.mkdir()
    launch = write_side(root, LAUNCH)
    with (launch.path / "config.yaml").open("a") as file:
        file.write("server:\n  drain_s: 1\n")
    sides = [write_side(root, f"side{number:02}") for number in range(count)]
    environment = {**base_environment, "TMPDIR": str(temporary), "PARENT_KEY": PARENT}
    server = Server(root, place / "server.log", environment)
    world = World(server, sides, launch, temporary, server.connect())
    world.environment = environment_of(server.pid)
    for side in world.everyone:
        live_in(world, side)
    return world
