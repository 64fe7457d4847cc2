"""The contract as documents, as they were rendered when the package was made (`make docs`).

To render them takes as long as everything else that a start does, and needs every shape there is; a test fails when
what is kept here is not what the declarations say.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from hermes_ws import contract

_PLACE: Final = Path(contract.__file__).parent / "generated"


def openrpc() -> bytes:
    """Methods, as OpenRPC."""
    return (_PLACE / "openrpc.json").read_bytes()


def asyncapi() -> bytes:
    """Events and questions, as AsyncAPI."""
    return (_PLACE / "asyncapi.json").read_bytes()


def digest() -> str:
    """A short name of the exact contract: a client that generated its types from another one can say so."""
    return (_PLACE / "digest").read_text("ascii").strip()
