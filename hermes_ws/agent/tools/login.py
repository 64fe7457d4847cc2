"""The tool that runs a command with a person's login to a site. The login goes from the vault into the command's
environment; the model sees neither it nor what is like it in the output. A person looks at each such command."""

from __future__ import annotations

from typing import Annotated, Final

import trio
from pydantic import Field, StringConstraints

from hermes_ws.agent.deeds import ToolOutcome
from hermes_ws.agent.ports import Login, NoAnswerer, Pipe, QuestionExpired
from hermes_ws.agent.tools.output import fit
from hermes_ws.agent.tools.tool import Need, Subject, ToolContext, tool
from hermes_ws.contract.model import Params

OUTPUT_BYTES: Final = 256 * 1024
"""Kept of the output: its beginning. What logs in says little."""

SHORTEST: Final = 3
"""Characters of a user name that is hidden in the output; a shorter one would hide half of every text."""

_NEEDS: Final[frozenset[Need]] = frozenset({"runs", "network"})


class LoginParams(Params):
    """A command line, and for which site."""

    origin: Annotated[str, StringConstraints(pattern=r"^https?://[^/\s]+$", max_length=500)] = Field(
        description="The site's scheme and host, for example https://example.org."
    )
    command: str = Field(
        min_length=1,
        max_length=16_384,
        description="A command line that finds LOGIN_USERNAME, LOGIN_PASSWORD and LOGIN_CODE in its environment.",
    )
    code: bool = Field(default=False, description="Whether the site wants a one-time code as well.")


def _subject(params: LoginParams) -> Subject:
    # Without `command`: no rule about commands was written with a login in mind, so a person is asked.
    return Subject("run_with_login", f"Run with your login to {params.origin}: {params.command}", _NEEDS)


async def _run(params: LoginParams, context: ToolContext) -> ToolOutcome:
    try:
        login = await context.asker.login(params.origin, params.origin.partition("://")[2], code=params.code)
    except NoAnswerer:
        return ToolOutcome("Nobody who could open the vault is connected. This is no refusal.", is_error=True)
    except QuestionExpired:
        return ToolOutcome("The login was not given in time. This is no refusal.", is_error=True)
    env = {"LOGIN_USERNAME": login.username, "LOGIN_PASSWORD": login.password, "LOGIN_CODE": login.code or ""}
    output = bytearray()
    with trio.move_on_after(context.deadline_s) as limit:
        pipe = await context.hands.open_pipe(("/bin/sh", "-c", f"exec 2>&1; {params.command}"), env=env)
        try:
            await pipe.close_input()
            await _read(pipe, output)
        finally:
            with trio.CancelScope(shield=True):
                await pipe.aclose()
    text = _hidden(output.decode(errors="replace"), login)
    fitted = fit(text, context.redact)
    late = "\n[ended after its deadline]" if limit.cancelled_caught else ""
    return ToolOutcome((fitted.text.rstrip("\n") or "(no output)") + late, is_error=bool(late), truncated=fitted.cut)


async def _read(pipe: Pipe, kept: bytearray) -> None:
    """Read to the end, and keep the beginning."""
    while piece := await pipe.receive():
        kept += piece[: OUTPUT_BYTES - len(kept)]


def _hidden(text: str, login: Login) -> str:
    """The output without the login, as far as it stands there as it is."""
    for value, name in (
        (login.password, "LOGIN_PASSWORD"),
        (login.code, "LOGIN_CODE"),
        (login.username, "LOGIN_USERNAME"),
    ):
        if value and (len(value) >= SHORTEST or name != "LOGIN_USERNAME"):
            text = text.replace(value, f"[{name}]")
    return text


RUN_WITH_LOGIN: Final = tool(
    "run_with_login",
    LoginParams,
    toolset="vault",
    needs=_NEEDS,
    doc="Run a command that needs the person's login to a site; it comes from their vault, and you do not see it.",
    subject=_subject,
    run=_run,
)
