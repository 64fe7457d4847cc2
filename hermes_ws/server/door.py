"""What the door of a server needs beyond its sockets: when it may open to other machines, and who is sent out again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from hermes_ws.contract.errors import ProfileUnusable
from hermes_ws.hosting.host import Host
from hermes_ws.server.entry import is_loopback
from hermes_ws.server.ports import Attendee
from hermes_ws.server.proxy import Proxies
from hermes_ws.server.serve import ServeOptions
from hermes_ws.server.tls import Secure

WITHDRAWN: Final = 4501
"""Close code: the credential holds no longer; do not come back with it."""

COME_AGAIN: Final = 4400
"""Close code: reconnect and resume."""


def secured(options: ServeOptions) -> Secure | None:
    """The certificate that the server was given; None for none. Raises `ProfileUnusable`."""
    if options.tls_cert is None:
        if options.tls_key is not None:
            raise ProfileUnusable("--tls-key is the key of a certificate.", hint="Name that with --tls-cert.")
        return None
    return Secure(options.tls_cert, options.tls_key)


def check_binding(options: ServeOptions, host: Host, proxies: Proxies) -> None:
    """Raises `ProfileUnusable` for an address of other machines, unless what is said there is encrypted (by this server
    or by a proxy before it) and somebody was given a token: the launch token is for this machine.
    """
    if is_loopback(options.host):
        return
    if options.tls_cert is None and not proxies:
        raise ProfileUnusable(
            f"{options.host} can be reached from other machines, and nothing would be encrypted.",
            hint="Give it a certificate (--tls-cert, --tls-key), or name the reverse proxy in front (--behind-proxy).",
        )
    if not host.credentials.named:
        raise ProfileUnusable(
            f"{options.host} can be reached from other machines, and nobody there has a token.",
            hint="Serve on 127.0.0.1 first, and make one with `hermes-ws token create`.",
        )


def keep_watch(host: Host, connections: Callable[[], Iterable[Attendee]]) -> None:
    """Send out whoever came in by a token that holds no longer, and whoever may address a profile that is gone under
    the name that it had: it comes back and is let in to what it may address now.
    """

    def withdrawn(credentials: frozenset[str], sparing: str | None) -> None:
        for connection in connections():
            if connection.principal.credential in credentials and connection.id != sparing:
                connection.close(WITHDRAWN, "the credential was withdrawn")

    def changed(profile: str, gone: bool) -> None:
        for connection in connections():
            if gone and connection.principal.profiles is not None and profile in connection.principal.profiles:
                connection.close(COME_AGAIN, "a profile has another name now, or is gone")

    host.credentials.follow(withdrawn)
    host.follow(changed)
