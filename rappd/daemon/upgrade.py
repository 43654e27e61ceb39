"""The brainstem has a rappid of its own, and lives through upgrades: an egg first, then the bond (RAPP v1 §7)."""

from __future__ import annotations

import logging
import platform
from collections.abc import Callable
from pathlib import Path

from agents.storage.atomic_write import write_atomically
from rappd.version import __version__
from twins.workspace.bonds import record_bond
from twins.workspace.identity_file import FILE
from twins.workspace.twin import adopt
from twins.workspace.workspace import Workspace

log = logging.getLogger(__name__)


def settle_in(home: Path, host: Workspace, *, machine: str, lay_egg: Callable[[Path], Path]) -> None:
    """At start, before any code of the workspace runs. Blocks on the disk.

    The first start mints the brainstem's rappid. A start with another version than the last one packs the
    workspace with ``lay_egg``, counts an incarnation and writes the bond down. A crash in between does it
    again, with another egg.
    """
    if not host.files.exists(FILE):
        adopt(host, machine, owner=machine, host=machine, platform=platform.system().lower())
    seen = home / "version"
    before = seen.read_text(errors="replace").strip() if seen.exists() else ""
    if before == __version__:
        return
    if before:
        egg = lay_egg(host.root)
        count = record_bond(host, from_version=before, to_version=__version__, note=egg.name)
        log.info("this is rappd %s, incarnation %d; what was before is in %s", __version__, count, egg)
    write_atomically(seen, f"{__version__}\n".encode())
