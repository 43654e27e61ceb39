"""Small JSON files that only their owner may read: tokens, sessions, codes under way."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import orjson

from agents.storage.atomic_write import write_atomically
from agents.storage.text_file import readable


async def read(path: Path) -> dict[str, Any] | str | None:
    """The object in the file; the stripped text when it is not JSON; None without a file."""
    return await asyncio.to_thread(_read, path)


async def write(path: Path, content: dict[str, Any]) -> None:
    """Replaces the file in one step, mode 0600 from its first byte."""
    await asyncio.to_thread(write_atomically, path, orjson.dumps(content))


async def remove(path: Path) -> None:
    """Removes the file if it is there."""
    await asyncio.to_thread(path.unlink, True)


def _read(path: Path) -> dict[str, Any] | str | None:
    try:
        raw = path.read_bytes()
    except OSError:
        return None
    try:
        found = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return readable(raw).strip()
    return found if isinstance(found, dict) else None
