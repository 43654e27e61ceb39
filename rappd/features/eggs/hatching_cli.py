"""``rappd egg plan``, ``hatch``, ``hatch-text``, ``hatchings``, ``rollback``: into this home, and out again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import click

from rappd.cli.command_parameters import Option, cli_command
from rappd.cli.console import confirmed, print_out, strip_control
from rappd.cli.formatting import ago, count, tilde
from rappd.cli.home_client import HomeClient
from rappd.cli.printer import Printer, show_sentence
from rappd.cli.tables import Table
from rappd.daemon.home import Home
from rappd.errors import RefusedError
from rappd.features.eggs.cli_options import File, Registry, egg_at, registry_at, whole
from rappd.features.eggs.cli_progress import followed
from rappd.features.snapshots.restore_cli import as_written, egg_is_snapshot, hatch_snapshot, show_plan_of

_PARTIAL = 7

_Overwrite = Annotated[
    str,
    Option(
        "--overwrite",
        metavar="WHAT",
        help="What of yours the egg may replace: soul,agents,services,memory,slots,env,pages.",
    ),
]
_NoMemory = Annotated[
    bool, Option("--no-memory", help="Keep your memory, even where the egg's was merged from it.")
]


@cli_command()
def plan(file: File, printer: Printer, overwrite: _Overwrite = "", no_memory: _NoMemory = False) -> None:
    """Show what hatching FILE, or the egg at a web address, would do here. Nothing of it is written."""
    from rappd.features.eggs.text import show_plan

    path = egg_at(file)
    if egg_is_snapshot(path):
        given = as_written(overwrite, no_memory=no_memory)
        show_plan_of(str(file), given, printer)
        return
    chosen = _listed(overwrite, no_memory)
    what = f"Reading {file.name}"
    found = followed("eggs.plan", what, printer, reads=True, path=whole(path), overwrite=chosen, keep=False)
    printer.result(found, show_plan, found["plan"], str(file))


@cli_command()
@click.option(
    "--trust-signer",
    metavar="FINGERPRINT",
    help="Trust the sender with this key from now on; its code runs at once.",
)
@click.option("--yes", is_flag=True, help="Do not ask whether to trust.")
def hatch(
    file: File,
    *,
    overwrite: _Overwrite = "",
    no_memory: _NoMemory = False,
    trust_signer: str,
    yes: bool,
    printer: Printer,
) -> int | None:
    """Hatch FILE, or the egg at a web address: checked, planned, staged, then moved into place, whole or not at all.

    What is yours stays, but memory that the egg was merged from: the merged one takes its place, and yours is kept
    aside. Code that nobody trusted signed waits for your approval: kept, and not run.
    Ctrl-C cancels it, until the files are moved into place.
    """
    from rappd.features.eggs.text import show_hatched

    path, chosen = egg_at(file).absolute(), _listed(overwrite, no_memory)
    with _trusting(path, trust_signer, ask=not yes and printer.asks) as goes_on:
        if not goes_on:
            print_out("Nothing was written.")
            return None
        if egg_is_snapshot(path):
            given = as_written(overwrite, no_memory=no_memory)
            return hatch_snapshot(str(path), given, printer, yes=yes)
        what, source = f"Hatching {file.name}", file.name
        found = followed("eggs.hatch", what, printer, path=str(path), overwrite=chosen, source=source)
    printer.result(found, show_hatched, found["hatched"])
    return _PARTIAL if found["hatched"].get("partial") else None


@cli_command("hatch-text", context_settings={"ignore_unknown_options": True})  # a text may begin with -
def hatch_text(text: str, printer: Printer, registry: Registry = None, overwrite: _Overwrite = "") -> None:
    """Hatch the agents that TEXT stands for, out of a clone of their registry."""
    from rappd.features.eggs.text import show_hatched

    given: dict[str, Any] = {
        "text": text,
        "registry": whole(registry_at(registry)),
        "overwrite": _listed(overwrite),
    }
    found = followed("eggs.hatch_text", "Hatching agents", printer, **given)
    printer.result(found, show_hatched, found["hatched"])


@cli_command()
def hatchings(printer: Printer) -> None:
    """List the eggs that were hatched here, the latest first."""
    found = HomeClient(Home.here(), reads=True).do("eggs.hatchings")
    printer.result(found, _HATCHINGS, found["hatchings"])


def _since(row: dict[str, Any]) -> str:
    return ago(time.time() - datetime.fromisoformat(row["hatched_at"]).timestamp())


_HATCHINGS = Table(
    ("HATCHING", "id"),
    ("NAME", "name"),
    ("KIND", "kind"),
    ("FILES", "files"),
    ("WHEN", _since),
    ("", lambda row: "taken back" if row["rolled_back_at"] else ""),
    none=("Nothing was hatched here yet.", ""),
    shrink=1,
    whole=(0,),
)


@cli_command()
@click.option("--even-if-changed", is_flag=True, help="Put aside what changed since, and go back.")
def rollback(hatching: str, even_if_changed: bool, printer: Printer) -> None:
    """Undo a HATCHING: what it replaced comes back, what it brought goes."""
    home = HomeClient(Home.here(), timeout=3600)
    found = home.do("eggs.rollback", receipt=hatching, even_if_changed=even_if_changed)
    printer.result(found, _show_rolled_back, found["rolled_back"])


def _show_rolled_back(done: dict[str, Any]) -> None:
    if done["already"]:
        show_sentence(f"{done['name']} was taken back before.")
        return
    changed = f"{count(len(done['restored']), 'file')} restored, {len(done['removed'])} removed"
    show_sentence(f"{done['name']} is taken back: {changed}.")
    if done["aside"]:
        print_out(f"  What had changed lies in {tilde(done['aside'])}")


@contextmanager
def _trusting(path: Path, fingerprint: str, *, ask: bool) -> Iterator[bool]:
    """Trusts the key that signed an egg; no longer, when the hatching fails. False: the person said no."""
    if not fingerprint:
        yield True
        return
    from rappd.features.eggs.signer_view import signer_view
    from twins.eggs.readers.detect import open_egg

    with open_egg(path, check_up_to=0) as opened:
        signer, known = opened.seal.signer, signer_view(opened, Home.here())
    if signer != fingerprint:
        what = f"is signed by {signer}" if signer else "is not signed"
        raise RefusedError(f"{path.name} {what}; nothing was written.", do=f"rappd egg verify {path.name}")
    if known["standing"] == "trusted":
        yield True
        return
    who = strip_control(known["signed"]).removeprefix("signed by ")
    question = f"Trust {who}, from now on? What it signs runs here at once."
    if ask and not confirmed(question):
        yield False
        return
    home = HomeClient(Home.here())
    home.do("eggs.trust", fingerprint=signer)
    try:
        yield True
    except BaseException:
        home.do("eggs.revoke", fingerprint=signer)
        raise


def _listed(text: str, no_memory: bool = False) -> list[str]:
    chosen = [part.strip() for part in text.split(",") if part.strip()]
    return [*chosen, "no-memory"] if no_memory else chosen
