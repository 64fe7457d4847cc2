"""The profiles that are served."""

from __future__ import annotations

from typing import Literal

from hermes_ws.contract.errors import ProfileUnusable
from hermes_ws.contract.model import Empty, Identifier, Params, Result
from hermes_ws.contract.registry import Order, Right, Scope, method

ProfileState = Literal["closed", "open", "read_only", "failed"]
"""`read_only`: its disk is full or its store is damaged; what is stored can be read, and the description says why."""


class ProfileRow(Result):
    """One served profile. What a closed one would have to be opened for is null."""

    id: str | None
    name: str
    state: ProfileState
    confinement: str | None
    sessions: int | None


class ProfileList(Result):
    """All profiles that the caller may address; `launch` is the one that `default` means."""

    launch: str
    profiles: list[ProfileRow]


class ProfileParams(Params):
    """A profile by name or id; absent, it is the connection's."""

    profile: Identifier | None = None


class ConfinementReport(Result):
    """What the kernel enforces for this profile's children, each layer tried at start."""

    level: Literal["kernel", "process"]
    landlock_abi: int
    seccomp: bool
    bubblewrap: bool
    dropped_capabilities: bool
    processes: Literal["cgroup", "kernel", "counted"] = "counted"
    """Who holds their number: a control group, the kernel, or the warden by counting several times a second."""
    memory: Literal["cgroup", "process"] = "process"
    """Whether memory is limited for all of them together, or for each by itself, without what it could share."""
    notes: list[str]


class ProfileDescription(Result):
    """A profile as its user knows it. Names of secrets are told, values never. `soul` are its instructions, the file
    SOUL.md, as far as they are read for a turn; they are told to who may change them."""

    id: str
    name: str
    home: str
    model: str
    provider: str
    agents: list[str]
    toolsets: list[str]
    secret_names: list[str]
    terminal: dict[str, str | int | float | bool | list[str] | None]
    confinement: ConfinementReport
    problems: list[str]
    soul: str | None = None


PROFILES_LIST = method(
    "profiles.list",
    Empty,
    ProfileList,
    scope=Scope.SERVER,
    right=Right.OBSERVE,
    order=Order.FREE,
    doc="The profiles that are served and that the caller may address; opens none of them.",
)

PROFILES_DESCRIBE = method(
    "profiles.describe",
    ProfileParams,
    ProfileDescription,
    scope=Scope.PROFILE,
    right=Right.OBSERVE,
    order=Order.FREE,
    errors=(ProfileUnusable,),
    doc="One profile: its model, tools, names of secrets, and what confines its children.",
)
