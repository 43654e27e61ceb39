"""``rappd neighborhood plan`` and ``hatch``: a snapshot back to where it came from, or simulated here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rappd.cli.console import interactive, print_json, print_out
from rappd.cli.home_client import HomeClient
from rappd.cli.neighborhood_home import snapshots_here, ways_here
from rappd.cli.progress import progress
from rappd.daemon.home import Home
from rappd.errors import UsageProblemError
from rappd.features.eggs.cli_options import JSON, egg_at
from rappd.features.snapshots.text import show_open_calls, show_restore_plan, show_restored, show_way_on
from twins.errors import UnconfirmedError

if TYPE_CHECKING:
    from neighborhoods.snapshot.hatch import LocalResult
    from neighborhoods.snapshot.plan import RestoreOptions

_PARTIAL = 7
_FLAGS = {
    "overwrite_agents": "Replace the brainstem's agents and services.",
    "overwrite_core": "Replace the brainstem's soul.",
    "overwrite_data": "Replace the brainstem's memory.",
    "overwrite_global_state": "Replace the kept files of the home.",
    "overwrite_twins": "Replace files of twins of this machine.",
    "overwrite_peer_twins": "Replace twins of other machines.",
    "restore_archived": "Archived twins, too; they stay archived.",
}


def restore_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of a restore; without any, only gaps are filled."""
    for name, text in reversed(_FLAGS.items()):
        function = click.option(f"--{name.replace('_', '-')}", is_flag=True, help=text)(function)
    return click.option(
        "--target",
        type=click.Choice(["in-place", "local-simulate"]),
        default="in-place",
        help="Other machines' twins go back to them, or into simulated/ here.",
    )(function)


@click.command()
@click.argument("file")
@restore_options
@JSON
def plan(file: str, as_json: bool, **given: Any) -> None:
    """Show what bringing FILE back would do, here and elsewhere. Nothing is written."""
    show_plan_of(file, given, as_json=as_json)


@click.command()
@click.argument("file")
@restore_options
@click.option("--dry-run", is_flag=True, help="The same as plan.")
@click.option("--approved", default="", metavar="DIGEST", help="Only if the plan is still this one.")
@click.option("--yes", is_flag=True, help="Do not ask before other machines are written to.")
@JSON
def hatch(file: str, dry_run: bool, approved: str, yes: bool, as_json: bool, **given: Any) -> int:
    """Bring FILE back: this machine's part, and each other machine's to where it came from.

    What is there stays, unless an option says otherwise. What fails is named, and the rest goes on; a second
    run does only what is left.
    """
    if dry_run:
        show_plan_of(file, given, as_json=as_json)
        return 0
    return hatch_snapshot(file, given, approved=approved, yes=yes, as_json=as_json)


def show_plan_of(file: str, given: dict[str, Any], *, as_json: bool) -> None:
    """Plans and shows."""
    verbs = snapshots_here(writes=False)
    path = _path(verbs.folder.find(file))
    ways = ways_here()
    with progress() as line:
        line(f"Reading {path.name}…")
        found = asyncio.run(verbs.plan(path, _options(given), ways))
    if as_json:
        print_json(found)
    else:
        show_restore_plan(found["plan"], path=path)
        show_way_on(found["plan"], file=file)


def hatch_snapshot(
    file: str, given: dict[str, Any], *, approved: str = "", yes: bool = False, as_json: bool = False
) -> int:
    """Brings a snapshot back, after a yes where other machines would be written to. Returns the exit code."""
    from rappd.features.snapshots.snapshot_view import writes_elsewhere

    verbs, options = snapshots_here(), _options(given)
    path = _path(verbs.folder.find(file))
    here = _LocalPart(path, given)
    if not approved and not yes:
        ways = ways_here()
        with progress() as line:
            line(f"Reading {path.name}…")
            verbs.recover()
            planned = asyncio.run(verbs.plan(path, options, ways))["plan"]
        if writes_elsewhere(planned):
            if as_json or not interactive():
                raise UnconfirmedError(
                    "Other machines would be written to; nothing was.",
                    do="Look at the plan, then add --yes, or --approved with the digest that plan --json shows.",
                )
            show_restore_plan(planned, path=path)
            if not click.confirm("Write to these machines?", default=False, err=True):
                print_out("Nothing was written.")
                return 0
        approved = planned["digest"]
    with progress() as line:
        line(f"Reading {path.name}…")

        def tell(event: dict[str, Any]) -> None:
            line(f"Hatching {event.get('name', '')}…")

        found = asyncio.run(
            verbs.hatch(
                path,
                options,
                ways_here(),
                approved=approved,
                local=here.hatch,
                tell=tell,
            )
        )
    if as_json:
        print_json(found)
    else:
        show_restored(found["hatched"], path=path)
        show_open_calls(here.open_calls)
    return _PARTIAL if found["hatched"]["partial"] else 0


def egg_is_snapshot(path: Path) -> bool:
    """True when the egg at ``path`` is a neighborhood's: quickly, whatever its size."""
    from neighborhoods.snapshot.contents import is_snapshot
    from twins.eggs.readers.inspect import look_at

    with look_at(path) as opened:
        return is_snapshot(opened)


def as_written(overwrite: str, *, no_memory: bool) -> dict[str, Any]:
    """The options of a restore for those of ``rappd egg``. Raises ``UsageProblemError``: they are other ones."""
    if overwrite or no_memory:
        raise UsageProblemError(
            "This egg is a whole neighborhood, with options of its own.", do="rappd neighborhood hatch --help"
        )
    return {"target": "in-place", **dict.fromkeys(_FLAGS, False)}


def _options(given: dict[str, Any]) -> RestoreOptions:
    from neighborhoods.snapshot.plan import RestoreOptions, Target

    return RestoreOptions(target=Target(given["target"]), **{name: given[name] for name in _FLAGS})


def _path(found: Path) -> Path:
    return egg_at(found).absolute()


class _LocalPart:
    """This machine's part. ``open_calls``: the calls that came back with it."""

    def __init__(self, path: Path, options: dict[str, Any]) -> None:
        self._here = HomeClient(Home.here(), timeout=3600)
        self._here.open()  # the plan is made of a home that is as it will be then
        self._path, self._options = path, options
        self.open_calls = 0

    async def hatch(self, digest: str) -> LocalResult:
        """See ``LocalPart``."""
        import msgspec

        from neighborhoods.snapshot.hatch import LocalResult

        body = {"path": str(self._path), "options": self._options, "approved": digest}
        found = await asyncio.to_thread(partial(self._here.do, "snapshots.hatch_local", **body))
        self.open_calls = int(found.get("open_calls", 0))
        return msgspec.convert(found["hatched"], LocalResult)
