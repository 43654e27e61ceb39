"""The length of a storm: one round of each test in the whole suite, as many as ``STORM_SECONDS`` has room for otherwise."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

SECONDS = float(os.environ.get("STORM_SECONDS", "0"))
"""Of all storms together; ``make storm`` sets it."""


def rounds(share: float, *, least: int = 1) -> Iterator[int]:
    """Numbers of rounds: ``least``, and more while this share of ``STORM_SECONDS`` lasts."""
    until = time.monotonic() + SECONDS * share
    number = 0
    while number < least or time.monotonic() < until:
        yield number
        number += 1
