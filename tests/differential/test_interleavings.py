"""Random interleavings of sessions, reloads, renames, reaps and crashes over several homes: no canary crosses."""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes_ws.contract.errors import HermesError
from hermes_ws.hosting.host import Host
from hermes_ws.scope.current import Bound, bind
from hermes_ws.scope.identity import ProfileName
from tests.session.house import House, new_session, say
from tests.session.slashing import hands_of

COUNT = 3
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ("talk", "talk", "reload", "change", "rename", "reap", "close", "crash", "clone", "look", "run")
        ),
        st.integers(0, COUNT - 1),
    ),
    min_size=1,
    max_size=12,
)


@dataclass
class Home:
    """One home under its present name, and what only it may hold."""

    number: int
    name: str
    path: Path
    canaries: list[str] = field(default_factory=list)
    renamed: int = 0

    def fresh(self, what: str) -> str:
        canary = f"canary-{self.number}-{what}-{len(self.canaries):04}-Zq7"
        self.canaries.append(canary)
        return canary


@dataclass
class Story:
    """What happens to the homes, one step while others still run."""

    house: House
    homes: list[Home]
    told: dict[int, list[str]] = field(default_factory=dict)

    async def step(self, host: Host, kind: str, home: Home) -> None:
        if kind == "change":
            secret = home.fresh("secret")
            self.house.home(home.name, env=f"SHARED={secret}\n")
            return
        if kind == "rename":
            home.renamed += 1
            new = f"home{home.number}-{home.renamed}"
            await host.life.rename(ProfileName(home.name), ProfileName(new), 0)
            home.name, home.path = new, self.house.root / new
            return
        if kind == "clone":
            await host.life.clone(ProfileName(home.name), ProfileName(f"{home.name}-c{len(home.canaries)}"), ["soul"])
            home.fresh("cloned")
            return
        runtime = await host.open(ProfileName(home.name))
        if kind == "reload":
            await runtime.reload()
        elif kind == "reap":
            await runtime.reaper.look()
        elif kind == "close":
            async with host.closed(ProfileName(home.name), 0):
                pass
        elif kind == "look":
            with bind(Bound(runtime.scope)):
                found = await runtime.sessions.find(latest=True)
                snapshot = await (await found.thread("main")).snapshot(None, messages=True)
                self.told.setdefault(home.number, []).append(snapshot.model_dump_json())
        elif kind == "run":
            canary = home.fresh("command")
            with bind(Bound(runtime.scope)):
                session, _, viewer = await new_session(runtime)
                viewer.leave()
                ran = await (await hands_of(runtime, session)).slash(
                    f"echo {canary} $SHARED >>ran; cat ran", deadline_s=30
                )
                self.told.setdefault(home.number, []).append(ran.output)
        elif kind == "talk":
            canary = home.fresh("text")
            with bind(Bound(runtime.scope)):
                _, thread, viewer = await new_session(runtime)
                await say(thread, f"{canary}\n\n/do say {canary}", canary)
                with trio.move_on_after(0.02):
                    await viewer.until("execution.finished")
                await viewer.pull()
                self.told.setdefault(home.number, []).append(str(viewer.events))
                viewer.leave()

    async def run(self, steps: list[tuple[str, int]]) -> None:
        part: list[tuple[str, int]] = []
        for kind, number in steps:
            if kind == "crash":
                await self.serve(part, crash=True)
                part = []
            else:
                part.append((kind, number))
        await self.serve(part, crash=False)

    async def serve(self, steps: list[tuple[str, int]], *, crash: bool) -> None:
        async with trio.open_nursery() as nursery:
            host = self.house.make_host()
            await nursery.start(host.run)
            async with trio.open_nursery() as going:
                for number in range(COUNT):
                    mine = [kind for kind, of in steps if of == number]
                    going.start_soon(self._do, host, self.homes[number], mine)
                if crash:
                    await trio.sleep(0.01)
                    going.cancel_scope.cancel()
            if not crash:
                await host.drain(0)
            nursery.cancel_scope.cancel()

    async def _do(self, host: Host, home: Home, kinds: list[str]) -> None:
        for kind in kinds:
            with contextlib.suppress(HermesError):
                await self.step(host, kind, home)

    def check(self) -> None:
        for home in self.homes:
            others = [canary for other in self.homes if other is not home for canary in other.canaries]
            text = "".join(self.told.get(home.number, []))
            assert not [canary for canary in others if canary in text], f"told about {home.name}"
            for path in home.path.rglob("*"):
                if path.is_file():
                    content = path.read_bytes().decode(errors="replace")
                    assert not [canary for canary in others if canary in content], path
        visible = {path.name for path in self.house.root.iterdir() if not path.name.startswith(".")}
        assert {home.name for home in self.homes} <= visible
        ghosts = {name for name in visible if name.startswith("home")} - {home.name for home in self.homes}
        assert all("-c" in name for name in ghosts), f"ghosts: {ghosts}"


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(STEPS)
def test_no_canary_crosses_whatever_happens_in_whichever_order(steps: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place).resolve() / "homes"
        root.mkdir(mode=0o700)
        house = House(root)
        house.home("default")
        homes = []
        for number in range(COUNT):
            home = Home(number, f"home{number}", root / f"home{number}")
            house.home(
                home.name,
                config="sessions:\n  idle_s: 0.001\nterminal:\n  env: [SHARED]\n",
                env=f"SHARED={home.fresh('secret')}\n",
            )
            (home.path / "SOUL.md").write_text(home.fresh("soul"))
            homes.append(home)
        story = Story(house, homes)
        trio.run(story.run, steps)
        story.check()
