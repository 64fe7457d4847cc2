"""Giving a password to sudo, and to nothing else that a command line runs.

The shell reads it from its standard input before it reads anything of the command line; from there on `sudo` is a
function that hands it to the real one, on the standard input, before whatever else comes there. A password that is not
wanted would be read by the command behind sudo, so the real one is told to ignore that it was given before (`-k`).
"""

from __future__ import annotations

import secrets

PASSWORD_SHOWN = "the sudo password"
"""What stands in the output where the password would."""


def with_password(command: str) -> str:
    """The command line, with a `sudo` that reads the password from the first line of the shell's input."""
    name = f"_{secrets.token_hex(8)}"
    return (
        f"IFS= read -r {name}\n"
        f"sudo() {{ {{ printf '%s\\n' \"${name}\"; cat; }} | command sudo -S -k -p '' \"$@\"; }}\n"
        f"{command}"
    )
