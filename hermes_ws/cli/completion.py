"""`hermes-ws completion`: what a shell needs to complete this command."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command(
    epilog="""\b
Examples:
  eval "$(hermes-ws completion bash)"
  hermes-ws completion zsh > ~/.zfunc/_hermes-ws
  hermes-ws completion fish > ~/.config/fish/completions/hermes-ws.fish"""
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that teaches SHELL to complete hermes-ws."""
    kind = get_completion_class(shell)
    assert kind is not None, "the choices are those that there are"
    click.echo(kind(context.find_root().command, {}, "hermes-ws", "_HERMES_WS_COMPLETE").source())
