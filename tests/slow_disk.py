"""A daemon whose disk is as slow as a test says: each fsync of its event log waits first."""

from __future__ import annotations

from pathlib import Path

_SITE = """
import os, time
from pathlib import Path

import rappd.store.fsync as fsync

really, told = fsync.to_disk, Path(os.environ["RAPP_HOME"]) / "slow-disk"

def to_disk(descriptor):
    until = time.monotonic() + (float(told.read_text()) if told.exists() else 0)
    while told.exists() and time.monotonic() < until:
        time.sleep(0.01)
    really(descriptor)

fsync.to_disk = to_disk
"""


def with_slow_disk(site: Path) -> dict[str, str]:
    """Returns the environment of a daemon whose disk ``hold_up`` can slow; ``site`` is a folder for the patch."""
    site.mkdir(parents=True)
    (site / "sitecustomize.py").write_text(_SITE)
    return {"PYTHONPATH": f"{site}:{Path(__file__).parents[1]}"}


def hold_up(home: Path, seconds: float) -> None:
    """Makes each fsync of the daemon with that home wait so long; 0 also ends a wait under way."""
    told = home / "slow-disk"
    if seconds:
        told.write_text(str(seconds))
    else:
        told.unlink(missing_ok=True)
