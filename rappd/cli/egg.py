"""``rappd egg``: pack, inspect, verify, diff, plan, hatch, extract, take back. Works with the daemon down."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rappd.cli.daemon import Daemon
from rappd.cli.egg_merge import merge
from rappd.cli.egg_peers import arrived, pack_for, send
from rappd.cli.phrases import ago, count, size, tilde
from rappd.cli.progress import progress
from rappd.cli.screen import dim, interactive, mark, note, print_json, say, tame
from rappd.cli.tables import table
from rappd.cli.verbs import Verbs
from rappd.errors import NotFound, Refused
from rappd.home import Home

if TYPE_CHECKING:
    from rappd.operations.eggs import EggVerbs

_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object.")
_SHOWN = 20
_FILE = click.argument("file", type=click.Path(path_type=Path))
_OVERWRITE = click.option(
    "--overwrite",
    default="",
    metavar="WHAT",
    help="What of yours the egg may replace: soul,agents,services,memory,slots,env,pages.",
)


@click.group(cls=Verbs)
def egg() -> None:
    """Pack what lives here into a file, and hatch such files."""


@egg.command()
@click.argument("name", required=False, default="")
@click.option("--form", default="", help="agent, twin, brainstem, organism, rapplication, rapp1-organism, …")
@click.option("--item", default="", help="The one agent file or rapplication to pack.")
@click.option(
    "-o", "--output", default="", metavar="FILE", help="Where to; without it, among the home's eggs."
)
@click.option("--exclude-memory", is_flag=True, help="Leave memories and conversations behind.")
@click.option(
    "--allow", multiple=True, metavar="ID", help="Let a likely secret travel, by the id it was told with."
)
@click.option("--force", is_flag=True, help="Replace FILE.")
@click.option(
    "--to", "peer", default="", metavar="PEER", help="Seal it, so that only that machine can open it."
)
@_JSON
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
    """Pack a twin by its NAME; without one, this machine's brainstem."""
    from rappd.operations.eggs import Order
    from twins.eggs.packing.secret_scan import SecretsFound

    order = Order(
        twin=name,
        form=form,
        item=item,
        into=output,
        exclude_memory=exclude_memory,
        allow=frozenset(allow),
        overwrite=force,
    )
    try:
        with _bar(f"Packing {name or 'brainstem'}") as told:
            found = pack_for(order, peer) if peer else _verbs().pack(order, progress=told)
    except SecretsFound as problem:
        if not as_json:
            for one in problem.findings[:_SHOWN]:
                note(f"{mark('bad')} {tame(str(one))}  {dim(f'--allow {one.id}')}")
        raise
    if as_json:
        print_json(found)
        return
    done = found["packed"]
    sealed = f", sealed for {tame(done['for'])}" if "for" in done else ""
    say(
        f"{mark('good')} {tame(done['name'])}: {count(done['files'], 'file')}, {size(done['size'])}, signed{sealed}"
    )
    say(f"  {tilde(done['path'])}")
    if done["signature"]:
        say(f"  {tilde(done['signature'])} {dim('is its signature')}")
    for one in done["left_out"][:_SHOWN]:
        say(dim(f"  left out: {tame(one['path'])} {one['why']}"))
    if len(done["left_out"]) > _SHOWN:
        say(dim(f"  and {len(done['left_out']) - _SHOWN} more"))


@egg.command()
@_FILE
@_JSON
def inspect(file: Path, as_json: bool) -> None:
    """What is in FILE, and who packed it. Nothing is written."""
    _look(file, as_json, check=False)


@egg.command()
@_FILE
@_JSON
def verify(file: Path, as_json: bool) -> None:
    """Read every byte of FILE and compare it with the hashes it carries."""
    _look(file, as_json, check=True)


@egg.command()
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@_JSON
def diff(before: Path, after: Path, as_json: bool) -> None:
    """What differs between two eggs, file by file."""
    from twins.eggs.opening import open_egg
    from twins.eggs.opening.comparing import compare

    with open_egg(_there(before)) as old, open_egg(_there(after)) as new:
        found = compare(old, new)
        if as_json:
            print_json(found.as_json())
            return
        for line in found.lines():
            say(f"{mark('good')} {line.text}" if line.verdict == "good" else tame(line.text))


