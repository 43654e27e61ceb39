"""``rappd backup`` and ``rappd restore``: the whole home in one file, and back."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from agents.storage.text_file import NotUtf8Error, decode
from rappd.cli.command_parameters import Option, cli_command
from rappd.cli.console import dim, interactive, print_out, status_mark, strip_control
from rappd.cli.formatting import count, tilde
from rappd.cli.printer import Printer
from rappd.cli.progress import progress
from rappd.control_client import ControlClient
from rappd.daemon.home import Home
from rappd.errors import ConflictError, NotFoundError, UsageProblemError
from twins.byte_sizes import format_bytes

if TYPE_CHECKING:
    from rappd.backup.create import Backup
    from rappd.backup.restore import RestoreReport

_Passphrase = Annotated[
    Path | None,
    Option("--passphrase-file", help="A file whose first line is the passphrase; - for standard input."),
]


@cli_command()
@click.option("--without-keys", is_flag=True, help="Leave keys and .env files behind, and do not ask.")
@click.option("--force", is_flag=True, help="Replace FILE.")
def backup(
    file: Path, *, passphrase_file: _Passphrase = None, without_keys: bool, force: bool, printer: Printer
) -> None:
    """Write this whole home into FILE. Keys go in only under a passphrase."""
    from rappd.backup.create import back_up
    from rappd.daemon.home import machine_name
    from rappd.settings.load import Settings

    home = Home.here()
    if not home.root.is_dir():
        raise NotFoundError("There is no home here yet.", do="rappd start")
    passphrase = "" if without_keys else _passphrase(passphrase_file, new=True)
    name = machine_name(home, Settings.load(home).text("name"))
    with progress("Backing up…") as shown:
        done = back_up(
            home.root,
            file.absolute(),
            key=home.identity(),
            machine=name,
            passphrase=passphrase,
            overwrite=force,
            progress=lambda part, whole: shown(
                f"Backing up  {100 * part // max(1, whole)} %  {format_bytes(part)} of {format_bytes(whole)}"
            ),
        )
    left = [{"path": path, "why": why} for path, why in done.left_out]
    row = {name: getattr(done, name) for name in ("files", "size", "sha256", "with_keys")}
    printer.result({"backup": {"path": str(done.path), **row, "left_out": left}}, _show_backup, done)


def _show_backup(done: Backup) -> None:
    keys = "keys sealed" if done.with_keys else "without keys"
    print_out(
        f"{status_mark('good')} {count(done.files, 'file')}, {format_bytes(done.size)}, {keys}: {tilde(done.path)}"
    )
    for path, why in done.left_out[:20]:
        print_out(dim(f"  left out: {strip_control(path)} {why}"))
    if len(done.left_out) > 20:
        print_out(dim(f"  and {len(done.left_out) - 20} more"))


@cli_command()
@click.option(
    "--check", is_flag=True, help="Only read and compare every byte, and try the passphrase if one is given."
)
def restore(file: Path, *, passphrase_file: _Passphrase = None, check: bool, printer: Printer) -> None:
    """Bring the home in FILE back, into an empty home."""
    from rappd.backup import restore

    if not file.is_file():
        raise NotFoundError(f'No file "{file}".', do="rappd backup FILE makes one")
    tried = _passphrase(passphrase_file, new=False) if check and passphrase_file else ""
    with progress(f"Checking {file.name}…"):
        manifest = restore.verify(file, passphrase=tried)
    if check:
        printer.result({"backup": manifest}, _show_whole, manifest, bool(tried))
        return
    home = Home.here()
    if ControlClient(home).running():
        raise ConflictError("rappd runs on this home.", do="rappd stop")
    passphrase = _passphrase(passphrase_file, new=False) if manifest["with_keys"] else ""
    with progress(f"Restoring {file.name}…"):
        done = restore.restore(file, home.root, passphrase=passphrase)
    row = {name: getattr(done, name) for name in ("machine", "backed_up_at", "files", "with_keys", "notes")}
    printer.result({"restored": {"home": str(done.home), **row}}, _show_restored, done)


def _show_restored(done: RestoreReport) -> None:
    print_out(
        f"{status_mark('good')} {strip_control(done.machine)} of {strip_control(done.backed_up_at)[:10]} is back: {count(done.files, 'file')}"
    )
    for text in done.notes:
        print_out(f"{status_mark('note')} {text}")


def _show_whole(manifest: dict[str, Any], tried: bool) -> None:
    print_out(
        f"{status_mark('good')} whole, of {strip_control(manifest['machine'])}, {strip_control(manifest['backed_up_at'])}"
    )
    if tried and manifest["with_keys"]:
        print_out(f"{status_mark('good')} the passphrase opens its keys")
    elif manifest["with_keys"]:
        print_out(dim("  its keys were not opened; --passphrase-file tries the passphrase, too"))


def _passphrase(file: Path | None, *, new: bool) -> str:
    if file is not None:
        try:
            octets = sys.stdin.buffer.readline() if str(file) == "-" else file.read_bytes()
            text = decode(octets).text.partition("\n")[0]
        except NotUtf8Error as error:
            raise UsageProblemError(
                f"{file.name} {error}.", do="Its first line is the passphrase."
            ) from error
        if not text:  # a script whose secret did not come would otherwise leave the keys behind
            raise UsageProblemError(
                f"{'Standard input' if str(file) == '-' else file.name} holds no passphrase.",
                do="Its first line is the passphrase; or --without-keys" if new else "Its first line is it.",
            )
        return text
    if interactive():
        answer: str = click.prompt(
            "Passphrase for the keys (empty: without keys)" if new else "Passphrase",
            hide_input=True,
            confirmation_prompt=new,
            default="" if new else None,
            show_default=False,
            err=True,
        )
        return answer
    raise UsageProblemError(
        "A passphrase for the keys is needed.",
        do="--passphrase-file FILE, or --without-keys" if new else "--passphrase-file FILE",
    )
