"""The owner of an egg: ``rappid.json`` first, then what the manifest says (RAPP v1 §18.10; trust in this order)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from twins.eggs.parsed_egg import Part, Role
from twins.eggs.readers.detected import DetectedEgg, inside, parse_object, part_of, text
from twins.errors import BadRappidError
from twins.workspace.identity_file import FILE, MAX_BYTES
from twins.workspace.rappid import MAX_OWNER, Rappid, label, same
from twins.zip.names import shown


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
    said = _said(found.manifest)
    if own:
        rappid = _parsed(own, member, found)
        _compare(rappid, said, found, contradiction)
        return EggOwner(rappid, member, fields, complete=True)
    return EggOwner(_parsed(said, "the manifest", found) if said else None, member if there else "", fields)


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
    return _said(manifest)


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


def _said(manifest: dict[str, Any]) -> str:
    source = inside(manifest, "source")
    return _first(source, "rappid", "rappid_uuid") or _first(manifest, "rappid", "rappid_uuid")


def _first(holder: dict[str, Any], *keys: str) -> str:
    return next((holder[key] for key in keys if isinstance(holder.get(key), str) and holder[key]), "")


def _parsed(given: str, where: str, found: DetectedEgg) -> Rappid:
    try:
        return Rappid.parse(given)
    except BadRappidError as error:
        raise found.damaged(f"{shown(where)} names no rappid") from error


def _compare(rappid: Rappid, said: str, found: DetectedEgg, contradiction: str) -> None:
    if not said or said == rappid.text:
        return
    try:
        agree = same(rappid, Rappid.parse(said))
    except BadRappidError:
        agree = False
    if agree:
        return
    if contradiction == "refuse":
        raise found.damaged(f"the manifest is about another than {FILE}")
    found.notes.append(f"The manifest names another rappid; {FILE} holds.")
