"""Eggs inside an egg: ``members/<hash>/`` with a manifest of its own is a complete egg, laid out as files."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from twins.eggs.parsed_egg import ParsedEgg, Part
from twins.errors import HostileEggError

FOLDER = "members"
MOST = 1000
"""Eggs that one egg may hold."""
DEPTH = 3
"""Eggs in each other, the outermost counted."""

_MANIFEST = re.compile(rf"{FOLDER}/([^/]+)/manifest\.json")
_HASH = re.compile(r"[0-9a-f][0-9a-f-]{6,62}[0-9a-f]")
_RAPP1 = b'"schema":"rapp/1-egg"'


def nested_hashes(opened: ParsedEgg) -> list[str]:
    """The hashes under which ``opened`` holds complete eggs, sorted.

    Raises ``HostileEggError`` for one that is no hash, and for too many.
    """
    found = sorted(match[1] for part in opened.parts if (match := _MANIFEST.fullmatch(part.name)))
    if len(found) > MOST:
        raise HostileEggError(f"This egg holds {len(found)} eggs; refused whole", do="don't use it")
    for one in found:
        if not _HASH.fullmatch(one):
            raise HostileEggError(
                "A member of this egg has no hash for a name; refused whole", do="don't use it"
            )
    return found


def hashes_within(opened: ParsedEgg) -> set[str]:
    """The same at every depth: the hashes of the eggs in the eggs, too."""
    found: set[str] = set()
    for part in opened.parts:
        folders = part.name.split("/")
        if folders[-1] == "manifest.json" and folders[:-1:2] == [FOLDER] * (len(folders) // 2):
            found.update(folders[1:-1:2])
    return found


def without_nested(opened: ParsedEgg) -> ParsedEgg:
    """The same egg without the eggs in it. The file stays the one of ``opened``."""
    folders = tuple(f"{FOLDER}/{one}/" for one in nested_hashes(opened))
    parts = [part for part in opened.parts if not part.name.startswith(folders)] if folders else opened.parts
    return replace(opened, parts=parts, closing=None)


def write_nested(opened: ParsedEgg, one: str, target: Path) -> None:
    """Writes the nested egg of that hash as a file of its own, which opens like any other egg."""
    from twins.zip.writer import ArchiveWriter  # most eggs hold no others

    start = f"{FOLDER}/{one}/"
    parts = {part.name.removeprefix(start): part for part in opened.parts if part.name.startswith(start)}
    manifest = parts.pop("manifest.json")
    if not parts:  # eggs that are one JSON file
        target.write_bytes(manifest.read())
        return
    octets = manifest.read()
    others: list[tuple[str, Part]] = sorted(parts.items(), key=lambda pair: pair[0].encode())
    with target.open("xb") as file, ArchiveWriter(file, stored=_RAPP1 in octets) as writer:
        writer.add("manifest.json", octets)
        for name, part in others:
            writer.add(name, part.chunks())
        writer.finish()
