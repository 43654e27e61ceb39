"""Options that the commands of ``rappd egg`` share."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import click

from envelopes.errors import ReportableError
from rappd.cli.command_parameters import Argument, Option
from rappd.cli.console import dim, print_err, status_mark, strip_control
from rappd.cli.printer import Printer
from rappd.cli.progress import progress
from rappd.daemon.home import Home
from rappd.errors import NotFoundError, UsageProblemError

_SHOWN = 20

_ID = re.compile(r"[0-9a-f][0-9a-f-]{3,35}")
"""Begins as the id of an arrived egg, as ``rappd egg arrived`` prints it."""


class EggFile(click.Path):
    """A file, the beginning of the id of an egg that arrived, or the web address of one.

    What is fetched lies in the home for a day, as ``HatchEgg`` has it.
    """

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and value.startswith(("http://", "https://")):
            return fetched(value)
        path: Path = super().convert(value, param, ctx)  # type: ignore[assignment]  # as path_type says
        if isinstance(value, str) and _ID.fullmatch(value) and not path.exists():
            return _arrived(value) or path
        return path


def fetched(url: str) -> Path:
    """The egg at a web address, fetched whole. Raises ``unreachable``, ``BadEggError``."""
    import asyncio

    from rappd.features.eggs.download import fetch_egg
    from rappd.features.eggs.uploaded_eggs import UploadedEggs

    with progress("Fetching the egg…"):
        return asyncio.run(fetch_egg(url, UploadedEggs(Home.here().root / "eggs" / ".waiting")))


def _arrived(start: str) -> Path | None:
    """The file of the one arrived egg whose id begins so; None without one, or without a daemon that knows."""
    from rappd.control_client import ControlClient

    try:
        rows = ControlClient(Home.here()).do("eggs.arrived")["arrived"]
    except ReportableError:
        return None
    found = [Path(row["path"]) for row in rows if row["id"].startswith(start)]
    return found[0] if len(found) == 1 else None


File = Annotated[Path, Argument(type=EggFile())]
Registry = Annotated[
    Path | None, Option("--registry", help="A clone of the registry; without it, the setting eggs.registry.")
]
OUTPUT = click.option(
    "-o",
    "--output",
    "into",
    default="",
    metavar="FILE",
    callback=lambda _, __, given: whole(given),
    help="Where to; without it, among the home's eggs.",
)
EXCLUDE_MEMORY = click.option(
    "--exclude-memory", is_flag=True, help="Leave memories and conversations behind."
)
ALLOW = click.option(
    "--allow",
    multiple=True,
    metavar="ID",
    help="Let a likely secret travel, by the id printed with the warning.",
)
FORCE = click.option("--force", "overwrite", is_flag=True, help="Replace FILE.")


def whole(path: str | Path | None) -> str:
    """The path as the daemon finds it; "" for none."""
    return str(Path(path).expanduser().absolute()) if path else ""


def egg_at(file: Path) -> Path:
    """The file itself, or the egg in it, where it is sealed for this machine. Raises ``NotFoundError``."""
    if file.is_dir():
        raise NotFoundError(f'"{file}" is a folder, not an egg.', do="rappd egg pack makes one")
    if not file.is_file():
        do = "rappd egg pack makes one"
        if _is_egg_string(str(file)):
            do = f"A short text of agents? rappd egg hatch-text {file}"
            do += "" if _registry_set() else " --registry FOLDER"
        raise NotFoundError(f'No file "{file}".', do=do)
    from rappd.features.eggs.uploaded_eggs import UploadedEggs, unsealed

    home = Home.here()
    return unsealed(file, home, UploadedEggs(home.root / "eggs" / ".waiting"))


def registry_at(given: Path | None) -> Path:
    """The clone of the registry that is named, here or by the setting. Raises ``UsageProblemError`` for none."""
    if given is not None:
        return given
    if not (named := _registry_set()):
        raise UsageProblemError(
            "There is no registry to look in.",
            do="Give --registry FOLDER, or once for all: rappd config set eggs.registry FOLDER",
        )
    return Path(named).expanduser()


@contextmanager
def secrets_listed(printer: Printer) -> Iterator[None]:
    """Names to people the secrets that stop a packing, each with how to allow it."""
    from rappd.control_client import ResponseError

    try:
        yield
    except ResponseError as problem:
        from twins.eggs.writers.secret_scan import Finding

        for one in () if printer.for_scripts else problem.as_json().get("findings", ())[:_SHOWN]:
            print_err(
                f"{status_mark('bad')} {strip_control(str(Finding(**one)))}  {dim('--allow ' + one['id'])}"
            )
        raise


def _registry_set() -> str:
    from rappd.settings.load import Settings

    return Settings.load(Home.here()).text("eggs.registry")


def _is_egg_string(text: str) -> bool:
    from twins.eggs.egg_strings import decode
    from twins.errors import BadEggError

    try:
        return len(decode(text)) > 0
    except BadEggError:
        return False
