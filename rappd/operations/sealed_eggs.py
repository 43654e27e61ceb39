"""Eggs that are sealed for one machine: sealing one for a peer, opening one that is for this machine."""

from __future__ import annotations

import hashlib
from pathlib import Path

from rappd.daemon.home import Home
from rappd.errors import NotFoundError
from rappd.operations.uploaded_eggs import UploadedEggs
from twins.eggs.encryption import is_sealed, open_file, seal_file

SUFFIX = ".age"
_CHUNK = 1 << 20


def sealed_for(path: Path, recipient: str) -> Path:
    """Seals an egg beside itself, ``NAME.egg.age``, and returns that file. The plain one stays. Blocks."""
    target = path.with_name(path.name + SUFFIX)
    seal_file(path, target, recipient)
    return target


def is_sealed_file(path: Path) -> bool:
    """True for a file in the form of a sealed egg; False for one that cannot be read. Blocks."""
    try:
        return is_sealed(path)
    except OSError:
        return False


def unsealed(path: Path, home: Home, waiting: UploadedEggs) -> Path:
    """The egg itself: ``path``, or what is sealed in it, as a copy that waits here. Blocks.

    Raises ``NotForThisMachineError``, ``BadEggError``, ``NotFoundError``.
    """
    if not is_sealed_file(path):
        return path  # its reader reports what is wrong with it
    secret = home.keys / "sealing.txt"
    if not secret.exists():
        raise NotFoundError("This machine never had a key for sealed eggs.", do="rappd start makes one.")
    part = waiting.part()
    try:
        open_file(path, part, secret.read_text())
        return waiting.keep(part, _digest(part), path.name.removesuffix(SUFFIX))
    finally:
        part.unlink(missing_ok=True)


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
