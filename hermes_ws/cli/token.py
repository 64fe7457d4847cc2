"""`hermes-ws token`: who else may come in."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from hermes_ws.cli.asking import Caller
    from hermes_ws.contract.methods.tokens import TokenCreated, TokenList, TokenRevoked

RIGHTS = ("observe", "submit", "answer", "control", "terminal", "admin")

DAY_SECONDS = 86_400

as_json = click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")


@click.group(
    epilog="""\b
Examples:
  hermes-ws token create phone --right observe --right answer --days 30
  hermes-ws token list
  hermes-ws token revoke tok-1"""
)
def token() -> None:
    """Let others in, and send them away."""


@token.command(epilog="\b\nExamples:\n  hermes-ws token create ci --right submit --profile work")
@click.argument("name")
@click.option("--right", "rights", multiple=True, type=click.Choice(RIGHTS), help="Several may be given.")
@click.option("--profile", "profiles", multiple=True, metavar="NAME", help="Only these; else all.")
@click.option("--days", type=click.FloatRange(0.001, 36_500), help="How long it holds; else until it is revoked.")
@as_json
def create(name: str, rights: tuple[str, ...], profiles: tuple[str, ...], days: float | None, as_json: bool) -> None:
    """Make a token and print it, this once."""
    if not rights:
        raise click.UsageError(f"Say what it gives: --right with one of {', '.join(RIGHTS)}.")
    from hermes_ws.cli.asking import PATIENCE, run
    from hermes_ws.cli.screen import Screen
    from hermes_ws.contract.methods.tokens import TOKEN_CREATE, CreateTokenParams

    given: dict[str, object] = {"name": name, "rights": list(rights)}
    if profiles:
        given["profiles"] = list(profiles)
    if days is not None:
        given["expires_in_s"] = days * DAY_SECONDS

    async def ask(caller: Caller, own: str | None) -> TokenCreated:
        return await caller.call(TOKEN_CREATE, CreateTokenParams.model_validate(given), deadline_s=PATIENCE)

    def show(answer: TokenCreated, out: Screen) -> None:
        out.line(answer.token)

    sys.exit(run(ask, show, as_json=as_json))


@token.command("list", epilog="\b\nExamples:\n  hermes-ws token list --json")
@as_json
def list_(as_json: bool) -> None:
    """Show the tokens that hold, without the tokens themselves."""
    from hermes_ws.cli.asking import PATIENCE, run
    from hermes_ws.cli.screen import Screen
    from hermes_ws.contract.methods.tokens import TOKEN_LIST
    from hermes_ws.contract.model import Empty

    async def ask(caller: Caller, own: str | None) -> TokenList:
        return await caller.call(TOKEN_LIST, Empty(), deadline_s=PATIENCE)

    def show(answer: TokenList, out: Screen) -> None:
        for row in answer.tokens:
            where = "all profiles" if row.profiles is None else ", ".join(row.profiles)
            out.line(f"{row.token_id}  {row.name}  {', '.join(row.rights)}  ({where})")

    sys.exit(run(ask, show, as_json=as_json))


@token.command(epilog="\b\nExamples:\n  hermes-ws token revoke tok-1")
@click.argument("token_id", metavar="ID")
@as_json
def revoke(token_id: str, as_json: bool) -> None:
    """Take a token back; whoever came in by it is sent away at once."""
    from hermes_ws.cli.asking import PATIENCE, run
    from hermes_ws.cli.screen import Screen
    from hermes_ws.contract.methods.tokens import TOKEN_REVOKE, RevokeTokenParams

    async def ask(caller: Caller, own: str | None) -> TokenRevoked:
        return await caller.call(TOKEN_REVOKE, RevokeTokenParams(token_id=token_id), deadline_s=PATIENCE)

    def show(answer: TokenRevoked, out: Screen) -> None:
        for each in answer.token_ids:
            out.line(f"revoked: {each}")

    sys.exit(run(ask, show, as_json=as_json))
