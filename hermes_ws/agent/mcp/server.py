"""One tool server: connected, listed, called, and started again when it dies.

States: `starting` → `ready` ⇄ `starting`, and `failed` once it died too often in a row or cannot be reached at all;
from there only `restart` leads on. Whoever calls a tool of a server that is starting waits for it, for a while.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, cast, final

import trio
from mcp.client.client import Client
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, Implementation
from pydantic import JsonValue, ValidationError

from hermes_ws import __version__
from hermes_ws.agent.deeds import ToolOutcome
from hermes_ws.agent.mcp.content import shown
from hermes_ws.agent.mcp.plan import ServerPlan, explained
from hermes_ws.agent.mcp.transport import LastWords, addressed, piped
from hermes_ws.agent.ports import Pipe
from hermes_ws.contract.errors import HermesError

State = Literal["starting", "ready", "failed"]

RESTARTS: Final = 4
"""Attempts after one that failed, in a row. With the pauses below they take a quarter of a minute."""

PAUSE_S: Final = 0.5
"""Before the first of them; each further one doubles it."""

STABLE_S: Final = 60.0
"""Seconds after which a server that dies has not died in a row."""

TOOLS: Final = 500
"""Tools of one server; each is told to the model with every request."""

DESCRIPTION: Final = 4000
"""Characters of a tool's description that the model is told."""


@final
@dataclass(frozen=True, slots=True)
class RemoteTool:
    """A tool as its server describes it."""

    name: str
    description: str
    parameters: Mapping[str, JsonValue]


