"""Eggs that were packed here and lie among the home's, each called after what is inside."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import Any

from envelopes.errors import ReportableError
from rappd.errors import NotFoundError
from twins.workspace.listing import scan
from twins.workspace.workspace import TwinLayout

MOST = 50
"""Eggs in one answer; of older ones nobody asks."""
_BEFORE = "-before.egg"
_NOT_IN_NAMES = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*]+')


def packed_eggs(places: TwinLayout) -> list[dict[str, Any]]:
    """Returns ``{file, name, folder, path, size, at}``, the latest first; ``file`` is a name as ``Gardener.egg``.

    Eggs that a hatching packed as its way back are none of them.
    """
    found = []
    for path in places.eggs.glob("[!.]*/*.egg"):
        status = path.lstat()
        if stat.S_ISREG(status.st_mode) and not path.name.endswith(_BEFORE):
            found.append((status.st_mtime, status.st_size, path))
    found.sort(reverse=True)
    names = {one.key: one.name for kept in (False, True) for one in scan(places, archived=kept).twins}
    return [
        {
            "file": egg_file_name(name),
            "name": name,
            "folder": path.parent.name,
            "path": str(path),
            "size": size,
            "at": int(at * 1_000_000),
        }
        for at, size, path in found[:MOST]
        for name in [names.get(path.parent.name) or _name_inside(path)]
    ]


def laid_egg(places: TwinLayout, folder: str, name: str) -> Path:
    """The file of an egg that was packed here. Raises ``NotFoundError``."""
    root = places.eggs.resolve()
    try:
        path = (root / folder / name).resolve()
        found = path.parent.parent == root and path.suffix == ".egg" and path.is_file()
    except (OSError, ValueError):  # a name too long, a zero byte
        found = False
    if not found:
        raise NotFoundError("There is no such egg.", do="rappd egg pack")
    return path


def egg_file_name(name: str) -> str:
    """``Gardener.egg``: a name as every system allows it for a file."""
    return f"{_NOT_IN_NAMES.sub('_', name).strip('. ')[:80] or 'egg'}.egg"


def _name_inside(path: Path) -> str:
    from twins.eggs.readers.inspect import inspect, look_at

    try:
        with look_at(path) as opened:
            return str(inspect(opened)["egg"]["name"] or path.parent.name)
    except (ReportableError, OSError):
        return path.parent.name
