"""The end of a session: closed by somebody, put away for idleness, or the server goes down.

In this order, bound to the profile: the hooks at `session_end`; memory (what an agent notes is durable as soon as it
has noted it, so that there is nothing left to commit); what the session left running, tool servers among it. A session
that did nothing since it was opened has nothing to end.
"""

from __future__ import annotations

from hermes_ws.contract.errors import HermesError
from hermes_ws.journal.address import ThreadKey
from hermes_ws.session.briefing import ground_of
from hermes_ws.session.hands import SessionHands
from hermes_ws.session.hooks import SessionHooks
from hermes_ws.session.identifiers import MAIN_THREAD
from hermes_ws.session.launch import Keys
from hermes_ws.session.ports import Runtime
from hermes_ws.session.session import Session


async def run_hooks(runtime: Runtime, keys: Keys, session: Session) -> None:
    """Run what the profile wants done when a session ends. Nobody can be asked any more: only what was accepted runs.

    What fails is logged, and keeps nothing from ending.
    """
    if not session.worked or not runtime.scope.config.hooks.session_end:
        return
    session.worked = False
    key = ThreadKey(session.session_id, MAIN_THREAD)
    try:
        found = await ground_of(runtime, keys, session.record, key)
        hands = SessionHands(runtime, found.scope, found.cwd, key)
        hooks = SessionHooks(runtime, found.scope, hands, None, None, key, found.launch)
        await hooks.run_at_the_end("session_end")
    except HermesError as error:
        runtime.log.write("warning", "session.end_hooks", session_id=session.session_id, message=error.message)
