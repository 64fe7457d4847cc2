"""Saying why a confined command was refused, so that neither the model nor the person is left guessing."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from hermes_ws.warden import places
from hermes_ws.warden.check import prefixes
from hermes_ws.warden.grants import Finished, Grants

_FILE_SIGNS = (b"permission denied", b"operation not permitted", b"permissionerror", b"eacces", b"eperm")
_MISSING_SIGNS = (b"no such file or directory", b"filenotfounderror", b"enoent", b"cannot access", b"does not exist")
_SOCKET_SIGNS = (b"address family not supported", b"eafnosupport")
_PROCESS_SIGNS = (b"resource temporarily unavailable", b"blockingioerror", b"can't start new thread", b"eagain")
_MEMORY_SIGNS = (b"memoryerror", b"cannot allocate memory", b"out of memory", b"bad_alloc", b"enomem")
_DESCRIPTOR_SIGNS = (b"too many open files", b"emfile")
_SIZE_SIGNS = (b"file too large", b"file size limit exceeded", b"efbig")
_PATH: Final = re.compile(r"(?<![\w.~/])(/[\w.+@%~-][^\s'\"`:;|&<>(){}\[\],]*)")

_ALWAYS_THERE: Final = (*places.SYSTEM, "/etc", "/dev", "/proc")
"""What a path may begin with and be there, although nobody granted it."""

_OWN: Final = ("/tmp", "/dev/shm")
"""What is there in a namespace, but empty: nothing that others put there can be seen."""


def explain_denied(finished: Finished, grants: Grants, *, command: str = "", hidden: bool = False) -> str | None:
    """What is granted and which setting grants more, when the output of a failed command looks like a refusal, or like
    a limit that it met.

    Nothing for a command that succeeded, failed otherwise, or was not confined. It reads the words of the output, so
    it says "may" and not "was". `hidden`: what is not granted is not there at all; then a missing file is taken for a
    refusal when a path that nobody granted stands in the command or in its output. A path below `/tmp` is one when the
    output says of it that it is missing: a command that only writes there is none the wiser.
    """
    if finished.exit_code == 0 or grants.confine == "off":
        return None
    output = finished.output.lower()
    sentences: list[str] = []
    refused = any(sign in output for sign in _FILE_SIGNS)
    missing = hidden and any(sign in output for sign in _MISSING_SIGNS) and _elsewhere(finished, command, grants)
    if refused or missing:
        sentences.append(
            "The command is confined and may have touched what is not granted to it"
            f"{', which is not even visible to it' if missing else ''}."
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
    ended = not finished.timed_out and finished.signal in (signal.SIGXCPU, signal.SIGKILL)
    if grants.limits.cpu_s is not None and ended:
        sentences.append(f"It may have met the limit terminal.cpu_s, which is {grants.limits.cpu_s}.")
    for name, limit, signs in (
        ("processes", grants.limits.processes, _PROCESS_SIGNS),
        ("memory_bytes", grants.limits.memory_bytes, _MEMORY_SIGNS),
        ("open_files", grants.limits.open_files, _DESCRIPTOR_SIGNS),
        ("file_bytes", grants.limits.file_bytes, _SIZE_SIGNS),
    ):
        if limit is not None and any(sign in output for sign in signs):
            sentences.append(f"It may have met the limit terminal.{name}, which is {limit}.")
    return " ".join(sentences) or None


def _elsewhere(finished: Finished, command: str, grants: Grants) -> bool:
    """Whether a path that nobody granted is spoken of."""
    there = (*_ALWAYS_THERE, *prefixes(), *map(str, grants.read), *map(str, grants.write))
    output = finished.output.decode(errors="replace")
    missing = "\n".join(
        line for line in output.splitlines() if any(sign in line.lower().encode() for sign in _MISSING_SIGNS)
    )
    return _outside(f"{command}\n{output}", (*there, *_OWN)) or _outside(missing, there)


def _outside(text: str, roots: tuple[str, ...]) -> bool:
    """Whether a path stands in the text that is below none of these."""
    return any(
        not any(path == root or path.startswith(f"{root}/") for root in roots)
        for path in map(os.path.normpath, _PATH.findall(text))
    )


def _names(paths: Iterable[Path]) -> str:
    return ", ".join(str(path) for path in paths) or "nothing"
