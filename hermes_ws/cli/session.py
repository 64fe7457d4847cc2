"""`hermes-ws session`: looking at sessions and looking after them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from hermes_ws.cli.profile import agree

if TYPE_CHECKING:
    from hermes_ws.cli.asking import Caller
    from hermes_ws.contract.methods.sessions import SessionList
    from hermes_ws.contract.methods.threads import Snapshot

as_json = click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
of_profile = click.option("-p", "--profile", metavar="NAME", help="Of this profile; else of the launch profile.")


@click.group(
    epilog="""\b
Examples:
  hermes-ws session list --json | jq -r '.sessions[].session_id'
  hermes-ws session search "data base"
  hermes-ws session export "Nightly" > nightly.md"""
)
def session() -> None:
    """Look at sessions, take them along, remove them."""


@session.command("list", epilog="\b\nExamples:\n  hermes-ws session list --all")
@of_profile
@click.option("--all", "everywhere", is_flag=True, help="Of all profiles.")
@click.option("--archived", is_flag=True, help="Those that were put away.")
@click.option("-n", "--limit", type=click.IntRange(1, 200), default=50, show_default=True)
@as_json
def list_(profile: str | None, everywhere: bool, archived: bool, limit: int, as_json: bool) -> None:
    """Show sessions, the newest first."""
    from hermes_ws.cli.asking import PATIENCE, run
    from hermes_ws.cli.sanitise import one_line
    from hermes_ws.cli.screen import Screen
    from hermes_ws.contract.methods.sessions import SESSION_LIST, ListParams

    async def ask(caller: Caller, own: str | None) -> SessionList:
        params = ListParams(profile="*" if everywhere else profile or own, archived=archived, limit=limit)
        return await caller.call(SESSION_LIST, params, deadline_s=PATIENCE)

    def show(answer: SessionList, out: Screen) -> None:
        for row in answer.sessions:
            owner = f"{row.profile}  " if everywhere else ""
            state = "" if row.state == "idle" else f"({row.state}) "
            out.line(one_line(f"{row.session_id}  {owner}{state}{row.title or row.preview}", out.columns))

    sys.exit(run(ask, show, as_json=as_json))


@session.command(epilog="\b\nExamples:\n  hermes-ws session search migration --json")
@click.argument("words", nargs=-1, required=True)
@of_profile
@as_json
def search(words: tuple[str, ...], profile: str | None, as_json: bool) -> None:
    """Find messages that have all the WORDS."""
    from hermes_ws.cli.asking import PATIENCE, run
    from hermes_ws.cli.sanitise import one_line
    from hermes_ws.cli.screen import Screen, Style
    from hermes_ws.contract.methods.search import SESSION_SEARCH, SearchHits, SearchParams

    async def ask(caller: Caller, own: str | None) -> SearchHits:
        params = SearchParams(query=" ".join(words), profile=profile or own)
        return await caller.call(SESSION_SEARCH, params, deadline_s=PATIENCE)

    def show(answer: SearchHits, out: Screen) -> None:
        for hit in answer.hits:
            out.line(one_line(f"{hit.session_id}  {hit.title or ''}", out.columns), Style.STRONG)
            out.line(one_line(f"  {hit.role}: {hit.snippet}", out.columns))

    sys.exit(run(ask, show, as_json=as_json))


@session.command(epilog="\b\nExamples:\n  hermes-ws session show Nightly")
@click.argument("named", metavar="ID|TITLE")
@of_profile
@as_json
def show(named: str, profile: str | None, as_json: bool) -> None:
    """Show a session and what it waits for."""
    from hermes_ws.cli.asking import run
    from hermes_ws.cli.question_text import describe
    from hermes_ws.cli.sanitise import harmless
    from hermes_ws.cli.screen import Screen, Style

    async def ask(caller: Caller, own: str | None) -> Snapshot:
        return await _resume(caller, named, profile or own, messages=True)

    def shown(answer: Snapshot, out: Screen) -> None:
        out.line(f"{answer.session_id}  {harmless(str(answer.info.get('title') or ''))}", Style.STRONG)
        for message in answer.messages or []:
            if message.role != "tool" and message.text:
                out.line(f"{message.role}: {harmless(message.text)}")
        if answer.execution is not None:
            out.line(f"{answer.execution.state}: {answer.execution.admission_id}")
        for row in answer.pending:
            out.line(f"{row.status}: {row.admission_id}", Style.WARNING)
        for question in answer.questions:
            for line in describe(question):
                out.line(line)

    sys.exit(run(ask, shown, as_json=as_json))


@session.command(epilog="\b\nExamples:\n  hermes-ws session export Nightly --format json > nightly.json")
@click.argument("named", metavar="ID|TITLE")
@click.option("--format", "shape", type=click.Choice(["markdown", "json"]), default="markdown", show_default=True)
@of_profile
def export(named: str, shape: str, profile: str | None) -> None:
    """Print a session, to read or to keep."""
    from hermes_ws.cli.asking import PATIENCE, run
    from hermes_ws.cli.screen import Screen
    from hermes_ws.contract.methods.session_views import SESSION_EXPORT, Exported, ExportParams

    async def ask(caller: Caller, own: str | None) -> Exported:
        found = await _resume(caller, named, profile or own)
        params = ExportParams.model_validate({"session_id": found.session_id, "format": shape})
        exported = await caller.call(SESSION_EXPORT, params, deadline_s=PATIENCE)
        if exported.text is None:
            text = await _whole(caller, exported.blob or "", found.profile)
            return exported.model_copy(update={"text": text})
        return exported

    def shown(answer: Exported, out: Screen) -> None:
        sys.stdout.write(answer.text or "")

    sys.exit(run(ask, shown, as_json=False))


@session.command(epilog="\b\nExamples:\n  hermes-ws session discard Nightly --yes")
@click.argument("named", metavar="ID|TITLE")
@click.option("--admission", "admissions", metavar="ID", multiple=True, help="This lost execution alone.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@of_profile
def discard(named: str, admissions: tuple[str, ...], yes: bool, profile: str | None) -> None:
    """Give up executions that were lost when a server ended. Nothing is repeated."""
    from hermes_ws.cli.asking import PATIENCE, run
    from hermes_ws.cli.screen import Screen
    from hermes_ws.contract.methods.prompts import PROMPT_RESOLVE_UNKNOWN, ResolveParams

    agree(f"Give up what was lost in {named}?", yes=yes)
    done: list[str] = []

    async def ask(caller: Caller, own: str | None) -> Snapshot:
        found = await _resume(caller, named, profile or own)
        for row in found.pending:
            wanted = row.status == "unknown" and (not admissions or row.admission_id in admissions)
            if wanted and row.execution_generation is not None:
                params = ResolveParams(
                    session_id=found.session_id,
                    admission_id=row.admission_id,
                    execution_generation=row.execution_generation,
                )
                await caller.call(PROMPT_RESOLVE_UNKNOWN, params, deadline_s=PATIENCE)
                done.append(row.admission_id)
        return found

    def shown(answer: Snapshot, out: Screen) -> None:
        for each in done:
            out.line(f"given up: {each}")
        if not done:
            out.line("Nothing was lost there.")

    sys.exit(run(ask, shown, as_json=False))


@session.command(epilog="\b\nExamples:\n  hermes-ws session delete Nightly --yes")
@click.argument("named", metavar="ID|TITLE")
@click.option("--yes", is_flag=True, help="Do not ask.")
@of_profile
def delete(named: str, yes: bool, profile: str | None) -> None:
    """Remove a session with all that is in it, for good."""
    import uuid

    from hermes_ws.cli.asking import PATIENCE, run
    from hermes_ws.cli.screen import Screen
    from hermes_ws.contract.methods.mutations import SESSION_MUTATE, Mutated, MutateParams

    agree(f"Remove the session {named}, for good?", yes=yes)

    async def ask(caller: Caller, own: str | None) -> Mutated:
        found = await _resume(caller, named, profile or own)
        params = MutateParams(
            session_id=found.session_id,
            request_id=uuid.uuid4().hex,
            expected_revision=found.revision,
            operation="delete",
            consent=None,
        )
        return await _agreed(lambda consent: params.model_copy(update={"consent": consent} if consent else {}), caller)

    async def _agreed(build: Callable[[str | None], MutateParams], caller: Caller) -> Mutated:
        from hermes_ws.client.failures import RemoteError

        try:
            return await caller.call(SESSION_MUTATE, build(None), deadline_s=PATIENCE)
        except RemoteError as error:
            token = error.data.get("consent")
            if error.type != "consent_required" or not isinstance(token, str):
                raise
            return await caller.call(SESSION_MUTATE, build(token), deadline_s=PATIENCE)

    def shown(answer: Mutated, out: Screen) -> None:
        out.line(f"removed: {answer.session_id}")

    sys.exit(run(ask, shown, as_json=False))


async def _resume(caller: Caller, named: str, profile: str | None, *, messages: bool = False) -> Snapshot:
    from hermes_ws.cli.asking import PATIENCE
    from hermes_ws.cli.opening import is_identifier
    from hermes_ws.client.failures import RemoteError
    from hermes_ws.contract.methods.sessions import SESSION_RESUME, ResumeParams

    base: dict[str, object] = {"messages": messages, **({"profile": profile} if profile is not None else {})}
    if is_identifier(named):
        try:
            params = ResumeParams.model_validate({"session_id": named, **base})
            return await caller.call(SESSION_RESUME, params, deadline_s=PATIENCE)
        except RemoteError as error:
            if error.type != "session_unknown":
                raise
    params = ResumeParams.model_validate({"title": named, **base})
    return await caller.call(SESSION_RESUME, params, deadline_s=PATIENCE)


async def _whole(caller: Caller, blob: str, profile: str) -> str:
    """A content that does not fit into an answer, piece by piece."""
    import base64

    from hermes_ws.cli.asking import PATIENCE
    from hermes_ws.contract.methods.blobs import BLOB_GET, GetParams

    data = bytearray()
    offset: int | None = 0
    while offset is not None:
        params = GetParams(blob=blob, offset=offset, profile=profile)
        piece = await caller.call(BLOB_GET, params, deadline_s=PATIENCE)
        data += base64.b64decode(piece.data)
        offset = piece.next
    return data.decode("utf-8")
