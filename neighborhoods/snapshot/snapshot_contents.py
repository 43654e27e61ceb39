"""The contents of a neighborhood egg, taken apart: what hatches here, and what belongs to other machines."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from neighborhoods.errors import BadMemberError, NeighborhoodError
from neighborhoods.snapshot import file_times, original_file_names
from neighborhoods.snapshot.manifest import peer_folders
from neighborhoods.snapshot.member_transport import require_twin_hash
from twins.eggs.parsed_egg import Destination, ParsedEgg, Part, Role
from twins.eggs.readers.detect import open_egg
from twins.eggs.readers.detected_egg import part_of
from twins.errors import BadEggError, BadFileError, BadRappidError
from twins.work_progress import Progress
from twins.workspace.identity_file import Identity
from twins.workspace.rappid import Rappid

_COORDINATES = ("url", "ssh_user", "ssh_host")
_ARCHIVE = "twins/.archive/"
_JUNK = re.compile(r"(?:.*/)?(?:\._[^/]*|\.DS_Store|\.keep)")


@dataclass(slots=True)
class LocalUnit:
    """One thing that hatches on this machine, whole or not at all. ``kind``: brainstem, twin, data."""

    kind: str
    name: str
    opened: ParsedEgg
    key: str = ""
    is_archived: bool = False
    was_alive: bool = False
    port: int | None = None
    problem: str = ""

    @property
    def id(self) -> str:
        """A name for it that no other unit of the egg has."""
        return f"{self.opened.folder}"


@dataclass(slots=True)
class PeerTwin:
    """A twin of another machine. ``reason`` says why the egg does not hold it; "" when it does.

    ``is_twin``: False for files that were captured without a readable ``rappid.json``.
    """

    hash: str
    name: str
    part: Part | None = None
    is_archived: bool = False
    reason: str = ""
    is_twin: bool = True


@dataclass(slots=True)
class PeerBlock:
    """One other machine. ``row`` is what the manifest says of it; ``folder`` names its files in the egg."""

    name: str
    folder: str
    row: dict[str, Any]
    twins: list[PeerTwin] = field(default_factory=list)
    agents: list[Part] = field(default_factory=list)


@dataclass(slots=True)
class SnapshotContents:
    """An open neighborhood egg. ``is_roster``: the shape whose members are a list. Close ``opened`` after use."""

    opened: ParsedEgg
    is_roster: bool
    local: list[LocalUnit]
    peers: list[PeerBlock]
    stamps: dict[str, file_times.Stamp] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path, *, progress: Progress | None = None) -> SnapshotContents:
        """Reads and checks every byte. Raises ``not_a_snapshot`` and what ``open_egg`` raises."""
        opened = open_egg(path, progress=progress)
        try:
            return cls.of(opened)
        except BaseException:
            opened.close()
            raise

    def forget_coordinates(self) -> None:
        """Takes the addresses out of the rows: an egg of a stranger sends nobody anywhere."""
        for block in self.peers:
            block.row = {key: value for key, value in block.row.items() if key not in _COORDINATES}

    @classmethod
    def of(cls, opened: ParsedEgg) -> SnapshotContents:
        """Takes an open egg apart."""
        if not is_snapshot(opened):
            raise NeighborhoodError(
                f"{opened.name} holds no neighborhood.",
                do=f"rappd egg plan {opened.file or 'FILE'}",
                code="not_a_snapshot",
            )
        members = opened.manifest["members"]
        if isinstance(members, list):
            return cls(opened, True, _units(opened, members, is_roster=True), [])
        found = file_times.stamps_of(opened)
        local = members.get("local")
        rows = _objects(local.get("twins") if isinstance(local, dict) else None)
        return cls(opened, False, _units(opened, rows, is_roster=False), _peers(opened, members), found)


def is_snapshot(opened: ParsedEgg) -> bool:
    """True for both shapes of ``rapp-egg/2.0``, scale neighborhood."""
    return (
        opened.destination is Destination.ANSWER
        and opened.family.kind == "neighborhood"
        and opened.manifest.get("scale") == "neighborhood"
    )


def _units(opened: ParsedEgg, rows: list[dict[str, Any]], *, is_roster: bool) -> list[LocalUnit]:
    brainstem: list[Part] = []
    data: list[Part] = []
    twins: dict[tuple[bool, str], list[Part]] = {}
    own = ""
    for part in opened.parts:
        if _JUNK.fullmatch(part.target) or part.name in (file_times.MEMBER, original_file_names.MEMBER):
            continue
        if part.target.startswith(("twins/", _ARCHIVE)):
            archived = part.target.startswith(_ARCHIVE)
            key, _, below = part.target.removeprefix(_ARCHIVE if archived else "twins/").partition("/")
            twins.setdefault((archived, key), []).append(part._replace(target=below))
        elif part.target.startswith("brainstem/"):
            brainstem.append(part._replace(target=part.target.removeprefix("brainstem/")))
        else:
            _, own, below = part.target.split("/", 2)
            if not below.startswith("peers/") and (is_roster or below != "members.json"):
                data.append(part._replace(target=below))
    units = []
    if brainstem:
        whole = replace(
            opened,
            destination=Destination.HOST,
            key="",
            parts=tuple(brainstem),
            folder="brainstem",
            closing=None,
        )
        units.append(LocalUnit("brainstem", "brainstem", whole))
    known = {str(row.get("hash")): row for row in rows}
    for (archived, key), parts in sorted(twins.items()):
        units.append(_twin(opened, key, archived, parts, known))
    if is_roster:
        data = _roster_files(opened, data, rows)
        own = own or (opened.rappid.key if opened.rappid else "")
    if data and own:
        inert = replace(
            opened,
            destination=Destination.INERT,
            key=own,
            parts=tuple(data),
            folder=f"neighborhoods/{own}",
            closing=None,
        )
        units.append(LocalUnit("data", opened.name, inert, key=own))
    return units


def _twin(
    opened: ParsedEgg, key: str, archived: bool, parts: list[Part], known: dict[str, dict[str, Any]]
) -> LocalUnit:
    row, problem, rappid = known.get(key, {}), "", None
    name = str(row.get("name") or key)
    try:
        identity = next((part for part in parts if part.target == "rappid.json"), None)
        if identity is not None:
            found = Identity.decode(identity.read())
            rappid, name = found.rappid, found.name
        else:
            rappid = Rappid.parse(str(row.get("rappid")))
            content = orjson.dumps({"schema": "rapp/1", "rappid": rappid.text, "name": name})
            parts = [part_of("rappid.json", Role.IDENTITY, "rappid.json", content), *parts]
    except (BadFileError, BadRappidError, BadEggError) as error:
        problem = str(error)
    whole = replace(
        opened,
        destination=Destination.TWIN,
        key=rappid.key if rappid else key,
        rappid=rappid,
        name=name,
        parts=tuple(parts),
        folder=f"{_ARCHIVE if archived else 'twins/'}{key}",
        closing=None,
        answer="",
    )
    port = row.get("port")
    return LocalUnit(
        "twin",
        name,
        whole,
        key,
        is_archived=archived,
        was_alive=row.get("alive_at_snapshot") is True and not archived,
        port=port if isinstance(port, int) else None,
        problem=problem,
    )


def _roster_files(opened: ParsedEgg, data: list[Part], rows: Iterable[dict[str, Any]]) -> list[Part]:
    """``members.json`` and ``rappid.json`` of the neighborhood, made from the manifest where the egg has none."""
    there = {part.target for part in data}
    made = {
        "members.json": {"members": list(rows)},
        "rappid.json": {
            key: opened.manifest[key]
            for key in ("rappid", "name", "parent_rappid", "born_at", "creator", "description", "boot_hint")
            if key in opened.manifest
        },
    }
    for name, content in made.items():
        if name not in there and content:
            octets = orjson.dumps(content, option=orjson.OPT_INDENT_2)
            data = [*data, part_of(name, Role.ROSTER, name, octets)]
    return data


def _objects(value: object) -> list[dict[str, Any]]:
    """The objects in a list of a manifest that anybody may have written."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _folder(opened: ParsedEgg, tag: object) -> str:
    """The hash of a twin, which names a folder here and there. Raises ``BadEggError`` for text that does not."""
    try:
        if isinstance(tag, str):
            require_twin_hash(tag)
            return tag
    except BadMemberError:
        pass
    raise BadEggError(
        f"{opened.name} names a twin that is no folder; nothing was written.", do="Don't use it."
    )


def _peers(opened: ParsedEgg, members: dict[str, Any]) -> list[PeerBlock]:
    by_name = {part.name: part for part in opened.parts if part.name.startswith("peers/")}
    rows = _objects(members.get("peers"))
    names = [str(row.get("name") or f"peer {place}") for place, row in enumerate(rows, 1)]
    blocks = []
    for row, name, folder in zip(rows, names, peer_folders(names), strict=True):
        block = PeerBlock(name, folder, row)
        for twin in _objects(row.get("twins")):
            tag = _folder(opened, twin.get("hash"))
            path = twin.get("captured_path_in_egg")
            part = by_name.get(path) if twin.get("captured") is True and isinstance(path, str) else None
            reason = "" if part else str(twin.get("reason") or "is not in the egg")
            archived = twin.get("lifecycle") == "archived"
            name, is_twin = str(twin.get("name") or tag), twin.get("has_rappid_json") is not False
            block.twins.append(PeerTwin(tag, name, part, archived, reason, is_twin))
        prefix = f"peers/{folder}/brainstem/agents/"
        block.agents = [
            part for path, part in by_name.items() if path.startswith(prefix) and not _JUNK.fullmatch(path)
        ]
        blocks.append(block)
    return blocks
