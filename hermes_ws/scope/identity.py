"""Who a profile is: the checked name by which it is addressed, and the identity that a rename keeps.

A name is parsed once, here, and nothing else can be turned into a path (cases IDENT-01, IDENT-02, IDENT-03). The
identity lies in `profile.json` in the home, so that it travels with the home and not with its path.
"""

from __future__ import annotations

import re
import secrets
import string
import time
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, final

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from hermes_ws.contract.errors import ProfileUnknown, ProfileUnusable
from hermes_ws.scope.private_file import read_regular, write_private

if TYPE_CHECKING:
    from hermes_ws.scope.home import ProfileHome

LAUNCH_ALIAS = "default"
"""What the launch profile is called on the wire, whatever its own name is."""

ROOT_ALIAS = "root"
"""What the root home is called when another profile was launched."""

NAME_LENGTH = 64
"""A file name on every file system that homes are kept on, and short enough to be shown whole."""

ORIGIN_LENGTH = 8
"""Random characters with which each session id of a home begins: two equal ones mean a copied home, not bad luck."""

IDENTITY_BYTES = 16_384
"""An identity takes 150 bytes; whatever is this long is another file."""

_GRAMMAR = re.compile(rf"[a-z0-9][a-z0-9_-]{{0,{NAME_LENGTH - 1}}}", re.ASCII)
_DEVICES = frozenset({"con", "prn", "aux", "nul"} | {f"{kind}{n}" for kind in ("com", "lpt") for n in range(10)})
_ORIGIN_ALPHABET = string.ascii_lowercase + string.digits


@final
@dataclass(frozen=True, slots=True, order=True)
class ProfileName:
    """A name that has passed the grammar `[a-z0-9][a-z0-9_-]{0,63}` and is no reserved device name."""

    text: str

    def __post_init__(self) -> None:
        if _GRAMMAR.fullmatch(self.text) is None or self.text in _DEVICES:
            shown = self.text if len(self.text) <= NAME_LENGTH else self.text[:NAME_LENGTH] + "…"
            raise ProfileUnknown(
                f"{shown!r} is not a profile name.",
                hint="A name is 1 to 64 of a-z, 0-9, '-' and '_', begins with a letter or digit, and is no path.",
            )

    @classmethod
    def parse(cls, text: str) -> ProfileName:
        """Check a name that came from outside. Raises ProfileUnknown; no path is built before."""
        return cls(text)

    def __str__(self) -> str:
        return self.text


@final
@dataclass(frozen=True, slots=True)
class Identity:
    """What `profile.json` holds. `created_at` is in seconds since 1970."""

    __pydantic_config__ = ConfigDict(extra="ignore", defer_build=True)

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    origin: Annotated[str, Field(pattern=rf"^[a-z0-9]{{{ORIGIN_LENGTH}}}$")]
    name: Annotated[str, Field(min_length=1, max_length=NAME_LENGTH)]
    created_at: Annotated[float, Field(allow_inf_nan=False)]


_IDENTITY: TypeAdapter[Identity] = TypeAdapter(Identity)


def read_identity(home: ProfileHome) -> Identity | None:
    """The identity of a home; None when it has none yet. Raises ProfileUnusable when the file is damaged."""
    data = read_regular(home.identity, limit=IDENTITY_BYTES)
    if data is None:
        return None
    try:
        return _IDENTITY.validate_json(data)
    except ValidationError:
        raise ProfileUnusable(
            f"{home.identity} is damaged: it is not {{id, origin, name, created_at}}.",
            hint="Restore the file from a backup; a new identity would orphan the sessions of this home.",
            file=str(home.identity),
        ) from None


def rename_identity(home: ProfileHome, identity: Identity, name: ProfileName) -> Identity:
    """Enter an identity in a home under another name, durably."""
    renamed = replace(identity, name=name.text)
    write_private(home.identity, _IDENTITY.dump_json(renamed, indent=2) + b"\n")
    return renamed


def mint_identity(home: ProfileHome, name: ProfileName) -> Identity:
    """Give the home a new identity, durably. What it had before is replaced, so that a clone gets its own."""
    identity = Identity(
        id=uuid.uuid4().hex,
        origin="".join(secrets.choice(_ORIGIN_ALPHABET) for _ in range(ORIGIN_LENGTH)),
        name=name.text,
        created_at=time.time(),
    )
    write_private(home.identity, _IDENTITY.dump_json(identity, indent=2) + b"\n")
    return identity
