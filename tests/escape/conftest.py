"""Two served homes, and hands of a session in one of them, with namespaces and without."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from hermes_ws.agent.deeds import Ran
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.journal.address import ThreadKey
from hermes_ws.session.hands import SessionHands
from hermes_ws.warden import bubblewrap
from hermes_ws.warden.landlock import kernel_abi
from tests.session.house import House, new_session

CANARY = "canary-of-the-other-home-5678"


@dataclass(frozen=True)
class Cell:
    """A tool's shell of the profile `default`, and what it must not reach: the home of `work`, and the server."""

    house: House
    runtime: ProfileRuntime
    hands: SessionHands
    namespaces: bool

    @property
    def home(self) -> Path:
        return self.runtime.home.user

    @property
    def other(self) -> Path:
        return self.house.root / "work"

    async def run(self, script: str, *, deadline_s: float = 60) -> Ran:
        return await self.hands.run(script, cwd=None, deadline_s=deadline_s, on_output=lambda _text: None)


Serve = Callable[[str], Awaitable[Cell]]


@pytest.fixture(params=["namespaces", "without"])
def namespaces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if kernel_abi() < 6:
        pytest.skip("needs Landlock with scopes, ABI 6")
    if request.param == "without":
        monkeypatch.setattr(bubblewrap, "find", lambda: None)
    elif bubblewrap.find() is None:
        pytest.skip("bubblewrap is not installed")
    return request.param == "namespaces"


@pytest.fixture
def config() -> str:
    """Override it for other settings of the terminal."""
    return ""


@pytest.fixture
async def cell(tmp_path: Path, namespaces: bool, config: str) -> AsyncIterator[Cell]:
    root = tmp_path / "homes"
    root.mkdir()
    house = House(root)
    house.home("default", config=f"terminal:\n  env: [OWN]\n{config}", env="OWN=own-secret-value-1234\n")
    house.home("work", config="{}", env=f"SHARED={CANARY}\n")
    (root / "work" / "SOUL.md").write_text(CANARY)
    async with house.served():
        await house.runtime("work")
        runtime = await house.runtime("default")
        assert runtime.confinement.bubblewrap == namespaces
        session, thread, _ = await new_session(runtime)
        hands = SessionHands(runtime, runtime.scope, runtime.home.user, ThreadKey(session.session_id, "main"))
        yield Cell(house, runtime, hands, namespaces)
        del thread
