"""Which profile a request is about, and whether whoever asks may know.

What may not be seen is answered like what does not exist, in the same words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hermes_ws.contract.errors import ProfileMismatch, ProfileUnknown
from hermes_ws.contract.model import Params
from hermes_ws.hosting.host import Host
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.scope.identity import LAUNCH_ALIAS, ProfileName
from hermes_ws.server.ports import Caller


@final
@dataclass(frozen=True, slots=True)
class Addressing:
    """The ways from a request to an open profile."""

    host: Host

    async def of(self, caller: Caller, params: Params) -> ProfileRuntime:
        """The profile that the request is about: the one that its id belongs to, else the one that it names, else the
        connection's. Raises what stands for "there is none" in the request, `ProfileMismatch`, and what opening raises.
        """
        asked = named(params)
        located = params.located_by()
        if located is None:
            return await self.open(caller, asked)
        expected = None if asked is None else await self.name(caller, asked)
        owner = await self.host.owner_of(located)
        if owner is None or not caller.may_address(owner.text):
            raise params.unknown()
        if expected is not None and expected != owner:
            raise ProfileMismatch("The request names one profile and something of another.", profile=asked)
        return await self.host.open(owner)

    def at_once(self, caller: Caller, params: Params) -> ProfileRuntime | None:
        """The same, where the profile is open and nothing has to be looked up for it; else None."""
        name = named(params) or caller.profile
        if params.located_by() is not None:
            return None
        if name is None or name == LAUNCH_ALIAS:
            name = self.host.launch.text
        return self.host.opened(name) if caller.may_address(name) else None

    async def open(self, caller: Caller, text: str | None) -> ProfileRuntime:
        """Open a profile by name or id, None for the connection's own. Raises as `Host.open` does."""
        return await self.host.open(await self.name(caller, text or caller.profile))

    async def name(self, caller: Caller, text: str | None) -> ProfileName:
        """The own name of a profile that the caller may address. Raises `ProfileUnknown`."""
        if text is not None and not caller.principal.may_name(text):
            raise _unknown(text)
        try:
            name = self.host.launch if text is None else await self.host.named(text)
        except ProfileUnknown:
            raise _unknown(text) from None
        if not caller.may_address(name.text):
            raise _unknown(text or name.text)
        return name


def named(params: Params) -> str | None:
    """The profile that a request names, if it does."""
    name: str | None = getattr(params, "profile", None)
    return name


def _unknown(text: str | None) -> ProfileUnknown:
    return ProfileUnknown(f"There is no profile {text}.")
