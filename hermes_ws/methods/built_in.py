"""The commands that are there in every profile: what each tells about the session that it was typed in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final, final

from hermes_ws.agent import definition, memory, skills
from hermes_ws.agent.compaction import tokens_of
from hermes_ws.contract.methods.mutations import MutateParams
from hermes_ws.contract.methods.schedules import ScheduleRow
from hermes_ws.contract.methods.slash import SLASH_EXEC, CommandRow
from hermes_ws.journal import insights, summaries
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.messages import new_id
from hermes_ws.methods.authority import demand
from hermes_ws.methods.ports import SessionCall
from hermes_ws.scope.current import in_thread
from hermes_ws.session import commands
from hermes_ws.session.identifiers import MAIN_THREAD
from hermes_ws.session.info import session_info
from hermes_ws.session.roster import Roster


@final
@dataclass(frozen=True, slots=True)
class BuiltIn:
    """One command. `run` gives what is shown."""

    name: str
    description: str
    run: Callable[[SessionCall, str], Awaitable[str]]
    usage: str = ""

    @property
    def row(self) -> CommandRow:
        """The command in a catalog."""
        return CommandRow(name=f"/{self.name}", description=self.description, kind="built-in", usage=self.usage)


async def _help(call: SessionCall, arg: str) -> str:
    known = [each.row for each in BUILT_IN.values()]
    known += await in_thread(call.runtime.limiter, commands.rows, call.runtime.scope)
    return "\n".join(f"{row.name} {row.usage}".strip() + f" — {row.description}" for row in known)


async def _status(call: SessionCall, arg: str) -> str:
    info = session_info(call.session.record, call.runtime.scope)
    lines = [f"{name}: {value}" for name, value in info.items() if value not in (None, "", {})]
    lines.append(f"state: {'at work' if call.session.busy else 'idle'}")
    return "\n".join([f"session: {call.session.session_id}", f"profile: {call.runtime.scope.profile.text}", *lines])


async def _context(call: SessionCall, arg: str) -> str:
    key = ThreadKey(call.session.session_id, MAIN_THREAD)
    history = await call.runtime.journal.read(lambda connection: summaries.history(connection, key))
    used, limit = tokens_of(history), call.runtime.scope.config.model.context_tokens
    return f"about {used:,} of {limit:,} tokens ({used * 100 // limit} %), in {len(history)} messages"


async def _usage(call: SessionCall, arg: str) -> str:
    total = await call.runtime.journal.read(lambda connection: insights.of_session(connection, call.session.session_id))
    return (
        f"{total.executions} executions, {total.input_tokens:,} tokens in (of these {total.cached_tokens:,} cached), "
        f"{total.output_tokens:,} out"
    )


async def _version(call: SessionCall, arg: str) -> str:
    return f"{call.facts.info.name} {call.facts.info.version}"


async def _profile(call: SessionCall, arg: str) -> str:
    scope = call.runtime.scope
    return f"{scope.profile.text} in {scope.home.path}"


async def _memory(call: SessionCall, arg: str) -> str:
    home = call.runtime.home
    kept = await in_thread(call.runtime.limiter, lambda: (memory.read(home, "memory"), memory.read(home, "user")))
    return f"MEMORY.md:\n{kept[0] or '(empty)'}\n\nUSER.md:\n{kept[1] or '(empty)'}"


async def _skills(call: SessionCall, arg: str) -> str:
    found = await in_thread(call.runtime.limiter, skills.list, call.runtime.home)
    return "\n".join(f"{each.name} — {each.problem or each.description}" for each in found) or "There are no skills."


async def _agents(call: SessionCall, arg: str) -> str:
    names = await in_thread(call.runtime.limiter, definition.list_names, call.runtime.home)
    return "\n".join(names)


async def _subagents(call: SessionCall, arg: str) -> str:
    rows = await Roster(call.runtime, call.session, call.runtime.scope).rows()
    lines = [f"{row.subagent_id} {row.status}: {row.goal[:100]}" for row in rows]
    return "\n".join(lines) or "No subagent has worked for this session."


async def _schedules(call: SessionCall, arg: str) -> str:
    rows = await call.runtime.schedules.list()
    return "\n".join(map(_schedule, rows)) or "Nothing is scheduled in this profile."


def _schedule(row: ScheduleRow) -> str:
    often = row.cron if row.cron is not None else "once" if row.every_s is None else f"every {row.every_s} s"
    when = row.state if row.next_at is None else f"next {datetime.fromtimestamp(row.next_at, UTC):%Y-%m-%d %H:%M} UTC"
    words = [f"{row.schedule_id} ({often}, {when}): {row.title or ' '.join(row.prompt.split())[:100]}"]
    words += [f"last in {row.last_session_id}"] if row.last_session_id is not None else []
    words += [row.last_problem] if row.last_problem else []
    return " — ".join(words)


async def _title(call: SessionCall, arg: str) -> str:
    if not arg:
        return call.session.record.title or "The session has no title."
    await _edit(call, "rename", {"title": arg[:200]})
    return f"The session is called {arg[:200]}."


async def _compress(call: SessionCall, arg: str) -> str:
    result = await _edit(call, "compress", {"focus": arg[:2000]} if arg else {})
    if not result.get("compressed"):
        return "There is nothing to summarise yet."
    return f"{result['covered']} messages were summarised:\n\n{result['summary']}"


async def _model(call: SessionCall, arg: str) -> str:
    if not arg:
        info = session_info(call.session.record, call.runtime.scope)
        return f"{info['provider']}: {info['model']}"
    provider, _, name = arg.rpartition(":")
    payload = {"model": name, "provider": provider or None}
    await _edit(call, "model", payload)
    return f"From the next turn on: {arg}"


async def _edit(call: SessionCall, operation: str, payload: Mapping[str, object]) -> Mapping[str, object]:
    """Edit the session as `session.mutate` would, for somebody who may."""
    demand(call, SLASH_EXEC, "command")
    params = MutateParams.model_validate(
        {
            "session_id": call.session.session_id,
            "request_id": new_id(),
            "expected_revision": call.session.record.revision,
            "operation": operation,
            "payload": dict(payload),
        }
    )
    return (await call.runtime.sessions.mutate(params, call.principal.name)).result


_ROWS: Final = (
    BuiltIn("help", "The commands that there are", _help),
    BuiltIn("status", "What this session is and does", _status),
    BuiltIn("context", "How full the model's context is", _context),
    BuiltIn("usage", "What this session has consumed", _usage),
    BuiltIn("model", "Which model answers, or another one from now on", _model, "[provider:][model]"),
    BuiltIn("title", "What this session is called, or another name", _title, "[title]"),
    BuiltIn("compress", "Put a summary in the place of the older messages", _compress, "[what to keep]"),
    BuiltIn("memory", "What the agents have noted", _memory),
    BuiltIn("skills", "The skills of this profile", _skills),
    BuiltIn("agents", "The agents of this profile", _agents),
    BuiltIn("subagents", "Who works or has worked for this session", _subagents),
    BuiltIn("schedules", "What this profile does at its times", _schedules),
    BuiltIn("profile", "Which profile this is", _profile),
    BuiltIn("version", "Which server this is", _version),
)

BUILT_IN: Final[Mapping[str, BuiltIn]] = MappingProxyType({each.name: each for each in _ROWS})
