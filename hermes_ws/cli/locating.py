"""Which server this terminal means: the one that is named by a URL, or the one of the home."""

from __future__ import annotations

import shlex

from hermes_ws.cli.environment import TOKEN_NAME, URL_NAME, Surroundings
from hermes_ws.client.discovery import Endpoint, Reason, discover, remote
from hermes_ws.client.failures import ConnectFailed


def locate(surroundings: Surroundings) -> Endpoint:
    """The endpoint, looked up anew each time. Raises ConnectFailed with what to do.

    A named server is that server or an error; there is no falling back to one of this machine.
    """
    if surroundings.url is not None:
        try:
            return remote(surroundings.url, surroundings.token)
        except ValueError as error:
            message = f"{URL_NAME} cannot be used: {error}."
            hint = f"It looks like wss://host/ws; the token goes into {TOKEN_NAME}."
            raise ConnectFailed(message, retry=False, hint=hint) from None
    found = discover(surroundings.home)
    if isinstance(found, Endpoint):
        return found
    if found.reason is Reason.ABSENT:
        message = f"No server runs for {surroundings.home} ({found.detail})."
        raise ConnectFailed(message, retry=True, hint=f"Start one with: {start_line(surroundings)}")
    raise ConnectFailed(f"The server of {surroundings.home} is not used: {found.detail}.", retry=False)


def start_line(surroundings: Surroundings) -> str:
    """What to type to start a server for the home."""
    return f"HERMES_HOME={shlex.quote(str(surroundings.home))} hermes-ws serve"
