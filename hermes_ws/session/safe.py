"""Safe mode: a scope with nothing in it, for a session that is to trust nothing of the profile.

Its home is an empty directory below the profile's cache, so that there are no rules, skills, memories, agents or
secrets to be found; its children get a warden of their own that is granted that directory and nothing else. Whatever
acts for the session is given this scope and no other, so nothing of the profile's has a way to it (decision 7).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hermes_ws.scope.config import ProfileConfig
from hermes_ws.scope.home import ProfileHome
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.scope.secrets import Secrets
from hermes_ws.scope.terminal import TerminalPolicy

PLACE: Final = "safe"
"""The directory below a home's cache in which the empty ones lie."""

OWN_TOOLSETS: Final = ("terminal", "files", "ask", "plan")
"""What is left of the toolsets: those that touch nothing but the empty directory and the person."""

WITHHELD: Final = frozenset({"request_secret", "request_connection"})
"""Tools of these toolsets that ask for what is then kept in the profile: nothing of the session reaches that either."""


def home_of(home: ProfileHome, session_id: str) -> ProfileHome:
    """Where the session's empty home lies."""
    return ProfileHome(home.cache / PLACE / session_id)


def emptied(scope: ProfileScope, session_id: str) -> ProfileScope:
    """The scope without anything of the profile. Makes the directory: call it in a thread, with the home bound."""
    home = home_of(scope.home, session_id)
    for directory in (home.path.parent, home.path, home.user, home.temporary, home.cache):
        directory.mkdir(mode=0o700, exist_ok=True)
    return ProfileScope(
        profile=scope.profile,
        home=home,
        identity=scope.identity,
        secrets=Secrets({}),
        config=ProfileConfig(limits=scope.config.limits),
        terminal=emptied_policy(scope.terminal),
        loaded=scope.loaded,
    )


def emptied_policy(policy: TerminalPolicy) -> TerminalPolicy:
    """The policy with its limits and refusals, and without what it grants.

    The terminal is here, also where the profile's is elsewhere: that one is reached with keys of the profile.
    """
    return TerminalPolicy(
        backend="local",
        directories=(),
        read=(),
        write=(),
        env=(),
        cwd=None,
        unix_sockets="deny",
        confine="required" if policy.confine == "required" else "auto",
        network=policy.network,
        deadline_s=policy.deadline_s,
        output_bytes=policy.output_bytes,
        memory_bytes=policy.memory_bytes,
        processes=policy.processes,
        open_files=policy.open_files,
        file_bytes=policy.file_bytes,
        cpu_s=policy.cpu_s,
        disk_bytes=policy.disk_bytes,
        user=policy.user,
    )


def with_defaults(scope: ProfileScope) -> ProfileScope:
    """The scope as if its user had configured nothing. What protects is kept: approvals, terminal, limits, secrets."""
    kept = scope.config
    config = ProfileConfig(
        providers=kept.providers,
        terminal=kept.terminal,
        approvals=kept.approvals,
        limits=kept.limits,
        warden=kept.warden,
        secrets=kept.secrets,
    )
    return replace(scope, config=config)
