"""Moments as cartridges write them, and as others do."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any


def format_timestamp(now: datetime) -> str:
    """A moment as the published Buddy writes it, ``2026-04-12T14:33:00.000Z``."""
    return now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_timestamp(text: Any) -> datetime | None:
    """The moment that ``text`` names; None for anything else."""
    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
