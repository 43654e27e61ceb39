"""``estate.json`` (``rapp-estate/1.1``): the rappids of what its owner made or belongs to, and nothing derivable.

{"schema", "owner": {"rappid", "github"}, "created": [{"rappid", "added_at", "via"}], "member": […], "updated_at"}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypedDict

import msgspec
from msgspec.structs import replace

from agents.storage.atomic_write import write_atomically
from envelopes.codecs.strict_json import strict_object
from neighborhoods.errors import BadEstateError, NotInEstateError
from twins.errors import BadFileError, BadRappidError
from twins.workspace.identity_file import read_regular, utc
from twins.workspace.rappid import Rappid
from twins.workspace.workspace import exclusive_lock

FILE = "estate.json"
SCHEMA = "rapp-estate/1.1"
MAX_BYTES = 4 << 20
MAX_ENTRIES = 10_000
VIAS = ("created", "scan", "manual", "import", "published-by-other", "rebuild", "egg")
"""The ways in which an entry can have come."""

Part = Literal["created", "member"]
PARTS: tuple[Part, ...] = ("created", "member")
_LONGEST = 100


class EstateEntry(msgspec.Struct, frozen=True):
    """One thing of the estate: its rappid as it was given, and when and how it came in."""

    rappid: str
    added_at: str
    via: str

    @property
    def identity(self) -> str:
        """Equal for entries of one thing, whatever form their rappids have."""
        return Rappid.parse(self.rappid).identity


class EstateOwner(TypedDict):
    """The owner of an estate."""

    rappid: str | None
    github: str | None


class EstateView(TypedDict):
    """An estate as it is published; entries have ``rappid``, ``added_at`` and ``via``."""

    schema: str
    owner: EstateOwner
    created: list[dict[str, Any]]
    member: list[dict[str, Any]]
    updated_at: str


class Estate(msgspec.Struct, frozen=True):
    """The content of one ``estate.json``. No identity is in it twice."""

    owner: str = ""
    github: str = ""
    created: tuple[EstateEntry, ...] = ()
    member: tuple[EstateEntry, ...] = ()
    updated_at: str = ""

    @classmethod
    def decode(cls, octets: bytes, *, where: str = FILE) -> Estate:
        """Reads the file's bytes; keys that are not in the schema are dropped. Raises ``BadEstateError``."""
        try:
            fields = strict_object(octets)
        except ValueError as error:
            raise _damaged(where, str(error)) from error
        if not str(fields.get("schema", "")).startswith("rapp-estate/1."):
            raise _damaged(where, f"its schema is not {SCHEMA}")
        owner = fields.get("owner") or {}
        if not isinstance(owner, dict):
            raise _damaged(where, "its owner")
        rappid, github = owner.get("rappid") or "", owner.get("github") or ""
        if not isinstance(rappid, str) or not isinstance(github, str) or not _is_plain(github):
            raise _damaged(where, "its owner")
        if rappid:
            _parsed(rappid, where)
        parts = {part: _entries(fields.get(part, []), where) for part in PARTS}
        return cls(rappid, github, parts["created"], parts["member"], _moment(fields.get("updated_at")))

    @classmethod
    def read(cls, home: Path) -> Estate | None:
        """The estate kept in ``home``; None when there is none yet. Raises ``BadEstateError``."""
        try:
            octets = read_regular(home / FILE, MAX_BYTES)
        except BadFileError as error:
            raise BadEstateError(str(error), do=_ANEW) from error
        return None if octets is None else cls.decode(octets)

    def as_json(self) -> EstateView:
        """The object as it is published."""
        return {
            "schema": SCHEMA,
            "owner": {"rappid": self.owner or None, "github": self.github or None},
            "created": [msgspec.structs.asdict(one) for one in self.created],
            "member": [msgspec.structs.asdict(one) for one in self.member],
            "updated_at": self.updated_at,
        }

    def encode(self) -> bytes:
        """The bytes of the file."""
        return (json.dumps(self.as_json(), ensure_ascii=False, indent=2) + "\n").encode()

    def find(self, text: str) -> EstateEntry:
        """The entry of a rappid, or of the beginning of its tail. Raises ``NotInEstateError``."""
        entries = [*self.created, *self.member]
        try:
            wanted = Rappid.parse(text).identity
            found = [one for one in entries if one.identity == wanted]
        except BadRappidError:
            start = text.strip().lower()
            found = [
                one for one in entries if len(start) >= 4 and Rappid.parse(one.rappid).tail.startswith(start)
            ]
        if len(found) != 1:
            what = "more than one entry begins so" if found else "it is not in the estate"
            raise NotInEstateError(f'"{text[:80]}": {what}.', do="rappd estate show")
        return found[0]

    def with_entries(self, part: Part, rappids: Iterable[str], *, via: str, at: datetime) -> Estate:
        """The estate with these besides; what it knows already stays as it is. Raises ``BadEstateError``."""
        if via not in VIAS:
            raise BadEstateError(f'"{via[:40]}" is no way to come in.', do=", ".join(VIAS))
        known = {one.identity for one in (*self.created, *self.member)}
        fresh = []
        for text in rappids:
            identity = _parsed(text, "The rappid").identity
            if identity not in known:
                known.add(identity)
                fresh.append(EstateEntry(text, utc(at), via))
        if not fresh:
            return self
        if len(known) > MAX_ENTRIES:
            raise BadEstateError(f"More than {MAX_ENTRIES} entries are too many.", do="Remove some.")
        return replace(self, **{part: (*getattr(self, part), *fresh)}, updated_at=utc(at))

    def without(self, text: str, *, at: datetime) -> Estate:
        """The estate without one entry. Raises ``NotInEstateError``."""
        gone = self.find(text)
        parts = {part: tuple(one for one in getattr(self, part) if one is not gone) for part in PARTS}
        return replace(self, **parts, updated_at=utc(at))

    def merged(self, other: Estate, *, at: datetime) -> Estate:
        """The estate with what ``other`` has besides, each with its own moment and ``via``."""
        known = {one.identity for one in (*self.created, *self.member)}
        parts = {
            part: (*getattr(self, part), *(one for one in getattr(other, part) if one.identity not in known))
            for part in PARTS
        }
        merged = replace(self, **parts)
        if len(merged.created) + len(merged.member) > MAX_ENTRIES:
            raise BadEstateError(f"More than {MAX_ENTRIES} entries are too many.", do="Remove some.")
        return self if merged == self else replace(merged, updated_at=utc(at))


