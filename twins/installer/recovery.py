"""At start-up: what a crash left half-way is finished or taken back, before anything of it runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import orjson

from twins.errors import TwinError
from twins.fs.file_transaction import PREFIX, resume
from twins.installer.quarantine import QuarantineList
from twins.installer.target import INERT_FOLDERS
from twins.workspace.layout import TwinLayout
from twins.workspace.workspace import Workspace


class Recovered(msgspec.Struct, frozen=True):
    """One staging folder that was found. ``outcome``: finished, undone, cleared, or stuck with a reason."""

    folder: Path
    outcome: str
    reason: str = ""


def recover_all(home: Path, host: Workspace, held: QuarantineList) -> list[Recovered]:
    """Brings every interrupted hatching and rollback of a home to its end.

    The caller holds the home against other hatchings. What cannot be brought to an end is told, stays,
    and is tried again the next time.
    """
    return [_one(staging, held, Path(os.path.realpath(home))) for staging in sorted(_left(home, host))]


def _left(home: Path, host: Workspace) -> Iterator[Path]:
    real = Path(os.path.realpath(home))
    beside = {real, Path(os.path.realpath(host.root)).parent, Path(os.path.realpath(real / "twins"))}
    beside.add(Path(os.path.realpath(TwinLayout(real).archive)))
    beside |= {Path(os.path.realpath(real / name)) for name in INERT_FOLDERS.values()}
    for folder in beside:
        if folder.is_dir():
            with os.scandir(folder) as entries:
                yield from (
                    folder / entry.name
                    for entry in entries
                    if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False)
                )


def _one(staging: Path, held: QuarantineList, home: Path) -> Recovered:
    try:
        return Recovered(staging, resume(staging, held, home))
    except (OSError, TwinError, orjson.JSONDecodeError, KeyError, TypeError) as error:
        return Recovered(staging, "stuck", str(error))
