"""Which backend a profile's terminal has."""

from __future__ import annotations

from pathlib import Path

from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.session.backend import Backend, Local
from hermes_ws.session.ports import Runtime


def backend_for(runtime: Runtime, scope: ProfileScope, cwd: Path) -> Backend:
    """The place where a session in this directory acts."""
    return Local(runtime, scope, cwd)
