"""Tells this machine's home from another's, whatever way leads there: by a file that was written here just now."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

_PREFIX = ".here-"


@asynccontextmanager
async def marked(home: Path | None) -> AsyncIterator[str]:
    """The name of an empty file in ``home`` while the block runs: where the far side sees it, this is its home.

    Nothing that can be copied with a machine (its id, inodes, keys) tells two copies apart. "" without a home, and
    for one that cannot be written.
    """
    name = await asyncio.to_thread(_made, home) if home is not None else ""
    try:
        yield name
    finally:
        if home is not None and name:
            await asyncio.to_thread((home / name).unlink, missing_ok=True)


def _made(home: Path) -> str:
    name = f"{_PREFIX}{secrets.token_hex(16)}"
    try:
        os.close(os.open(home / name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600))
    except OSError:  # a mounted backup
        return ""
    return name