@egg.command()
@_FILE
@_OVERWRITE
@_JSON
def plan(file: Path, overwrite: str, as_json: bool) -> None:
    """What hatching FILE would do here. Nothing is written."""
    from rappd.cli.egg_screens import show_plan

    with progress() as line:
        line(f"Reading {file.name}…")
        found = _verbs().plan(_there(file), overwrite=_listed(overwrite))
    if as_json:
        print_json(found)
    else:
        show_plan(found["plan"], file=str(file))


@egg.command()
@_FILE
@_OVERWRITE
@click.option(
    "--trust-signer", metavar="FINGERPRINT", help="Trust this key from now on; its code runs at once."
)
@click.option("--yes", is_flag=True, help="Do not ask whether to trust.")
@_JSON
def hatch(file: Path, overwrite: str, trust_signer: str, yes: bool, as_json: bool) -> None:
    """Hatch FILE: checked, planned, staged, then moved into place, whole or not at all.

    What is yours stays. Code that nobody trusted signed is quarantined: kept, and not run.
    """
    from rappd.cli.egg_screens import show_hatched

    verbs, path, chosen = _verbs(), _there(file).absolute(), _listed(overwrite)
    with _trusting(verbs, path, trust_signer, ask=not yes and not as_json) as goes_on:
        if not goes_on:
            say("Nothing was written.")
            return
        daemon = Daemon(Home.here(), timeout=3600)
        with _bar(f"Hatching {file.name}") as told:
            if daemon.running():
                body = {"path": str(path), "overwrite": chosen, "source": file.name}
                found = daemon.post("/eggs/hatch", body)
            else:
                found = verbs.hatch(path, overwrite=chosen, source=file.name, progress=told)
    if as_json:
        print_json(found)
    else:
        show_hatched(found["hatched"])


@egg.command()
@_FILE
@click.argument("folder", type=click.Path(path_type=Path))
@_JSON
def extract(file: Path, folder: Path, as_json: bool) -> None:
    """Lay the files of FILE out in a new FOLDER, to be read. Nothing hatches."""
    found = _verbs().extract(_there(file), folder.absolute())
    if as_json:
        print_json(found)
    else:
        say(f"{mark('good')} {count(found['extracted']['files'], 'file')} in {tilde(folder)}")


@egg.command()
@_JSON
def hatchings(as_json: bool) -> None:
    """What was hatched here, the latest first."""
    from datetime import datetime
    from time import time

    found = _verbs().receipts()
    if as_json:
        print_json(found)
        return
    if not found["hatchings"]:
        say("Nothing was hatched here yet.")
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


@egg.command()
@click.argument("hatching")
@click.option("--even-if-changed", is_flag=True, help="Put aside what changed since, and go back.")
@_JSON
def rollback(hatching: str, even_if_changed: bool, as_json: bool) -> None:
    """Undo a HATCHING: what it replaced comes back, what it brought goes."""
    daemon = Daemon(Home.here(), timeout=3600)
    if daemon.running():
        found = daemon.post("/eggs/rollback", {"receipt": hatching, "even_if_changed": even_if_changed})
    else:
        found = _verbs().rollback(hatching, even_if_changed=even_if_changed)
    if as_json:
        print_json(found)
        return
    done = found["rolled_back"]
    if done["already"]:
        say(f"{mark('good')} {tame(done['name'])} was taken back before.")
        return
    say(
        f"{mark('good')} {tame(done['name'])} is taken back: {count(len(done['restored']), 'file')} restored, "
        f"{len(done['removed'])} removed."
    )
    if done["aside"]:
        say(f"  What had changed lies in {tilde(done['aside'])}")


@egg.command()
@click.option("--trust", "fingerprint", metavar="FINGERPRINT", help="Trust this key.")
@click.option("--name", default="", help="What to call it.")
@click.option("--revoke", metavar="FINGERPRINT", help="Do not trust it any more.")
@_JSON
def signers(fingerprint: str | None, name: str, revoke: str | None, as_json: bool) -> None:
    """Whose eggs run here without being read first."""
    verbs = _verbs()
    if fingerprint:
        found = verbs.trust_signer(fingerprint, name)
    elif revoke:
        found = verbs.revoke_signer(revoke)
    else:
        found = verbs.list_signers()
    if as_json:
        print_json(found)
    elif "message" in found:
        say(f"{mark('good')} {found['message']}")
    else:
        rows = [[row["name"], row["fingerprint"], row["since"][:10]] for row in found["signers"]]
        if rows:
            table(["NAME", "FINGERPRINT", "SINCE"], rows, whole=(1,))
        else:
            say("Nobody yet; this machine's own eggs are trusted.")
        say(dim(f"This machine: {found['own']}"))


