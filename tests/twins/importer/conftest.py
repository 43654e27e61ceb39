"""Homes for tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.twins.importer.a_home import AHome


@pytest.fixture
def home(tmp_path: Path) -> AHome:
    """An empty home."""
    return AHome(tmp_path / "home")
