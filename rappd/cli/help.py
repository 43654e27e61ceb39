"""``rappd help``: what ``--help`` says, for those who type it as a command."""

from __future__ import annotations

import click

from rappd.cli.command_group import no_such_verb
from rappd.cli.command_parameters import cli_command
from rappd.cli.completion_names import command_names


@cli_command("help")
@click.argument("words", nargs=-1, metavar="[COMMAND]...", shell_complete=command_names)
def help_(words: tuple[str, ...]) -> None:
    """Show the help of rappd, or of one COMMAND."""
    from rappd.cli.app import rappd

    command: click.Command = rappd
    context = click.Context(command, info_name="rappd", **command.context_settings)
    for word in words:
        found = command.get_command(context, word) if isinstance(command, click.Group) else None
        if found is None:
            known = command.list_commands(context) if isinstance(command, click.Group) else []
            raise no_such_verb(word, known, context.command_path)
        command, context = found, click.Context(found, context, info_name=word)
    click.echo(command.get_help(context))
