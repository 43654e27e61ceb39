"""A machine whose disk takes as long as a test says: each sync of its record waits first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.machines import Machine

_SITE = """
import os, time
from pathlib import Path

import rappd.store.syncing as syncing

really, told = syncing.to_disk, Path(os.environ["RAPP_HOME"]) / "slow-disk"

def to_disk(descriptor):
    until = time.monotonic() + (float(told.read_text()) if told.exists() else 0)
    while told.exists() and time.monotonic() < until:
        time.sleep(0.01)
    really(descriptor)

syncing.to_disk = to_disk
"""


class SlowDisk(Machine):
    """``slow(seconds)`` from now on; ``slow(0)`` ends what waits, too."""

    def __init__(self, home: Path, name: str, **environment: Any) -> None:
        site = home.parent / f"site of {name}"
        site.mkdir(parents=True)
        (site / "sitecustomize.py").write_text(_SITE)
        super().__init__(home, name, PYTHONPATH=f"{site}:{Path(__file__).parents[1]}", **environment)

    def slow(self, seconds: float) -> None:
        """How long a sync waits."""
        told = self.home / "slow-disk"
        if seconds:
            told.write_text(str(seconds))
        else:
            told.unlink(missing_ok=True)
