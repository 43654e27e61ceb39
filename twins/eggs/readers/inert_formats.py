"""Eggs that unpack as data which nothing runs: old swarms, gates, cubbies, estates, swarm, factory, industry."""

from __future__ import annotations

import re
from typing import Any

from twins.eggs.parsed_egg import Family, ParsedEgg
from twins.eggs.readers.detected_egg import DetectedEgg, component, inside
from twins.eggs.readers.egg_destination import data, lenient, said_by
from twins.eggs.readers.formats import CUBBY, ESTATE, GATE, OLD_SWARM, SCALES
from twins.eggs.readers.hash_check import HashCheck
from twins.fs.untrusted_names import safe_component, safe_path, shown

_NESTED = re.compile(r"members/[^/]+/manifest\.json")
_ESTATE_BY_HAND = (
    "An estate moves by hand: publish estate.json under the new owner, then move each member it names. "
    "Every member that is an egg hatches by itself."
)


def old_swarm(found: DetectedEgg) -> ParsedEgg:
    """``egg-manifest.json`` with ``files[{arc, bytes, sha256}]``. No reader of it is left; its twins are data."""
    wholeness = HashCheck(found, plain=True)
    wholeness.leave_out(found.manifest_name)
    for one in _rows(found, found.manifest.get("files", []), "its list of files"):
        name = safe_path(_text(found, one, "arc"))
        wholeness.expect(name, one.get("sha256"))
        size = one.get("bytes")
        if size is not None and size != found.archive.member(name).size:
            raise found.damaged(shown(name))
    for one in _rows(found, found.manifest.get("twins", []), "its list of twins"):
        safe_component(_text(found, one, "handle"))
    return data(found, OLD_SWARM, wholeness.settle(), rappid=None)


def gate(found: DetectedEgg) -> ParsedEgg:
    """``brainstem-egg/2.3-neighborhood`` as a ZIP: the files of a repository that is a neighborhood's gate."""
    return _by_rappid(
        found, GATE, "To open this gate for others, publish its files as a repository of that name."
    )


def cubby(found: DetectedEgg) -> ParsedEgg:
    """``brainstem-egg/2.3-cubby``: ``cubby/**``, with ``files[{path, sha256}]`` relative to ``cubby/``."""
    wholeness = HashCheck(found)
    wholeness.leave_out(found.manifest_name)
    for one in _rows(found, found.manifest.get("files", []), "its list of files"):
        wholeness.expect(f"cubby/{safe_path(_text(found, one, 'path'))}", one.get("sha256"))
    owner = component((found.manifest, "owner")).lstrip("@")
    if not owner:
        raise found.damaged("it names no owner")
    rappid = lenient(found, said_by(found.manifest))
    return data(found, CUBBY, wholeness.settle(), rappid=rappid, key=owner, below="cubby/")


def estate(found: DetectedEgg) -> ParsedEgg:
    """``brainstem-egg/2.3-estate``, both shapes: ``sha256`` of ``estate.json``, or members with provenance."""
    wholeness = HashCheck(found)
    wholeness.leave_out(found.manifest_name)
    manifest = found.manifest
    found.need("estate.json")
    content = found.read_object("estate.json")
    if "sha256" in manifest:
        wholeness.expect("estate.json", manifest["sha256"])
    members = manifest.get("members")
    if isinstance(members, list):
        for one in members:
            if isinstance(one, dict) and "hash" in one:
                safe_component(_text(found, one, "hash"))
    owner = lenient(found, manifest.get("owner_rappid"), inside(content, "owner").get("rappid"))
    if "owner_signature" in manifest:
        found.notes.append("Its owner's signature is of no known kind and was not checked.")
    eggs = sum(_NESTED.fullmatch(name) is not None for name in found.names)
    answer = f"It holds {eggs} eggs; each hatches to its own place." if eggs else _ESTATE_BY_HAND
    if "HATCH.md" in found:
        answer = f"How to move this estate is told in its HATCH.md. {answer}"
    return data(found, ESTATE, wholeness.settle(), rappid=owner, answer=answer)


def container(found: DetectedEgg) -> ParsedEgg:
    """``rapp-egg/2.0`` of a scale that only other systems run: swarm, factory, industry, estate."""
    kind = found.manifest["scale"]
    return _by_rappid(found, SCALES[kind], f"Nothing here runs a {kind}. Eggs in it hatch one by one.")


def _by_rappid(found: DetectedEgg, family: Family, answer: str) -> ParsedEgg:
    wholeness = HashCheck(found)
    manifest = found.manifest
    given = found.read_object("rappid.json").get("rappid") if "rappid.json" in found else None
    rappid = lenient(found, given, said_by(manifest))
    key = "" if rappid else component((manifest, "hash"))
    return data(found, family, wholeness.settle(), rappid=rappid, key=key, answer=answer)


def _rows(found: DetectedEgg, value: Any, what: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise found.damaged(what)
    return value


def _text(found: DetectedEgg, row: dict[str, Any], key: str) -> str:
    value = row.get(key)
    if not isinstance(value, str):
        raise found.damaged(f'a "{key}" in its manifest')
    return value
