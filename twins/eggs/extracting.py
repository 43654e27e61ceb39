"""Laying an egg out as plain files, to be read: nothing of it runs, nothing is hatched."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path

from twins.eggs.archive.names import safe_path
from twins.eggs.opened import Opened
from twins.errors import TwinConflict

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def lay_out(opened: Opened, into: Path) -> int:
    """Writes every part under its name in the egg into the new folder ``into``; how many there were.

    Whole or not at all. Raises ``TwinConflict`` when something is there already.
    """
    if os.path.lexists(into):
        raise TwinConflict(f"{into} exists already; nothing was written.", do="Name a new folder.")
    staged = into.with_name(f".{into.name}.{secrets.token_hex(6)}.tmp")
    staged.mkdir(mode=0o700, parents=True)
    try:
        for part in opened.parts:
            path = staged / safe_path(part.name)
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(path, _FLAGS, 0o600), "wb") as file:
                file.writelines(part.chunks())
        staged.rename(into)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise
    return len(opened.parts)