@egg.command()
@click.argument("agents", nargs=-1, required=True)
@click.option("--registry", type=click.Path(path_type=Path), required=True, help="A clone of the registry.")
@_JSON
def forge(agents: tuple[str, ...], registry: Path, as_json: bool) -> None:
    """A short text that stands for AGENTS of a registry."""
    from twins.eggs.registry_clone import RegistryClone
    from twins.eggs.strings import decode

    text = RegistryClone.open(registry).forge(agents)
    if as_json:
        seeds = [str(seed) for seed in decode(text)]
        print_json({"egg": {"schema": "rapp-egg/1.0", "seeds": seeds, "count": len(seeds), "text": text}})
    else:
        say(text)


@egg.command("hatch-text")
@click.argument("text")
@click.option("--registry", type=click.Path(path_type=Path), required=True, help="A clone of the registry.")
@_OVERWRITE
@_JSON
def hatch_text(text: str, registry: Path, overwrite: str, as_json: bool) -> None:
    """Hatch the agents that TEXT stands for, out of a clone of their registry."""
    from rappd.cli.egg_screens import show_hatched

    found = _verbs().hatch_text(text, registry, overwrite=_listed(overwrite))
    if as_json:
        print_json(found)
    else:
        show_hatched(found["hatched"])


egg.add_command(merge)
egg.add_command(send)
egg.add_command(arrived)


def _look(file: Path, as_json: bool, *, check: bool) -> None:
    from twins.eggs.opening import open_egg
    from twins.eggs.opening.inspecting import inspect, lines, look_at, verdict

    opening: Callable[[Path], Any] = open_egg if check else look_at
    with opening(_there(file)) as opened:
        if as_json:
            print_json(inspect(opened))
            return
        for line in verdict(opened) if check else lines(opened):
            say(f"{mark(line.verdict)} {tame(line.text)}" if line.verdict else tame(line.text))
        if check and opened.seal.signer:
            say(f"  key {opened.seal.signer}")


@contextmanager
def _trusting(verbs: EggVerbs, path: Path, fingerprint: str, *, ask: bool) -> Iterator[bool]:
    """Trusts the key that signed an egg; no longer, when the hatching fails. False: the person said no."""
    if not fingerprint:
        yield True
        return
    signer, host = verbs.signer_of(path)
    if signer != fingerprint:
        what = f"is signed by {signer}" if signer else "is not signed"
        raise Refused(f"{path.name} {what}; nothing was written.", do=f"rappd egg verify {path.name}")
    if verbs.signers.is_trusted(signer):
        yield True
        return
    question = f"Trust {tame(host) or 'this key'} from now on? What it signs runs here at once."
    if ask and interactive() and not click.confirm(question, default=False, err=True):
        yield False
        return
    verbs.trust_signer(signer, host)
    try:
        yield True
    except BaseException:
        verbs.revoke_signer(signer)
        raise


def _there(file: Path) -> Path:
    if not file.is_file():
        raise NotFound(f'No file "{file}".', do="rappd egg pack makes one")
    from rappd.operations.sealed_eggs import unsealed
    from rappd.operations.waiting_eggs import WaitingEggs

    home = Home.here()
    return unsealed(file, home, WaitingEggs(home.root / "eggs" / ".waiting"))


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _verbs() -> EggVerbs:
    from rappd.home import machine_name
    from rappd.offline import workspace_of
    from rappd.operations.eggs import EggVerbs
    from rappd.settings.load import Settings

    home = Home.here()
    home.create()
    settings = Settings.load(home)
    return EggVerbs(
        home, workspace_of(home, settings), home.identity(), machine=machine_name(settings.text("name"))
    )


@contextmanager
def _bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A line with percent and bytes, for work that tells how far it is."""
    with progress() as line:
        line(f"{what}…")
        yield lambda done, whole: line(
            f"{what}  {100 * done // max(1, whole)} %  {size(done)} of {size(whole)}"
        )
