"""A folder whose files have the names of modules, and the two ways to name the command in it."""

from __future__ import annotations

import sys
from pathlib import Path

TRAPS = ("twins", "agents", "envelopes", "neighborhoods", "json", "asyncio", "random", "sqlite3", "click")
SCRIPT = [str(Path(sys.executable).parent / "rappd")]
MODULE = [sys.executable, "-m", "rappd"]

Traps = tuple[Path, Path]


def make_traps(place: Path) -> Traps:
    """A folder of traps, and the file in which each writes its name when it is run."""
    folder, marker = place / "traps", place / "marker"
    folder.mkdir()
    for name in (*TRAPS, "rappd"):
        (folder / f"{name}.py").write_text(f"open({str(marker)!r}, 'a').write('{name}\\n')\n")
    return folder, marker
