"""Asking for something to be done with twins."""

from __future__ import annotations

from typing import Any

from rappd.cli.home_client import HomeClient
from rappd.daemon.home import Home

_SECONDS = 600.0  # a twin may be large, and be copied whole

Answer = dict[str, Any]


def client(*, reads: bool = False) -> HomeClient:
    """Asks this home, with the patience that twins need. What only ``reads`` makes no home."""
    return HomeClient(Home.here(), reads=reads, timeout=_SECONDS)


def in_path(name: str) -> str:
    """The twin of that name in a path: the blank, which operations drop, keeps one called "lineage" apart from the route."""
    return f" {name}"
