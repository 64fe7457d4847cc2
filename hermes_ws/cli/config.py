"""`hermes-ws config`: a profile's settings. Only editing and checking the file needs no server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from hermes_ws.cli.asking import Caller
    from hermes_ws.contract.methods.config import ConfigSet, ConfigValue

as_json = click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
of_profile = click.option("-p", "--profile", metavar="NAME", help="Of this profile; else of this terminal's home.")


@click.group(
    epilog="""\b
Examples:
  hermes-ws config get model.name
  hermes-ws config set agent.max_turns 40
  hermes-ws config edit
  hermes-ws config check"""
)
def config() -> None:
    """Look at settings and change them."""


@config.command(epilog="\b\nExamples:\n  hermes-ws config get approvals --json")
@click.argument("key", required=False)
@of_profile
@as_json
def get(key: str | None, profile: str | None, as_json: bool) -> None:
    """Show a setting, or all."""
    import json

    from hermes_ws.cli.asking import PATIENCE, run
    from hermes_ws.cli.sanitise import harmless
    from hermes_ws.cli.screen import Screen
    from hermes_ws.contract.methods.config import CONFIG_GET, ConfigGetParams

    async def ask(caller: Caller, own: str | None) -> ConfigValue:
        return await caller.call(CONFIG_GET, ConfigGetParams(profile=profile or own, key=key), deadline_s=PATIENCE)

    def show(answer: ConfigValue, out: Screen) -> None:
        value = answer.value
        out.line(harmless(value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)))

    sys.exit(run(ask, show, as_json=as_json))


@config.command("set", epilog="\b\nExamples:\n  hermes-ws config set model.name gpt-5")
@click.argument("key")
@click.argument("value")
@click.option("--yes", is_flag=True, help="Agree to what costs money.")
@of_profile
@as_json
def set_(key: str, value: str, yes: bool, profile: str | None, as_json: bool) -> None:
    """Change a setting. VALUE is JSON where it can be read as such, and text else."""
    import json

    from hermes_ws.cli.asking import PATIENCE, run
    from hermes_ws.cli.sanitise import harmless
    from hermes_ws.cli.screen import Screen
    from hermes_ws.client.failures import RemoteError
    from hermes_ws.contract.methods.config import CONFIG_SET, ConfigSetParams

    try:
        read = json.loads(value)
    except ValueError:
        read = value

    async def ask(caller: Caller, own: str | None) -> ConfigSet:
        params = ConfigSetParams(key=key, value=read, profile=profile or own)
        try:
            return await caller.call(CONFIG_SET, params, deadline_s=PATIENCE)
        except RemoteError as error:
            token = error.data.get("consent")
            if error.type != "consent_required" or not yes or not isinstance(token, str):
                raise
            agreed = params.model_copy(update={"consent": token})
            return await caller.call(CONFIG_SET, agreed, deadline_s=PATIENCE)

    def show(answer: ConfigSet, out: Screen) -> None:
        out.line(harmless(f"{answer.key}: {json.dumps(answer.value, ensure_ascii=False)}"))

    sys.exit(run(ask, show, as_json=as_json))


@config.command(epilog="\b\nExamples:\n  hermes-ws config edit --profile work")
@of_profile
def edit(profile: str | None) -> None:
    """Open the file in an editor ($VISUAL, $EDITOR), and check it then."""
    path = _file(profile)
    click.edit(filename=str(path))
    sys.exit(_check(path))


@config.command(epilog="\b\nExamples:\n  hermes-ws config check && hermes-ws chat")
@of_profile
def check(profile: str | None) -> None:
    """See whether the file can be used. Exit status: 0 it can, 1 it cannot."""
    sys.exit(_check(_file(profile)))


def _file(profile: str | None) -> Path:
    from hermes_ws.cli.environment import read_environment
    from hermes_ws.client.ensure import places
    from hermes_ws.contract.errors import HermesError
    from hermes_ws.scope.home import HomesRoot, ProfileHome
    from hermes_ws.scope.identity import ProfileName

    home = read_environment().home
    if profile is None:
        return ProfileHome(home.resolve()).config
    try:
        return HomesRoot.classic(places(home)[0][0]).find(ProfileName.parse(profile)).config
    except HermesError as error:
        raise click.ClickException(error.message) from None


def _check(path: Path) -> int:
    from hermes_ws.contract.errors import HermesError
    from hermes_ws.scope.config import load_config

    try:
        load_config(path)
    except HermesError as error:
        click.echo(f"Error: {error.message}", err=True)
        if error.hint:
            click.echo(error.hint, err=True)
        return 1
    click.echo(f"{path} can be used." if path.exists() else f"There is no {path}; the defaults hold.")
    return 0
