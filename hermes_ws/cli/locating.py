"""Which server this terminal means: the one that is named by a URL, or the one of the home."""

from __future__ import annotations

import shlex
from typing import final

from hermes_ws.cli.environment import TOKEN_NAME, URL_NAME, Surroundings
from hermes_ws.cli.sanitise import harmless
from hermes_ws.cli.screen import Screen, Style
from hermes_ws.client.discovery import Endpoint, Reason, discover, remote
from hermes_ws.client.failures import ClientError, ConnectFailed


@final
class Where:
    """The server that is meant; also tells a person what to do when it does not answer."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings

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
        home = self._surroundings.home
        found = discover(home)
        if isinstance(found, Endpoint):
            return found
        if found.reason is Reason.ABSENT:
            raise ConnectFailed(f"No server runs for {home} ({found.detail}).", retry=True)
        raise ConnectFailed(f"The server of {home} is not used: {found.detail}.", retry=False)

    def hint(self, error: ClientError) -> str:
        """What to do about the error; empty where nothing is known to help."""
        if error.hint or self._surroundings.url is not None:
            return error.hint
        if isinstance(error, ConnectFailed) and error.retry:
            return f"Start one with: HERMES_HOME={shlex.quote(str(self._surroundings.home))} hermes-ws serve"
        return ""

    def tell(self, screen: Screen, error: ClientError) -> None:
        """Print the error, and what to do about it."""
        screen.line(f"Error: {harmless(error.message)}", Style.ERROR)
        hint = self.hint(error)
        if hint:
            screen.line(harmless(hint))
