"""``rappd egg plan``, ``hatch``, ``hatch-text``, ``hatchings``, ``rollback``: into this home, and out again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from rappd.cli.console import interactive, print_json, print_out, status_mark, strip_control
from rappd.cli.formatting import ago, count, tilde
from rappd.cli.home_client import HomeClient
from rappd.cli.tables import table
from rappd.daemon.home import Home
from rappd.errors import RefusedError
from rappd.features.eggs.cli_options import FILE, JSON, REGISTRY, egg_at, registry_at, whole
from rappd.features.eggs.cli_progress import followed
from rappd.features.estate.text import show_hatched_members
from rappd.features.snapshots.restore_cli import as_written, egg_is_snapshot, hatch_snapshot, show_plan_of

_PARTIAL = 7

_OVERWRITE = click.option(
    "--overwrite",
    default="",
    metavar="WHAT",
    help="What of yours the egg may replace: soul,agents,services,memory,slots,env,pages.",
)
_NO_MEMORY = click.option(
    "--no-memory", is_flag=True, help="Keep your memory, even where the egg's was merged from it."
)


@click.command()
@FILE
@_OVERWRITE
@_NO_MEMORY
@JSON
def plan(file: Path, overwrite: str, no_memory: bool, as_json: bool) -> None:
    """Show what hatching FILE, or the egg at a web address, would do here. Nothing of it is written."""
    from rappd.features.eggs.text import show_plan

    if egg_is_snapshot(egg_at(file)):
        show_plan_of(str(file), as_written(overwrite, no_memory=no_memory), as_json=as_json)
        return
    found = followed(
        "eggs.plan",
        f"Reading {file.name}",
        as_json=as_json,
        reads=True,
        path=whole(egg_at(file)),
        overwrite=_listed(overwrite, no_memory),
        keep=False,
    )
    if as_json:
        print_json(found)
    else:
        show_plan(found["plan"], file=str(file))


@click.command()
@FILE
@_OVERWRITE
@_NO_MEMORY
@click.option(
    "--trust-signer",
    metavar="FINGERPRINT",
    help="Trust the sender with this key from now on; its code runs at once.",
)
@click.option("--yes", is_flag=True, help="Do not ask whether to trust.")
@JSON
def hatch(
    file: Path, overwrite: str, no_memory: bool, trust_signer: str, yes: bool, as_json: bool
) -> int | None:
    """Hatch FILE, or the egg at a web address: checked, planned, staged, then moved into place, whole or not at all.

    What is yours stays, but memory that the egg was merged from: the merged one takes its place, and yours is kept
    aside. Code that nobody trusted signed waits for your approval: kept, and not run.
    Ctrl-C cancels it, until the files are moved into place.
    """
    from rappd.features.eggs.text import show_hatched

    path, chosen = egg_at(file).absolute(), _listed(overwrite, no_memory)
    with _trusting(path, trust_signer, ask=not yes and not as_json) as goes_on:
        if not goes_on:
            print_out("Nothing was written.")
            return None
        if egg_is_snapshot(path):
            given = as_written(overwrite, no_memory=no_memory)
            return hatch_snapshot(str(path), given, yes=yes, as_json=as_json)
        found = followed(
            "eggs.hatch",
            f"Hatching {file.name}",
            as_json=as_json,
            path=str(path),
            overwrite=chosen,
            source=file.name,
        )
    if as_json:
        print_json(found)
    else:
        show_hatched(found["hatched"])
        show_hatched_members(found["hatched"])
    return _PARTIAL if found["hatched"].get("partial") else None


@click.command("hatch-text", context_settings={"ignore_unknown_options": True})  # a text may begin with -
@click.argument("text")
@REGISTRY
@_OVERWRITE
@JSON
def hatch_text(text: str, registry: Path | None, overwrite: str, as_json: bool) -> None:
    """Hatch the agents that TEXT stands for, out of a clone of their registry."""
    from rappd.features.eggs.text import show_hatched

    found = followed(
        "eggs.hatch_text",
        "Hatching agents",
        as_json=as_json,
        text=text,
        registry=whole(registry_at(registry)),
        overwrite=_listed(overwrite),
    )
    if as_json:
        print_json(found)
    else:
        show_hatched(found["hatched"])


@click.command()
@JSON
def hatchings(as_json: bool) -> None:
    """List the eggs that were hatched here, the latest first."""
    from datetime import datetime
    from time import time

    found = HomeClient(Home.here(), reads=True).do("eggs.hatchings")
    if as_json:
        print_json(found)
        return
    if not found["hatchings"]:
        print_out("Nothing was hatched here yet.")
        return
    now = time()
    rows = [
        [
            row["id"],
            row["name"],
            row["kind"],
            str(row["files"]),
            ago(now - datetime.fromisoformat(row["hatched_at"]).timestamp()),
            "taken back" if row["rolled_back_at"] else "",
        ]
        for row in found["hatchings"]
    ]
    table(["HATCHING", "NAME", "KIND", "FILES", "WHEN", ""], rows, shrink=1, whole=(0,))


@click.command()
@click.argument("hatching")
@click.option("--even-if-changed", is_flag=True, help="Put aside what changed since, and go back.")
@JSON
def rollback(hatching: str, even_if_changed: bool, as_json: bool) -> None:
    """Undo a HATCHING: what it replaced comes back, what it brought goes."""
    home = HomeClient(Home.here(), timeout=3600)
    found = home.do("eggs.rollback", receipt=hatching, even_if_changed=even_if_changed)
    if as_json:
        print_json(found)
        return
    done = found["rolled_back"]
    if done["already"]:
        print_out(f"{status_mark('good')} {strip_control(done['name'])} was taken back before.")
        return
    print_out(
        f"{status_mark('good')} {strip_control(done['name'])} is taken back: {count(len(done['restored']), 'file')} restored, "
        f"{len(done['removed'])} removed."
    )
    if done["aside"]:
        print_out(f"  What had changed lies in {tilde(done['aside'])}")


@contextmanager
def _trusting(path: Path, fingerprint: str, *, ask: bool) -> Iterator[bool]:
    """Trusts the key that signed an egg; no longer, when the hatching fails. False: the person said no."""
    if not fingerprint:
        yield True
        return
    from rappd.features.eggs.views import signer_view
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
    if ask and interactive() and not click.confirm(question, default=False, err=True):
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