@final
class ToolServer:
    """One server of one session. Somebody awaits `run` in their nursery; the rest waits for what that does."""

    def __init__(
        self, plan: ServerPlan, open_pipe: Callable[[], Awaitable[Pipe]], redact: Callable[[str], str]
    ) -> None:
        self.plan: Final = plan
        self.state: State = "starting"
        self.problem = plan.problem
        self.restarts = 0
        self._open_pipe = open_pipe
        self._redact = redact
        self._client: Client | None = None
        self._tools: Sequence[RemoteTool] = ()
        self._stale = False
        self._in_vain = False
        """Whether it was tried, and has never been ready."""
        self._lost = trio.Event()
        self._changed = trio.Event()
        self._asked = trio.Event()

    # --- life --------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Keep it connected until cancelled. What it does wrong never gets out of here."""
        in_a_row = 0
        while True:
            began = trio.current_time()
            self.problem = self.plan.problem or await self._once()
            self._client = None
            self._in_vain = not self._tools
            in_a_row = 1 if trio.current_time() - began > STABLE_S else in_a_row + 1
            if self.plan.problem or in_a_row > RESTARTS:
                self._become("failed")
                await self._asked.wait()
                in_a_row = 0
            else:
                self._become("starting")
                with trio.move_on_after(PAUSE_S * 2 ** (in_a_row - 1)):
                    await self._asked.wait()
            self._asked = trio.Event()
            self.restarts += 1
            self._become("starting")

    def restart(self) -> None:
        """End the connection, and make a new one at once."""
        self._client = None
        self._become("starting")
        self._asked.set()
        self._lost.set()

    async def _once(self) -> str:
        """One connection, from beginning to end. Returns why it ended."""
        self._lost = trio.Event()
        words = LastWords()
        reason = ""
        with trio.CancelScope(deadline=trio.current_time() + self.plan.connect_s) as limit:
            try:
                async with self._connected(words) as client:
                    self._tools = await self._listed(client)
                    limit.deadline = float("inf")
                    self._client = client
                    self._become("ready")
                    await self._lost.wait()
                    reason = "It ended."
            except BaseExceptionGroup as group:
                outside, failed = group.split(lambda each: not isinstance(each, Exception))
                if outside is not None:
                    raise outside from None
                reason = _why(failed)
            except Exception as failed:
                reason = _why(failed)
        if limit.cancelled_caught:
            reason = f"It did not answer within {self.plan.connect_s:g} seconds."
        return self._redact(f"{reason} Its last words: {words.text}" if words.text else reason)

    @asynccontextmanager
    async def _connected(self, words: LastWords) -> AsyncGenerator[Client, None]:
        for name in ("mcp", "client", "httpx2", "httpcore2"):
            # The SDK logs what servers say, secrets and all, and nobody asked it to.
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        if self.plan.url is not None:
            transport = addressed(self.plan)
        else:
            pipe = await self._open_pipe()
            transport = piped(pipe, self._lost.set, words)
        async with Client(
            cast("Any", transport),
            message_handler=self._told,
            client_info=Implementation(name="hermes-ws", version=__version__),
            cache=None,
        ) as client:
            yield client

    async def _told(self, message: object) -> None:
        """What a server says without being asked: of interest is only that its tools changed."""
        said = getattr(message, "root", message)
        if getattr(said, "method", "") == "notifications/tools/list_changed":
            self._stale = True

    async def _listed(self, client: Client) -> Sequence[RemoteTool]:
        self._stale = False
        found: list[RemoteTool] = []
        cursor: str | None = None
        while len(found) < TOOLS:
            page = await client.list_tools(cursor=cursor)
            found += [
                RemoteTool(each.name, (each.description or each.title or "")[:DESCRIPTION], _schema(each.input_schema))
                for each in page.tools
                if self.plan.offers(each.name)
            ]
            cursor = page.next_cursor
            if cursor is None:
                break
        return found[:TOOLS]

    def _become(self, state: State) -> None:
        self.state = state
        self._changed.set()
        self._changed = trio.Event()

    # --- use ---------------------------------------------------------------------------------------------------------

    @property
    def tools(self) -> Sequence[RemoteTool]:
        """Those that it told of last."""
        return self._tools

    async def settled(self, *, patient: bool = True) -> None:
        """Return when it is ready or has failed; also when neither came about in its time to connect.

        Who is not patient does not wait for another attempt where the first one failed.
        """
        with trio.move_on_after(self.plan.connect_s):
            while self.state == "starting" and (patient or not self._in_vain):
                await self._changed.wait()
        client = self._client
        if self._stale and client is not None:
            with trio.move_on_after(self.plan.connect_s):
                try:
                    self._tools = await self._listed(client)
                except (MCPError, ValidationError):
                    return

    async def call(self, tool: str, arguments: Mapping[str, JsonValue], tell: Callable[[str], None]) -> ToolOutcome:
        """Call a tool. What goes wrong is the outcome, in words; nothing is called twice."""
        await self.settled()
        client = self._client
        if client is None or self.state != "ready":
            return ToolOutcome(f"The tool server {self.plan.name} is not there. {self.problem}".strip(), is_error=True)

        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            tell(f"{message or f'{progress:g}' + (f' of {total:g}' if total else '')}\n")

        outcome: list[ToolOutcome] = []
        with trio.move_on_after(self.plan.deadline_s):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._until_lost, nursery.cancel_scope, self._lost)
                outcome.append(await self._called(client, tool, arguments, progressed))
                nursery.cancel_scope.cancel()
        if outcome:
            return outcome[0]
        if self._lost.is_set() or self._client is not client:
            return self._ended()
        said = f"{self.plan.name} did not answer within {self.plan.deadline_s:g} seconds; the call was given up."
        return ToolOutcome(said, is_error=True)

    async def _until_lost(self, call: trio.CancelScope, lost: trio.Event) -> None:
        await lost.wait()
        call.cancel()

    async def _called(
        self, client: Client, tool: str, arguments: Mapping[str, JsonValue], progressed: ProgressFnT
    ) -> ToolOutcome:
        try:
            result = await client.call_tool(tool, dict(arguments), progress_callback=progressed)
        except MCPError as error:
            if error.code == CONNECTION_CLOSED:
                self._lost.set()
                return self._ended()
            return ToolOutcome(f"{self.plan.name} answered with an error: {error.message}", is_error=True)
        except (ValidationError, ValueError, RuntimeError) as error:
            return ToolOutcome(f"{self.plan.name} answered with nonsense: {type(error).__name__}.", is_error=True)
        except (trio.ClosedResourceError, trio.BrokenResourceError):
            self._lost.set()
            return self._ended()
        return shown(result)

    def _ended(self) -> ToolOutcome:
        return ToolOutcome(
            f"The tool server {self.plan.name} ended during the call. It may have taken effect or not.", is_error=True
        )


def _schema(schema: object) -> Mapping[str, JsonValue]:
    """What the model is told of the parameters: an object, whatever the server says."""
    told = cast("dict[str, JsonValue]", schema) if isinstance(schema, dict) else {}
    return told if told.get("type") == "object" else {"type": "object", "properties": {}}


def _why(failed: BaseException | None) -> str:
    """A failure in a sentence: the innermost that there is."""
    while isinstance(failed, BaseExceptionGroup):
        failed = cast("BaseExceptionGroup[BaseException]", failed).exceptions[0]
    if isinstance(failed, HermesError):
        return explained(failed)
    if isinstance(failed, MCPError):
        return f"It answered with an error: {failed.message[:500]}"
    said = str(failed)[:500]
    return f"It cannot be reached ({type(failed).__name__}{f': {said}' if said else ''})."
