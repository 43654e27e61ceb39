"""The two files of settings as text: read whatever editor saved them, written back in kind and through links."""

from __future__ import annotations

import os
from collections.abc import Iterable
from io import StringIO
from pathlib import Path

from agents.storage.atomic_write import write_atomically
from agents.storage.text_file import SAVE_AS_UTF8, NotUtf8Error, TextFile, decode
from rappd.errors import UsageProblemError, disk_problem

_NOTHING = TextFile("", b"")


def read(path: Path) -> TextFile:
    """The file's text; "" when there is none. Raises ``UsageProblemError`` that names a file that is no text."""
    try:
        return decode(path.read_bytes())
    except FileNotFoundError:
        return _NOTHING
    except NotUtf8Error as error:
        do = f"{SAVE_AS_UTF8[0].lower()}{SAVE_AS_UTF8[1:-1]}, or move it away"
        raise UsageProblemError(f"{path} cannot be read: it {error}.", do=do) from error
    except OSError as error:
        raise UsageProblemError(
            f"{_named(path, Path(os.path.realpath(path)))} cannot be read: {error.strerror}.",
            do="look at it, or move it away",
        ) from error


def write(path: Path, before: TextFile, text: str) -> None:
    """Replaces the text that was read as ``before``. A link stays, and what it leads to is written.

    Raises ``UsageProblemError`` that names the file, ``StoreError`` on a full disk, with nothing written.
    """
    target = _target(path)
    try:
        write_atomically(target, before.rewritten(text))
    except OSError as error:
        if (of_disk := disk_problem(error)) is not None:
            raise of_disk from error
        raise UsageProblemError(
            f"{_named(path, target)} cannot be written: {error.strerror}.", do="look at its owner and rights"
        ) from error


def variables(text: str) -> dict[str, str]:
    """The variables in the text of a ``.env``. A value is what it is, ``${…}`` in it too."""
    from dotenv import dotenv_values

    found = dotenv_values(stream=StringIO(text), interpolate=False)
    return {key: value for key, value in found.items() if value is not None}


def with_variable(text: str, name: str, value: str) -> str:
    """The text of a ``.env`` with a variable set where it stands, or at the end."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    line, parts, there = f"{name}='{escaped}'\n", [], False
    for key, original in _bindings(text):
        if key != name:
            parts.append(original)
            continue
        exported = "export " if original.lstrip().startswith("export ") else ""
        blank = original[: len(original) - len(original.lstrip())]
        parts.append(f"{blank}{exported}{line}")
        there = True
    if not there:
        if parts and not parts[-1].endswith("\n"):
            parts[-1] += "\n"
        parts.append(line)
    return "".join(parts)


def without_variables(text: str, names: Iterable[str]) -> str:
    """The text of a ``.env`` without the variables of these names."""
    gone = set(names)
    return "".join(original for key, original in _bindings(text) if key not in gone)


def _bindings(text: str) -> Iterable[tuple[str, str]]:
    from dotenv.parser import parse_stream

    for one in parse_stream(StringIO(text)):
        yield one.key or "", one.original.string


def _target(path: Path) -> Path:
    """The plain file that ``path`` is or leads to. Links to nothing are refused before, with the home."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():  # as /dev/null, which renaming over it would replace
        raise UsageProblemError(
            f"{_named(path, target)} is no plain file; nothing was written.", do="move it away"
        )
    return target


def _named(path: Path, target: Path) -> str:
    return f"{path}, a link to {target}," if path.is_symlink() else str(path)
