"""The commands of the view that go beyond talking: edits of the session, another session, and what the server knows."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from difflib import get_close_matches
from typing import Final, final

from pydantic import JsonValue, ValidationError

from hermes_ws.cli.commands import IN_VIEW, Command, Discard, Edit, New, Say, Slash, Tools, Undo, Usage, Yolo, parse
from hermes_ws.cli.mutating import Mutations
from hermes_ws.cli.opening import UNKNOWN_METHOD, Opened, Undecided, Wanted, made
from hermes_ws.cli.sanitise import harmless
from hermes_ws.cli.screen import Screen, Style
from hermes_ws.cli.view import View
from hermes_ws.client.failures import ClientError, OutcomeUnknown, RemoteError
from hermes_ws.client.link import Link
from hermes_ws.contract.methods.config import CONFIG_SET, ConfigSetParams
from hermes_ws.contract.methods.mutations import Mutated
from hermes_ws.contract.methods.prompts import PROMPT_RECEIPT, PROMPT_RESOLVE_UNKNOWN, ReceiptParams, ResolveParams
from hermes_ws.contract.methods.runtime import RUNTIME_DESCRIBE
from hermes_ws.contract.methods.session_views import SESSION_INFO, OfSession, SessionDescription
from hermes_ws.contract.methods.sessions import SESSION_CREATE, CreateParams
from hermes_ws.contract.methods.slash import SLASH_EXEC, Directive, SlashParams
from hermes_ws.contract.model import Empty

COMMANDS_HINT: Final = (
    "/help shows the commands of this view, /commands those of the server; what each client does with each stands in "
    "docs/reference/commands.md."
)

SLASH_SECONDS: Final = 660.0
"""A command of the server may make a summary, or run the user's own command line."""


