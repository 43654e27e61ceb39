"""A network for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lan.network import Lan, require


@pytest.fixture
def lan() -> Iterator[Lan]:
    """An empty network; machines are put on it by ``lan.machine``."""
    require()
    with Lan() as made:
        yield made
