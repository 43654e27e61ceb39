"""A machine whose disk takes as long as a test says: each sync of its record waits first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.machines import Machine

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
    """The environment of a daemon whose disk ``hold_up`` can hold up; ``site`` is a folder for what that needs."""
    site.mkdir(parents=True)
    (site / "sitecustomize.py").write_text(_SITE)
    return {"PYTHONPATH": f"{site}:{Path(__file__).parents[1]}"}


def hold_up(home: Path, seconds: float) -> None:
    """How long each sync of the daemon with that home waits from now on; 0 ends what waits, too."""
    told = home / "slow-disk"
    if seconds:
        told.write_text(str(seconds))
    else:
        told.unlink(missing_ok=True)


class SlowDisk(Machine):
    """``slow(seconds)`` from now on; ``slow(0)`` ends what waits, too."""

    def __init__(self, home: Path, name: str, **environment: Any) -> None:
        super().__init__(home, name, **with_slow_disk(home.parent / f"site of {name}"), **environment)

    def slow(self, seconds: float) -> None:
        """How long a sync waits."""
        hold_up(self.home, seconds)
