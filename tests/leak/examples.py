"""One example of every method, tool and event. A test fails as long as one of them has none.

**You have added a method.** Add its name to `METHODS`, with a function that gives parameters for one side: its
profile's name, its session, its ids. Whatever the call answers, errors among it, is then searched for canaries of all
other sides. An example may fail (an id that does not exist is fine), but its parameters must have the right shape.
A **tool** goes into `TOOLS` with the arguments of a call. An **event** goes into `EVENTS`: `SEEN` when the examples
make it happen, else the reason why it carries nothing of a profile or where it is searched instead.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from tests.leak.world import AGENT, FILE, SKILL, TITLE, Side, World

Params = dict[str, Any]
Example = Callable[[World, Side], Params]


def nothing(world: World, side: Side) -> Params:
    return {}


def profile(world: World, side: Side) -> Params:
    return {"profile": side.name}


def session(world: World, side: Side) -> Params:
    return {"session_id": side.session}


def passing(world: World, side: Side) -> Params:
    """A session that the call may change or end."""
    return {"session_id": world.fresh_session(side)}


def but(example: Example, **more: Any) -> Example:
    return lambda world, side: {**example(world, side), **more}


def question(world: World, side: Side) -> str:
    return f"srq-{side.origin}-1"


def fresh() -> str:
    return uuid.uuid4().hex


def secret_value() -> str:
    return f"fresh-{uuid.uuid4().hex}"


METHODS: Mapping[str, Example] = {
    "approval.respond": lambda w, s: {"id": question(w, s), "choice": "once"},
    "approvals.explain": but(session, command="rm -rf build"),
    "agent.delete": lambda w, s: {"profile": s.name, "name": f"none-{fresh()}"},
    "agent.get": but(profile, name=AGENT),
    "agent.list": profile,
    "agent.put": but(profile, name="made", text="---\nname: made\ndescription: made\n---\nBe.\n"),
    "blob.get": lambda w, s: {"profile": s.name, "blob": s.blob},
    "blob.put": lambda w, s: {
        "profile": s.name, "upload": fresh(), "offset": 0, "size": 5, "data": base64.b64encode(b"bytes").decode(),
    },
    "clarify.respond": lambda w, s: {"id": question(w, s), "answers": {"0": "yes"}},
    "client.capabilities": lambda w, s: {"client": {"name": "leak"}, "protocol": {"major": 1, "minor": 0}},
    "command.dispatch": lambda w, s: {"session_id": s.session, "name": "status"},
    "commands.catalog": profile,
    "complete.path": lambda w, s: {"session_id": s.session, "word": "no"},
    "complete.slash": lambda w, s: {"profile": s.name, "text": "/"},
    "config.get": profile,
    "config.set": but(profile, key="display.skin", value="plain"),
    "config.show": profile,
    "connection.respond": lambda w, s: {"profile": s.name, "op_id": question(w, s), "result": {"targets": {}}},
    "connectors.operation.status": lambda w, s: {"profile": s.name, "op_id": question(w, s)},
    "gateway.ping": nothing,
    "insights.get": profile,
    "mcp.restart": but(session, server="none"),
    "mcp.status": session,
    "memory.get": profile,
    "memory.set": but(profile, target="memory", text="a memory"),
    "model.check": profile,
    "model.disconnect": but(profile, slug="mine"),
    "model.options": profile,
    "model.save_key": lambda w, s: {"profile": s.name, "slug": "mine", "api_key": secret_value()},
    "process.follow": lambda w, s: {"profile": s.name, "process_id": s.process or f"{s.origin}-none"},
    "process.input": lambda w, s: {"profile": s.name, "process_id": s.process or f"{s.origin}-none", "text": "x\n"},
    "process.kill": lambda w, s: {"profile": s.name, "process_id": s.process or f"{s.origin}-none"},
    "process.list": profile,
    "process.output": lambda w, s: {"profile": s.name, "process_id": s.process or f"{s.origin}-none"},
    "profiles.adopt": lambda w, s: {"profile": w.fresh_profile()},
    "profiles.clone": lambda w, s: {"profile": s.name, "name": f"x{fresh()[:12]}", "include": ["soul"]},
    "profiles.configure": but(profile, soul="You are changed."),
    "profiles.confirm": profile,
    "profiles.create": lambda w, s: {"name": f"x{fresh()[:12]}", "git_identity": False},
    "profiles.delete": lambda w, s: (lambda name: {"profile": name, "confirm": name})(w.fresh_profile()),
    "profiles.describe": profile,
    "profiles.export": lambda w, s: {"profile": s.name, "include": ["config"]},
    "profiles.import": lambda w, s: {
        "path": w.owner.call("profiles.export", profile=s.name, include=["config"])["path"], "name": f"x{fresh()[:12]}",
    },
    "profiles.list": nothing,
    "profiles.rename": lambda w, s: {"profile": w.fresh_profile(), "name": f"x{fresh()[:12]}"},
    "prompt.cancel": lambda w, s: {"session_id": s.session, "admission_id": s.admission},
    "prompt.receipt": lambda w, s: {"session_id": s.session, "input_id": s.input},
    "prompt.resolve_unknown": lambda w, s: {
        "session_id": s.session, "admission_id": s.admission, "execution_generation": 1, "outcome": "failed",
    },
    "prompt.submit": lambda w, s: {"session_id": s.session, "input_id": fresh(), "text": "/do say again"},
    "question.answer": lambda w, s: {"id": question(w, s), "result": {"choice": "once"}},
    "question.list": profile,
    "reload.env": profile,
    "render.markdown": lambda w, s: {"text": "*words*"},
    "rollback.diff": but(session, hash="0" * 40),
    "rollback.list": session,
    "rollback.restore": but(session, hash="0" * 40),
    "rpc.discover": nothing,
    "runtime.audit": profile,
    "runtime.describe": nothing,
    "runtime.statistics": nothing,
    "schedule.create": but(profile, prompt="again", every_s=3600),
    "schedule.delete": but(profile, schedule_id="none"),
    "schedule.list": profile,
    "schedule.pause": but(profile, schedule_id="none"),
    "schedule.resume": but(profile, schedule_id="none"),
    "schedule.run": but(profile, schedule_id="none"),
    "secret.respond": lambda w, s: {"id": question(w, s), "value": secret_value()},
    "secrets.names": profile,
    "secrets.set": lambda w, s: {"profile": s.name, "name": "FRESH", "value": secret_value()},
    "session.active_list": profile,
    "session.close": passing,
    "session.create": but(profile, title="another"),
    "session.events.since": but(session, after="1:0"),
    "session.export": session,
    "session.graph": session,
    "session.info": session,
    "session.interrupt": but(session, execution_generation=1),
    "session.list": profile,
    "session.most_recent": profile,
    "session.mutate": lambda w, s: {
        "session_id": s.session, "request_id": fresh(), "expected_revision": 1, "operation": "rename",
        "payload": {"title": TITLE},
    },
    "session.resume": lambda w, s: {"profile": s.name, "title": TITLE},
    "session.search": lambda w, s: {"profile": s.name, "query": "canary"},
    "session.steer": but(session, execution_generation=1, text="left"),
    "session.usage": session,
    "setup.status": profile,
    "skills.list": profile,
    "skills.view": but(profile, name=SKILL),
    "slash.exec": lambda w, s: {"session_id": s.session, "command": "status"},
    "subagent.interrupt": but(session, subagent_id="none"),
    "subagent.list": session,
    "subagent.steer": but(session, subagent_id="none", text="left"),
    "subagent.tail": but(session, subagent_id="none"),
    "sudo.respond": lambda w, s: {"id": question(w, s), "value": secret_value()},
    "terminal.attach": lambda w, s: {"profile": s.name, "terminal_id": s.terminal or f"{s.origin}-none"},
    "terminal.close": lambda w, s: {"profile": s.name, "terminal_id": f"{s.origin}-none"},
    "terminal.input": lambda w, s: {
        "profile": s.name, "terminal_id": s.terminal or f"{s.origin}-none", "data": base64.b64encode(b"x").decode(),
    },
    "terminal.list": profile,
    "terminal.open": but(profile, command=["/bin/true"]),
    "terminal.resize": lambda w, s: {
        "profile": s.name, "terminal_id": s.terminal or f"{s.origin}-none", "rows": 24, "columns": 80,
    },
    "thread.create": session,
    "thread.delete": lambda w, s: {"session_id": w.fresh_session(s)},
    "thread.fork": session,
    "thread.list": session,
    "thread.messages": session,
    "thread.rename": but(passing, title="renamed"),
    "thread.state": session,
    "thread.subscribe": session,
    "thread.unsubscribe": session,
    "ticket.issue": nothing,
    "token.create": lambda w, s: {"name": f"t{fresh()[:12]}", "profiles": [s.name], "rights": ["observe"]},
    "token.list": nothing,
    "token.revoke": lambda w, s: {"token_id": "none"},
    "vault.add": lambda w, s: {
        "profile": s.name, "kind": "login", "label": "mail", "secret": {"password": secret_value()},
    },
    "vault.list": profile,
    "vault.lock": profile,
    "vault.remove": but(profile, id="none"),
    "vault.sources": profile,
    "vault.unlock": but(profile, password="a password of the vault"),
}  # fmt: skip
"""By name of the method."""

ALONE = frozenset({"runtime.drain"})
"""Methods that end the server: called in a test of their own, as the last thing that it does."""

TOOLS: Mapping[str, Callable[[World, Side], Params]] = {
    "terminal": lambda w, s: {"command": "env; pwd; ls -la; cat notes.txt; ls /proc"},
    "process": lambda w, s: {"action": "list"},
    "read_file": lambda w, s: {"path": FILE},
    "write_file": lambda w, s: {"path": "written.txt", "content": "words"},
    "patch": lambda w, s: {"path": "written.txt", "edits": [{"old": "words", "new": "words"}]},
    "list_files": lambda w, s: {"path": "."},
    "search_files": lambda w, s: {"pattern": "canary"},
    "clarify": lambda w, s: {"questions": [{"question": "Which?", "options": ["a", "b"]}]},
    "todo": lambda w, s: {"items": [{"text": "first", "state": "open"}]},
    "memory": lambda w, s: {"action": "read"},
    "session_search": lambda w, s: {"query": "canary"},
    "delegate_task": lambda w, s: {"task": "/do say delegated"},
    "request_connection": lambda w, s: {"targets": [{"name": "mail"}]},
    "request_secret": lambda w, s: {"name": "FRESH", "prompt": "to log in"},
    "run_with_login": lambda w, s: {"origin": "https://mail.example", "command": "true"},
    "skills_list": lambda w, s: {},
    "skill_view": lambda w, s: {"name": SKILL},
}
"""By name of the tool, the arguments of a call."""

SEEN = "seen"
EVENTS: Mapping[str, str] = {
    "gateway.ready": "the first frame, searched when connections are made",
    "gateway.draining": "carries a deadline; searched when the server ends",
    "profiles.changed": SEEN,
    "skin.changed": "colours by a name; searched when it comes",
    "tool.generating": "the name of a tool; searched when it comes",
    "status.update": "a sentence on what is waited for; searched when it comes",
    "sessions.changed": "carries an id of the profile's own session; searched when it comes",
    "session.info": "tells a session about itself; searched when it comes",
    "session.closed": SEEN,
    "thread.rebased": "carries a number",
    "thread.forked": "carries ids of the session's own; searched when it comes",
    "execution.queued": SEEN,
    "execution.started": SEEN,
    "execution.finished": SEEN,
    "execution.lost": "carries an id and a number; searched in the order A, B, A after a kill",
    "message.start": SEEN,
    "message.delta": SEEN,
    "message.complete": SEEN,
    "reasoning.delta": SEEN,
    "reasoning.complete": SEEN,
    "tool.start": SEEN,
    "tool.progress": SEEN,
    "tool.complete": SEEN,
    "request.opened": SEEN,
    "request.settled": SEEN,
    "request.cancel": "carries an id; searched when it comes",
    "subagent.start": "searched when a task is delegated",
    "subagent.progress": "what stands in the subagent's own thread; searched when a task is delegated",
    "subagent.complete": "searched when a task is delegated",
    "compaction.start": "carries numbers; searched when it comes",
    "compaction.complete": "a summary of the thread's own messages; searched when it comes",
    "usage.update": SEEN,
    "process.exited": "carries an id and a status; searched when it comes",
    "process.output": "what the agent's command wrote, redacted; searched when it comes",
    "process.ended": "carries an id and a status; searched when it comes",
    "terminal.output": SEEN,
    "terminal.resized": "carries an id and a size; searched when it comes",
    "terminal.exited": "carries an id and a status; searched when it comes",
    "connection.request": "names what the agent asked to connect; searched when the tool request_connection is called",
    "connection.update": "the state of such a request; searched when it comes",
    "notice": "a sentence about the connection's own request; searched when it comes",
}
"""By type of the event."""
