"""The alternates of a merge as a file: ``data/alternates.json`` in an egg, ``.brainstem_data/`` in a twin.

    {"schema": "rappd-alternates/1.0", "rappid": …,
     "dimensions": [{"first", "stream_id", "after", "instead_of", "seen_in": [label], "frames": [frame]}],
     "files": [{"path", "sha256", "kept_as", "seen_in": [label], "at"}],
     "merged": [{"egg": sha256, "at"}]}

``files`` are versions of a file that lost to another one, and lie beside this file under
``alternates/``, where nothing runs them. ``merged`` names the eggs that are in here already: merging one
of them again would count what it counted twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from twins.cartridges.field_specs import DIGEST, LIST, TEXT, FieldSpec, check, exactly
from twins.cartridges.json_documents import encode, parse
from twins.eggs.frames import verified
from twins.errors import BadCartridgeError, BadEggError
from twins.fs.untrusted_names import safe_path
from twins.merge.frame_merge import Dimension

SCHEMA = "rappd-alternates/1.0"
FILE = ".brainstem_data/alternates.json"
"""Below a workspace."""
FOLDER = ".brainstem_data/alternates"
"""Below a workspace: the files themselves."""


@dataclass(slots=True, frozen=True)
class AlternatesFile:
    """One version of a workspace file that was not taken."""

    path: str
    sha256: str
    seen_in: tuple[str, ...]
    at: str

    @property
    def kept_as(self) -> str:
        """The path below the workspace."""
        return f"{FOLDER}/{self.sha256[:16]}/{self.path}"


@dataclass(slots=True, frozen=True)
class Alternates:
    """The whole file. ``merged`` maps an egg's SHA-256 to when it was merged."""

    rappid: str
    dimensions: tuple[Dimension, ...] = ()
    files: tuple[AlternatesFile, ...] = ()
    merged: dict[str, str] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """True when there is nothing to write down."""
        return not (self.dimensions or self.files or self.merged)

    def with_file(self, found: AlternatesFile) -> Alternates:
        """The same with one more file; one that lies here already only gains labels."""
        for known in self.files:
            if (known.path, known.sha256) == (found.path, found.sha256):
                labels = tuple(sorted({*known.seen_in, *found.seen_in}))
                rest = tuple(one for one in self.files if one is not known)
                return replace(self, files=_in_order((*rest, replace(known, seen_in=labels))))
        return replace(self, files=_in_order((*self.files, found)))

    def encoded(self) -> bytes:
        """The file's bytes: indented, keys in the order above."""
        return encode(
            {
                "schema": SCHEMA,
                "rappid": self.rappid,
                "dimensions": [
                    {
                        "first": one.first,
                        "stream_id": one.stream_id,
                        "after": one.after,
                        "instead_of": one.instead_of,
                        "seen_in": list(one.seen_in),
                        "frames": list(one.frames),
                    }
                    for one in self.dimensions
                ],
                "files": [
                    {
                        "path": one.path,
                        "sha256": one.sha256,
                        "kept_as": one.kept_as,
                        "seen_in": list(one.seen_in),
                        "at": one.at,
                    }
                    for one in self.files
                ],
                "merged": [{"egg": egg, "at": at} for egg, at in sorted(self.merged.items())],
            }
        )


def decoded(octets: bytes) -> Alternates:
    """Reads the file. Raises ``BadEggError`` for what no merge wrote."""
    try:
        found = parse(octets, name=FILE)
        check(found, _FIELDS, required=tuple(_FIELDS), name=FILE)
        return Alternates(
            found["rappid"],
            tuple(_dimension(one) for one in found["dimensions"]),
            tuple(_file(one) for one in found["files"]),
            {one["egg"]: one["at"] for one in found["merged"] if _fits(one, _MERGED)},
        )
    except BadCartridgeError as error:
        raise BadEggError(str(error), do=error.do) from error


def _dimension(found: Any) -> Dimension:
    _fits(found, _DIMENSION)
    frames = tuple(frame for frame in verified(found["frames"]) if isinstance(frame, dict))
    if not frames or frames[0]["hash"] != found["first"]:
        raise BadEggError(f"{FILE} is damaged (a dimension); nothing was merged.", do="Get that egg again.")
    if any(frame["stream_id"] != found["stream_id"] for frame in frames):
        raise BadEggError(f"{FILE} is damaged (a dimension); nothing was merged.", do="Get that egg again.")
    return Dimension(frames, found["after"], found["instead_of"], tuple(found["seen_in"]))


def _file(found: Any) -> AlternatesFile:
    _fits(found, _FILE)
    one = AlternatesFile(safe_path(found["path"]), found["sha256"], tuple(found["seen_in"]), found["at"])
    if one.kept_as != found["kept_as"]:
        raise BadEggError(
            f"{FILE} is damaged (a file's place); nothing was merged.", do="Get that egg again."
        )
    return one


def _fits(found: Any, fields: dict[str, FieldSpec]) -> bool:
    if not isinstance(found, dict):
        raise BadCartridgeError(f"{FILE} cannot be loaded: an entry is no object.", do="Get it again.")
    check(found, fields, required=tuple(fields), name=FILE)
    return True


def _in_order(files: Iterable[AlternatesFile]) -> tuple[AlternatesFile, ...]:
    return tuple(sorted(files, key=lambda one: (one.path, one.sha256)))


_LABELS = FieldSpec(
    "a list of texts", lambda value: isinstance(value, list) and all(isinstance(one, str) for one in value)
)
_HASH = FieldSpec(
    "64 hex digits", lambda value: isinstance(value, str) and bool(re.fullmatch("[0-9a-f]{64}", value))
)
_FIELDS = {"schema": exactly(SCHEMA), "rappid": TEXT, "dimensions": LIST, "files": LIST, "merged": LIST}
_DIMENSION = {
    "first": _HASH,
    "stream_id": TEXT,
    "after": _HASH.or_null(),
    "instead_of": _HASH.or_null(),
    "seen_in": _LABELS,
    "frames": LIST,
}
_FILE = {"path": TEXT, "sha256": DIGEST, "kept_as": TEXT, "seen_in": _LABELS, "at": TEXT}
_MERGED = {"egg": DIGEST, "at": TEXT}
