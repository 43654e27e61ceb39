"""The last snapshot of this machine, whose unchanged parts a new one takes over."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import orjson

from neighborhoods.snapshot import file_times, original_file_names
from neighborhoods.snapshot.filtering import Omission, omissions
from twins.eggs import integrity
from twins.errors import BadEggError, TwinError
from twins.zip.reader import Archive

_BESIDE = ("brainstem/core/", "brainstem/global_state/")
_MANIFEST_BYTES = 64 << 20
_LAYER_BYTES = 64 << 20


class PreviousSnapshot:
    """An open snapshot that this machine signed itself. A context manager."""

    def __init__(self, archive: Archive, manifest: dict[str, Any], hashes: dict[str, str]) -> None:
        self._archive = archive
        self._hashes = hashes
        self.stamps = file_times.decode(archive.read(file_times.MEMBER, limit=_LAYER_BYTES))
        self._listings = original_file_names.decode(
            archive.read(original_file_names.MEMBER, limit=_LAYER_BYTES)
        )
        self._names = sorted(archive.names)
        self._order = {name: place for place, name in enumerate(archive.names)}
        members = manifest["members"]
        self._local = {
            f"twins/.archive/{row['hash']}/"
            if row.get("lifecycle") == "archived"
            else f"twins/{row['hash']}/": row
            for row in members["local"]["twins"]
        }
        self._local["brainstem/"] = members["local"]
        self._peers = {
            (peer["name"], row["hash"], row.get("lifecycle", "active")): row
            for peer in members["peers"]
            for row in peer["twins"]
            if row.get("captured") is True
        }

    @classmethod
    def open(cls, path: Path, *, signer: str) -> PreviousSnapshot | None:
        """The snapshot at ``path``; None unless it is one that ``signer`` (a fingerprint) signed."""
        try:
            archive = Archive.open(path, glance=True)
        except TwinError:
            return None  # a new one is taken whole
        try:
            layer = integrity.check(archive.read(integrity.MEMBER, limit=_LAYER_BYTES))
            manifest = orjson.loads(archive.read("manifest.json", limit=_MANIFEST_BYTES))
            if layer.signer == signer:
                return cls(archive, manifest, dict(layer.files))
        except (TwinError, orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
            pass  # the same: it is of another make, or damaged
        archive.close()
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._archive.close()

    def left_out(self, prefix: str) -> list[Omission]:
        """The files of a local twin that stayed behind."""
        return omissions(self._local[prefix])

    def listed(self, prefix: str) -> list[str]:
        """The names that lay in a local twin's folder before anything was left out."""
        return self._listings[prefix]

    def members(self, prefix: str, fingerprint: str) -> list[str]:
        """The members of a local twin in their order, when it has that fingerprint; else none."""
        if not fingerprint or self._local.get(prefix, {}).get("fingerprint") != fingerprint:
            return []
        begin = bisect_left(self._names, prefix)
        found = []
        for name in self._names[begin:]:
            if not name.startswith(prefix):
                break
            if prefix == "brainstem/" and name.startswith(_BESIDE):
                continue
            found.append(name)
        return sorted(found, key=self._order.__getitem__)

    def peer_twin(self, peer: str, twin: str, lifecycle: str, fingerprint: str) -> dict[str, Any] | None:
        """The row of a peer's twin, when it has that fingerprint and its archive is there."""
        row = self._peers.get((peer, twin, lifecycle))
        if row is None or not fingerprint or row.get("fingerprint") != fingerprint:
            return None
        return row if row.get("captured_path_in_egg") in self._hashes else None

    def chunks(self, name: str) -> Iterator[bytes]:
        """The content of a member. Raises ``BadEggError`` when it is not what was signed."""
        import hashlib

        digest = hashlib.sha256()
        for piece in self._archive.chunks(name):
            digest.update(piece)
            yield piece
        if digest.hexdigest() != self._hashes.get(name):
            raise BadEggError(
                "The last snapshot is damaged.", do="Move it away; the next one is taken whole."
            )
