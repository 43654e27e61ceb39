"""A copy of the agent registry on this disk: from names to seeds, from seeds to verified agent files.

``registry.json`` (``rapp-registry/1.1``) with the files it names. Nothing is fetched; what the copy does
not hold, or holds with another hash than the registry says, is refused with its reason.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twins.eggs.egg_strings import decode, encode
from twins.eggs.parsed_egg import Destination, ParsedEgg, Part, Role, Seal
from twins.eggs.readers.detected_egg import parse_object, part_of, text
from twins.eggs.readers.formats import SEEDS
from twins.errors import BadEggError, BadFileError, HostileEggError, NoSuchFileError
from twins.fs.untrusted_names import safe_component, safe_path, shown
from twins.workspace.identity_file import read_regular

REGISTRY = "registry.json"
_REGISTRY_BYTES = 64 << 20
_AGENT_BYTES = 5 << 20
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SEED = re.compile(r"\d{1,22}")


@dataclass(slots=True, frozen=True)
class Resolved:
    """The agent of one seed. ``error`` says why there is no ``content``; ``name`` is "" when unknown."""

    seed: int
    name: str = ""
    filename: str = ""
    content: bytes = b""
    error: str = ""

    def as_json(self) -> dict[str, Any]:
        """One row of a hatching. The seed is text: it may be larger than JSON readers take."""
        row = {"seed": str(self.seed), "name": self.name}
        return {**row, "error": self.error} if self.error else {**row, "file": self.filename}


class RegistryClone:
    """One copy. ``stats``-like numbers are not read; agents are, and which names were buried."""

    def __init__(self, root: Path, registry: dict[str, Any]) -> None:
        """Use ``RegistryClone.open``."""
        self.root = root
        rows = registry.get("agents")
        self._agents = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
        self._buried = _buried(registry)
        self._by_name = {row["name"]: row for row in self._agents if isinstance(row.get("name"), str)}
        self._by_seed = _index(self._agents, lambda row: [row.get("_seed")])
        self._by_alias = _index(self._agents, lambda row: row.get("_seed_aliases") or [])

    @classmethod
    def open(cls, root: Path) -> RegistryClone:
        """Reads ``registry.json`` below ``root``. Raises ``NoSuchFileError``, ``BadFileError``, ``BadEggError``."""
        octets = read_regular(root / REGISTRY, _REGISTRY_BYTES)
        if octets is None:
            raise NoSuchFileError(f"There is no {REGISTRY} in {root}.", do="Name the folder of the registry.")
        registry = parse_object(octets, REGISTRY, wide=True)
        schema = registry.get("schema")
        if not isinstance(schema, str) or not schema.startswith("rapp-registry/1."):
            raise BadFileError(
                f"{root / REGISTRY} is no registry of agents.", do="Name the folder of the registry."
            )
        return cls(root, registry)

    def forge(self, names: Iterable[str]) -> str:
        """The egg string for these agents, in their order. Raises ``NoSuchFileError`` for a name it does not have."""
        seeds = []
        for name in names:
            row = self._by_name.get(name)
            seed = _seed(row.get("_seed")) if row else None
            if seed is None or name in self._buried:
                raise NoSuchFileError(f'The registry has no agent "{shown(name)}".', do=self._meant(name))
            seeds.append(seed)
        return encode(seeds)

    def resolve(self, seeds: Sequence[int]) -> list[Resolved]:
        """The agent of each seed, in their order: its file, verified, or why there is none."""
        return [self._resolve(seed) for seed in seeds]

    def open_string(self, given: str) -> ParsedEgg:
        """An egg string as an egg: its agents as parts for the host brainstem, the rest as notes.

        Raises ``BadEggError`` for a string that is none, and when nothing of it can be hatched from this copy.
        """
        seeds = decode(given)
        resolved = self.resolve(seeds)
        notes = [f"{one.name or one.seed}: {one.error}" for one in resolved if one.error]
        parts: dict[str, Part] = {}
        for one in resolved:
            if not one.error:
                target = f"agents/{one.filename}"
                parts[target] = part_of(one.name, Role.AGENT, target, one.content)
        if not seeds:
            raise BadEggError("This egg string is empty: no agent is in it.", do="Copy it again, whole.")
        if not parts:
            why = f" {notes[0]}" if notes else ""
            raise BadEggError(
                f"Nothing of this egg string can be hatched.{why}", do="Update the registry's copy."
            )
        return ParsedEgg(
            SEEDS,
            {"schema": "rapp-egg/1.0", "seeds": [str(seed) for seed in seeds], "count": len(seeds)},
            "egg string",
            None,
            Destination.HOST,
            "",
            tuple(parts.values()),
            Seal(True, listed=len(parts)),
            hashlib.sha256(given.encode()).hexdigest(),
            len(given),
            notes=notes,
            folder="brainstem",
        )

    def _meant(self, name: str) -> str:
        """Advice about a name that the registry does not have."""
        import difflib

        known = [one for one in self._by_name if one not in self._buried]
        same = [one for one in known if one.rpartition("/")[2] == name]
        near = same or difflib.get_close_matches(name, known, 1)
        return f"Did you mean {shown(near[0])}?" if near else "Names look like @owner/agent."

    def _resolve(self, seed: int) -> Resolved:
        rows = self._by_seed.get(seed) or self._by_alias.get(seed) or []
        if not rows:
            return Resolved(seed, error="no agent of this registry has that seed")
        if len(rows) > 1:
            names = " and ".join(shown(text((row, "name"))) for row in rows[:2])
            return Resolved(seed, error=f"it stands for {names}; which one is not told")
        row = rows[0]
        name = text((row, "name"))
        try:
            return Resolved(seed, name, install_filename(row), self._read(row))
        except (BadEggError, BadFileError) as error:
            return Resolved(seed, name, error=str(error).rstrip("."))

    def _read(self, row: dict[str, Any]) -> bytes:
        """The agent's file with ``\\n`` line ends. Raises ``BadFileError``, ``HostileEggError``."""
        file, digest = row.get("_file"), row.get("_sha256")
        if text((row, "name")) in self._buried:
            raise BadFileError("it was withdrawn from the registry", do="")
        if row.get("type") == "stub" or "_stub_sha256" in row or str(file).endswith(".stub"):
            source = row.get("_source")
            where = text((source, "repo")) or "another repository"
            raise BadFileError(f"it is a stub; its code is in {where}", do="")
        if not isinstance(file, str) or not isinstance(digest, str) or not _SHA256.fullmatch(digest):
            raise BadFileError("the registry names no file and hash for it", do="")
        path = self.root / safe_path(file)
        root = os.path.realpath(self.root)
        if os.path.commonpath([os.path.realpath(path), root]) != root:
            raise HostileEggError(f"{shown(file)} leads out of the registry's copy", do="")
        content = read_regular(path, _AGENT_BYTES)
        if content is None:
            raise BadFileError(f"the copy holds no {shown(file)}", do="")
        content = content.replace(b"\r\n", b"\n")
        if hashlib.sha256(content).hexdigest() != digest:
            raise BadFileError(f"{shown(file)} is not what the registry says (sha256-lf-v1)", do="")
        return content


