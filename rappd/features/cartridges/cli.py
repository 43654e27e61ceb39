"""``rappd cartridge``: list, run, step, freeze, resume, inspect, diff, new, convert, export. Needs no daemon."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from rappd.cli.command_group import SuggestingGroup
from rappd.cli.command_parameters import Option
from rappd.cli.printer import Printer
from rappd.daemon.home import Home
from rappd.errors import UsageProblemError

if TYPE_CHECKING:
    from rappd.features.cartridges.file_actions import CartridgeFiles

_PATH = click.Path(path_type=Path)
_Out = Annotated[Path | None, Option("-o", "--output", metavar="OUT", help="Save it there, signed.")]
_Replace = Annotated[bool, Option("--replace", help="OUT may exist.")]
_Force = Annotated[bool, Option("--force", help="Take FILE though its body is not what its hash says.")]
_At = Annotated[str, Option("--at", metavar="MOMENT", help="What counts as now: 2026-11-21T09:40:00Z.")]
_Input = Annotated[tuple[str, ...], Option("--input", metavar="JSON", help="Input; repeatable.")]
_SHAPES = ("seed", "legacy", "spec")


@click.group(cls=SuggestingGroup)
def cartridge() -> None:
    """Run agents that are files: .lispy.json and .rappter.egg.

    A program in LisPy reaches nothing outside its machine: no files, no network, no clock. It can be frozen
    in the middle of an expression and goes on wherever its file is.
    """


@cartridge.command("list")
def list_(printer: Printer) -> None:
    """LisPy cartridges that lie beside the agents.

    Those of the brainstem, and of each twin.
    """
    from rappd.features.cartridges.found_cartridges import FoundCartridges
    from rappd.features.cartridges.text import show_cartridges
    from rappd.settings.load import Settings, host_workspace

    home = Home.here()
    rows = FoundCartridges(home, host_workspace(home, Settings.load(home))).listing()
    printer.result({"cartridges": rows}, show_cartridges, rows)


@cartridge.command()
@click.option("--frames", type=click.IntRange(1), metavar="N", help="How often; once without it.")
@click.option(
    "--fuel", type=click.IntRange(1, 100_000_000), metavar="N", help="Steps that a frame may take (100,000)."
)
@click.option("--save", is_flag=True, help="Save what came of it in FILE, signed.")
def run(
    file: Path,
    frames: int | None,
    *,
    inputs: _Input = (),
    fuel: int | None,
    save: bool,
    into: _Out = None,
    replace: _Replace = False,
    force: _Force = False,
    at: _At = "",
    printer: Printer,
) -> int:
    """Run a frame of FILE.

    A program runs once from its beginning. A buddy takes actions: --input '"feed"', --input '{"action": "remember", "text": "…"}'.
    """
    found = _verbs(at).run(
        file,
        frames=frames,
        inputs=[_json(one) for one in inputs],
        fuel=fuel,
        into=_target(file, save, into),
        replace=replace,
        force=force,
    )
    return _show_run(found, file, printer)


@cartridge.command()
@click.argument("steps", type=click.IntRange(1), default=1, metavar="[N]")
def step(file: Path, steps: int, printer: Printer, inputs: _Input = (), at: _At = "") -> int:
    """Take N steps (one) and freeze it there."""
    found = _verbs(at).run(file, inputs=[_json(one) for one in inputs], steps=steps, into=file)
    return _show_run(found, file, printer)


@cartridge.command()
@click.option("--after", type=click.IntRange(1), required=True, metavar="N", help="After so many steps.")
def freeze(
    file: Path,
    after: int,
    printer: Printer,
    inputs: _Input = (),
    into: _Out = None,
    replace: _Replace = False,
    at: _At = "",
) -> int:
    """Run FILE for N steps and freeze it there.

    It is saved in FILE, or in OUT. A frame that ends earlier counts as done.
    """
    given = [_json(one) for one in inputs]
    found = _verbs(at).run(file, inputs=given, steps=after, into=into or file, replace=replace)
    return _show_run(found, file, printer)


@cartridge.command()
@click.option("--save", is_flag=True, help="Save what came of it in FILE, signed.")
def resume(
    file: Path,
    *,
    inputs: _Input = (),
    save: bool,
    into: _Out = None,
    replace: _Replace = False,
    at: _At = "",
    printer: Printer,
) -> int:
    """Go on with a frozen FILE, to the end of its frame."""
    given = [_json(one) for one in inputs]
    found = _verbs(at).resume(file, inputs=given, into=_target(file, save, into), replace=replace)
    return _show_run(found, file, printer, "resume")


@cartridge.command()
def inspect(file: Path, printer: Printer, force: _Force = False) -> None:
    """Show what FILE is, and who signed it.

    Also what it holds and where it was frozen. Nothing runs.
    """
    from rappd.features.cartridges.text import show_inspected

    found = _verbs().inspect(file, force=force)
    printer.result(found, show_inspected, found["cartridge"])


@cartridge.command()
def diff(before: Path, after: Path, printer: Printer, force: _Force = False) -> None:
    """Show the differences between two cartridges, value by value."""
    from rappd.features.cartridges.text import show_diff

    found = _verbs().diff(before, after, force=force)
    printer.result(found, show_diff, found["diff"])


@cartridge.command()
@click.option(
    "--program", "programs", type=_PATH, multiple=True, required=True, metavar="FILE.lispy",
    help="Its program; repeatable.",
)  # fmt: skip
@click.option("--entry", default="", metavar="PROGRAM", help="Which program a frame runs.")
@click.option("--description", default="", help="What it is for.")
@click.option("--dialect", type=click.Choice(["core", "rappterbook"]), default="core", help="Which LisPy.")
def new(
    name: str,
    programs: tuple[Path, ...],
    entry: str,
    description: str,
    dialect: str,
    printer: Printer,
    into: _Out = None,
    replace: _Replace = False,
    at: _At = "",
) -> None:
    """Make a cartridge NAME.lispy.json of a program."""
    found = _verbs(at).new(
        name, programs, into, entry=entry, description=description, dialect=dialect, replace=replace
    )
    _saved(found, printer)


@cartridge.command()
@click.option(
    "--to", type=click.Choice(_SHAPES), required=True, help="legacy is the one that Rappter Buddy reads."
)
@click.option(
    "-o", "--output", "into", type=_PATH, required=True, metavar="OUT", help="Save it there, signed."
)
def convert(
    file: Path,
    to: str,
    into: Path,
    printer: Printer,
    replace: _Replace = False,
    force: _Force = False,
    at: _At = "",
) -> None:
    """Write a .rappter.egg in another shape.

    Nothing of it is lost: what the other shape has no words for is carried along.
    """
    _saved(_verbs(at).convert(file, to, into, replace=replace, force=force), printer)


@cartridge.command()
@click.option("--to", type=click.Choice(_SHAPES), default="legacy", help="Its shape; legacy without it.")
def export(
    name: str, to: str, printer: Printer, into: _Out = None, replace: _Replace = False, at: _At = ""
) -> None:
    """Write a buddy as a .rappter.egg.

    It lives on here, too.
    """
    _saved(_verbs(at).export(name, to, into, replace=replace), printer)


def _show_run(found: dict[str, Any], file: Path, printer: Printer, verb: str = "run") -> int:
    """Shows what came of running; returns the exit code."""
    from rappd.features.cartridges.text import exit_code, show_ran

    printer.result(found, show_ran, found["cartridge"], file, verb)
    return exit_code(found["cartridge"])


def _saved(found: dict[str, Any], printer: Printer) -> None:
    from rappd.features.cartridges.text import show_saved

    printer.result(found, show_saved, found["cartridge"])


def _target(file: Path, save: bool, into: Path | None) -> Path | None:
    if save and into is not None:
        raise UsageProblemError("Only one of --save and -o goes at a time.", do="Take one of them.")
    return file if save else into


def _json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise UsageProblemError(
            f"--input {text[:40]} is not JSON.", do="""Text is quoted twice: --input '"feed"'"""
        ) from error


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _verbs(at: str = "") -> CartridgeFiles:
    from rappd.features.cartridges.file_actions import CartridgeFiles

    return CartridgeFiles(Home.here(), now=_moment(at) if at else None)


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageProblemError(
            f'"{text[:40]}" is no moment.', do="Write it as 2026-11-21T09:40:00Z."
        ) from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)
