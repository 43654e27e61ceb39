"""Homes for tests."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.twins.installer.a_home import MEMORY, AHome


@pytest.fixture
def home() -> Iterator[AHome]:
    """An empty home."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        yield AHome(Path(folder) / "home")