@final
class Acting:
    """The commands of one session's view. `next` is the session that the view is to move to."""

    def __init__(self, view: View, out: Screen, err: Screen, wanted: Wanted, give_back: Callable[[str], None]) -> None:
        self._view = view
        self._out = out
        self._err = err
        self._wanted = wanted
        self._give_back = give_back
        self._consent: tuple[str, str] | None = None
        self._unsure: tuple[str, CreateParams] | None = None
        self.mutations = Mutations(view)
        self.next: Opened | None = None

    async def act(self, command: Command, line: str, link: Link, opened: Opened) -> Command | None:
        """Carry it out. Gives what is to be done instead, where the server says so. Raises ClientError."""
        if self._unsure is not None and self._unsure[0] != line:
            self._unsure = None
        match command:
            case Discard():
                await self._discard(command.id, link, opened)
            case Edit():
                await self._edit(command, line, link, opened)
            case Undo():
                await self._undo(command.count, line, link, opened)
            case Yolo():
                await self._yolo(command.on, link, opened)
            case New():
                self.next = await self._new(command.title, line, link, opened)
            case Usage():
                await self._usage(command.line, link, opened)
            case Tools():
                chosen = (await self._info(link, opened)).launch.get("toolsets")
                names = ", ".join(str(each) for each in chosen) if isinstance(chosen, list) else ""
                self._out.line(f"toolsets: {harmless(names) or 'those of its agent and profile'}")
            case Slash():
                return self._directed(await self._slash(command.line, link, opened), line)
            case _:
                raise ClientError("That is no command here.")
        return None

    # --- edits -----------------------------------------------------------------------------------------------------

    async def _edit(self, command: Edit, line: str, link: Link, opened: Opened) -> None:
        done = await self._mutate(command.operation, dict(command.payload), line, link, opened)
        result = done.result
        match command.operation:
            case "rename":
                self._out.line(f"The session is called {harmless(str(result.get('title')))}.")
            case "model":
                self._out.line(f"From the next turn on: {harmless(str(result.get('model')))}")
            case "retry":
                admission = result.get("admission_id")
                if isinstance(admission, str):
                    self._view.submitted("", admission)
            case "compress":
                self._compressed(result)
            case "branch":
                self.next = await self._branched(result, opened)

    def _compressed(self, result: dict[str, JsonValue]) -> None:
        if not result.get("summary"):
            self._out.line("There is nothing to summarise yet.")
            return
        did = "were summarised" if result.get("compressed") else "would be summarised"
        self._out.line(f"{result.get('covered')} messages {did}:")
        self._out.line(harmless(str(result["summary"])))

    async def _branched(self, result: dict[str, JsonValue], opened: Opened) -> Opened:
        session_id, thread_id, cursor = (str(result.get(name)) for name in ("session_id", "thread_id", "cursor"))
        revision = result.get("revision")
        info = result.get("info")
        return Opened(
            session_id,
            thread_id,
            opened.profile,
            cursor,
            info=info if isinstance(info, dict) else {},
            revision=revision if isinstance(revision, int) else 1,
        )

    async def _undo(self, count: int, line: str, link: Link, opened: Opened) -> None:
        if len(self._view.said) < count:
            self._err.line("There is nothing to take back." if not self._view.said else "So much was not said here.")
            return
        message_id, _ = self._view.said[-count]
        done = await self._mutate("rewind", {"message_id": message_id}, line, link, opened)
        self._out.line("Taken back. It was:", Style.DIM)
        self._give_back(str(done.result.get("text", "")))

    async def _mutate(
        self, operation: str, payload: dict[str, JsonValue], line: str, link: Link, opened: Opened
    ) -> Mutated:
        consent = self._consent[1] if self._consent is not None and self._consent[0] == line else None
        self._consent = None
        try:
            return await self.mutations.carry_out(link, opened, line, operation, payload, consent)
        except RemoteError as error:
            token = error.data.get("consent")
            if error.type == "consent_required" and isinstance(token, str) and consent is None:
                self._consent = (line, token)
                raise Undecided(error.message, hint="Type the same once more to agree.") from None
            raise
        except ValidationError:
            raise ClientError("That cannot be meant like that; /help shows how.") from None

    # --- around the session ----------------------------------------------------------------------------------------

    async def _discard(self, id: str, link: Link, opened: Opened) -> None:
        generation = self._view.lost_rows.get(id)
        if generation is None:
            self._err.line(f"No lost execution {harmless(id)} was shown here.", Style.WARNING)
            return
        params = ResolveParams(session_id=opened.session_id, admission_id=id, execution_generation=generation)
        await link.call(PROMPT_RESOLVE_UNKNOWN, params)
        self._view.resolved(id)
        self._out.line(f"{harmless(id)} is given up; what waits behind it goes on.")

    async def _yolo(self, on: bool | None, link: Link, opened: Opened) -> None:
        options = self._view.info.get("options")
        now = isinstance(options, dict) and bool(options.get("yolo"))
        wanted = not now if on is None else on
        await link.call(
            CONFIG_SET, ConfigSetParams(key="yolo", value=wanted, scope="session", session_id=opened.session_id)
        )
        self._out.line(f"This session asks for {'no approvals' if wanted else 'approvals again'}.")

    async def _new(self, title: str | None, line: str, link: Link, opened: Opened) -> Opened:
        params = self._unsure[1] if self._unsure is not None else await self._like(title, link, opened)
        self._unsure = None
        try:
            return made(await link.call(SESSION_CREATE, params))
        except OutcomeUnknown as error:
            self._unsure = (line, params)
            error.hint = "Type the same once more to learn what became of it; it is made once."
            raise

    async def _like(self, title: str | None, link: Link, opened: Opened) -> CreateParams:
        known = await self._info(link, opened)
        described = await link.call(RUNTIME_DESCRIBE, Empty())
        asked: dict[str, JsonValue] = {
            **known.launch,
            "agent": known.agent,
            "source": known.source,
            "cwd": None if known.launch.get("safe_mode") else known.cwd,
            "title": title,
            "api_key": self._wanted.frozen.get("api_key"),
        }
        offered = {name for name in described.session_create.parameters if name in CreateParams.model_fields}
        given = {name: value for name, value in asked.items() if name in offered and value is not None}
        try:
            return CreateParams.model_validate(
                {"profile": opened.profile, "request_id": uuid.uuid4().hex, "subscribe": False, **given}
            )
        except ValidationError:
            raise ClientError(
                "The session was made with a key that this terminal does not have.",
                hint="Begin one with hermes-ws chat --base-url URL --api-key KEY.",
            ) from None

    async def _usage(self, line: str, link: Link, opened: Opened) -> None:
        told = await self._slash(line, link, opened)
        self._out.line(harmless(told.output))
        last = self._view.last_admission
        if last is None:
            return
        receipt = await link.call(PROMPT_RECEIPT, ReceiptParams(session_id=opened.session_id, admission_id=last))
        if receipt.usage is not None:
            used = receipt.usage
            self._out.line(
                f"Last turn: {used.input_tokens:,} tokens in, {used.output_tokens:,} out, {used.duration_ms} ms"
            )

    # --- the server's own ------------------------------------------------------------------------------------------

    async def _slash(self, line: str, link: Link, opened: Opened) -> Directive:
        try:
            params = SlashParams(session_id=opened.session_id, command=line)
            return await link.call(SLASH_EXEC, params, deadline_s=SLASH_SECONDS)
        except ValidationError:
            raise ClientError("That is too long for a command.") from None
        except RemoteError as error:
            if error.type == "not_found":
                raise ClientError(_unknown(line, error.message), hint=COMMANDS_HINT) from None
            if error.code != UNKNOWN_METHOD:
                raise
            raise ClientError(f"{line.partition(' ')[0]} is not available on this server.") from None

    def _directed(self, told: Directive, line: str) -> Command | None:
        match told.type:
            case "exec":
                self._out.line(harmless(told.output))
                return None
            case "prefill":
                self._give_back(told.message)
                return None
            case "alias":
                target = parse(told.target)
                if isinstance(target, Slash) and target.line == line:
                    raise ClientError(f"{line} stands for itself.")
                return target
            case "send" | "skill":
                return Say(told.message)

    async def _info(self, link: Link, opened: Opened) -> SessionDescription:
        return await link.call(SESSION_INFO, OfSession(session_id=opened.session_id))


def _unknown(line: str, told: str) -> str:
    """That there is no such command, and the one of this view that may have been meant; else what the server says."""
    word = line.partition(" ")[0]
    near = get_close_matches(word, [f"/{name}" for name, _ in IN_VIEW], n=1)
    return f"There is no command {harmless(word)}. Did you mean {near[0]}?" if near else told
