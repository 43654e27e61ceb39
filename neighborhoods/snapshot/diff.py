"""The differences between two snapshots, file by file; other machines' twins by their archives."""

from __future__ import annotations

from pathlib import Path

from twins.eggs.readers.detect import open_egg
from twins.eggs.readers.diff import Difference, compare_eggs


def compare_snapshots(before: Path, after: Path) -> Difference:
    """Compares every file. Raises what ``open_egg`` raises."""
    with open_egg(before) as old, open_egg(after) as new:
        return compare_eggs(old, new)
