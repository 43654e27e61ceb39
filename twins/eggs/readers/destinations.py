"""The three ways in which an opened egg ends: somebody, data that nothing runs, or an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twins.eggs.parsed_egg import Destination, Family, ParsedEgg, Part, Role, Seal
from twins.eggs.readers.detected import DetectedEgg, inside, text
from twins.eggs.readers.identity import EggOwner, made_file, minted
from twins.eggs.readers.member_paths import Place, disarmed
from twins.eggs.readers.parts import PartCollector
from twins.workspace.identity_file import FILE
from twins.workspace.rappid import Rappid
from twins.zip.names import safe_component

_MOMENTS = (
    *("exported_at", "packed_at", "snapshotted_at", "created_at", "created_utc", "estate_snapshot_at"),
    *("observed_at", "invite_created_at", "minted_at", "created"),
)
_MAKERS = ("host", "snapshotted_from", "created_by", "publisher", "minted_by", "owner")
_ROSTERS = ("members.json", "estate.json", "neighborhood.json")
_PLURALS = {"factory": "factories", "industry": "industries", "cubby": "cubbies"}


def somebody(
    found: DetectedEgg,
    family: Family,
    who: EggOwner,
    names: Sequence[str],
    place: Callable[[str], Place | None],
    seal: Callable[[], Seal],
    *,
    placing: PartCollector | None = None,
    destination: Destination = Destination.TWIN,
    owner: str = "",
    kind: str = "",
) -> ParsedEgg:
    """A twin, or a whole brainstem. It always has a part ``rappid.json`` that names its rappid.

    ``names``: every file; of two with one ``place`` the first gets it. ``seal`` is asked last.
    """
    placing = placing or PartCollector(found)
    name = name_of(found, who.fields)
    rappid = who.rappid or minted(found, name, owner)
    if who.complete:
        placing.put(who.member, (Role.IDENTITY, FILE))
    else:
        placing.made(made_file(who, rappid, found, name=name, kind=kind))
    others = list(names)
    if who.member in others:
        if who.complete:
            others.remove(who.member)
        else:
            place = _nowhere_for(who.member, place)
    placing.put_every(others, place)
    twin = destination is Destination.TWIN
    key = rappid.key if twin else ""
    parts = placing.parts()
    opened = plain(found, family, seal(), destination, name=name, rappid=rappid, key=key, parts=parts)
    opened.folder = f"twins/{key}" if twin else "brainstem"
    return opened


def _nowhere_for(member: str, place: Callable[[str], Place | None]) -> Callable[[str], Place | None]:
    return lambda name: None if name == member else place(name)


def data(
    found: DetectedEgg,
    family: Family,
    seal: Seal,
    *,
    rappid: Rappid | None,
    key: str = "",
    answer: str = "",
    name: str = "",
    below: str = "",
) -> ParsedEgg:
    """An egg that unpacks as it is, into a folder of its own, and says so. ``key`` comes from the egg.

    Files in the folder ``below`` (its name ends in ``/``) lose that folder.
    """
    placing = PartCollector(found, unplaced="unplaced")

    def place(member: str) -> Place | None:
        if disarmed(member) != member:
            return None
        return Role.ROSTER if member in _ROSTERS else Role.OTHER, member.removeprefix(below)

    placing.put_every(found.names, place)
    parts = placing.parts()
    key = safe_component(key or (rappid.key if rappid else found.seed().hex()))
    if key.startswith("."):
        raise found.damaged("it names no folder of its own")
    folder = f"{_PLURALS.get(family.kind, f'{family.kind}s')}/{key}"
    found.notes.append(f"Its files are kept as data in {folder}; nothing of it runs.")
    opened = plain(
        found, family, seal, Destination.INERT, name=name, rappid=rappid, key=key, parts=parts, answer=answer
    )
    opened.folder = folder
    return opened


def answering(
    found: DetectedEgg,
    family: Family,
    seal: Seal,
    answer: str,
    *,
    rappid: Rappid | None = None,
    name: str = "",
    parts: Sequence[Part] = (),
) -> ParsedEgg:
    """An egg that hatches nowhere by itself: ``answer`` says what to do with it."""
    return plain(
        found, family, seal, Destination.ANSWER, name=name, rappid=rappid, parts=parts, answer=answer
    )


def plain(
    found: DetectedEgg,
    family: Family,
    seal: Seal,
    destination: Destination,
    *,
    name: str = "",
    rappid: Rappid | None = None,
    key: str = "",
    parts: Sequence[Part] = (),
    answer: str = "",
) -> ParsedEgg:
    """The result, with what every manifest says in its own words."""
    manifest = found.manifest
    holders: tuple[dict[str, Any], ...] = (manifest, inside(manifest, "_meta"), inside(manifest, "lineage"))
    return ParsedEgg(
        family,
        manifest,
        name or name_of(found, {}),
        rappid,
        destination,
        key,
        parts,
        seal,
        found.digest,
        found.size,
        packed_at=text(*((holder, at) for holder in holders for at in _MOMENTS)),
        made_by=text(*((holder, by) for holder in holders for by in _MAKERS)),
        notes=found.notes,
        answer=answer,
        file=found.file,
        folder="brainstem" if destination in (Destination.HOST, Destination.BRAINSTEM) else "",
    )


def name_of(found: DetectedEgg, fields: dict[str, Any]) -> str:
    """The name for people: from its ``rappid.json``, its manifest, or the file."""
    manifest = found.manifest
    return (
        text(
            (fields, "display_name"),
            (fields, "name"),
            (manifest, "display_name"),
            (manifest, "name"),
            (inside(manifest, "source"), "name"),
            (manifest, "title"),
            (manifest, "rapp_id"),
            (manifest, "id"),
            (manifest, "slug"),
        )
        or found.file.removesuffix(".egg")
        or "egg"
    )
