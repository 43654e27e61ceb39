"""A home to hatch eggs into, eggs made by hand, and what lies where."""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from twins.eggs.parsed_egg import Destination, Family, ParsedEgg, Part, Role, Seal
from twins.installer.installer import Installer
from twins.trust.quarantine import QuarantineList
from twins.trust.signers import Signers
from twins.workspace.rappid import Rappid
from twins.workspace.workspace import Workspace

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""The folder for homes: nearly everything here waits for the disk, and what is tested is order."""

KEY = "4f2a" * 16
RAPPID = f"rappid:@ada/gardener:{KEY}"
OWN = "aa" * 32
KITCHEN = "bb" * 32
NOW = datetime(2026, 11, 21, 9, 40, tzinfo=UTC)
LATER = datetime(2026, 11, 22, 10, 0, tzinfo=UTC)

AGENT = b"from agents.basic_agent import BasicAgent\nimport urllib.request\n"
GARDENER: dict[str, bytes] = {
    "rappid.json": json.dumps({"rappid": RAPPID, "name": "gardener", "kind": "place"}).encode(),
    "soul.md": b"You keep the garden.\n",
    "agents/water_agent.py": AGENT,
    "services/pump_service.py": b"name = 'pump'\n",
    ".brainstem_data/memory.json": b'{"tomatoes": "dry"}',
    ".brainstem_data/2026/nov/21.json": b"{}",
    ".env": b"PUMP_KEY=\n",
    "rapps/beds/ui/index.html": b"<p>beds</p>",
    "members.json": b"[]",
}
_ROLES = {
    "rappid.json": Role.IDENTITY,
    "soul.md": Role.SOUL,
    "agents": Role.AGENT,
    "services": Role.SERVICE,
    "senses": Role.SLOT,
    ".brainstem_data": Role.MEMORY,
    ".env": Role.ENV,
    "rapps": Role.PAGE,
    "members.json": Role.ROSTER,
}
UNSEALED = Seal(None)
BY_SELF = Seal(True, OWN)
BY_KITCHEN = Seal(True, KITCHEN)

_KINDS = {
    Destination.TWIN: "twin",
    Destination.HOST: "rapplication",
    Destination.BRAINSTEM: "brainstem",
    Destination.INERT: "swarm",
    Destination.ANSWER: "session",
}


def part(target: str, content: bytes, role: Role | None = None, *, size: int | None = None) -> Part:
    """A part, streaming in small pieces."""

    def chunks() -> Iterator[bytes]:
        for start in range(0, len(content), 4):
            yield content[start : start + 4]

    role = role or _ROLES.get(target.partition("/")[0], Role.OTHER)
    return Part(target, role, target, len(content) if size is None else size, chunks)


def egg(
    files: Mapping[str, bytes] | None = None,
    *parts: Part,
    destination: Destination = Destination.TWIN,
    seal: Seal = UNSEALED,
    name: str = "gardener",
    rappid: str = RAPPID,
    key: str | None = None,
    **more: Any,
) -> ParsedEgg:
    """An egg as the openers hand it over."""
    every = (*(part(target, content) for target, content in (files or {}).items()), *parts)
    digest = hashlib.sha256(repr([(one.target, b"".join(one.chunks())) for one in every]).encode())
    identity = Rappid.parse(rappid) if rappid else None
    if key is None:
        twin_like = destination in (Destination.TWIN, Destination.INERT)
        key = identity.key if identity and twin_like else ""
    return ParsedEgg(
        Family("rapp-egg/2.0", _KINDS[destination], "ZIP", ""),
        {},
        name,
        identity,
        destination,
        key,
        every,
        seal,
        digest.hexdigest(),
        sum(one.size for one in every),
        **more,
    )


def gardener(**changes: Any) -> ParsedEgg:
    """The egg that most tests hatch: a twin with a bit of everything, not signed."""
    return egg(GARDENER, **changes)


class AHome:
    """A home folder and its importer."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.held = QuarantineList(root / "held.json", root)
        self.signers = Signers(root / "signers.json")
        self.twin = root / "twins" / KEY
        self.brainstem = root / "brainstem"
        self.receipts = root / "eggs" / "receipts"

    def importer(self, **more: Any) -> Installer:
        return Installer(self.root, quarantine=self.held, signers=self.signers, fingerprint=OWN, **more)

    def live_in(self, folder: Path, files: Mapping[str, bytes]) -> None:
        for path, content in files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)

    def start_brainstem(self) -> Workspace:
        workspace = Workspace.at(self.brainstem)
        workspace.create()
        return workspace


def lies(folder: Path, *, without: Callable[[str], bool] = lambda path: False) -> dict[str, object]:
    """Everything below a folder: path to content, to where a link leads, or to "folder"."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")) if folder.exists() else ():
        name = path.relative_to(folder).as_posix()
        if without(name):
            continue
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_dir():
            found[name] = "folder"
        elif stat.S_ISREG(path.stat().st_mode):
            found[name] = path.read_bytes()
        else:
            found[name] = "other"
    return found


def leftovers(home: Path) -> list[str]:
    """Staging folders that nobody cleared, anywhere."""
    return [str(path) for path in home.rglob(".hatch-*")]
