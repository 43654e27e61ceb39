"""Checkpoints: a twin as it was at a moment, to go back to.

    $RAPP_HOME/eggs/checkpoints/<key>/<UTC>.egg     the twin with its conversations: an egg like any other
    $RAPP_HOME/eggs/checkpoints/<key>/<UTC>.json    {"schema": "rappd-checkpoint/1.0", "at", "note", "before",
                                                     "name", "rappid", "sha256", "size", "files", "records"}

Going back (``twins.workspace.checkpoint_restore``) brings the files of the egg: soul, agents, services, senses, memory. The
conversations in it are for hatching it elsewhere. Here the record is append-only, so what was said since
stays in it and the twin's threads go on; only what the twin itself keeps is as it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypedDict

import msgspec
import orjson

from agents.storage.atomic_write import write_atomically
from envelopes.identity.keys import IdentityKey
from twins.eggs.frames import ConversationSource, Frame
from twins.eggs.writers.formats import EggMaker, PackedEgg
from twins.errors import TwinConflictError, TwinError
from twins.workspace.identity_file import read_regular, utc
from twins.workspace.twin import Twin
from twins.workspace.workspace import TwinLayout, exclusive_lock

SCHEMA = "rappd-checkpoint/1.0"
MAX_NOTE = 500

_MAX_BYTES = 1 << 20
_ID = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z")
_TRIES = 3


class CheckpointRow(TypedDict):
    """A checkpoint: when it was made, its egg, and ``before``: the rollback that made it."""

    id: str
    at: str
    note: str
    before: str
    files: int | None
    records: int | None
    size: int
    sha256: str
    path: str


class RestoreView(TypedDict):
    """A restore, done or planned, see ``RestoreResult``."""

    checkpoint: CheckpointRow
    before: CheckpointRow | None
    restored: list[str]
    removed: list[str]
    kept: int
    notes: list[str]


class Checkpoint(msgspec.Struct, frozen=True):
    """One checkpoint.

    ``id`` is the moment it was made; ``before`` the id of the one that was gone back to right after it, ""
    for one that somebody asked for. ``files`` and ``records`` (how much had been said) are None, and
    ``sha256`` "", where nothing beside the egg says them.
    """

    id: str
    egg: Path
    size: int
    note: str = ""
    before: str = ""
    sha256: str = ""
    files: int | None = None
    records: int | None = None

    @property
    def at(self) -> str:
        """The moment as everywhere else: ``2026-11-21T09:40:00.000Z``."""
        day, _, clock = self.id.partition("T")
        return f"{day}T{clock.replace('-', ':')}"

    def as_json(self) -> CheckpointRow:
        """For the command line and the page."""
        return {
            "id": self.id,
            "at": self.at,
            "note": self.note,
            "before": self.before,
            "files": self.files,
            "records": self.records,
            "size": self.size,
            "sha256": self.sha256,
            "path": str(self.egg),
        }


class Checkpoints:
    """The checkpoints of one home. Methods block on the disk."""

    def __init__(
        self,
        places: TwinLayout,
        *,
        key: IdentityKey,
        maker: EggMaker,
        conversations: Callable[[str], ConversationSource],
    ) -> None:
        """``key`` signs; ``conversations`` gives those of the twin whose folder is named so."""
        self._places = places
        self._key = key
        self._maker = maker
        self._conversations = conversations

    def folder(self, key: str) -> Path:
        """The folder of a twin's checkpoints."""
        return self._places.checkpoints(key)

    def make(
        self, twin: Twin, *, note: str = "", before: str = "", now: datetime | None = None
    ) -> Checkpoint:
        """Keeps the twin as it is now, whole or not at all.

        A likely secret in its files is no reason to stop: the egg stays here, in its owner's own folder.
        Raises ``TwinConflictError`` (the disk is full, a file changed meanwhile), ``BadFileError``.
        """
        folder = self.folder(twin.key)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with exclusive_lock(folder):
            _sweep(folder)
            at = (now or datetime.now(UTC)).astimezone(UTC)
            while (egg := folder / f"{_id(at)}.egg").exists():
                at += timedelta(milliseconds=1)
            manifest = {
                "schema": SCHEMA,
                "at": utc(at),
                "note": " ".join(note.split())[:MAX_NOTE],
                "before": before,
                "name": twin.name,
                "rappid": twin.rappid.text,
            }
            counted = _Counted(self._conversations(twin.key))
            try:
                _write(egg, manifest)  # why comes first, for an egg that nobody knows the reason of misleads
                packed = self._packed(twin, egg, at, counted)
                found = {"sha256": packed.sha256, "size": packed.size, "files": packed.files}
                _write(egg, {**manifest, **found, "records": counted.records})
            except BaseException:
                egg.unlink(missing_ok=True)
                egg.with_suffix(".json").unlink(missing_ok=True)
                raise
        return _read(egg)

    def listing(self, key: str) -> list[Checkpoint]:
        """A twin's checkpoints, oldest first."""
        folder = self.folder(key)
        if not folder.is_dir():
            return []
        names = sorted(path.name for path in folder.iterdir())
        eggs = [folder / name for name in names if name.endswith(".egg") and _ID.fullmatch(name[:-4])]
        return [_read(egg) for egg in eggs]

    def find(self, twin: Twin, selector: str = "") -> Checkpoint:
        """The checkpoint whose id is ``selector``, or begins so; without one, the latest that was asked for.

        Raises ``no_such_checkpoint``; ``TwinConflictError`` when several begin so.
        """
        every = self.listing(twin.key)
        wanted = selector.strip().removesuffix(".egg")
        if wanted:
            found = [one for one in every if one.id.startswith(wanted)]
            if len(found) > 1:
                raise TwinConflictError(
                    f'"{wanted[:40]}" fits {len(found)} checkpoints of {twin.name}.', do="Type more of it."
                )
        else:
            found = [one for one in every if not one.before][-1:]
        if not found:
            what = f'no checkpoint "{wanted[:40]}"' if wanted else "no checkpoint"
            verb = "checkpoints" if every else "checkpoint"
            raise TwinError(
                f"{twin.name} has {what}.",
                do=f"rappd twins {verb} {twin.key[:12]}",
                code="no_such_checkpoint",
            )
        return found[0]

    def _packed(self, twin: Twin, egg: Path, at: datetime, counted: _Counted) -> PackedEgg:
        from twins.eggs.writers.pack import pack  # brings the archive writer along
        from twins.eggs.writers.secret_scan import SecretsFoundError

        allow: frozenset[str] = frozenset()
        for _ in range(_TRIES - 1):
            try:
                return pack(
                    twin.workspace, egg, at=at, key=self._key, maker=self._maker, conversations=counted, allow=allow
                )  # fmt: skip
            except SecretsFoundError as found:
                allow |= {one.id for one in found.findings}
        return pack(
            twin.workspace, egg, at=at, key=self._key, maker=self._maker, conversations=counted, allow=allow
        )


