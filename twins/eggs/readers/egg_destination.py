"""The destination of an opened egg (somebody, data that nothing runs, or an answer), and its owner's identity."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from twins.eggs.parsed_egg import Destination, Family, ParsedEgg, Part, Role, Seal
from twins.eggs.readers.detected_egg import DetectedEgg, PartCollector, inside, parse_object, part_of, text
from twins.eggs.readers.workspace_paths import Place, disarmed
from twins.errors import BadRappidError
from twins.fs.untrusted_names import safe_component, shown
from twins.workspace.identity_file import FILE, MAX_BYTES
from twins.workspace.rappid import MAX_OWNER, Rappid, label, same

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


@dataclass(slots=True, frozen=True)
class EggOwner:
    """``rappid`` is None only where nothing says.

    ``member``: where ``rappid.json`` lies in the egg, "" for nowhere. ``fields`` is its content, ``complete``
    whether it names the rappid itself.
    """

    rappid: Rappid | None
    member: str = ""
    fields: dict[str, Any] = field(default_factory=dict)
    complete: bool = False


def owner_of(found: DetectedEgg, member: str = FILE, *, contradiction: str = "note") -> EggOwner:
    """Looks for the identity of an archive. ``member`` is asked if it is there, then the manifest.

    ``contradiction`` says what a manifest that names somebody else is: "note", or "refuse".
    Raises ``BadEggError`` for a damaged ``rappid.json`` and for text in a rappid's place that is none.
    """
    fields: dict[str, Any] = {}
    there = member in found
    if there:
        fields = parse_object(found.archive.read(member, limit=MAX_BYTES), f"{found.file}, {shown(member)},")
    own = _first(fields, "rappid", "rappid_uuid")
    declared = _declared_rappid(found.manifest)
    if own:
        rappid = _parsed(own, member, found)
        _compare(rappid, declared, found, contradiction)
        return EggOwner(rappid, member, fields, complete=True)
    return EggOwner(
        _parsed(declared, "the manifest", found) if declared else None, member if there else "", fields
    )


def lenient(found: DetectedEgg, *candidates: object) -> Rappid | None:
    """The first rappid among these texts, for eggs that do not become somebody here; others are noted."""
    for candidate in candidates:
        if isinstance(candidate, str) and candidate:
            try:
                return Rappid.parse(candidate)
            except BadRappidError:
                found.notes.append(f'It calls itself "{shown(candidate)}", which is no rappid.')
    return None


def said_by(manifest: dict[str, Any]) -> str:
    """The rappid that a manifest names, as text; "" for none."""
    return _declared_rappid(manifest)


def minted(found: DetectedEgg, name: str, owner: str = "", *, unchanging: str = "") -> Rappid:
    """A rappid for what carries none: made from its own content, so that it is the same each time.

    ``unchanging``: text in it that will be the same when it is packed again; else its manifest counts.
    """
    found.notes.append("It carries no rappid; it gets one that is made from its content.")
    octets = b"rappd/egg-identity\n" + (unchanging.encode() or found.seed())
    return Rappid.mint(label(owner, MAX_OWNER, otherwise="local"), label(name), octets)


def made_file(who: EggOwner, rappid: Rappid, found: DetectedEgg, *, name: str, kind: str = "") -> Part:
    """A ``rappid.json`` for a twin whose egg holds none that names its rappid."""
    manifest = found.manifest
    parent = text(
        (manifest, "parent_rappid"),
        (inside(manifest, "source"), "parent_rappid_uuid"),
        (inside(manifest, "source"), "parent_rappid"),
        (inside(manifest, "lineage"), "parent_rappid"),
    )
    fields: dict[str, Any] = {"schema": "rapp/1", **who.fields, "rappid": rappid.text}
    fields.setdefault("parent_rappid", parent or None)
    fields.setdefault("name", name)
    if kind:
        fields.setdefault("kind", kind)
    born = text((manifest, "born_at"), (manifest, "minted_at"))
    if born:
        fields.setdefault("born_at", born)
    found.notes.append(f"Its {FILE} is made from what the manifest says.")
    octets = (json.dumps(fields, ensure_ascii=False, indent=2) + "\n").encode()
    return part_of(FILE, Role.IDENTITY, FILE, octets)


def _declared_rappid(manifest: dict[str, Any]) -> str:
    source = inside(manifest, "source")
    return _first(source, "rappid", "rappid_uuid") or _first(manifest, "rappid", "rappid_uuid")


def _first(holder: dict[str, Any], *keys: str) -> str:
    return next((holder[key] for key in keys if isinstance(holder.get(key), str) and holder[key]), "")


def _parsed(given: str, where: str, found: DetectedEgg) -> Rappid:
    try:
        return Rappid.parse(given)
    except BadRappidError as error:
        raise found.damaged(f"{shown(where)} names no rappid") from error


def _compare(rappid: Rappid, declared: str, found: DetectedEgg, contradiction: str) -> None:
    if not declared or declared == rappid.text:
        return
    try:
        agree = same(rappid, Rappid.parse(declared))
    except BadRappidError:
        agree = False
    if agree:
        return
    if contradiction == "refuse":
        raise found.damaged(f"the manifest is about another than {FILE}")
    found.notes.append(f"The manifest names another rappid; {FILE} holds.")
