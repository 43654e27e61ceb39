"""Numbers of bytes as text for people."""

from __future__ import annotations


def amount(octets: int) -> str:
    """Bytes as people read them: ``410 bytes``, ``3.1 MB``, ``212 GB``."""
    if octets < 1000:
        return f"{octets} bytes"
    number, unit = octets / 1000, "kB"
    for larger in ("MB", "GB", "TB"):
        if number < 999.5:
            break
        number, unit = number / 1000, larger
    return f"{number:.1f} {unit}" if number < 99.5 else f"{number:.0f} {unit}"
