"""``rappd egg``: pack what lives here, look at eggs; the other commands on them are gathered in.

Works with the daemon down.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from rappd.cli.command_group import SuggestingGroup
from rappd.cli.completion_names import twin_names
from rappd.cli.console import dim, print_err, print_out, wrapped
from rappd.cli.formatting import count, tilde
from rappd.cli.printer import JSON, Printer
from rappd.daemon.home import Home
from rappd.errors import UsageProblemError
from rappd.features.eggs.cli_options import (
    ALLOW,
    EXCLUDE_MEMORY,
    FORCE,
    OUTPUT,
    File,
    Registry,
    egg_at,
    registry_at,
    secrets_listed,
)
from rappd.features.eggs.cli_progress import bar, followed
from rappd.features.eggs.hatching_cli import hatch, hatch_text, hatchings, plan, rollback
from rappd.features.eggs.merge_cli import merge
from rappd.features.eggs.peers_cli import arrived, send, signers


@click.group(cls=SuggestingGroup)
def egg() -> None:
    """Pack what lives here into a file, and hatch such files."""


@egg.command()
@click.argument("name", required=False, default="", shell_complete=twin_names)
@click.option("--form", default="", help="agent, twin, brainstem, organism, rapplication, session, …")
@click.option("--item", default="", help="The one agent file or rapplication to pack.")
@OUTPUT
@EXCLUDE_MEMORY
@ALLOW
@FORCE
@click.option("--to", default="", metavar="PEER", help="Seal it, so that only that machine can open it.")
@JSON
def pack(name: str, form: str, item: str, into: str, to: str, printer: Printer, **how: Any) -> None:
    """Pack a twin by its NAME; without one, this machine's brainstem. With --form session, NAME is a session's id."""
    if form == "session" and not to:
        from rappd.features.sessions.eggs_cli import pack_session

        pack_session(item or name, into, printer, **how)
        return
    from rappd.features.eggs.text import show_packed
    from twins.eggs.writers.unread_kinds import NEVER_READ

    if not into and Home.here().is_read_only():
        raise UsageProblemError(
            "This home lies on a disk that is read-only.", do="--output FILE, on another disk"
        )
    printer.note(print_err, dim(wrapped(NEVER_READ, 0, stream=sys.stderr)))
    given = {"twin": name, "form": form, "item": item, "into": into, "to": to, **how}
    with secrets_listed(printer):
        found = followed(
            "eggs.pack", f"Packing {name or 'brainstem'}", printer, needs_daemon=bool(to), **given
        )
    printer.result(found, show_packed, found["packed"])


@egg.command()
def inspect(file: File, printer: Printer) -> None:
    """Show what is in FILE, or in the egg at a web address, and who packed it. Nothing of it is written."""
    _look(file, printer, check=False)


@egg.command()
def verify(file: File, printer: Printer) -> None:
    """Read every byte of FILE and compare it with the hashes it carries."""
    _look(file, printer, check=True)


@egg.command()
def diff(before: Path, after: Path, printer: Printer) -> None:
    """Show the differences between two eggs, file by file."""
    from rappd.features.eggs.text import show_differences
    from twins.eggs.readers.detect import open_egg
    from twins.eggs.readers.diff import compare_eggs

    with open_egg(egg_at(before)) as old, open_egg(egg_at(after)) as new:
        found = compare_eggs(old, new)
        printer.result(found.as_json(), show_differences, found)


@egg.command()
def extract(file: File, folder: Path, printer: Printer) -> None:
    """Lay the files of FILE out in a new FOLDER, to be read. Nothing hatches."""
    from twins.eggs.extracting import lay_out
    from twins.eggs.readers.detect import open_egg

    with open_egg(egg_at(file)) as opened:
        into = folder.absolute()
        files = lay_out(opened, into)
    body = {"extracted": {"name": opened.name, "into": str(into), "files": files}}
    printer.sentence(body, f"{count(files, 'file')} in {tilde(folder)}")


@egg.command()
@click.argument("agents", nargs=-1, required=True)
def forge(agents: tuple[str, ...], printer: Printer, registry: Registry = None) -> None:
    """A short text that stands for AGENTS of a registry."""
    from twins.eggs.egg_strings import decode
    from twins.eggs.registry_clone import RegistryClone

    text = RegistryClone.open(registry_at(registry)).forge(agents)
    seeds = [str(seed) for seed in decode(text)]
    body = {"schema": "rapp-egg/1.0", "seeds": seeds, "count": len(seeds), "text": text}
    printer.result({"egg": body}, print_out, text)


def _look(file: Path, printer: Printer, *, check: bool) -> None:
    from rappd.features.eggs.signer_view import seen
    from rappd.features.eggs.text import show_egg
    from twins.eggs.readers.detect import open_egg
    from twins.eggs.readers.inspect import look_at

    path = egg_at(file)
    with bar(f"Reading {file.name}") as progress:
        opened = open_egg(path, progress=progress) if check else look_at(path)
    with opened:
        found = seen(opened, Home.here())
        printer.result(found, show_egg, opened, found["egg"], check)


for other in (plan, hatch, hatch_text, hatchings, rollback, signers, merge, send, arrived):
    egg.add_command(other)
