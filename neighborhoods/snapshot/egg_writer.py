"""Writes the members of a snapshot and keeps their hashes for the integrity layer."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, Self

import orjson

from envelopes.identity.keys import IdentityKey
from neighborhoods.snapshot import file_times, original_file_names
from neighborhoods.snapshot.previous_snapshot import PreviousSnapshot
from twins.eggs import integrity
from twins.workspace.identity_file import utc
from twins.zip.writer import ArchiveWriter


class SnapshotWriter:
    """One egg on its way into ``file``. A context manager; after ``finish`` the file is whole."""

    def __init__(self, file: BinaryIO, *, at: datetime) -> None:
        self._at = at
        self._archive = ArchiveWriter(file, at=at)
        self._hashes: dict[str, str] = {}
        self._stamps: dict[str, file_times.Stamp] = {}
        self._listings: dict[str, list[str]] = {}
        self.octets = 0

    def __enter__(self) -> Self:
        self._archive.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._archive.__exit__(*error)

    @property
    def is_usable(self) -> bool:
        """False once something could not be written: the egg cannot be finished."""
        return self._archive.is_usable

    @property
    def files(self) -> int:
        """The number of members up to now."""
        return len(self._hashes)

    def add(
        self, name: str, content: bytes | Path | Iterable[bytes], *, stamp: file_times.Stamp | None = None
    ) -> None:
        """Takes in one member, with its time and executable bit where it has them. Raises ``BadFileError``."""
        written = self._archive.add(name, content)
        self._hashes[name] = written.sha256
        self.octets += written.size
        if stamp is not None and stamp != (0, False):
            self._stamps[name] = stamp

    def list(self, prefix: str, names: list[str]) -> None:
        """Notes the names that lay in the folder of ``prefix`` before anything was left out."""
        self._listings[prefix] = names

    def copy(self, previous: PreviousSnapshot, name: str) -> None:
        """Takes a member over from an earlier snapshot. Raises ``BadEggError`` when it is damaged there."""
        self.add(name, previous.chunks(name), stamp=previous.stamps.get(name))

    def finish(self, manifest: dict[str, Any], *, key: IdentityKey | None) -> None:
        """Adds ``members.json``, ``stamps.json``, ``listing.json``, the manifest and the signed hashes of all."""
        self.add("members.json", _json(manifest["members"]))
        self.add(file_times.MEMBER, file_times.encode(self._stamps))
        self.add(original_file_names.MEMBER, original_file_names.encode(self._listings))
        self.add("manifest.json", _json(manifest))
        self._archive.add(integrity.MEMBER, integrity.seal(self._hashes, at=utc(self._at), key=key))
        self._archive.finish()


def _json(value: dict[str, Any]) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2)
