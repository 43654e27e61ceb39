"""``rappd twins soul``: the text that shapes a twin, printed, replaced, and taken back."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from agents.storage.text_file import SAVE_AS_UTF8, NotUtf8Error, decode
from rappd.cli.command_parameters import cli_command
from rappd.cli.completion_names import twin_names
from rappd.cli.console import print_out, strip_control
from rappd.cli.printer import Printer
from rappd.errors import NotFoundError, UsageProblemError
from rappd.features.twins.client import Answer, client, in_path
from rappd.features.twins.text import show_done, show_history


@cli_command()
@click.argument("name", shell_complete=twin_names)
@click.option(
    "--edit", "file", metavar="FILE", default="", help="Put a text in force; - reads it from stdin."
)
@click.option("--reason", default="", help="Why it is edited; kept with the soul before.")
@click.option("--history", is_flag=True, help="The souls before.")
@click.option("--restore", "number", type=click.IntRange(1), metavar="N", help="Put soul N in force again.")
def soul(name: str, file: str, reason: str, history: bool, number: int | None, printer: Printer) -> None:
    """Print a twin's soul, or change it. The next turn goes by the new one."""
    if bool(file) + history + (number is not None) > 1:
        raise UsageProblemError(
            "Only one of --edit, --history and --restore goes at a time.", do="Take one of them."
        )
    if file:
        text = text_of(file)
        found = client().do("twins.edit_soul", twin=in_path(name), soul=text, reason=reason)
        printer.result({"twin": found}, show_done, found)
    elif number is not None:
        found = client().do("twins.restore_soul", twin=in_path(name), number=number)
        printer.result({"twin": found}, show_done, found)
    else:
        found = client(reads=True).do("twins.soul", twin=in_path(name))
        printer.result({"twin": found}, show_history if history else _show, found)


def _show(found: Answer) -> None:
    if sys.stdout.isatty():
        print_out(strip_control(found["soul"]).rstrip("\n"))
    else:
        sys.stdout.buffer.write(found["soul"].encode())  # the file as it is, to be edited and given back
        sys.stdout.buffer.flush()


def text_of(file: str) -> str:
    """The text of a file, or of stdin. Raises ``NotFoundError``, ``BadFileError``."""
    from twins.errors import BadFileError

    if file == "-":
        content = sys.stdin.buffer.read()
    else:
        try:
            content = Path(file).read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
            raise NotFoundError(f'No file "{file}".', do="- reads it from stdin") from error
    try:
        text = decode(content).text
    except NotUtf8Error as error:
        raise BadFileError(f"{'What came in' if file == '-' else file} {error}.", do=SAVE_AS_UTF8) from error
    if not text.strip():
        raise BadFileError("A soul cannot be empty; nothing was changed.", do="Write who the twin is.")
    return text
