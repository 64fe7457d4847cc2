"""One profile's home, secrets and policy as one value: bound whole, replaced whole, never changed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

from hermes_ws.contract.errors import ProfileUnusable
from hermes_ws.scope import dotenv, guard
from hermes_ws.scope.config import ProfileConfig, load_config
from hermes_ws.scope.config_view import written_secrets
from hermes_ws.scope.dotenv import Problem
from hermes_ws.scope.home import ProfileHome
from hermes_ws.scope.identity import Identity, ProfileName, mint_identity, read_identity
from hermes_ws.scope.secrets import Secrets
from hermes_ws.scope.starters import disarmed
from hermes_ws.scope.terminal import TerminalPolicy, load_policy

FileState = tuple[int, int, int, int] | None
"""Modification time, size, inode and change time of a file, times in nanoseconds; None when there is no file."""


@final
@dataclass(frozen=True, slots=True)
class ProfileScope:
    """All that acting for a profile takes. `loaded` rises with each load; `problems` are lines of .env left out.

    `off` are the settings that start programs and are not in force, because the home was imported and nobody has
    confirmed them.
    """

    profile: ProfileName
    home: ProfileHome
    identity: Identity
    secrets: Secrets
    terminal: TerminalPolicy
    config: ProfileConfig
    loaded: int
    problems: tuple[Problem, ...] = ()
    off: tuple[str, ...] = ()

    def with_sources(self, values: Mapping[str, str]) -> ProfileScope:
        """This scope with the secrets that its sources gave: they fill in what it does not define."""
        return replace(self, secrets=self.secrets.filled_in(values))


def load_scope(
    profile: ProfileName,
    home: ProfileHome,
    *,
    launch_secrets: Mapping[str, str] | None,
    loaded: int,
    homes: Iterable[Path],
    user_home: Path | None = None,
) -> ProfileScope:
    """Load a profile from disk, all of it or nothing. Reads files: call it in a worker thread, as the home's owner.

    `launch_secrets` are those of the process environment, given for the launch profile alone; its `.env` comes before
    them. `homes` are `HomesRoot.homes_paths()`, which no grant may open. A home without identity gets one. Raises
    ProfileUnusable, which says what to mend; nothing is remembered of an attempt that failed (case PARSE-10). A home
    that is gone is not the same as one without settings, and is not made again.
    """
    with guard.permit(home):
        if not home.path.is_dir():
            raise ProfileUnusable(f"The home of profile {profile} is gone.", profile=profile.text)
        config, off = load_config(home.config), tuple[str, ...]()
        if home.imported.exists():
            config, off = disarmed(config)
        parsed = dotenv.load(home.env)
        secrets = Secrets(
            {**(launch_secrets or {}), **parsed.values},
            plain=frozenset(config.secrets.plain),
            hidden=written_secrets(config),
        )
        terminal = load_policy(config.terminal, home=home, homes=homes, user_home=user_home)
        identity = read_identity(home) or mint_identity(home, profile)
    return ProfileScope(profile, home, identity, secrets, terminal, config, loaded, parsed.problems, off)


def fingerprint(home: ProfileHome) -> tuple[FileState, FileState]:
    """The state of config.yaml and .env on disk; another one means that the profile is to be loaded again.

    Take it before loading: a change in between then loads once more instead of never. Size and modification time alone
    miss a replaced file (case PARSE-09).
    """
    return _state(home.config), _state(home.env)


def _state(path: Path) -> FileState:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns
