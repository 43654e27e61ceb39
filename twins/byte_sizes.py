"""Numbers of bytes as text for people."""

from __future__ import annotations


def format_bytes(number: float) -> str:
    """Bytes as people read them: ``410 bytes``, ``3.1 MB``, ``212 GB``. The page's ``bytes`` does the same."""
    if number < 1000:
        return f"{int(number)} bytes"
    for unit in ("kB", "MB", "GB", "TB"):
        number /= 1000
        if number < 999.5 or unit == "TB":
            break
    return f"{number:.1f} {unit}" if number < 9.95 else f"{number:.0f} {unit}"
