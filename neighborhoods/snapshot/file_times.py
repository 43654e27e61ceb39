"""Times and executable bits of a snapshot's files: ``stamps.json``, which readers of other makes pass over.

``{"schema": "rappd-stamps/1.0", "files": {member: [seconds since 1970, executable]}}``. Set-uid bits, owners
and access lists never travel.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from agents.storage.safe_walk import FileKind, LinkFreeFolder
from twins.eggs.parsed_egg import ParsedEgg
from twins.errors import BadEggError

MEMBER: Final = "stamps.json"
SCHEMA: Final = "rappd-stamps/1.0"
Stamp = tuple[int, bool]
"""(mtime in whole seconds, executable)"""

_LAST = 1 << 34


class _File(msgspec.Struct):
    schema: str
    files: dict[str, Stamp]


def encode(stamps: Mapping[str, Stamp]) -> bytes:
    """The member's bytes."""
    return msgspec.json.encode(_File(SCHEMA, dict(sorted(stamps.items()))))


def decode(content: bytes) -> dict[str, Stamp]:
    """The stamps by member. Raises ``BadEggError``."""
    try:
        return msgspec.json.decode(content, type=_File).files
    except msgspec.DecodeError as error:
        raise BadEggError(f"Its {MEMBER} is damaged; nothing was written.", do="Get it again.") from error


def stamps_of(opened: ParsedEgg) -> dict[str, Stamp]:
    """The stamps that an egg carries; none where it is of another make."""
    for part in opened.parts:
        if part.name == MEMBER:
            return decode(part.read())
    return {}


def apply(root: Path, stamps: Iterable[tuple[str, Stamp]]) -> None:
    """Sets times and bits of files below ``root``, by their paths; links and what is not there are passed over."""
    with LinkFreeFolder(root) as tree:
        for path, (mtime, executable) in stamps:
            if tree.find(path).kind is not FileKind.FILE:
                continue
            handle, _ = tree.open(path)
            try:
                os.fchmod(handle, 0o700 if executable else 0o600)
                if 0 < mtime < _LAST:
                    os.utime(handle, (mtime, mtime))
            finally:
                os.close(handle)
