"""``rapp-egg/1.0`` as an application that runs as a twin: ``EGG.json`` beside a ``rapp-application/1.0``."""

from __future__ import annotations

from twins.eggs.parsed_egg import ParsedEgg
from twins.eggs.readers.destinations import somebody
from twins.eggs.readers.detected import DetectedEgg, text
from twins.eggs.readers.formats import APPLICATION
from twins.eggs.readers.hash_check import HashCheck
from twins.eggs.readers.identity import owner_of
from twins.eggs.readers.member_paths import Place, in_memory, in_workspace

EGG = "EGG.json"


def application(found: DetectedEgg) -> ParsedEgg:
    """``twin/soul.md twin/agents/* state/**``; the application's other files stay beside them."""
    wholeness = HashCheck(found)
    wholeness.wrapping.add(EGG)
    egg = found.read_object(EGG)
    application = found.manifest
    # What the egg says of itself comes first; the application's manifest knows the rest.
    found.manifest = {**application, **egg}
    member = "twin/rappid.json" if "twin/rappid.json" in found else "rappid.json"
    who = owner_of(found, member)
    names = [name for name in found.names if name not in wholeness.wrapping]
    publisher = text((egg, "publisher"))
    return somebody(found, APPLICATION, who, names, _place, wholeness.settle, owner=publisher, kind="custom")


def _place(name: str) -> Place | None:
    first, slash, below = name.partition("/")
    if slash and first == "twin":
        return in_workspace(below)
    if slash and first == "state":
        return in_memory(below)
    return in_workspace(name)
