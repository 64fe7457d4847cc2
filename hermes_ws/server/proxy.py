"""Where a connection comes from when reverse proxies stand in front of the server.

A proxy says on whose behalf it calls in `X-Forwarded-For`. Anybody can write that header, so it counts only from the
proxies that were named, and of it only what they added: from the right, up to the first address that is no proxy. With
proxies named, nobody else may come in from another machine: the way from the proxy to here is not encrypted, and the
proxy is what keeps it from being the way of others.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final, final

from hermes_ws.contract.errors import ProfileUnusable
from hermes_ws.server.entry import Peer, is_loopback

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

LONGEST_CHAIN: Final = 16
"""Proxies in a row that are believed; more is nobody's set-up."""

_FORWARDED: Final = re.compile(rb"\r\nx-forwarded-for:([^\r\n]*)", re.IGNORECASE)


@final
class Proxies:
    """The reverse proxies that were named, as addresses or networks."""

    __slots__ = ("_networks",)

    def __init__(self, networks: Iterable[Network] = ()) -> None:
        self._networks: tuple[Network, ...] = tuple(networks)

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Proxies:
        """From addresses (`10.0.0.2`) and networks (`10.0.0.0/24`). Raises `ProfileUnusable` for anything else."""
        networks: list[Network] = []
        for text in texts:
            try:
                networks.append(ipaddress.ip_network(text))
            except ValueError:
                raise ProfileUnusable(
                    f"--behind-proxy {text} is neither an address nor a network.",
                    hint="Name each proxy by its address, for example 10.0.0.2, or by its network, 10.0.0.0/24.",
                ) from None
        return cls(networks)

    def __bool__(self) -> bool:
        return bool(self._networks)

    def admits(self, peer: Peer) -> bool:
        """Whether somebody may come in from there at all: anybody if no proxy was named, else the proxies and this
        machine's own programs."""
        return not self._networks or peer.uid is not None or is_loopback(peer.address) or self._named(peer.address)

    def behind(self, peer: Peer, head: bytes) -> Peer:
        """On whose behalf `peer` calls: its own, unless it is a proxy and says otherwise in this head of a request."""
        if peer.uid is not None or not self._named(peer.address):
            return peer
        said = b",".join(_FORWARDED.findall(head)).decode("latin-1")
        found = peer.address
        for text in reversed(said.split(",")[-LONGEST_CHAIN:]):
            try:
                found = str(ipaddress.ip_address(text.strip().strip("[]")))
            except ValueError:
                break
            if not self._named(found):
                break
        return replace(peer, address=found)

    def _named(self, address: str) -> bool:
        try:
            parsed = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return False
        if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
            parsed = parsed.ipv4_mapped
        return any(parsed in network for network in self._networks)
