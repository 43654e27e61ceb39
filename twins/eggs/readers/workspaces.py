"""Eggs that are one whole workspace: ``brainstem-egg/2.1``, ``2.2-organism``, ``rapp-egg/2.0`` twin and brainstem.

All have the same files at the root, some below ``repo/``; what the family adds is what must agree.
"""

from __future__ import annotations

from agents.contract.file_discovery import AGENT_SUFFIXES
from twins.eggs.parsed_egg import ARCHIVED, Destination, Family, ParsedEgg, Role
from twins.eggs.readers.detected_egg import DetectedEgg
from twins.eggs.readers.egg_destination import owner_of, somebody
from twins.eggs.readers.formats import ORGANISM, SCALES, TWIN_2_1
from twins.eggs.readers.hash_check import HashCheck
from twins.eggs.readers.rapplications import in_brainstem, rapp_id
from twins.eggs.readers.workspace_paths import Place, in_archived_workspace_of, in_host, in_workspace_of


def twin_2_1(found: DetectedEgg) -> ParsedEgg:
    """``repo/**`` is the workspace, ``data/**`` its memory. Hub eggs name a throw-away rappid besides."""
    return _workspace(found, TWIN_2_1, contradiction="note")


def organism(found: DetectedEgg) -> ParsedEgg:
    """A full instance; manifest and ``rappid.json`` come from one packer and must agree."""
    return _workspace(found, ORGANISM, contradiction="refuse")


def twin(found: DetectedEgg) -> ParsedEgg:
    """``rapp-egg/2.0``, scale twin: members at the root or below ``repo/``, memory under ``data/``.

    One whose ``lifecycle`` is ``archived`` goes into the archive.
    """
    opened = _workspace(found, SCALES["twin"], contradiction="refuse")
    if found.manifest.get("lifecycle") == ARCHIVED and opened.key:
        opened.folder = f"twins/.archive/{opened.key}"
        opened.notes.append("It was archived, and goes into the archive here.")
    return opened


def brainstem(found: DetectedEgg) -> ParsedEgg:
    """``rapp-egg/2.0``, scale brainstem: for an empty home."""
    return _workspace(found, SCALES["brainstem"], contradiction="refuse", destination=Destination.BRAINSTEM)


def _workspace(
    found: DetectedEgg, family: Family, *, contradiction: str, destination: Destination = Destination.TWIN
) -> ParsedEgg:
    wholeness = HashCheck(found)
    member = "repo/rappid.json" if "repo/rappid.json" in found else "rappid.json"
    who = owner_of(found, member, contradiction=contradiction)
    # Where a file is there twice, the repository's is the one that is meant.
    names = found.names
    if "repo/" in "\n".join(names):
        names.sort(key=lambda name: not name.startswith("repo/"))
    names = [name for name in names if name not in wholeness.wrapping]
    is_archived = family is SCALES["twin"] and found.manifest.get("lifecycle") == ARCHIVED
    place = (in_archived_workspace_of if is_archived else in_workspace_of)(names)
    return somebody(found, family, who, names, place, wholeness.settle, destination=destination)


def agent(found: DetectedEgg) -> ParsedEgg:
    """Every ``*_agent.py`` by its last name into ``agents/``; memory under ``data/``. At least one agent."""
    return in_brainstem(found, SCALES["agent"], rapp_id(found, "slug", "id"), _place, listed=False)


def _place(name: str) -> Place | None:
    last = name.rpartition("/")[2]
    if not name.startswith("data/") and last.endswith(AGENT_SUFFIXES) and last != "basic_agent.py":
        return Role.AGENT, f"agents/{last}"
    return in_host(name)