class _Counted:
    """Conversations that know how many records they gave out."""

    def __init__(self, source: ConversationSource) -> None:
        self._source = source
        self.records = 0

    def frames(self, key: str) -> Iterator[Frame]:
        count = 0
        for frame in self._source.frames(key):
            count += 1
            yield frame
        self.records = count


def _write(egg: Path, record: dict[str, Any]) -> None:
    content = orjson.dumps(record, option=orjson.OPT_INDENT_2)
    try:
        write_atomically(egg.with_suffix(".json"), content)
    except OSError as error:
        raise TwinConflictError(
            f"{egg.name} cannot be kept: {error.strerror or error}.", do="Make room, then try again."
        ) from error


def _read(egg: Path) -> Checkpoint:
    """A checkpoint by its egg; what its record does not say, or says wrongly, is not known."""
    try:
        found = orjson.loads(read_regular(egg.with_suffix(".json"), _MAX_BYTES) or b"{}")
    except (TwinError, orjson.JSONDecodeError):
        found = {}
    record: dict[str, Any] = found if isinstance(found, dict) else {}
    texts = {name: value for name, value in record.items() if isinstance(value, str)}
    counts = {name: value for name, value in record.items() if isinstance(value, int)}
    return Checkpoint(
        egg.stem,
        egg,
        egg.stat().st_size,
        texts.get("note", ""),
        texts.get("before", ""),
        texts.get("sha256", ""),
        counts.get("files"),
        counts.get("records"),
    )


def made_at(name: str) -> datetime | None:
    """The time of the checkpoint that has this file name; None for other files."""
    found = _ID.match(name)
    return datetime.strptime(found[0], "%Y-%m-%dT%H-%M-%S.%fZ").replace(tzinfo=UTC) if found else None


def _id(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H-%M-%S}.{at.microsecond // 1000:03d}Z"


def _sweep(folder: Path) -> None:
    """Removes what one that was killed left half-written; nobody else writes there now."""
    for left in folder.glob(".*.tmp"):
        left.unlink()
    for record in folder.glob("*.json"):
        if _ID.fullmatch(record.stem) and not record.with_suffix(".egg").exists():
            record.unlink()
