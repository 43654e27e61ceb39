"""``rappd egg merge``: two lives of one being become one again; what contradicts is kept aside and told."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from rappd.cli.command_parameters import cli_command
from rappd.cli.console import (
    arrow,
    command,
    dim,
    print_out,
    print_status,
    status_mark,
    strip_control,
)
from rappd.cli.formatting import count, tilde
from rappd.cli.printer import Printer
from rappd.errors import UsageProblemError
from rappd.features.eggs.cli_options import ALLOW, secrets_listed, whole
from rappd.features.eggs.cli_progress import followed
from twins.byte_sizes import format_bytes

_SHOWN = 20


@cli_command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[BASE] OURS THEIRS")
@click.option("-o", "--output", "into", type=click.Path(path_type=Path), metavar="OUT", help="Where to.")
@click.option("--json-documents", "documents", is_flag=True, help="They are JSON; print the merged one.")
@click.option("--deltas", is_flag=True, help="STATE DELTA…: add what parallel streams did; print the state.")
@ALLOW
@click.option("--force", is_flag=True, help="Replace OUT.")
def merge(
    files: tuple[Path, ...],
    into: Path | None,
    documents: bool,
    deltas: bool,
    allow: tuple[str, ...],
    force: bool,
    printer: Printer,
) -> None:
    """Make one egg of two that one being lived apart.

    BASE is the egg that both came from. Without it, nothing counts as taken out by one of them.
    Conversations are merged frame by frame, memories key by key; of two versions of another file OURS stays,
    and THEIRS is kept aside in the egg. Merging again changes nothing.
    """
    if documents and deltas:
        raise UsageProblemError(
            "Only one of --json-documents and --deltas goes at a time.", do="Take one of them."
        )
    if deltas:
        _add_deltas(files, into, force)
    elif documents:
        _merge_documents(files, into, force)
    elif into is None:
        raise UsageProblemError(
            "Where shall the merged egg go?", do="rappd egg merge BASE OURS THEIRS -o OUT"
        )
    else:
        base, ours, theirs = _three(files)
        paths: dict[str, Any] = {
            "base": whole(base),
            "ours": whole(ours),
            "theirs": whole(theirs),
            "into": whole(into),
        }
        what = f"Merging {theirs.name} into {ours.name}"
        with secrets_listed(printer):
            found = followed("eggs.merge", what, printer, allow=allow, overwrite=force, **paths)
        printer.result(found, _show, found["merged"], into)


def _show(done: dict[str, Any], into: Path) -> None:
    if done["already"] or done["forward"]:
        which = "Theirs is in ours" if done["already"] else "Ours is in theirs"
        print_out(f"{status_mark('good')} {which} already; {strip_control(done['name'])} stays as it is.")
    else:
        lived = (
            f"{done['shared']:,} frames shared, {done['new']:,} new, " if done["shared"] + done["new"] else ""
        )
        print_out(
            f"{status_mark('good')} {strip_control(done['name'])}: {lived}{count(done['files'], 'file')}, {format_bytes(done['size'])}"
        )
    if done["contradicting"]:
        many = count(done["dimensions"], "dimension")
        verb = "contradicts" if done["contradicting"] == 1 else "contradict"
        print_out(
            f"{status_mark('note')} {count(done['contradicting'], 'frame')} {verb} the rest; kept aside in {many}."
        )
    for key, what in (
        ("set_aside", "theirs differs; kept aside"),
        ("joined", "joined"),
        ("taken", "taken from theirs"),
        ("removed", "taken out"),
    ):
        for path in done[key][:_SHOWN]:
            print_out(dim(f"  {what}: {strip_control(path)}"))
        if len(done[key]) > _SHOWN:
            print_out(dim(f"  {what}: {len(done[key]) - _SHOWN} more"))
    if not done["signed"]:
        code = count(len(done["foreign_code"]), "code file")
        print_out(f"{status_mark('note')} Not signed: {code} came from somebody who is not trusted here.")
    print_out(f"  {tilde(done['path'])}")
    print_out(f"  {arrow()} {command(f'rappd egg hatch {into}')}")


def _merge_documents(files: tuple[Path, ...], into: Path | None, force: bool) -> None:
    from rappd.features.eggs.merging import merge_documents

    document, contradictions = merge_documents(*_three(files))
    for one in contradictions:
        place = ".".join(map(str, one["at"]))
        print_status("note", f"{place}: {_short(one['lost'])} was not taken.", stream=sys.stderr)
    _write(document, into, force)


def _add_deltas(files: tuple[Path, ...], into: Path | None, force: bool) -> None:
    from rappd.features.eggs.merging import add_deltas

    if len(files) < 2:
        raise UsageProblemError(
            "A state and its deltas are needed.", do="rappd egg merge --deltas STATE DELTA…"
        )
    added = add_deltas(files[0], files[1:])
    for one in added.set_aside:
        note = f"frame {one['frame']} of {one['stream_id']}: a fuller delta of the same moment stood for it."
        print_status("note", note, stream=sys.stderr)
    for frame, streams in added.left_out.items():
        note = f"frame {frame}: its snapshot lacks {', '.join(streams)} now; give all of a frame's deltas together."
        print_status("note", note, stream=sys.stderr)
    _write(added.state, into, force)


def _write(document: dict[str, Any], into: Path | None, force: bool) -> None:
    """Canonical JSON: sorted keys, no spaces, one line; on stdout or in a file."""
    from agents.storage.atomic_write import write_atomically
    from rappd.errors import ConflictError
    from twins.cartridges.json_documents import canonical

    octets = canonical(document) + b"\n"
    if into is not None:
        if into.exists() and not force:
            raise ConflictError(
                f"{into} exists already; nothing was written.", do="Take another name, or --force."
            )
        write_atomically(into.absolute(), octets, mode=0o644)
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(octets)
    sys.stdout.buffer.flush()


def _three(files: tuple[Path, ...]) -> tuple[Path | None, Path, Path]:
    if len(files) == 2:
        return None, files[0], files[1]
    if len(files) == 3:
        return files
    raise UsageProblemError("Two or three files are merged.", do="rappd egg merge BASE OURS THEIRS -o OUT")


def _short(value: Any) -> str:
    from twins.cartridges.json_documents import canonical

    text = canonical(value).decode()
    return text if len(text) <= 60 else f"{text[:57]}…"
