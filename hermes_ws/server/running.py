"""A server, put together: homes, host, dispatch, sockets; from the first open profile to the last closed one.

The order is what makes it safe. The launch home is opened first, which takes its lock, so that a second server over the
same homes ends before it has touched anything. The token is written before anything listens. At the end nobody is let
in, what runs gets its time, everything is committed, children end, and only then do the clients hear the goodbye.
"""

from __future__ import annotations

import gc
import os
import secrets
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, cast

import orjson
import trio

from hermes_ws import __version__
from hermes_ws.contract.errors import HermesError, ProfileUnusable
from hermes_ws.contract.events import DrainingNotice, ServerInfo
from hermes_ws.contract.registry import Right
from hermes_ws.contract.version import PROTOCOL_MAJOR, PROTOCOL_MINOR
from hermes_ws.hosting.credentials import OWNER
from hermes_ws.hosting.host import Host
from hermes_ws.hosting.tokens import Grant
from hermes_ws.methods import documents
from hermes_ws.methods.ports import ServerFacts
from hermes_ws.methods.table import HANDLERS
from hermes_ws.scope import guard
from hermes_ws.scope.environment import StartEnvironment
from hermes_ws.scope.home import HomesRoot, ProfileHome
from hermes_ws.scope.identity import ProfileName
from hermes_ws.scope.private_file import write_private
from hermes_ws.server import descriptors, door, sockets, static_files, stdio
from hermes_ws.server.audience import Audience
from hermes_ws.server.dispatch import Dispatch
from hermes_ws.server.ending import Ending
from hermes_ws.server.entry import Entry, host_names
from hermes_ws.server.lateness import Lateness
from hermes_ws.server.limits import Limits
from hermes_ws.server.listener import Listener
from hermes_ws.server.login import login
from hermes_ws.server.ports import Pages
from hermes_ws.server.process_log import ProcessLog
from hermes_ws.server.proxy import Proxies
from hermes_ws.server.pulse import Pulse
from hermes_ws.server.serve import ServeOptions
from hermes_ws.server.token import AllTokens, LaunchToken, mint
from hermes_ws.server.visitor import Site
from hermes_ws.server.watchdog import Watchdog
from hermes_ws.server.welcome import Greeting
from hermes_ws.warden import leftovers
from hermes_ws.warden.subreaper import become_subreaper
from hermes_ws.wire.frames import event_frame

GOODBYE: Final = 5.0
"""Seconds that clients have to answer the goodbye of a server that ends."""

GOING_AWAY: Final = 1001
"""Close code of a server that ends (RFC 6455, section 7.4.1)."""

SWITCH_S: Final = 0.001
"""Seconds after which a thread that computes lets another one have the interpreter. Beside a loop that never rests a
commit takes 25 ms with this and 47 ms with 5 ms, which is the default of Python: each statement waits for its turn."""

