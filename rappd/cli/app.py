"""``rappd``: imports the module of the command that is called, and turns every error into one shape."""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import select
import sys
from collections.abc import Iterator, Sequence
from io import TextIOWrapper
from typing import Any

import click

from rappd.cli.command_group import SuggestingGroup
from rappd.cli.commands import COMMANDS, GROUPS
from rappd.version import __version__

_NAME_CELLS = max(map(len, COMMANDS))
"""Names of all groups are as wide as the longest, so that the texts stand below each other."""


class PipeClosedError(Exception):
    """A closed pipe (the cause), under a name that click does not end the process for, silently and with 1."""


@contextlib.contextmanager
def _pipes_renamed() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        raise PipeClosedError from error


class LazyGroup(SuggestingGroup):
    """Commands whose modules are imported when they are called."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        with _pipes_renamed():  # ``--help`` and ``--version`` print here
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with _pipes_renamed():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        found: click.Command = getattr(importlib.import_module(module), name)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:<{_NAME_CELLS}}", COMMANDS[name][1]) for name in names])


@click.group(
    cls=LazyGroup,
    subcommand_metavar="COMMAND [ARGS]...",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)
@click.version_option(__version__, prog_name="rappd", message="%(prog)s %(version)s")
def rappd() -> None:
    """Agents that belong to you, on your own machines.

    rappd start starts this machine's brainstem; rappd chat talks to it.
    """


def run(arguments: Sequence[str]) -> int:
    """Runs one command and returns its exit code; errors are printed, never thrown.

    A reader of the output that has gone (``| head``) ends the command early and is no error of it.
    """
    from rappd.cli.console import print_error

    as_json = "--json" in arguments
    try:
        return _run(arguments, as_json=as_json)
    except (PipeClosedError, BrokenPipeError):
        if _is_output_unread():
            _drop_output()
            return 0
        print_error("A connection was closed midway", "run it again", "system", as_json=as_json)
        return 1


def _run(arguments: Sequence[str], *, as_json: bool) -> int:
    from envelopes.errors import ReportableError
    from rappd.cli.console import print_error

    _read_utf8()
    arguments = [_as_utf8(word) for word in arguments]
    if odd := next((word for word in arguments if not _is_text(word)), None):
        shown = os.fsencode(odd).decode("utf-8", "backslashreplace")
        do = "rename the file, or type it in a terminal whose encoding is UTF-8"
        print_error(f'"{shown[:200]}" is not UTF-8 text', do, "mistyped", as_json=as_json)
        return 2
    try:
        result: Any = rappd.main(list(arguments), prog_name="rappd", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        sys.stdout.flush()
        return 0
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else _command_path(arguments)
        what = " ".join(error.format_message().split())  # click gives choices a line each
        print_error(what, f"{path} --help", "mistyped", as_json=as_json)
        return 2
    except (KeyboardInterrupt, click.Abort):
        click.echo(err=True)
        return 130
    except ReportableError as problem:
        print_error(str(problem), problem.do, problem.code, as_json=as_json, more=problem.as_json())
        return problem.exit_code
    except UnicodeError:
        print_error(
            "What came in on standard input is not UTF-8 text",
            "save it as UTF-8",
            "mistyped",
            as_json=as_json,
        )
        return 2
    except BrokenPipeError:
        raise
    except OSError as error:
        if _is_of_output(error):
            what = f"The output could not be written: {error.strerror}"
            print_error(what, "look where it goes", "output", as_json=as_json)
            return 1
        where = f"{error.filename}: " if error.filename else ""
        looked = _command_path(arguments) == "rappd doctor"
        do = "look at its owner and rights" if looked else "rappd doctor"
        if error.errno in (errno.EMFILE, errno.ENFILE):
            do = "`ulimit -n 1024`, then again"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            print_error(
                f"{where}The disk is full.", "make room, then run it again", "system", as_json=as_json
            )
            return 1
        print_error(f"{where}{error.strerror or error}", do, "system", as_json=as_json)
        return 1
    return result if isinstance(result, int) else 0


def _read_utf8() -> None:
    """Refuses bytes on standard input that are no text: Python would hand them on as halves of characters."""
    if isinstance(sys.stdin, TextIOWrapper):  # closed, it is None
        if sys.stdin.encoding.lower() in ("ascii", "us-ascii", "ansi_x3.4-1968"):
            sys.stdin.reconfigure(encoding="utf-8")
        sys.stdin.reconfigure(errors="strict")


def _as_utf8(word: str) -> str:
    """A word as it was typed, also where Python was told to take words for ASCII (PYTHONUTF8=0 and no locale)."""
    try:
        return word if _is_text(word) else os.fsencode(word).decode()
    except UnicodeError:
        return word


def _is_text(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_of_output(error: OSError) -> bool:
    """True when writing to stdout or stderr failed, and not to a file. What waits to be written is then dropped."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None or error.filename or last.tb_frame.f_code not in (click.echo.__code__, _run.__code__):
        return False
    _drop_output()
    return True


def _is_output_unread() -> bool:
    """True when stdout or stderr is a pipe whose reader has gone."""
    poll = select.poll()
    for descriptor in (1, 2):
        poll.register(descriptor, 0)
    return any(state & (select.POLLERR | select.POLLHUP) for _, state in poll.poll(0))


def _drop_output() -> None:
    """Drops what waits to be written to stdout, so that nothing is written at exit either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _command_path(arguments: Sequence[str]) -> str:
    """The command that is meant, for the errors that do not say it: an option whose value is missing."""
    command: click.Command = rappd
    path = "rappd"
    for word in arguments:
        found = (
            command.get_command(click.Context(command), word) if isinstance(command, click.Group) else None
        )
        if found is None:
            break
        command, path = found, f"{path} {word}"
    return path
