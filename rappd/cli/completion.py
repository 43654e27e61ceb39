"""``rappd completion``: what a shell needs to complete verbs and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print shell completion, for example: eval "$(rappd completion bash)"."""
    from rappd.cli.app import rappd

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(rappd, {}, "rappd", "_RAPPD_COMPLETE").source())