HEARD: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""What may be said to a server from outside."""

BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


def run(options: ServeOptions, start: StartEnvironment) -> int:
    """Serve until told to stop. 0 after a clean end; 1 when it could not start, said on stderr with what to do."""
    problem: BaseException | None = None
    sys.setswitchinterval(SWITCH_S)
    try:
        trio.run(_serve, options, start)
    except* (HermesError, OSError) as group:
        problem = _first(group)
    if isinstance(problem, HermesError):
        print(f"hermes-ws: {problem.message}\n{problem.hint}".rstrip(), file=sys.stderr)
    elif problem is not None:
        print(f"hermes-ws: {problem}", file=sys.stderr)
        print("If another server holds the address, --port 0 takes one that is free.", file=sys.stderr)
    return 0 if problem is None else 1


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    inner = group.exceptions[0]
    return _first(cast("BaseExceptionGroup[BaseException]", inner)) if isinstance(inner, BaseExceptionGroup) else inner


async def _serve(options: ServeOptions, start: StartEnvironment) -> None:
    root = _root(options, start)
    log = ProcessLog(sys.stderr)
    tripwire = guard.install(root, report=lambda what, stack: log.warning("guard tripped", what=what, stack=stack))
    facts = ServerFacts(
        info=ServerInfo(name="hermes-ws", version=__version__),
        instance_id=secrets.token_hex(8),
        boot_id=BOOT_ID.read_text().strip() if BOOT_ID.exists() else "",
        pid=os.getpid(),
        started_at=time.time(),
    )
    if left := leftovers.end():
        log.warning("ended what a killed server had left", processes=left)
    audience = Audience(time.time)
    host = Host(
        root,
        start,
        instance_id=facts.instance_id,
        audience=audience,
        subreaper=become_subreaper(),
        tripped=tripwire.tripped,
    )
    host.follow(audience.profile_changed)
    # What is handled then, once this is over and the process about to end: who asks again does not change how it ends.
    for number in HEARD:
        signal.signal(number, signal.SIG_IGN)
    # Before anything is opened: who asks to stop while the server starts is heard.
    with trio.open_signal_receiver(*HEARD) as told:
        async with trio.open_nursery() as nursery:
            await nursery.start(host.run)
            # What is loaded stays; it need not be looked through again and again for what could be given back.
            gc.freeze()
            gc.enable()
            if options.standalone:
                bound = None if options.profile is None else root.launch.text
                await stdio.serve(host, facts, audience, log, told, nursery, profile=bound)
            else:
                await _listen(options, host, root.find(root.launch), facts, audience, log, told, nursery)
            nursery.cancel_scope.cancel()


async def _listen(
    options: ServeOptions,
    host: Host,
    home: ProfileHome,
    facts: ServerFacts,
    audience: Audience,
    log: ProcessLog,
    told: AsyncIterator[int],
    nursery: trio.Nursery,
) -> None:
    config = host.launch_config
    skin = partial(audience.skin_of, host.launch.text, config.display.skin)
    ending = Ending(config.server.drain_s)
    tls = door.secured(options)
    proxies = Proxies.parse(options.behind_proxy)
    door.check_binding(options, host, proxies)
    await host.open(host.launch)
    dispatch = Dispatch(
        host,
        facts,
        HANDLERS,
        audience,
        log,
        width=config.limits.in_flight,
        frame_bytes=config.limits.frame_bytes,
        end=ending.ask,
    )
    await nursery.start(dispatch.run)
    pulse = Pulse(host)
    await nursery.start(pulse.run)
    await nursery.start(Watchdog(log).run)
    with guard.permit(home):
        token = mint(home.token)
        path = options.socket or home.socket
        tcp = await sockets.listen_tcp(options.host, options.port, tls)
        home.address.write_text(f"{'http' if tls is None else 'https'}://{options.host}:{tcp.port}\n", "ascii")
        unix = sockets.listen_unix(path)
    entry = Entry(
        AllTokens(LaunchToken(token), host),
        hosts=host_names(options.host, tcp.port, config.server.hosts),
        origins=config.server.origins,
        uid=os.getuid(),
        scheme="http" if tls is None else "https",
    )
    site = Site(
        entry=entry,
        pages=Pages(
            ready=lambda: pulse.ready() and not listener.out_of_room,
            openrpc=documents.openrpc,
            asyncapi=documents.asyncapi,
            files=static_files.read(),
        ),
        limits=Limits(
            frame_bytes=config.limits.frame_bytes,
            send_deadline=config.limits.send_deadline_s,
            ping_every=config.limits.ping_s,
            connections=descriptors.room_for(
                descriptors.raise_limit(), config.limits.connections, encrypted=tls is not None
            ),
        ),
        lateness=Lateness(),
        own_name=host.own_name,
        login=partial(login, host.credentials),
        proxies=proxies,
    )
    listener = Listener(site, dispatcher=dispatch, welcome=Greeting(host, facts, config.limits, skin))
    audience.follow(lambda: listener.connections)
    door.keep_watch(host, lambda: listener.connections)
    await nursery.start(listener.run, (tcp, unix))
    _announce(options, host, home, facts, tcp.port, path)
    log.info("serving", host=options.host, port=tcp.port, instance=facts.instance_id, pid=facts.pid)

    async def reload() -> None:
        if tls is not None:
            try:
                tls.load()
            except HermesError as error:
                log.warning("certificate refused", type=error.type)
        for runtime in host.open_runtimes():
            try:
                await runtime.reload()
            except HermesError as error:
                log.warning("reload refused", type=error.type)

    def needed() -> bool:
        return bool(listener.connections) or any(runtime.in_use for runtime in host.open_runtimes())

    nursery.start_soon(ending.hear, told, reload)
    if options.idle_exit is not None:
        nursery.start_soon(ending.when_idle, needed, options.idle_exit)
    if options.parent_pid is not None:
        nursery.start_soon(ending.with_parent, options.parent_pid)
    try:
        await ending.asked()
        with guard.permit(home), suppress(OSError):
            write_private(home.draining, facts.instance_id.encode())
        await _end(host, listener, ending, log)
    finally:
        with guard.permit(home):
            sockets.remove_unix(path)
            home.draining.unlink(missing_ok=True)


async def _end(host: Host, listener: Listener, ending: Ending, log: ProcessLog) -> None:
    """Let nobody in, give what runs its time, commit, and say goodbye."""
    log.info("draining", reason=ending.reason, deadline_s=ending.deadline_s, connections=len(listener.connections))
    listener.stop_accepting()
    notice = DrainingNotice(deadline=time.time() + ending.deadline_s).model_dump()
    frame = event_frame({"type": "gateway.draining", "ts": time.time(), "payload": notice})
    for connection in listener.connections:
        connection.notify(frame)
    async with trio.open_nursery() as nursery:

        async def hurry() -> None:
            await ending.hurried()
            await host.drain(0)

        nursery.start_soon(hurry)
        await host.drain(ending.deadline_s)
        nursery.cancel_scope.cancel()
    await listener.say_goodbye(GOING_AWAY, "the server is shutting down", GOODBYE)
    log.info("ended")


def _root(options: ServeOptions, start: StartEnvironment) -> HomesRoot:
    launch = None if options.profile is None else ProfileName.parse(options.profile)
    if options.profiles_root is not None:
        return HomesRoot.directory(options.profiles_root, launch)
    named = start.parameters.get("HERMES_HOME")
    if named is None:
        user = start.base.get("HOME")
        if user is None:
            raise ProfileUnusable(
                "Neither HERMES_HOME nor HOME says where profiles live.",
                hint="Set HERMES_HOME, or name a directory of homes with --profiles-root.",
            )
        named = f"{user}/.hermes"
    return HomesRoot.classic(Path(named), launch)


def _browser_link(options: ServeOptions, host: Host, port: int) -> str:
    """A link that signs one browser in as the owner. The ticket is in the fragment, which goes to no server or log."""
    everything = frozenset(Right)
    ticket, _ = host.credentials.issue(Grant(OWNER, None, everything), "browser", None, everything)
    return f"{'http' if options.tls_cert is None else 'https'}://{options.host}:{port}/#ticket={ticket}"


def _announce(
    options: ServeOptions, host: Host, home: ProfileHome, facts: ServerFacts, port: int, socket: Path
) -> None:
    url = f"{'ws' if options.tls_cert is None else 'wss'}://{options.host}:{port}/ws"
    if options.announce:
        said = {
            "url": url,
            "socket": str(socket),
            "instance_id": facts.instance_id,
            "pid": facts.pid,
            "token_file": str(home.token),
            "protocol": {"major": PROTOCOL_MAJOR, "minor": PROTOCOL_MINOR},
        }
        print(orjson.dumps(said).decode(), flush=True)
        return
    command = sys.argv[0] if Path(sys.argv[0]).name == "hermes-ws" else "hermes-ws"
    names = ", ".join(row.name for row in host.listing())
    print(f"Serving {names}  (launch profile: {host.launch})")
    print(f"  WebSocket   {url}")
    print(f"  Unix socket {socket}")
    print(f"\nIn a browser, once, within ten minutes:\n\n  {_browser_link(options, host, port)}")
    print("\nIn a second terminal:\n")
    print(f"  HERMES_HOME={home.path} {command} chat\n")
    print("Ctrl-C stops the server; what was accepted is kept.", flush=True)
