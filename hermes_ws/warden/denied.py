"""Saying why a confined command was refused, so that neither the model nor the person is left guessing."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hermes_ws.warden.grants import Finished, Grants

_FILE_SIGNS = (b"permission denied", b"operation not permitted", b"permissionerror", b"eacces", b"eperm")
_SOCKET_SIGNS = (b"address family not supported", b"eafnosupport")


def explain_denied(finished: Finished, grants: Grants) -> str | None:
    """What is granted and which setting grants more, when the output of a failed command looks like a refusal.

    Nothing for a command that succeeded, failed otherwise, or was not confined. It reads the words of the output,
    so it says "may" and not "was".
    """
    if finished.exit_code == 0 or grants.confine == "off":
        return None
    output = finished.output.lower()
    sentences: list[str] = []
    if any(sign in output for sign in _FILE_SIGNS):
        sentences.append(
            "The command is confined and may have touched what is not granted to it."
            f" Reading and writing: {_names(grants.write)}. Reading: {_names(grants.read)} and the system's programs."
            " A session may choose another directory below terminal.directories;"
            " terminal.write and terminal.read in config.yaml grant more."
        )
    if any(sign in output for sign in _SOCKET_SIGNS):
        if grants.network == "deny":
            sentences.append("The network is denied by terminal.network.")
        if grants.unix_sockets == "deny":
            sentences.append(
                "Unix sockets are denied, since they reach what runs outside; terminal.unix_sockets: allow lifts that."
            )
    return " ".join(sentences) or None


def _names(paths: Iterable[Path]) -> str:
    return ", ".join(str(path) for path in paths) or "nothing"