def save(home: Path, estate: Estate) -> None:
    """Writes ``estate.json``, whole or not at all."""
    write_atomically(home / FILE, estate.encode())


def changing(home: Path) -> AbstractContextManager[None]:
    """Holds the estate of ``home`` against other writers while it is read, changed and saved."""
    return exclusive_lock(home)


def set_aside(home: Path) -> Path | None:
    """Moves a damaged ``estate.json`` out of the way; None when there is none."""
    path = home / FILE
    if not path.exists() and not path.is_symlink():
        return None
    aside = home / f"estate-damaged-{datetime.now(UTC).strftime('%Y%m%dT%H%M%S%f')}.json"
    return path.rename(aside)


def _entries(rows: object, where: str) -> tuple[EstateEntry, ...]:
    if not isinstance(rows, list) or len(rows) > MAX_ENTRIES:
        raise _damaged(where, "its list of entries")
    found: dict[str, EstateEntry] = {}
    for row in rows:
        if not isinstance(row, Mapping) or not isinstance(row.get("rappid"), str):
            raise _damaged(where, "an entry without a rappid")
        identity = _parsed(row["rappid"], where).identity
        via = row.get("via")
        found.setdefault(
            identity,
            EstateEntry(row["rappid"], _moment(row.get("added_at")), via if via in VIAS else "import"),
        )
    return tuple(found.values())


def _parsed(text: str, where: str) -> Rappid:
    try:
        return Rappid.parse(text)
    except BadRappidError as error:
        raise BadEstateError(f"{where}: {error}", do=error.do) from error


def _moment(value: object) -> str:
    return value if isinstance(value, str) and _is_plain(value) else ""


def _is_plain(text: str) -> bool:
    return len(text) <= _LONGEST and text.isprintable()


_ANEW = "Put a good one there, or make a new one: rappd estate rebuild"


def _damaged(where: str, why: str) -> BadEstateError:
    return BadEstateError(f"{where} is damaged ({why}); nothing was changed.", do=_ANEW)
