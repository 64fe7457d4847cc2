"""Which server this terminal means: the one that is named by a URL, or the one of the home."""

from __future__ import annotations

from typing import Final, final

import anyio

from hermes_ws.cli import breadcrumb
from hermes_ws.cli.environment import TOKEN_NAME, URL_NAME, Surroundings
from hermes_ws.cli.sanitise import harmless
from hermes_ws.cli.screen import Screen, Style
from hermes_ws.client.connect import Abilities, connect_to
from hermes_ws.client.discovery import Endpoint, Reason, discover, remote
from hermes_ws.client.ensure import Found, State, ensure, find
from hermes_ws.client.failures import ClientError, ConnectFailed, Incompatible

QUIET_SECONDS: Final = 1.0
"""A wait that is longer is told about."""

LOOK_SECONDS: Final = 0.25
"""Between looks at a home whose server is gone; one that is started by a supervisor takes longer than that."""

TYPED: Final = (
    ("profiles.list", "hermes-ws profile list"),
    ("session.list", "hermes-ws session list"),
    ("token.list", "hermes-ws token list"),
    ("config.show", "hermes-ws config get"),
    ("profiles.confirm", "hermes-ws profile confirm NAME"),
)
"""Methods that hints of a server name, and what a person types for each."""


def as_typed(hint: str) -> str:
    """A hint of a server, in the words of this command line."""
    for method, command in TYPED:
        hint = hint.replace(method, command)
    return hint


@final
class Where:
    """The server that is meant; also tells a person what to do when it does not answer."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._place = surroundings.home
        self.profile: str | None = None
        """The name of this terminal's home where the server of all homes serves it; set by `ensured`."""

    @property
    def named(self) -> bool:
        """Whether a URL names the server."""
        return self._surroundings.url is not None

    async def ensured(self, err: Screen) -> None:
        """Find the server, or start it; one start at most. Raises ConnectFailed. For a URL nothing is started."""
        if self.named:
            return
        found = await self._waited_for(err)
        if found.state is not State.READY or found.endpoint is None:
            message = f"No server for {self._surroundings.home} ({found.state.value}): {found.detail}"
            raise ConnectFailed(message, retry=False, hint="hermes-ws doctor looks for the cause.")
        self.profile = found.profile
        if found.endpoint.socket is not None:
            self._place = found.endpoint.socket.parent.parent

    async def _waited_for(self, err: Screen) -> Found:
        found: Found | None = None
        problem = ""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_tell_of_waiting, err, name="waiting")
            try:
                found = await ensure(self._surroundings.home, self._surroundings.environ)
            except OSError as error:
                where = f"{error.filename}: " if isinstance(error.filename, str) else ""
                problem = f"{where}{error.strerror or error}"
            tasks.cancel_scope.cancel()
        return found or Found(State.INACCESSIBLE, self._surroundings.home, detail=f"none could be started: {problem}")

    async def found(self, *, starting: Screen | None = None) -> Found:
        """How it stands with the server that is meant; with `starting`, after one was started where there was none.

        A server that is named is spoken with and never started.
        """
        if not self.named:
            found = await (find(self._surroundings.home) if starting is None else self._waited_for(starting))
            if found.endpoint is not None and found.endpoint.socket is not None:
                self._place = found.endpoint.socket.parent.parent
            self.profile = found.profile
            return found
        root = self._surroundings.home
        try:
            endpoint = self.locate()
            async with connect_to(endpoint, Abilities("hermes-ws ensure", live="none")) as gateway:
                draining = gateway.draining is not None
        except Incompatible as error:
            return Found(State.INCOMPATIBLE, root, detail=f"{error.message} {error.hint}")
        except ConnectFailed as error:
            state = State.ABSENT if error.retry else State.INACCESSIBLE
            return Found(state, root, detail=error.message)
        except ClientError as error:
            return Found(State.INCOMPATIBLE, root, detail=error.message)
        return Found(State.DRAINING if draining else State.READY, root, endpoint=endpoint)

    async def gone(self, seconds: float) -> bool:
        """Whether the home is without a server for so long from now on; False as soon as there is one.

        A server that is named by a URL is never known to be gone: it may only be out of reach.
        """
        if self.named:
            return False
        since: float | None = None
        while (state := (await find(self._surroundings.home)).state) is not State.READY:
            now = anyio.current_time()
            since = (now if since is None else since) if state is State.ABSENT else None
            if since is not None and now - since >= seconds:
                return True
            await anyio.sleep(LOOK_SECONDS)
        return False

    def locate(self) -> Endpoint:
        """The endpoint, looked up anew each time. Raises ConnectFailed.

        A named server is that server or an error; there is no falling back to one of this machine.
        """
        if self._surroundings.url is not None:
            try:
                return remote(self._surroundings.url, self._surroundings.token)
            except ValueError as error:
                message = f"{URL_NAME} cannot be used: {error}."
                hint = f"It looks like wss://host/ws; the token goes into {TOKEN_NAME}."
                raise ConnectFailed(message, retry=False, hint=hint) from None
        home = self._place
        found = discover(home)
        if isinstance(found, Endpoint):
            return found
        if found.reason is Reason.ABSENT:
            raise ConnectFailed(f"No server runs for {home} ({found.detail}).", retry=True)
        raise ConnectFailed(f"The server of {home} is not used: {found.detail}.", retry=False)

    def leave_breadcrumb(self, profile: str | None, session_id: str) -> None:
        """Remember the session for this terminal's next `-c`."""
        breadcrumb.leave(self._surroundings, profile, session_id)

    def hint(self, error: ClientError) -> str:
        """What to do about the error; empty where nothing is known to help."""
        if error.hint or self._surroundings.url is not None:
            return as_typed(error.hint)
        if isinstance(error, ConnectFailed) and error.retry:
            return "hermes-ws ensure starts one, as hermes-ws chat does; hermes-ws serve stays in the foreground."
        return ""

    def tell(self, screen: Screen, error: ClientError) -> None:
        """Print the error, and what to do about it."""
        screen.line(f"Error: {harmless(error.message)}", Style.ERROR)
        hint = self.hint(error)
        if hint:
            screen.line(harmless(hint))


async def _tell_of_waiting(err: Screen) -> None:
    await anyio.sleep(QUIET_SECONDS)
    if err.interactive:
        err.line("Waiting for the server ...", Style.DIM)
