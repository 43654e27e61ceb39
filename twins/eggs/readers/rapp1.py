"""``rapp/1-egg``: six variants. Hard where the specification is, tolerant where every published egg departs.

Published ZIP eggs carry attributes and flags that the exact layout has not: those are noted. Hashes, paths,
order, stored members and the canonical manifest are demanded.
"""

from __future__ import annotations

from typing import Any

from twins.eggs.egg_strings import encode
from twins.eggs.parsed_egg import ParsedEgg, Role, Seal
from twins.eggs.readers import sessions
from twins.eggs.readers.cartridges import BUDDY_FILE, is_buddy
from twins.eggs.readers.detected_egg import DetectedEgg, parse_object, text
from twins.eggs.readers.egg_destination import answering, data, lenient, owner_of, somebody
from twins.eggs.readers.formats import INVITATION, RAPP1, SEEDS
from twins.eggs.readers.hash_check import HashCheck
from twins.eggs.readers.rapp1_manifest import SPACE, Manifest, demand_keys, read_manifest
from twins.eggs.readers.rapplications import in_brainstem, page_place
from twins.eggs.readers.workspace_paths import Place, in_host, in_memory, in_workspace_of
from twins.errors import BadCartridgeError, BadEggError, BadRappidError
from twins.fs.untrusted_names import shown
from twins.workspace.rappid import Rappid

_LONG = 500
_INNER = {"neighborhood": ("members", "organism"), "estate": ("neighborhoods", "neighborhood")}
"""Variant to (the payload's one key, the variant of the eggs inside)."""


def rapp1(found: DetectedEgg) -> ParsedEgg:
    """Opens any variant. Raises ``BadEggError`` for a container that the variant does not come in."""
    manifest = read_manifest(found)
    family = RAPP1[manifest.variant]
    if (family.container == "ZIP") != (found.zip is not None):
        raise found.damaged(f"an egg of the variant {manifest.variant} is {family.container}")
    if found.zip is None:
        if manifest.contents:
            raise found.damaged("its list of files")
        return _session(found, manifest) if manifest.variant == "session" else _invite(found, manifest)
    wholeness = _compare_members(found, manifest)
    if manifest.variant == "organism":
        return _organism(found, manifest, wholeness)
    if manifest.variant == "rapplication":
        return _rapplication(found, manifest, wholeness)
    return _aggregate(found, manifest, wholeness)


def _compare_members(found: DetectedEgg, manifest: Manifest) -> HashCheck:
    archive, names = found.archive, found.names
    if names[0] != "manifest.json":
        raise found.damaged("its manifest is not the first file")
    if names[1:] != list(manifest.contents) or archive.folders:
        raise found.damaged("its files are not those that it lists, in that order")
    if not all(member.stored for member in archive.members):
        raise found.damaged("its files are compressed")
    places = [member.data for member in archive.members]
    if places != sorted(places):
        raise found.damaged("its files lie in another order than listed")
    departures = archive.rapp1_deviations()
    if departures:
        found.notes.append("Its layout is not the exact one, as in all published ones.")
        found.notes += departures
    wholeness = HashCheck(found, plain=True)
    wholeness.expect_every(manifest.contents, space=SPACE)
    wholeness.leave_out("manifest.json")
    return wholeness


def _organism(found: DetectedEgg, manifest: Manifest, wholeness: HashCheck) -> ParsedEgg:
    for name in ("rappid.json", "soul.md"):
        found.need(name)
    migrated = "_migrated_from" in manifest.payload
    who = owner_of(found, contradiction="note" if migrated else "refuse")
    names = list(manifest.contents)
    usual = in_workspace_of(names)
    if "organism.json" not in manifest.contents or not _holds_buddy(found, "organism.json"):
        return somebody(found, RAPP1["organism"], who, names, usual, wholeness.settle)

    def place(name: str) -> Place | None:
        return (Role.MEMORY, BUDDY_FILE) if name == "organism.json" else usual(name)

    return somebody(found, RAPP1["organism"], who, names, place, wholeness.settle, kind="buddy")


def _holds_buddy(found: DetectedEgg, name: str) -> bool:
    """Other JSON eggs travel as an organism's ``organism.json``."""
    try:
        return is_buddy(found.read_object(name))
    except BadCartridgeError:
        return False


def _rapplication(found: DetectedEgg, manifest: Manifest, wholeness: HashCheck) -> ParsedEgg:
    for name in ("rappid.json", "agent.py"):
        found.need(name)
    rapp = manifest.rappid.slug.replace("-", "_")

    def place(name: str) -> Place | None:
        if name == "agent.py":
            return Role.AGENT, f"agents/{rapp.removesuffix('_agent')}_agent.py"
        if name == "ui.html":
            return page_place(rapp, "index.html")
        if name in ("rappid.json", "soul.md"):
            return in_memory(f"{rapp}/{name}")
        if name.startswith("state/"):
            return in_memory(f"{rapp}/{name.removeprefix('state/')}")
        return in_host(name)

    return in_brainstem(found, RAPP1["rapplication"], rapp, place, wholeness=wholeness)


