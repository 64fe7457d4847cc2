"""What can be typed behind a slash."""

from __future__ import annotations

from hermes_ws.contract.errors import NotFound
from hermes_ws.contract.methods.agents import OfProfile
from hermes_ws.contract.methods.slash import (
    COMMAND_DISPATCH,
    COMMANDS_CATALOG,
    COMPLETE_PATH,
    COMPLETE_SLASH,
    COMPLETIONS,
    SLASH_EXEC,
    Catalog,
    CommandRow,
    CompletePathParams,
    CompleteSlashParams,
    CompletionItem,
    Completions,
    Directive,
    DispatchParams,
    SlashParams,
)
from hermes_ws.methods.built_in import BUILT_IN
from hermes_ws.methods.handler import handles
from hermes_ws.methods.ports import ProfileCall, SessionCall
from hermes_ws.scope.current import in_thread
from hermes_ws.session import commands
from hermes_ws.session.briefing import ground_of
from hermes_ws.session.hands import SessionHands
from hermes_ws.session.launch import Launch
from hermes_ws.session.thread import Thread


@handles(COMMANDS_CATALOG)
async def catalog(call: ProfileCall, params: OfProfile) -> Catalog:
    """Built-in ones first."""
    known = await _known(call)
    return Catalog(
        commands=known,
        pairs=[(row.name, row.description) for row in known],
        skill_count=sum(1 for row in known if row.kind == "skill"),
    )


@handles(COMMAND_DISPATCH)
async def dispatch(call: ProfileCall, params: DispatchParams) -> Directive:
    """What the client is to do. Nothing is run here."""
    if params.name in BUILT_IN:
        line = f"/{params.name} {params.arg}".strip()
        return Directive(type="prefill", name=params.name, message=line, notice="Runs in a session: slash.exec.")
    return await _directive(call, params.name, params.arg)


@handles(SLASH_EXEC)
async def execute(call: SessionCall, params: SlashParams) -> Directive:
    """Run a built-in or a quick command; anything else comes back as what the client is to do."""
    name, arg = commands.split(params.command)
    built_in = BUILT_IN.get(name)
    if built_in is not None:
        return Directive(type="exec", name=name, output=await built_in.run(call, arg))
    if Launch.read(call.session.record.launch).safe_mode:
        raise NotFound(
            f"There is no command /{name[:100]} in safe mode: quick commands and skills are the profile's.",
            hint="Type it in a session without safe mode.",
        )
    quick = call.runtime.scope.config.quick_commands.get(name)
    if quick is not None and quick.type == "exec":
        output = await commands.run(quick, arg, await _hands(call))
        return Directive(type="exec", name=name, output=output)
    return await _directive(call, name, arg)


@handles(COMPLETE_SLASH)
async def complete_slash(call: ProfileCall, params: CompleteSlashParams) -> Completions:
    """Only the command itself is completed, not what follows it."""
    if " " in params.text.strip():
        return Completions(items=[])
    found = commands.ranked(await _known(call), params.text.strip(), COMPLETIONS)
    return Completions(
        items=[
            CompletionItem(
                text=row.name, display=f"{row.name} {row.usage}".strip(), meta=row.description, kind="command"
            )
            for row in found
        ]
    )


@handles(COMPLETE_PATH)
async def complete_path(call: SessionCall, params: CompletePathParams) -> Completions:
    """Through the session's own terminal, so that only what its commands can see is offered."""
    word = params.word.removeprefix("@")
    found = await (await _hands(call)).complete(word)
    return Completions(
        items=[
            CompletionItem(
                text=path,
                display=path.rstrip("/").rpartition("/")[2] + ("/" if path.endswith("/") else ""),
                kind="directory" if path.endswith("/") else "file",
            )
            for path in sorted(found, key=lambda path: (not path.endswith("/"), path))[:COMPLETIONS]
        ],
        replace_from=len(params.word) - len(word),
    )


async def _known(call: ProfileCall) -> list[CommandRow]:
    found = [each.row for each in BUILT_IN.values()]
    return found + await in_thread(call.runtime.limiter, commands.rows, call.runtime.scope)


async def _directive(call: ProfileCall, name: str, arg: str) -> Directive:
    try:
        return await in_thread(call.runtime.limiter, commands.directive, call.runtime.scope, name, arg)
    except NotFound:
        near = commands.ranked(await _known(call), name, 1)
        guess = f" Did you mean {near[0].name}?" if near else ""
        raise NotFound(f"There is no command /{name[:100]}.{guess}", hint="/help lists the commands.") from None


async def _hands(call: SessionCall) -> SessionHands:
    thread: Thread = await call.session.thread("main")
    runtime = call.runtime
    found = await ground_of(runtime, runtime.sessions.keys, call.session.record, thread.key)
    return SessionHands(runtime, found.scope, found.cwd, thread.key)
