"""The profiles that are served."""

from __future__ import annotations

from hermes_ws.agent import definition
from hermes_ws.agent.request import instructions
from hermes_ws.agent.tools.registry import TOOLS
from hermes_ws.contract.methods.profiles import (
    PROFILES_DESCRIBE,
    PROFILES_LIST,
    ConfinementReport,
    ProfileDescription,
    ProfileList,
    ProfileParams,
)
from hermes_ws.contract.model import Empty
from hermes_ws.contract.registry import Right
from hermes_ws.methods.handler import handles
from hermes_ws.methods.ports import ProfileCall, ServerCall
from hermes_ws.scope.current import in_thread


@handles(PROFILES_LIST)
async def list_profiles(call: ServerCall, params: Empty) -> ProfileList:
    """Each profile that the caller may address; none is opened for it."""
    rows = [row for row in call.host.listing() if call.may_address(row.name)]
    return ProfileList(launch=call.host.launch.text, profiles=rows)


@handles(PROFILES_DESCRIBE)
async def describe(call: ProfileCall, params: ProfileParams) -> ProfileDescription:
    """The bound profile. Values of secrets are not among what is told."""
    scope = call.runtime.scope
    terminal = scope.terminal
    confinement = call.runtime.confinement
    agents = await in_thread(call.runtime.limiter, definition.list_names, scope.home)
    soul = None
    if Right.ADMIN in call.principal.rights:
        soul = await in_thread(call.runtime.limiter, instructions, scope.home)
    return ProfileDescription(
        id=scope.identity.id,
        name=scope.profile.text,
        home=str(scope.home.path),
        model=scope.config.model.name,
        provider=scope.config.model.provider,
        agents=list(agents),
        toolsets=sorted({tool.toolset for tool in TOOLS.values()}),
        secret_names=sorted(scope.secrets.names()),
        terminal={
            "backend": terminal.backend,
            "directories": None if terminal.directories is None else [str(each) for each in terminal.directories],
            "read": [str(each) for each in terminal.read],
            "write": [str(each) for each in terminal.write],
            "env": list(terminal.env),
            "network": terminal.network,
            "confine": terminal.confine,
            "unix_sockets": terminal.unix_sockets,
            "deadline_s": terminal.deadline_s,
            "memory_bytes": terminal.memory_bytes,
            "processes": terminal.processes,
            "open_files": terminal.open_files,
            "file_bytes": terminal.file_bytes,
            "cpu_s": terminal.cpu_s,
            "disk_bytes": terminal.disk_bytes,
            "user": terminal.user,
            "home": terminal.home,
            "caches": terminal.caches,
            "toolchains": [str(each) for each in terminal.toolchains],
            "ssh": [str(each) for each in terminal.ssh],
            "background": terminal.background,
        },
        confinement=ConfinementReport(
            level=confinement.level,
            landlock_abi=confinement.landlock_abi,
            seccomp=confinement.seccomp,
            bubblewrap=confinement.bubblewrap,
            dropped_capabilities=confinement.dropped_capabilities,
            processes=confinement.processes,
            memory=confinement.memory,
            notes=list(confinement.notes),
        ),
        problems=list(call.runtime.problems),
        soul=soul,
    )
