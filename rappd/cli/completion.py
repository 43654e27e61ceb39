"""``rappd completion``: what a shell needs to complete verbs and options."""

from __future__ import annotations

from typing import Literal

import click
from click.shell_completion import get_completion_class

from rappd.cli.command_parameters import cli_command


@cli_command()
def completion(shell: Literal["bash", "zsh", "fish"]) -> None:
    """Print shell completion, for example: eval "$(rappd completion bash)"."""
    from rappd.cli.app import rappd

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(rappd, {}, "rappd", "_RAPPD_COMPLETE").source())