def install_filename(row: dict[str, Any]) -> str:
    """The name that an agent's file gets: the registry's, or by the published rule. Raises ``HostileEggError``."""
    filename = row.get("_install_filename")
    if isinstance(filename, str) and filename.endswith("_agent.py"):
        return safe_component(filename)
    name = re.sub(r"[^A-Za-z0-9_]+", "_", text((row, "name")).replace("@", "")).strip("_").lower()
    stem = name if name.endswith("_agent") else f"{name}_agent"
    return f"rar_{stem}.py"


def _index(rows: list[dict[str, Any]], seeds_of: Any) -> dict[int, list[dict[str, Any]]]:
    found: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        given = seeds_of(row)
        for value in given if isinstance(given, list) else []:
            seed = _seed(value)
            if seed is not None and row not in found.setdefault(seed, []):
                found[seed].append(row)
    return found


def _seed(value: object) -> int | None:
    """A seed as registries write it: a number, or its decimal digits."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    return int(value) if isinstance(value, str) and _SEED.fullmatch(value) else None


def _buried(registry: dict[str, Any]) -> frozenset[str]:
    lifecycle = registry.get("lifecycle")
    stones = lifecycle.get("tombstones") if isinstance(lifecycle, dict) else None
    names = [one.get("name") or one.get("agent") if isinstance(one, dict) else one for one in stones or ()]
    return frozenset(name for name in names if isinstance(name, str))
