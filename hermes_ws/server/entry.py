"""Who is let in. Host first, then Origin, then the credential; all of it before the upgrade.

- *Host*: a page that makes its own name resolve to this machine (DNS rebinding) sends that name; it is none of ours.
- *Origin*: a page of another site, or of another port of this machine, names itself; programs that are no browsers
  send none (AUTH-01, AUTH-08, AUTH-09).
- *Credential*: as `Authorization: Bearer` or as a sub-protocol, never in the address: addresses end up in logs
  (AUTH-03, AUTH-04).

A refusal says no more than its status.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol, final

from hermes_ws.contract.registry import Right
from hermes_ws.scope.identity import LAUNCH_ALIAS

SUBPROTOCOL: Final = "hermes.v1"
"""The sub-protocol that is spoken, and the only one that is ever echoed."""

BEARER_SUBPROTOCOL: Final = "hermes.bearer."
"""What stands before a token that travels as a sub-protocol."""

_BEARER: Final = re.compile(r"bearer +([!-~]+) *", re.IGNORECASE)
_DEFAULT_PORTS: Final = frozenset((80, 443))
_LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")


@final
@dataclass(frozen=True, slots=True)
class Principal:
    """Who is connected. `profiles` are those it may address, by their names when it came in, and `profile_ids` the same
    by their ids; None for all. `credential` is the id of the token that let it in, None for the launch token."""

    name: str
    profiles: frozenset[str] | None
    rights: frozenset[Right]
    profile_ids: frozenset[str] | None = None
    credential: str | None = None

    def may_address(self, profile: str) -> bool:
        """Whether it may address the profile; one that it may not is answered like one that does not exist."""
        return self.profiles is None or profile in self.profiles

    def may_name(self, text: str) -> bool:
        """Whether what it calls so, by name or by id, may be one that it may address. Looks at nothing that there is:
        how long that takes tells no more than the answer does.
        """
        if self.profiles is None or text == LAUNCH_ALIAS or text in self.profiles:
            return True
        return self.profile_ids is not None and text in self.profile_ids


@final
@dataclass(frozen=True, slots=True)
class Peer:
    """The other end of a socket: where it comes from, and on a Unix socket its user, as the kernel tells."""

    address: str
    uid: int | None = None


@final
@dataclass(frozen=True, slots=True)
class Visit:
    """What a request shows at the door. A header that came twice is there twice."""

    peer: Peer
    hosts: tuple[str, ...]
    origins: tuple[str, ...]
    authorizations: tuple[str, ...]
    subprotocols: tuple[str, ...] = ()


@final
class Refusal(Exception):
    """Not let in: the HTTP status, and whether a wrong credential was the reason."""

    def __init__(self, status: int, *, credential: bool = False) -> None:
        super().__init__(f"refused with {status}")
        self.status: Final = status
        self.credential: Final = credential


class Credentials(Protocol):
    """Who knows tokens."""

    async def verify(self, token: str) -> Principal | None:
        """Whose token it is. The time it takes must not tell how much of it is right."""
        ...


@final
class Entry:
    """The door of one server.

    `hosts` are the Host headers that mean this server; `origins` the pages that may talk to it besides its own, which
    begin with `scheme`. `uid` is the user whose processes may use the Unix socket; None leaves that to the permissions
    of its file.
    """

    __slots__ = ("_credentials", "_hosts", "_origins", "_uid")

    def __init__(
        self,
        credentials: Credentials,
        *,
        hosts: frozenset[str],
        origins: Iterable[str] = (),
        uid: int | None = None,
        scheme: str = "http",
    ) -> None:
        self._credentials = credentials
        self._hosts = hosts
        given = frozenset(each.lower().rstrip("/") for each in origins)
        self._origins = (given | {f"{scheme}://{host}" for host in hosts}) - {"null"}
        self._uid = uid

    def check_host(self, visit: Visit) -> None:
        """Raises `Refusal` unless the request is meant for this server. On a Unix socket there is no name to rebind."""
        if visit.peer.uid is not None:
            if self._uid is not None and visit.peer.uid != self._uid:
                raise Refusal(403)
            return
        if len(visit.hosts) != 1 or visit.hosts[0].strip().lower() not in self._hosts:
            raise Refusal(403)

    def check_page(self, visit: Visit) -> None:
        """Raises `Refusal` unless the request is meant for this server and comes from no page or from one of ours."""
        self.check_host(visit)
        if len(visit.origins) > 1:
            raise Refusal(403)
        if visit.origins and visit.origins[0].strip().lower() not in self._origins:
            raise Refusal(403)

    async def check(self, visit: Visit) -> Principal:
        """Who it is that comes in. Raises `Refusal` for the first thing that is not in order."""
        self.check_page(visit)
        token = _token(visit)
        principal = await self._credentials.verify(token) if token else None
        if principal is None:
            raise Refusal(401, credential=True)
        return principal


def _token(visit: Visit) -> str | None:
    if visit.authorizations:
        matched = _BEARER.fullmatch(visit.authorizations[0]) if len(visit.authorizations) == 1 else None
        return None if matched is None else matched[1]
    offered = [each for each in visit.subprotocols if each.startswith(BEARER_SUBPROTOCOL)]
    return offered[0][len(BEARER_SUBPROTOCOL) :] if len(offered) == 1 else None


def host_names(bound: str, port: int, named: Iterable[str] = ()) -> frozenset[str]:
    """The Host headers that mean a server bound to `bound`:`port`. `named` are further ones from the settings.

    One that names no port stands for the default port and for the server's own; any other port of that name is another
    server.
    """
    names: list[str] = [name.strip().lower() for name in named]
    address = _address(bound)
    if address is None:
        names.append(bound.lower())
    elif not address.is_unspecified and not address.is_loopback:
        names.append(f"[{address}]" if address.version == 6 else str(address))
    own = list(_LOOPBACK_NAMES) if address is None or address.is_loopback or address.is_unspecified else []
    hosts = {f"{name}:{port}" for name in own}
    if port in _DEFAULT_PORTS:
        hosts.update(own)
    for name in names:
        hosts.add(name)
        if not _has_port(name):
            hosts.add(f"{name}:{port}")
    return frozenset(hosts)


def is_loopback(host: str) -> bool:
    """Whether an address stays on this machine."""
    address = _address(host)
    return host.lower() == "localhost" if address is None else address.is_loopback


def _has_port(name: str) -> bool:
    return re.search(r":[0-9]+$", name) is not None and not name.endswith("]")


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return None
