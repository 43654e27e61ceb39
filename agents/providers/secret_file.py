"""Small JSON files that only their owner may read: tokens, sessions, codes under way."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from pathlib import Path
from typing import Any

import orjson


async def read(path: Path) -> dict[str, Any] | str | None:
    """The object in the file; the stripped text when it is not JSON; None without a file."""
    return await asyncio.to_thread(_read, path)


async def write(path: Path, content: dict[str, Any]) -> None:
    """Replaces the file in one step, mode 0600 from its first byte."""
    await asyncio.to_thread(_write, path, content)


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
        return raw.decode("utf-8", "replace").strip()
    return found if isinstance(found, dict) else None


def _write(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, made = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(orjson.dumps(content))
            file.flush()
            os.fsync(file.fileno())
        Path(made).replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(made).unlink()
        raise
