"""A profile served alone and among twenty behaves the same (GLOBAL-07): settings, tools, environment, prompt."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hermes_ws.agent import definition
from hermes_ws.agent.request import settings_of
from hermes_ws.agent.tools.registry import TOOLS
from hermes_ws.hosting.wardens import grants_of
from hermes_ws.scope.config import public_view
from hermes_ws.scope.current import Bound, bind
from hermes_ws.scope.environment import child_environment
from hermes_ws.scope.identity import ProfileName
from tests.session.house import House, new_session, say

NAME = "work"


def make(root: Path, others: int) -> House:
    """The same home each time, and others around it that define the same names differently."""
    root.mkdir(mode=0o700, parents=True)
    house = House(root, launch_secrets={"PARENT": "parent-value-0001"})
    house.home("default", config="model:\n  temperature: 0.1\nagent:\n  max_turns: 7\n", env="SHARED=of-default-0002\n")
    for number in range(others):
        home = house.home(
            f"other{number:02}",
            config=(
                f"model:\n  name: other-{number}\napprovals:\n  mode: deny\n"
                f"terminal:\n  env: [SHARED]\n  deadline_s: {number + 1}\n  network: deny\n"
            ),
            env=f"SHARED=of-other-{number:04}\nEXTRA_{number}=extra-value-{number:04}\n",
        )
        (home / "SOUL.md").write_text(f"You are other {number}.")
        (home / "home").mkdir()
        (home / "home" / "AGENTS.md").write_text(f"Rules of other {number}.")
    home = house.home(
        NAME,
        config="model:\n  name: mine\napprovals:\n  mode: auto\nterminal:\n  env: [SHARED]\n  deadline_s: 33\n",
        env="SHARED=of-work-0003\nOWN=own-value-0004\n",
    )
    (home / "SOUL.md").write_text("You are the worker.")
    (home / "home").mkdir()
    (home / "home" / "AGENTS.md").write_text("Rules of the work.")
    skill = home / "skills" / "a-skill"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: a-skill\ndescription: a skill\n---\nDo it.\n")
    return house


def same(value: object, root: Path) -> object:
    """Without what differs by nature: where the homes lie, ids, times."""
    text = json.dumps(value, default=str, sort_keys=True).replace(str(root), "ROOT")
    text = re.sub(r"[a-z0-9]{8}-[a-z0-9]{16}", "SESSION", text)
    text = re.sub(r"(adm|msg|call|srq)-[a-z0-9-]+", r"\1-ID", text)
    return json.loads(re.sub(r"[0-9]{10}\.[0-9]+|[0-9a-f]{32}", "0", text))


async def portrait(house: House, *, first: tuple[str, ...] = ()) -> Mapping[str, Any]:
    """All that makes the profile what it is, after others were opened and have worked."""
    async with house.served() as host:
        for name in first:
            runtime = await host.open(ProfileName(name))
            with bind(Bound(runtime.scope)):
                _, thread, viewer = await new_session(runtime)
                await say(thread, "/do say hello\n\n/do run echo $SHARED", "one")
                if name.startswith("other"):
                    await viewer.until("execution.finished")
                else:
                    viewer.leave()
        runtime = await host.open(ProfileName(NAME))
        scope = runtime.scope
        with bind(Bound(scope)):
            _, thread, viewer = await new_session(runtime, title="told")
            await say(thread, "/do run env | sort; pwd; ls -la | wc -l\n\n/do read AGENTS.md", "one")
            await viewer.until("execution.finished", outcome="completed")
            events = [
                {"type": event["type"], "payload": {k: v for k, v in event["payload"].items() if not _timed(k)}}
                for event in viewer.events
                if event["type"] in ("tool.start", "tool.complete", "message.complete", "notice")
            ]
            agent = definition.load(scope.home, "default")
            return {
                "config": public_view(scope.config),
                "terminal": asdict(scope.terminal),
                "environment": child_environment(runtime.base_environment, scope=scope),
                "secrets": {name: scope.secrets.reveal(name) for name in sorted(scope.secrets.names())},
                "grants": asdict(grants_of(scope, (scope.home.user,))),
                "settings": str(settings_of(scope, True)),
                "agent": str(agent),
                "tools": sorted(TOOLS),
                "confinement": asdict(runtime.confinement),
                "problems": runtime.problems,
                "events": events,
            }


def _timed(key: str) -> bool:
    return key in ("duration_ms", "usage", "message_id", "call_id")


async def test_a_profile_alone_and_among_twenty_is_the_same(tmp_path: Path) -> None:
    alone = make(tmp_path / "alone", 0)
    among = make(tmp_path / "among", 20)
    others = tuple(f"other{number:02}" for number in range(20))
    left = same(await portrait(alone), tmp_path / "alone")
    right = same(await portrait(among, first=("default", *others)), tmp_path / "among")
    assert left == right


async def test_it_is_the_same_again_after_others_came_and_went(tmp_path: Path) -> None:
    house = make(tmp_path / "homes", 3)
    before = same(await portrait(house), tmp_path / "homes")
    again = same(await portrait(house, first=("other00", "default", "other01")), tmp_path / "homes")
    assert before == again
