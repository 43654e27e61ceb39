"""A command with subcommands; a mistyped one is answered with the nearest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from rappd.cli.command_parameters import Command, Function, with_parameters
from rappd.errors import UsageProblemError

_WHOLE = 500
"""More characters than any first sentence has."""


class SuggestingGroup(click.Group):
    """``rappd agents``, ``rappd threads`` and their like."""

    command_class = Command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0] if args else ""
        known = self.list_commands(ctx)
        if word and word not in known and not word.startswith("-") and not ctx.resilient_parsing:
            raise no_such_verb(word, known, ctx.command_path)
        return super().resolve_command(ctx, args)

    def command(self, *args: Any, **settings: Any) -> Callable[[Function], click.Command]:  # type: ignore[override]
        """As ``cli_command``, for a command of the group."""
        made = super().command(*args, **settings)
        return lambda function: made(with_parameters(function))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The first sentence of each command, whole: a long one takes a second line."""
        rows = [
            (name, command.get_short_help_str(_WHOLE))
            for name in self.list_commands(ctx)
            if (command := self.get_command(ctx, name)) is not None and not command.hidden
        ]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


def no_such_verb(word: str, known: list[str], path: str) -> UsageProblemError:
    """Returns ``No such command "strat".`` with the nearest command."""
    import difflib

    near = difflib.get_close_matches(word, known, 1)
    do = f"did you mean `{path} {near[0]}`?" if near else f"{path} --help"
    return UsageProblemError(f'No such command "{word[:60]}".', do=do)
