"""The folder of a neighborhood: ``rappid.json``, ``neighborhood.json``, ``members.json`` and what its members share."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from agents.contract.file_discovery import AGENT_SUFFIXES
from agents.storage.atomic_write import write_atomically
from agents.storage.safe_walk import LinkFreeFolder
from envelopes.codecs.strict_json import strict_object
from neighborhoods.errors import BadNeighborhoodError, NeighborhoodError, NoSuchNeighborhoodError
from twins.errors import BadFileError, BadRappidError, NoSuchTwinError
from twins.workspace.identity_file import Identity, indented, read_regular, utc
from twins.workspace.rappid import Rappid, label
from twins.workspace.workspace import exclusive_lock

PLACE = "neighborhood.json"
MEMBERS = "members.json"
PLACE_SCHEMA = "rapp-neighborhood/1.0"
MEMBERS_SCHEMA = "rapp-neighborhood-members/1.0"
KIND = "neighborhood"
FOLDER = "neighborhoods"
MAX_BYTES = 1 << 20
MAX_MEMBERS = 1000
LONGEST = 500
_FINGERPRINT = frozenset("0123456789abcdef")


class PlaceMember(msgspec.Struct, frozen=True):
    """One member as the roster names it. ``fingerprint`` is the key of its machine, "" where it is not told."""

    rappid: str
    name: str = ""
    role: str = "member"
    joined_at: str = ""
    fingerprint: str = ""
    github_login: str = ""
    capabilities: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The row of ``members.json``."""
        row = msgspec.structs.asdict(self)
        return {**row, "capabilities": list(self.capabilities), "github_login": self.github_login or None}


class Place(msgspec.Struct, frozen=True):
    """One neighborhood. ``fields`` is all of its ``neighborhood.json``."""

    folder: Path
    rappid: Rappid
    name: str
    fields: Mapping[str, Any]
    members: tuple[PlaceMember, ...]

    @property
    def key(self) -> str:
        """The name of its folder."""
        return self.folder.name

    @property
    def about(self) -> str:
        """The place's description, one sentence; "" without one."""
        found = self.fields.get("description")
        return found if isinstance(found, str) and len(found) <= LONGEST and found.isprintable() else ""

    @classmethod
    def read(cls, folder: Path) -> Place:
        """The place at ``folder``. Raises ``BadNeighborhoodError`` when it is none, or damaged."""
        try:
            identity = Identity.read(folder)
            place = read_regular(folder / PLACE, MAX_BYTES)
            listed = read_regular(folder / MEMBERS, MAX_BYTES)
        except (BadFileError, NoSuchTwinError) as error:
            raise BadNeighborhoodError(str(error), do=error.do) from error
        if place is None:
            raise BadNeighborhoodError(f"{folder.name[:16]} has no {PLACE}.", do="Get its egg again.")
        fields = decode_place(place)
        rappid = fields.get("neighborhood_rappid")
        if isinstance(rappid, str) and rappid and rappid != identity.rappid.text:
            raise BadNeighborhoodError(f"{PLACE} is of another neighborhood.", do="Get its egg again.")
        name = plain(fields.get("name")) or identity.name or identity.rappid.slug
        members = decode_members(listed) if listed is not None else ()
        return cls(folder, identity.rappid, name, fields, members)

    def shared_agents(self) -> list[str]:
        """The agent files that lie in it. They are data: nothing runs before a member takes it over."""
        with LinkFreeFolder(self.folder) as tree:
            return sorted(
                path for path in tree.files() if path.startswith("agents/") and path.endswith(AGENT_SUFFIXES)
            )

    def with_member(self, member: PlaceMember) -> Place:
        """The place with one member more, or as it is now known; on the disk."""
        with exclusive_lock(self.folder):
            now = Place.read(self.folder)
            others = [one for one in now.members if not _is_same(one, member)]
            if len(others) >= MAX_MEMBERS:
                raise BadNeighborhoodError(f"More than {MAX_MEMBERS} members are too many.", do="")
            members = (*others, member)
            write_atomically(self.folder / MEMBERS, encode_members(self.rappid, members))
        return replace(now, members=members)

    def without_machine(self, fingerprint: str) -> Place:
        """The place without the rows of one machine; on the disk."""
        with exclusive_lock(self.folder):
            now = Place.read(self.folder)
            members = tuple(one for one in now.members if one.fingerprint != fingerprint)
            write_atomically(self.folder / MEMBERS, encode_members(self.rappid, members))
        return replace(now, members=members)


def place_files(
    rappid: Rappid, name: str, about: str, members: tuple[PlaceMember, ...], at: datetime
) -> dict[str, bytes]:
    """The files of a new place."""
    identity = Identity.new(rappid, name=name, kind=KIND, born_at=at)
    fields = {
        "schema": PLACE_SCHEMA,
        "neighborhood_rappid": rappid.text,
        "kind": KIND,
        "name": name,
        "description": about,
        "visibility": "private",
        "gate_repo": None,
        "created_at": utc(at),
    }
    return {
        "rappid.json": indented(dict(identity.fields)),
        PLACE: indented(fields),
        MEMBERS: encode_members(rappid, members),
        "soul.md": f"# {name}\n\n{about}\n".encode(),
        "CONSTITUTION.md": b"What is shared here stays with its members.\n",
        "rar/index.json": indented({"agents": []}),
    }


