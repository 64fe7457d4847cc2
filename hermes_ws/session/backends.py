"""Which backend a profile's terminal has."""

from __future__ import annotations

from pathlib import Path

from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.session.backend import Backend, Local
from hermes_ws.session.docker import DockerClient
from hermes_ws.session.ports import Runtime
from hermes_ws.session.remote import Remote
from hermes_ws.session.ssh import SshClient


def backend_for(runtime: Runtime, scope: ProfileScope, cwd: Path, session_id: str | None = None) -> Backend:
    """The place where a session in this directory acts, by the policy of this load and no other (case TERM-01).

    What belongs to no session shares a container of the profile's own.
    """
    match scope.terminal.backend:
        case "local":
            return Local(runtime, scope, cwd)
        case "ssh":
            return Remote(scope, cwd, SshClient(runtime, scope))
        case "docker":
            client = runtime.ongoing.containers.get(
                scope, session_id or scope.identity.origin, lambda name: DockerClient(runtime, scope, name)
            )
            return Remote(scope, cwd, client)
