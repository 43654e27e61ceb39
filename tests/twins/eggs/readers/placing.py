"""The places of an opened egg's parts, and their content."""

from __future__ import annotations

import hashlib

from twins.eggs.parsed_egg import ParsedEgg

AGENT = "class A:\n    pass\n"


def placed(opened: ParsedEgg) -> dict[str, tuple[str, str]]:
    """Name → (role, target)."""
    return {part.name: (part.role.value, part.target) for part in opened.parts}


def sha256(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()
