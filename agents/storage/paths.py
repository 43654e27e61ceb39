"""Turning names that agents and models write into paths below a root, or refusing them."""

from __future__ import annotations

import os
from typing import Any

from agents.errors import AgentError

Parts = tuple[str, ...]
"""Names of folders and files from the root downward; empty for the root itself."""

LONGEST_NAME = 255


class UnsafePathError(AgentError):
    """The name leads out of the data directory, or cannot be a file's name."""

    code = "path_refused"
    status = 400
    exit_code = 5


def parts_of(*names: Any) -> Parts:
    """The parts of ``names`` joined, both slashes separating. None, "" and "." add nothing.

    Raises ``UnsafePathError`` for "..", an absolute path, a drive, a zero byte, or something too long
    or of no text; these are refused also where they would end up inside.
    """
    parts: list[str] = []
    for name in names:
        if name is None:
            continue
        if isinstance(name, os.PathLike):
            name = os.fspath(name)
        if not isinstance(name, str):
            raise UnsafePathError(f"A file name must be text, not {type(name).__name__}.")
        text = name.replace("\\", "/")
        if text.startswith("/") or text[1:2] == ":":
            raise UnsafePathError(
                f"{name[:80]!r} is absolute.", do="Name it from the data directory downward."
            )
        parts.extend(part for part in text.split("/") if part not in ("", "."))
    for part in parts:
        _check(part)
    return tuple(parts)


def file_parts(*names: Any) -> Parts:
    """The same for a file: at least one part."""
    parts = parts_of(*names)
    if not parts:
        raise UnsafePathError("That names no file.")
    return parts


def _check(part: str) -> None:
    if part == ".." or "\0" in part:
        raise UnsafePathError(f"{part[:80]!r} leads out of the data directory.", do="Leave it out.")
    try:
        length = len(part.encode())
    except UnicodeEncodeError:
        raise UnsafePathError(f"{part[:80]!r} is not text.") from None
    if length > LONGEST_NAME:
        raise UnsafePathError(f"{part[:40]!r}… has {length} bytes; a name holds {LONGEST_NAME}.")
