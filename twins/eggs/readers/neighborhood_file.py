"""``neighborhood-egg/1.0``: a neighborhood and its twins as texts in one JSON file."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from twins.eggs.parsed_egg import ParsedEgg, Role, Seal
from twins.eggs.readers.detected_egg import DetectedEgg, PartCollector, component, inside, parse_object, text
from twins.eggs.readers.egg_destination import answering, lenient
from twins.eggs.readers.formats import NEIGHBORHOOD_FILE
from twins.eggs.readers.workspace_paths import in_workspace
from twins.fs.untrusted_names import safe_component, safe_path, shown

_PLACED = ("neighborhood", "twins", "fleet_agents")


def neighborhood_file(found: DetectedEgg) -> ParsedEgg:
    """Every twin's files below ``twins/<key>/``, the roster below ``neighborhoods/<key>/``."""
    organism = inside(found.manifest, "organism")
    contents = inside(organism, "neighborhood")
    rappid = lenient(found, inside(contents, "rappid.json").get("rappid"), organism.get("rappid"))
    key = rappid.key if rappid else component((organism, "hash")) or found.seed().hex()
    if key.startswith("."):
        raise found.damaged("it names no folder of its own")
    own = f"neighborhoods/{key}"
    placing = PartCollector(found, unplaced=f"{own}/unplaced")
    for name, content in contents.items():
        placing.text(name, (Role.ROSTER, f"{own}/{safe_path(name)}"), _text(content))
    twins = _objects(found, organism, "twins")
    for folder, files in twins.items():
        if not isinstance(files, dict):
            raise found.damaged(f"the twin {shown(folder)}")
        _twin(found, placing, folder, files)
    agents = organism.get("fleet_agents")
    if isinstance(agents, dict):
        for name, content in agents.items():
            target = f"{own}/fleet_agents/{safe_path(name)}"
            placing.text(f"fleet_agents/{name}", (Role.OTHER, target), _text(content))
    rest = {name: value for name, value in organism.items() if name not in _PLACED}
    if agents is not None and not isinstance(agents, dict):
        rest["fleet_agents"] = agents
    placing.text("organism.json", (Role.OTHER, f"{own}/organism.json"), _text(rest))
    name = text((organism, "name"), (organism, "slug")) or (rappid.slug if rappid else "") or found.file
    answer = (
        f"The neighborhood {name} with {len(twins)} twins. They hatch together, each to its own place, and "
        "the neighborhood's roster beside them; nothing is written until then."
    )
    seal = _seal(found)
    return answering(found, NEIGHBORHOOD_FILE, seal, answer, rappid=rappid, name=name, parts=placing.parts())


def _twin(found: DetectedEgg, placing: PartCollector, folder: str, files: dict[str, Any]) -> None:
    safe_component(folder)
    identity = files.get("rappid.json")
    if isinstance(identity, str):
        identity = parse_object(identity.encode(), f"{found.file}, {shown(folder)}/rappid.json,")
    rappid = lenient(found, inside({"": identity}, "").get("rappid"))
    key = rappid.key if rappid else folder
    if key.startswith("."):
        raise found.damaged(f"the twin {shown(folder)}")
    for path, content in files.items():
        place = in_workspace(safe_path(path))
        target = (place[0], f"twins/{key}/{place[1]}") if place else None
        placing.text(f"twins/{folder}/{path}", target, _text(content))


def _objects(found: DetectedEgg, holder: dict[str, Any], key: str) -> dict[str, Any]:
    value = holder.get(key, {})
    if not isinstance(value, dict):
        raise found.damaged(f"its {key}")
    return value


def _text(content: Any) -> str:
    """A file's content: text as it is, anything else as JSON."""
    if isinstance(content, str):
        return content
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"


def _seal(found: DetectedEgg) -> Seal:
    """``_content_sha256`` says not of what; it counts where it fits one of the ways in use."""
    declared = found.manifest.get("_content_sha256")
    if not isinstance(declared, str):
        return Seal(None)
    rest = {key: value for key, value in found.manifest.items() if key != "_content_sha256"}
    for value in (rest, found.manifest.get("organism")):
        for options in ({"separators": (",", ":")}, {"separators": (",", ":"), "ensure_ascii": False}, {}):
            octets = json.dumps(value, sort_keys=True, **options).encode()
            if hashlib.sha256(octets).hexdigest() == declared:
                return Seal(True, listed=1)
    found.notes.append("Its _content_sha256 fits none of the known ways to compute it.")
    return Seal(None)
