"""Laying an egg out as plain files, to be read: nothing of it runs, nothing is hatched."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable
from pathlib import Path

import orjson

from agents.storage.sparse_file import end_sparse, write_sparse
from twins.eggs.parsed_egg import ParsedEgg
from twins.errors import TwinConflictError
from twins.fs.untrusted_names import NameSet, safe_path
from twins.installer.errors import from_disk

MANIFEST = "manifest.json"
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def lay_out(opened: ParsedEgg, into: Path) -> int:
    """Writes every part under its name in the egg, and the manifest, into the new folder ``into``; how many files there are.

    Whole or not at all. Raises ``TwinConflictError`` when something is there already, ``HostileEggError`` for names
    that would be one file, or lie elsewhere, ``DiskFullError``.
    """
    if os.path.lexists(into):
        raise TwinConflictError(f"{into} exists already; nothing was written.", do="Name a new folder.")
    names = NameSet()
    for part in opened.parts:
        names.add(safe_path(part.name))
    files: list[tuple[str, Iterable[bytes]]] = [(part.name, part.chunks()) for part in opened.parts]
    if opened.manifest and not any(part.name == MANIFEST for part in opened.parts):
        names.add(MANIFEST)
        files.append((MANIFEST, (orjson.dumps(opened.manifest, option=orjson.OPT_INDENT_2),)))
    staged = into.with_name(f".{into.name}.{secrets.token_hex(6)}.tmp")
    try:
        staged.mkdir(mode=0o700, parents=True)
        for name, content in files:
            path = staged / name
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(path, _FLAGS, 0o600), "wb") as file:
                for piece in content:
                    write_sparse(file.fileno(), piece)
                end_sparse(file.fileno())
        staged.rename(into)
    except BaseException as error:
        shutil.rmtree(staged, ignore_errors=True)
        if isinstance(error, OSError):
            raise from_disk(error, into.name, needs=sum(part.size for part in opened.parts)) from error
        raise
    return len(files)
