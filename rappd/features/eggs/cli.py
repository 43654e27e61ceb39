"""``rappd egg``: pack what lives here, look at eggs; the other commands on them are gathered in.

Works with the daemon down.
"""

from __future__ import annotations

from pathlib import Path

import click

from rappd.cli.command_group import SuggestingGroup
from rappd.cli.console import dim, print_err, print_json, print_out, status_mark, strip_control
from rappd.cli.formatting import count, tilde
from rappd.cli.names import twin_names
from rappd.cli.printer import printer_for
from rappd.daemon.home import Home
from rappd.errors import UsageProblemError
from rappd.features.eggs.cli_options import (
    FILE,
    JSON,
    REGISTRY,
    egg_at,
    registry_at,
    secrets_listed,
    whole,
)
from rappd.features.eggs.cli_progress import bar, followed
from rappd.features.eggs.hatching_cli import hatch, hatch_text, hatchings, plan, rollback
from rappd.features.eggs.merge_cli import merge
from rappd.features.eggs.peers_cli import arrived, send
from rappd.features.eggs.signers_cli import signers
from twins.byte_sizes import format_bytes

_SHOWN = 20


@click.group(cls=SuggestingGroup)
def egg() -> None:
    """Pack what lives here into a file, and hatch such files."""


@egg.command()
@click.argument("name", required=False, default="", shell_complete=twin_names)
@click.option("--form", default="", help="agent, twin, brainstem, organism, rapplication, session, …")
@click.option("--item", default="", help="The one agent file or rapplication to pack.")
@click.option(
    "-o", "--output", default="", metavar="FILE", help="Where to; without it, among the home's eggs."
)
@click.option("--exclude-memory", is_flag=True, help="Leave memories and conversations behind.")
@click.option(
    "--allow",
    multiple=True,
    metavar="ID",
    help="Let a likely secret travel, by the id printed with the warning.",
)
@click.option("--force", is_flag=True, help="Replace FILE.")
@click.option(
    "--to", "peer", default="", metavar="PEER", help="Seal it, so that only that machine can open it."
)
@JSON
def pack(
    name: str,
    form: str,
    item: str,
    output: str,
    exclude_memory: bool,
    allow: tuple[str, ...],
    force: bool,
    peer: str,
    as_json: bool,
) -> None:
    """Pack a twin by its NAME; without one, this machine's brainstem. With --form session, NAME is a session's id."""
    if form == "session" and not peer:
        from rappd.features.sessions.eggs_cli import pack_session

        pack_session(item or name, output, printer_for(as_json), allow=allow, overwrite=force)
        return
    from twins.eggs.writers.unread_kinds import NEVER_READ, in_words

    if not output and Home.here().is_read_only():
        raise UsageProblemError(
            "This home lies on a disk that is read-only.", do="--output FILE, on another disk"
        )
    if not as_json:
        print_err(dim(NEVER_READ))
    with secrets_listed(unless=as_json):
        found = followed(
            "eggs.pack",
            f"Packing {name or 'brainstem'}",
            as_json=as_json,
            twin=name,
            form=form,
            item=item,
            into=whole(output),
            exclude_memory=exclude_memory,
            allow=allow,
            overwrite=force,
            to=peer,
            needs_daemon=bool(peer),
        )
    if as_json:
        print_json(found)
        return
    done = found["packed"]
    sealed = f", sealed for {strip_control(done['for'])}" if "for" in done else ""
    print_out(
        f"{status_mark('good')} {strip_control(done['name'])}: {count(done['files'], 'file')}, {format_bytes(done['size'])}, signed{sealed}"
    )
    print_out(f"  {tilde(done['path'])}")
    if done["signature"]:
        print_out(f"  {tilde(done['signature'])} {dim('is its signature')}")
    if unread := in_words(done["unread"]):
        print_out(dim(f"  not scanned for secrets: {unread}"))
    for one in done["odd_names"][:_SHOWN]:
        print_out(
            f"{status_mark('note')} {strip_control(one['path'])} is packed, and nobody will install it: {strip_control(one['why'])}"
        )
    for one in done["left_out"][:_SHOWN]:
        print_out(dim(f"  left out: {strip_control(one['path'])} {one['why']}"))
    if len(done["left_out"]) > _SHOWN:
        print_out(dim(f"  and {len(done['left_out']) - _SHOWN} more"))


@egg.command()
@FILE
@JSON
def inspect(file: Path, as_json: bool) -> None:
    """Show what is in FILE, or in the egg at a web address, and who packed it. Nothing of it is written."""
    _look(file, as_json, check=False)


@egg.command()
@FILE
@JSON
def verify(file: Path, as_json: bool) -> None:
    """Read every byte of FILE and compare it with the hashes it carries."""
    _look(file, as_json, check=True)


@egg.command()
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@JSON
def diff(before: Path, after: Path, as_json: bool) -> None:
    """Show the differences between two eggs, file by file."""
    from rappd.features.eggs.text import show_differences
    from twins.eggs.readers.detect import open_egg
    from twins.eggs.readers.diff import compare_eggs

    with open_egg(egg_at(before)) as old, open_egg(egg_at(after)) as new:
        found = compare_eggs(old, new)
        show_differences(found, as_json=as_json)


@egg.command()
@FILE
@click.argument("folder", type=click.Path(path_type=Path))
@JSON
def extract(file: Path, folder: Path, as_json: bool) -> None:
    """Lay the files of FILE out in a new FOLDER, to be read. Nothing hatches."""
    from rappd.features.eggs.views import extracted
    from twins.eggs.readers.detect import open_egg

    with open_egg(egg_at(file)) as opened:
        found = {"extracted": extracted(opened, folder.absolute())}
    if as_json:
        print_json(found)
    else:
        print_out(f"{status_mark('good')} {count(found['extracted']['files'], 'file')} in {tilde(folder)}")


@egg.command()
@click.argument("agents", nargs=-1, required=True)
@REGISTRY
@JSON
def forge(agents: tuple[str, ...], registry: Path | None, as_json: bool) -> None:
    """A short text that stands for AGENTS of a registry."""
    from twins.eggs.egg_strings import decode
    from twins.eggs.registry_clone import RegistryClone

    text = RegistryClone.open(registry_at(registry)).forge(agents)
    if as_json:
        seeds = [str(seed) for seed in decode(text)]
        print_json({"egg": {"schema": "rapp-egg/1.0", "seeds": seeds, "count": len(seeds), "text": text}})
    else:
        print_out(text)


def _look(file: Path, as_json: bool, *, check: bool) -> None:
    from rappd.features.eggs.views import seen, signer_view
    from twins.eggs.readers.detect import open_egg
    from twins.eggs.readers.inspect import ReportLine, lines, look_at, verdict

    path = egg_at(file)
    with bar(f"Reading {file.name}") as told:
        opened = open_egg(path, progress=told) if check else look_at(path)
    with opened:
        if as_json:
            print_json(seen(opened, Home.here()))
            return
        shown, signer = verdict if check else lines, signer_view(opened, Home.here())
        sure = opened.seal.checked and signer["standing"] in ("self", "trusted")
        for line in shown(opened, signed=ReportLine("good" if sure else "note", signer["signed"])):
            print_out(
                f"{status_mark(line.verdict)} {strip_control(line.text)}"
                if line.verdict
                else strip_control(line.text)
            )
        if check and opened.seal.signer:
            print_out(f"  key {opened.seal.signer}")


for other in (plan, hatch, hatch_text, hatchings, rollback, signers, merge, send, arrived):
    egg.add_command(other)