def _session(found: DetectedEgg, manifest: Manifest) -> ParsedEgg:
    demand_keys(found, manifest.payload, ("runtime", "transcript"))
    runtime, transcript = manifest.payload["runtime"], manifest.payload["transcript"]
    if not isinstance(runtime, str):
        raise found.damaged("its runtime")
    if not isinstance(transcript, list) or not all(isinstance(event, dict) for event in transcript):
        raise found.damaged("its transcript")
    name = manifest.rappid.slug
    sessions.checked_transcript(found, runtime, transcript)
    found.notes.append("It carries no hash of its transcript.")
    answer = sessions.tell(found, name, "", manifest.rappid.text, "text", runtime, len(transcript), [])
    html = runtime.lstrip()[:1] == "<"
    return answering(
        found,
        RAPP1["session"],
        Seal(None),
        answer,
        rappid=manifest.rappid,
        name=name,
        parts=sessions.contents(runtime, transcript, html=html),
    )


def _invite(found: DetectedEgg, manifest: Manifest) -> ParsedEgg:
    demand_keys(found, manifest.payload, ("target_rappid", "target_url", "target_kind"))
    if not manifest.sig:
        raise found.damaged("an invite has to be signed")
    kind = manifest.payload["target_kind"]
    if kind not in ("neighborhood", "estate"):
        raise found.damaged("it invites to neither a neighborhood nor an estate")
    target, url = (
        text((manifest.payload, "target_rappid"), most=_LONG),
        text((manifest.payload, "target_url"), most=_LONG),
    )
    name = _rappid(found, manifest.payload["target_rappid"]).slug
    answer = tell(kind, name, target, url, "")
    return answering(found, RAPP1["invite"], Seal(None), answer, rappid=manifest.rappid, name=name)


def _aggregate(found: DetectedEgg, manifest: Manifest, wholeness: HashCheck) -> ParsedEgg:
    """A neighborhood or an estate: eggs in an egg, each opened and checked like this one."""
    key, variant = _INNER[manifest.variant]
    demand_keys(found, manifest.payload, (key,))
    rows = manifest.payload[key]
    if not isinstance(rows, list):
        raise found.damaged("its payload")
    inner = set()
    for row in rows:
        rappid = _rappid(found, row.get("rappid") if isinstance(row, dict) else row)
        name = f"{rappid.owner}--{rappid.slug}.egg"
        found.need(name)
        inner.add(name)
        _check_inner(found, name, variant, rappid)
    others = [name for name in found.names[1:] if name not in inner]
    if others:
        found.notes.append(f"{shown(others[0])} is not among what its payload names.")
    answer = f"It holds {len(inner)} eggs. Each hatches by itself: take them out, then hatch them."
    return data(
        found,
        RAPP1[manifest.variant],
        wholeness.settle(),
        rappid=manifest.rappid,
        answer=answer,
        name=manifest.rappid.slug,
    )


def _check_inner(found: DetectedEgg, name: str, variant: str, rappid: Rappid) -> None:
    with found.archive.nested(name) as archive:
        file = f"{found.file}, {shown(name)}"
        if "manifest.json" not in archive:
            raise found.damaged(shown(name))
        octets = archive.read("manifest.json")
        manifest = parse_object(octets, file)
        if manifest.get("schema") != "rapp/1-egg" or manifest.get("variant") != variant:
            raise found.damaged(f"{shown(name)} is no {variant}")
        if manifest.get("rappid") != rappid.text:
            raise found.damaged(f"{shown(name)} is about another than {rappid.text}")
        size = found.archive.member(name).size
        rapp1(DetectedEgg(file, size, "", manifest, octets, found.check, archive))


def _rappid(found: DetectedEgg, given: Any) -> Rappid:
    try:
        rappid = Rappid.parse(given)
    except BadRappidError as error:
        raise found.damaged("a rappid in its payload") from error
    if not rappid.strict:
        raise found.damaged("a rappid in its payload")
    return rappid


def invitation(found: DetectedEgg) -> ParsedEgg:
    """``brainstem-egg/2.3-neighborhood`` as every published one is: JSON, an invitation."""
    manifest = found.manifest
    kind = text((manifest, "type"))
    if kind not in ("", "neighborhood-invite", "neighborhood"):
        found.notes.append(f'It calls itself "{kind}".')
    rappid = lenient(found, manifest.get("rappid"))
    name = (
        text((manifest, "display_name"), (manifest, "name")) or (rappid.slug if rappid else "") or found.file
    )
    answer = tell(
        "neighborhood",
        name,
        rappid.text if rappid else "",
        text((manifest, "neighborhood_url"), (manifest, "join_via"), most=500),
        text((manifest, "invite_expires_at")),
    )
    return answering(found, INVITATION, Seal(None), answer, rappid=rappid, name=name)


def tell(kind: str, name: str, rappid: str, url: str, until: str) -> str:
    """The text that a person reads about an invitation."""
    lines = [f"An invitation to the {kind} {name}" + (f", good until {until}" if until else "")]
    lines += [f"rappid {rappid}"] if rappid else []
    lines += [f"It is at {url}"] if url else []
    return "\n".join([*lines, "It holds nothing to hatch. Join with: rappd neighborhood join FILE"])


def seeds(found: DetectedEgg) -> ParsedEgg:
    """Names agents of a registry by number and holds none of them."""
    numbers = found.manifest.get("seeds")
    try:
        compact = encode(numbers)  # type: ignore[arg-type]  # encode refuses what is no list of numbers
    except BadEggError as error:
        raise found.damaged("its seeds") from error
    assert isinstance(numbers, list)
    # Numbers beyond 64 bits are more than most that read JSON can take.
    found.manifest = {**found.manifest, "seeds": [str(number) for number in numbers]}
    answer = (
        f"{len(numbers)} agents of a registry, by their seeds. With a copy of the registry they hatch as the "
        f"egg string\n{compact}"
    )
    return answering(found, SEEDS, Seal(None), answer)
