"""Homes on the fastest disk there is: what is tested is order, not the disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.twins.checkpoints.garden import Garden


@pytest.fixture
def garden(tmp_path: Path) -> Iterator[Garden]:
    """A home with one twin."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as folder:
        found = Garden(Path(folder) / "home")
        found.plant()
        yield found
