"""Parameters of a command, as the signature of its function names them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import click
import pytest

from rappd.cli.command_parameters import Argument, Option, cli_command
from rappd.cli.printer import JsonPrinter, Printer

_Into = Annotated[Path | None, Option("-o", "--output", metavar="OUT", help="Where to.")]


@cli_command()
@click.option("--cups", type=click.IntRange(1), default=1, help="How many.")
def brew(
    tea: Literal["green", "black"],
    more: Annotated[tuple[str, ...], Argument(metavar="[MORE]...")],
    *,
    into: _Into = None,
    cups: int,
    tags: Annotated[tuple[str, ...], Option("--tag")] = (),
    gently: Annotated[bool, Option("--gently")] = False,
    printer: Printer,
) -> Any:
    """Brew TEA."""
    return tea, more, into, cups, tags, gently, type(printer)


def _given(*words: str) -> Any:
    return brew.main(list(words), standalone_mode=False)


@pytest.mark.parametrize(
    ("words", "given"),
    [
        (["green"], ("green", (), None, 1, (), False, Printer)),
        (["black", "x", "y", "--json"], ("black", ("x", "y"), None, 1, (), False, JsonPrinter)),
        (
            ["black", "-o", "a/b", "--cups", "3", "--tag", "1", "--tag", "2", "--gently"],
            ("black", (), Path("a/b"), 3, ("1", "2"), True, Printer),
        ),
    ],
)
def test_words_become_the_parameters_of_the_function(words: list[str], given: tuple[Any, ...]) -> None:
    assert _given(*words) == given


@pytest.mark.parametrize("words", [[], ["red"], ["green", "--cups", "0"], ["green", "--gently=x"]])
def test_words_that_the_signature_does_not_allow_are_refused(words: list[str]) -> None:
    with pytest.raises(click.UsageError):
        _given(*words)


def test_help_lists_options_in_the_order_of_the_signature_and_json_last() -> None:
    lines = brew.get_help(click.Context(brew, info_name="brew")).splitlines()
    assert lines[0] == "Usage: brew [OPTIONS] {green|black} [MORE]..."
    shown = [line.split()[0] for line in lines if line.startswith("  -")]
    assert shown == ["-o,", "--cups", "--tag", "--gently", "--json", "--help"]
