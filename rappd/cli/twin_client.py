"""Asking for something to be done with twins."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from rappd.cli.home_client import HomeClient
from rappd.daemon.home import Home

_SECONDS = 600.0  # a twin may be large, and be copied whole

Answer = dict[str, Any]


def client(*, reads: bool = False) -> HomeClient:
    """Asks this home, with the patience that twins need. What only ``reads`` makes no home."""
    return HomeClient(Home.here(), reads=reads, timeout=_SECONDS)


def path_of(name: str, verb: str = "") -> str:
    """Returns the path of an operation on the twin that ``name`` means."""
    # The route drops the blank; it keeps one called "lineage" apart from the route.
    return f"/twins/%20{quote(name, safe='', errors='replace')}{f'/{verb}' if verb else ''}"
