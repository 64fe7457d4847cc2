"""Who is who among the homes on disk, without opening one: read when the list of homes changed, and kept until then."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, final

import trio

from hermes_ws.contract.errors import ProfileUnknown, ProfileUnusable
from hermes_ws.scope import guard
from hermes_ws.scope.current import in_thread
from hermes_ws.scope.home import HomesRoot
from hermes_ws.scope.identity import Identity, ProfileName, read_identity

QUESTION: Final = "srq"
"""What the id of a question begins with, before the origin of its home."""


@final
class Identities:
    """The identities of all homes under one root."""

    def __init__(self, root: HomesRoot, limiter: trio.CapacityLimiter) -> None:
        self._root = root
        self._limiter = limiter
        self._scanned: tuple[ProfileName, ...] | None = None
        self._known: Mapping[ProfileName, Identity] = MappingProxyType({})

    def learn(self, name: ProfileName, identity: Identity) -> None:
        """A home gets its identity when it is opened first, which the list of homes does not show."""
        self._known = MappingProxyType({**self._known, name: identity})

    def forget(self) -> None:
        """The homes have changed: read them again at the next question."""
        self._scanned = None

    async def all(self) -> Mapping[ProfileName, Identity]:
        """Each home that has an identity which can be read."""
        names = self._root.names()
        if names != self._scanned:
            self._known = await in_thread(self._limiter, self._read, names)
            self._scanned = names
        return self._known

    async def with_id(self, id: str) -> ProfileName | None:
        """The profile with this id."""
        return next((name for name, each in (await self.all()).items() if each.id == id), None)

    async def with_origin(self, origin: str) -> ProfileName | None:
        """The profile whose session ids begin with this."""
        return next((name for name, each in (await self.all()).items() if each.origin == origin), None)

    def _read(self, names: tuple[ProfileName, ...]) -> Mapping[ProfileName, Identity]:
        found: dict[ProfileName, Identity] = {}
        for name in names:
            try:
                home = self._root.find(name)
                with guard.permit(home):
                    identity = read_identity(home)
            except (ProfileUnknown, ProfileUnusable, OSError):
                continue  # What cannot be read now is reported when the profile itself is asked for.
            if identity is not None:
                found[name] = identity
        return MappingProxyType(found)


def origin_of(id: str) -> str:
    """The origin that an id of a session (`<origin>-…`) or of a question (`srq-<origin>-…`) begins with."""
    origin, _, rest = id.partition("-")
    return rest.partition("-")[0] if origin == QUESTION else origin
