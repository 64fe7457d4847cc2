"""What git needs to commit: the name and the e-mail of the user, and nothing else of their settings."""

from __future__ import annotations

import os
import pwd
import re
from pathlib import Path
from typing import Final

CONFIG_BYTES: Final = 262_144
"""A file of settings; a longer one is something else."""

_SECTION: Final = re.compile(r"\s*\[\s*([A-Za-z0-9.-]+)\s*(\"[^\"]*\")?\s*\]")
_SETTING: Final = re.compile(r"\s*(name|email)\s*=\s*(.*?)\s*$", re.IGNORECASE)


def user_home() -> Path:
    """The home of the user that this process runs as, by the user database."""
    return Path(pwd.getpwuid(os.geteuid()).pw_dir)


def write_gitconfig(source: Path, target: Path) -> None:
    """Write `.gitconfig` in `target` with the name and e-mail in that of `source`; nothing when it has none."""
    found = read_identity(source / ".gitconfig")
    if found:
        lines = "".join(f'\t{key} = "{value}"\n' for key, value in found.items())
        fd = os.open(target / ".gitconfig", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(fd, "w", encoding="utf-8") as file:
            file.write(f"[user]\n{lines}")


def read_identity(path: Path) -> dict[str, str]:
    """`name` and `email` of the section `user`. A file that cannot be read has none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(CONFIG_BYTES)
    except OSError:
        return {}
    found: dict[str, str] = {}
    within = False
    for line in text.splitlines():
        section = _SECTION.match(line)
        if section is not None:
            within = section[1].lower() == "user" and section[2] is None
        setting = _SETTING.match(line)
        if within and setting is not None:
            value = setting[2].strip('"')
            if value and '"' not in value and "\\" not in value:
                found[setting[1].lower()] = value
    return found
