"""``rapp-egg/2.0``, scale neighborhood, in its two shapes, told apart by what ``members`` is.

An object: a snapshot of this machine (``brainstem/ twins/<hash>/``) and of others (``peers/<peer>/``).
A list: a roster and the twins of one machine. Targets are below the home; the answer says what waits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twins.eggs.parsed_egg import ParsedEgg, Role
from twins.eggs.readers.detected_egg import DetectedEgg, PartCollector, inside
from twins.eggs.readers.egg_destination import EggOwner, answering, lenient, name_of, owner_of, said_by
from twins.eggs.readers.formats import SCALES
from twins.eggs.readers.hash_check import HashCheck
from twins.eggs.readers.workspace_paths import Place, in_archived_workspace_of, in_workspace_of
from twins.errors import BadRappidError
from twins.fs.untrusted_names import safe_component, shown
from twins.workspace.rappid import Rappid, same

_TWINS = ("twins/.archive/", "twins/")


def neighborhood(found: DetectedEgg) -> ParsedEgg:
    """Reads and checks either shape. Hatching one needs the other machines, so it ends in an answer."""
    members = found.manifest.get("members")
    if isinstance(members, list):
        return _roster(found, members)
    if isinstance(members, dict):
        return _snapshot(found, members)
    raise found.damaged("its members are neither a list nor an object")


def _snapshot(found: DetectedEgg, members: dict[str, Any]) -> ParsedEgg:
    wholeness = HashCheck(found)
    here = _rows(found, inside(members, "local").get("twins", []))
    peers = _rows(found, members.get("peers", []))
    for peer in peers:
        for row in _rows(found, peer.get("twins", [])):
            _hash(found, row)
            captured = row.get("captured_path_in_egg")
            if row.get("captured") and isinstance(captured, str):
                found.need(captured)
    if "members.json" in found and found.read_object("members.json") != members:
        found.notes.append("Its members.json differs from its manifest; the manifest holds.")
    archived = sum(row.get("lifecycle") == "archived" for row in here)
    running = sum(row.get("alive_at_snapshot") is True for row in here)
    opened = _home(found, wholeness, here)
    answer = f"A neighborhood of {_count(len(peers) + 1, 'machine')}: {_count(len(here), 'twin')} of its own"
    answer += f" ({running} running, {archived} archived)"
    for peer in peers:
        twins = _rows(found, peer.get("twins", []))
        carried = sum(row.get("captured") is True for row in twins)
        answer += (
            f", {carried} of {_count(len(twins), 'twin')} of {shown(str(peer.get('name', 'a machine')))}"
        )
    opened.answer = (
        f"{answer}. Its twins go back to the machines they came from: rappd neighborhood plan FILE shows how."
    )
    return opened


def _roster(found: DetectedEgg, members: list[Any]) -> ParsedEgg:
    wholeness = HashCheck(found)
    rows = _rows(found, members)
    if "hash" in found.manifest:
        _hash(found, found.manifest)
    opened = _home(found, wholeness, rows)
    opened.answer = (
        f"A neighborhood of {_count(len(rows), 'twin')}. They hatch together, each to its own place, "
        "and the neighborhood's roster beside them: rappd neighborhood plan FILE shows how."
    )
    return opened


def _home(found: DetectedEgg, wholeness: HashCheck, rows: list[dict[str, Any]]) -> ParsedEgg:
    """Places every file below the home. ``rows`` name the twins that lie under ``twins/``."""
    who = _own(found)
    rappid = who.rappid
    key = rappid.key if rappid else found.seed().hex()
    own = f"neighborhoods/{key}"
    announced = {_hash(found, row): row for row in rows}
    folders = sorted(set(map(_folder_of, found.names)) - {""})
    keys = {folder: _key_of(found, folder, announced) for folder in folders}
    placing = PartCollector(found, unplaced=f"{own}/unplaced")
    names = [name for name in found.names if name not in wholeness.wrapping]
    active, archived = in_workspace_of(names), in_archived_workspace_of(names)

    def place(name: str) -> Place | None:
        return _place(name, own, keys, archived if name.startswith(_TWINS[0]) else active)

    placing.put_every(names, place)
    name = name_of(found, who.fields)
    family = SCALES["neighborhood"]
    return answering(found, family, wholeness.settle(), "", rappid=rappid, name=name, parts=placing.parts())


def _own(found: DetectedEgg) -> EggOwner:
    """The owner of a neighborhood; snapshots carry no rappid of their own."""
    if "rappid.json" in found:
        return owner_of(found, contradiction="refuse")
    return EggOwner(lenient(found, said_by(found.manifest)))


def _place(
    name: str, own: str, keys: dict[str, str], workspace: Callable[[str], Place | None]
) -> Place | None:
    folder = _folder_of(name)
    if folder:
        where = folder.rstrip("/").rpartition("/")[0]
        return _under(f"{where}/{keys[folder]}", workspace(name.removeprefix(folder)))
    first, slash, below = name.partition("/")
    if first == "brainstem" and slash:
        if below.startswith(("core/", "global_state/")):
            return Role.OTHER, f"{own}/{name}"
        return _under("brainstem", workspace(below))
    if name == "members.json":
        return Role.ROSTER, f"{own}/{name}"
    return Role.OTHER, f"{own}/{name}"


def _under(folder: str, place: Place | None) -> Place | None:
    return (place[0], f"{folder}/{place[1]}") if place else None


def _folder_of(name: str) -> str:
    """The twin's folder that a file lies in, with its last ``/``; "" for none."""
    if not name.startswith("twins/"):
        return ""
    for root in _TWINS:
        if name.startswith(root):
            folder, slash, _ = name.removeprefix(root).partition("/")
            return f"{root}{folder}/" if slash and folder != ".archive" else ""
    return ""


def _key_of(found: DetectedEgg, folder: str, announced: dict[str, dict[str, Any]]) -> str:
    """The folder that a twin gets here: by its ``rappid.json``, which must be the one that was announced."""
    tag = folder.rstrip("/").rpartition("/")[2]
    rappid = _of_twin(found, f"{folder}rappid.json", announced.get(tag, {}).get("rappid"))
    return rappid.key if rappid else safe_component(tag)


def _of_twin(found: DetectedEgg, member: str, announced: object) -> Rappid | None:
    declared = announced if isinstance(announced, str) and announced else ""
    given = found.read_object(member).get("rappid") if member in found else declared
    try:
        rappid = Rappid.parse(given) if isinstance(given, str) and given else None
        if rappid and declared and not same(rappid, Rappid.parse(declared)):
            raise found.damaged(f"{shown(member)} is not of the twin that it announces")
    except BadRappidError as error:
        raise found.damaged(f"{shown(member)} names no rappid") from error
    return rappid


def _rows(found: DetectedEgg, value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise found.damaged("its list of members")
    return value


def _hash(found: DetectedEgg, row: dict[str, Any]) -> str:
    """A member's ``hash``, which names a folder. Raises ``BadEggError`` without one, ``HostileEggError`` for a path."""
    tag = row.get("hash")
    if not isinstance(tag, str):
        raise found.damaged("a member of it has no hash")
    return safe_component(tag)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
