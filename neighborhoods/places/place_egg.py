"""Packs a neighborhood's folder as ``brainstem-egg/2.3-neighborhood``, a ZIP of the files of its gate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from envelopes.identity.keys import IdentityKey
from neighborhoods.places.place import Place
from twins.eggs import integrity
from twins.eggs.writers.contents import EggContents
from twins.eggs.writers.env_blanking import known_values
from twins.eggs.writers.exclusions import ExclusionReason, at_root, by_name
from twins.eggs.writers.formats import EggMaker
from twins.eggs.writers.manifests import provenance
from twins.eggs.writers.member_filter import MemberFilter
from twins.eggs.writers.secret_scan import SecretScan
from twins.eggs.writers.source_tree import SourceTree
from twins.fs.atomic_file import atomic_file, settled
from twins.workspace.identity_file import Identity, indented, utc
from twins.workspace.workspace import Workspace
from twins.zip.writer import ArchiveWriter

SCHEMA = "brainstem-egg/2.3-neighborhood"
_WRAPPING = ("manifest.json", integrity.MEMBER)


class PackedPlace(msgspec.Struct, frozen=True):
    """A neighborhood's egg on the disk. ``left_out``: (path, reason)."""

    path: Path
    files: int
    size: int
    sha256: str
    left_out: tuple[tuple[str, str], ...]


def pack_place(
    place: Place,
    target: Path,
    *,
    key: IdentityKey | None,
    maker: EggMaker,
    at: datetime | None = None,
    secrets_of: Workspace | None = None,
    allow: Collection[str] = (),
    overwrite: bool = False,
) -> PackedPlace:
    """Packs ``place`` into ``target``. ``secrets_of``: the workspace whose ``.env`` values must not travel.

    Raises ``SecretsFoundError``, ``TwinConflictError``, ``BadFileError``; then ``target`` is as it was.
    """
    moment = (at or datetime.now(UTC)).astimezone(UTC)
    with ExitStack() as open_trees:
        tree = open_trees.enter_context(SourceTree(place.folder))
        load = EggContents(place.name, Identity.read(place.folder))
        load.put_folder(tree, "", _verdict, lambda path: path)
        load.settle()
        values = known_values(secrets_of) if secrets_of is not None else {}
        passing = MemberFilter(load, SecretScan(values), allow, None)
        with atomic_file(target, overwrite=overwrite) as file, ArchiveWriter(file, at=moment) as writer:
            hashes = {written.name: written.sha256 for written in passing.into(writer)}
            manifest = indented(_manifest(place, hashes, moment, maker))
            listed = {**hashes, "manifest.json": writer.add("manifest.json", manifest).sha256}
            writer.add(integrity.MEMBER, integrity.seal(listed, at=utc(moment), key=key))
            writer.finish()
            size, digest = settled(file)
    left_out = tuple((one.path, one.why.value) for one in load.left_out)
    return PackedPlace(target, len(hashes), size, digest, left_out)


def _verdict(path: str) -> ExclusionReason | None:
    folder, _, name = path.rpartition("/")
    if not folder and name in _WRAPPING:
        return ExclusionReason.ELSEWHERE  # of the egg that it came in
    return by_name(name) if folder else at_root(name)


def _manifest(place: Place, hashes: Mapping[str, str], at: datetime, maker: EggMaker) -> dict[str, Any]:
    counts = Counter(name.partition("/")[0] for name in hashes if "/" in name)
    return {
        "schema": SCHEMA,
        "type": "neighborhood",
        "version": "1.0",
        "rappid": place.rappid.text,
        "hash": place.key,
        "name": place.name,
        "display_name": place.name,
        "exported_at": utc(at),
        "host": maker.host,
        "created_by": maker.signature,
        "counts": {**dict(sorted(counts.items())), "members": len(place.members)},
        "provenance": provenance(hashes, at, place.rappid.text),
    }