def decode_place(octets: bytes) -> dict[str, Any]:
    """The content of a ``neighborhood.json``. Raises ``BadNeighborhoodError``."""
    return _object(octets, PLACE, PLACE_SCHEMA)


def decode_members(octets: bytes) -> tuple[PlaceMember, ...]:
    """The members of a ``members.json``. Raises ``BadNeighborhoodError``."""
    rows = _object(octets, MEMBERS, MEMBERS_SCHEMA).get("members", [])
    if not isinstance(rows, list) or len(rows) > MAX_MEMBERS:
        raise _damaged(MEMBERS, "its list of members")
    return tuple(_member(row) for row in rows)


def encode_members(rappid: Rappid, members: tuple[PlaceMember, ...]) -> bytes:
    """The bytes of a ``members.json``."""
    rows = [one.as_json() for one in members]
    return indented({"schema": MEMBERS_SCHEMA, "neighborhood_rappid": rappid.text, "members": rows})


def places(home: Path) -> tuple[list[Place], list[tuple[str, str]]]:
    """(every place of a home by name, what could not be read as (key, reason))."""
    above = home / FOLDER
    found: list[Place] = []
    unreadable: list[tuple[str, str]] = []
    if above.is_dir() and not above.is_symlink():
        for folder in sorted(above.iterdir()):
            if folder.name.startswith(".") or folder.is_symlink() or not (folder / PLACE).exists():
                continue  # snapshots keep their rosters here, too
            try:
                found.append(Place.read(folder))
            except BadNeighborhoodError as problem:
                unreadable.append((folder.name, str(problem)))
    return sorted(found, key=lambda one: (one.name.casefold(), one.key)), unreadable


def find_place(home: Path, selector: str) -> Place:
    """The place of that name (``book-club`` stands for ``Book club``), rappid or beginning of its key. Raises ``NoSuchNeighborhoodError``."""
    wanted = selector.strip().removeprefix("@")
    known, _ = places(home)
    fits = [one for one in known if wanted in (one.rappid.text, one.key)]
    fits = fits or [one for one in known if one.name.casefold() == wanted.casefold()]
    fits = fits or [one for one in known if label(one.name, otherwise="") == wanted.casefold() != ""]
    if not fits and len(wanted) >= 4:
        fits = [one for one in known if one.key.startswith(wanted.lower())]
    if len(fits) > 1:
        both = ", ".join(one.key[:12] for one in fits[:4])
        raise NeighborhoodError(
            f'"{wanted[:60]}" is more than one neighborhood.',
            do=f"Type {both}.",
            code="neighborhood_conflict",
        )
    if not fits:
        raise NoSuchNeighborhoodError(f'No neighborhood "{wanted[:60]}".', do="rappd neighborhood list")
    return fits[0]


def plain(value: object, longest: int = 120) -> str:
    """Text from elsewhere that is fit to be shown on a line; "" for anything else."""
    if not isinstance(value, str) or len(value) > longest or not value.isprintable():
        return ""
    return value.strip()


def _is_same(one: PlaceMember, other: PlaceMember) -> bool:
    if one.fingerprint and other.fingerprint:
        return one.fingerprint == other.fingerprint
    return bool(one.rappid) and one.rappid == other.rappid


def _member(row: object) -> PlaceMember:
    if not isinstance(row, dict):
        raise _damaged(MEMBERS, "a member")
    rappid, fingerprint = row.get("rappid") or "", row.get("fingerprint") or ""
    if not isinstance(rappid, str) or not isinstance(fingerprint, str):
        raise _damaged(MEMBERS, "a member")
    if rappid:
        try:
            Rappid.parse(rappid)
        except BadRappidError as error:
            raise _damaged(MEMBERS, "a member's rappid") from error
    if fingerprint and (len(fingerprint) != 64 or not _FINGERPRINT.issuperset(fingerprint)):
        raise _damaged(MEMBERS, "a member's key")
    offered = row.get("capabilities")
    capabilities = tuple(filter(None, map(plain, offered[:100]))) if isinstance(offered, list) else ()
    return PlaceMember(
        rappid=rappid,
        name=plain(row.get("name")),
        role=plain(row.get("role")) or "member",
        joined_at=plain(row.get("joined_at")),
        fingerprint=fingerprint,
        github_login=plain(row.get("github_login")),
        capabilities=capabilities,
    )


def _object(octets: bytes, name: str, schema: str) -> dict[str, Any]:
    try:
        fields = strict_object(octets)
    except ValueError as error:
        raise _damaged(name, str(error)) from error
    if fields.get("schema") != schema:
        raise _damaged(name, f"its schema is not {schema}")
    return fields


def _damaged(name: str, why: str) -> BadNeighborhoodError:
    return BadNeighborhoodError(f"{name} is damaged ({why}).", do="Get the neighborhood's egg again.")
