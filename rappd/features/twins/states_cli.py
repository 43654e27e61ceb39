"""``rappd twins archive``, ``unarchive`` and ``purge``: set aside, brought back, deleted."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import click

from rappd.cli.command_parameters import Option, cli_command
from rappd.cli.completion_names import twin_names
from rappd.cli.console import (
    arrow,
    command,
    dim,
    print_err,
    print_out,
    print_status,
    status_mark,
    strip_control,
)
from rappd.cli.formatting import count
from rappd.cli.printer import Printer
from rappd.errors import ConfirmationNeededError, UsageProblemError
from rappd.features.twins.client import Answer, client, in_path
from rappd.features.twins.text import handle, show_chosen

_Yes = Annotated[bool, Option("--yes", help="Do not ask.")]
_Reason = Annotated[str, Option("--reason", help="Why; it is kept.")]

_PARTLY = 7


@cli_command()
@click.argument("name", required=False, default="", shell_complete=twin_names)
@click.option("--filter", "clauses", metavar="CLAUSE=VALUE", multiple=True, help="All that fit; repeatable.")
def archive(
    name: str, clauses: tuple[str, ...], printer: Printer, reason: _Reason = "", yes: _Yes = False
) -> int:
    """Set a twin aside, or all that fit. It is stopped first, and stays whole.

    Clauses, all of which must hold: kind=KIND, name_prefix=TEXT, name_regex=PATTERN,
    stopped_for_days=N, exclude_kinds=KIND,KIND.
    """
    if bool(name) == bool(clauses):
        raise UsageProblemError(
            "Say one NAME, or --filter.", do="rappd twins archive --filter stopped_for_days=30"
        )
    if name:
        found = client().do("twins.archive", twin=in_path(name), reason=reason)
    else:
        from twins.lifecycle.selection import Selection

        matching = Selection.from_options(clauses).as_filter()
        if not yes:
            meant = _archive(matching, reason, confirm=False)
            if not meant["would_archive"] or not _agreed(meant, "archive", printer):
                return _nothing_done(meant, "archive", printer)
        found = _archive(matching, reason, confirm=True)
    return _show_done(found, "archive", printer)


@cli_command()
@click.argument("name", shell_complete=twin_names)
def unarchive(name: str, printer: Printer) -> int:
    """Bring a twin back; it is stopped."""
    found = client().do("twins.unarchive", twin=in_path(name))
    return _show_done(found, "unarchive", printer)


@cli_command()
@click.argument("name", shell_complete=twin_names)
def purge(name: str, printer: Printer, reason: _Reason = "", yes: _Yes = False) -> int:
    """Delete an archived twin, with all it had."""
    meant = _purge(name, "", confirm=False)
    if not yes and not _agreed(meant, "purge", printer):
        return _nothing_done(meant, "purge", printer)
    # The very one that was shown, whatever is called so by now.
    return _show_done(_purge(meant["would_purge"][0]["hash"], reason, confirm=True), "purge", printer)


def _archive(matching: dict[str, Any], reason: str, *, confirm: bool) -> Answer:
    return client().do("twins.archive_matching", filter=matching, reason=reason, confirm=confirm)


def _purge(name: str, reason: str, *, confirm: bool) -> Answer:
    return client().do("twins.purge", twin=in_path(name), reason=reason, confirm=confirm)


def _agreed(meant: Answer, action: str, printer: Printer) -> bool:
    """Shows whom the verb means and asks. Raises ``ConfirmationNeededError`` where nobody can be asked."""
    rows = meant[f"would_{action}"]
    printer.result({action: meant}, show_chosen, rows)
    more = (
        " All it had is deleted, its checkpoints too; an egg of it hatches in another home, never again in this one."
        if action == "purge"
        else ""
    )
    question = f"{action.capitalize()} {_whom(rows)}?{more}"
    return printer.confirm(question, f"{_whom(rows)} would be {action}d; nothing was done.")


def _nothing_done(meant: Answer, action: str, printer: Printer) -> int:
    none_fits = not meant[f"would_{action}"]
    text = "No twin fits; nothing was archived." if none_fits else "Nothing was done."
    printer.result({action: meant}, print_out if none_fits else print_err, text)
    return 0 if none_fits else ConfirmationNeededError.exit_code


def _show_done(found: Answer, action: str, printer: Printer) -> int:
    """Says what was done; returns the exit code."""
    done, errors = found[f"{action}d"], found["errors"]
    printer.result({action: found}, _show, found, action)
    if not errors:
        return 0
    return _PARTLY if done else 1


def _show(found: Answer, action: str) -> None:
    done = found[f"{action}d"]
    if done:
        typed = handle(done[0]["name"], done[0]["hash"]) if len(done) == 1 else "NAME"
        is_ = "is" if len(done) == 1 else "are"
        what, then = {
            "archive": (f"{is_} archived, whole.", f"rappd twins unarchive {typed}"),
            "unarchive": (f"{is_} back, stopped.", f"rappd twins boot {typed}"),
            "purge": (f"{is_} purged; a tombstone stays.", ""),
        }[action]
        print_out(f"{status_mark('good')} {_whom(done)} {what}")
        if then:
            print_out(f"  {dim('to bring it back:') if action == 'archive' else arrow()} {command(then)}")
    for one in found["errors"]:
        print_status("bad", f"{one['name']}: {one['error']}", stream=sys.stderr)


def _whom(rows: list[dict[str, Any]]) -> str:
    return strip_control(str(rows[0]["name"])) if len(rows) == 1 else count(len(rows), "twin")
