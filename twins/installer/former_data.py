"""Files that an earlier hatching laid as data and that are code by the rules of today: held until they are approved."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import orjson
from msgspec.structs import replace

from agents.contract.file_discovery import AGENT_SUFFIXES, SERVICE_SUFFIXES
from agents.storage.atomic_write import write_atomically
from agents.storage.safe_walk import LinkFreeFolder
from twins.eggs.parsed_egg import Destination, Role
from twins.eggs.readers.workspace_paths import CODE_SUFFIXES, DECIDING, DECIDING_ENDS
from twins.errors import TwinError
from twins.installer.placement_rules import is_held_like_code, role_here
from twins.installer.planning import Standing
from twins.installer.receipts import PlacedFile, Receipt, Receipts
from twins.trust.quarantine import QuarantineEntry, QuarantineList
from twins.workspace.identity_file import utc
from twins.workspace.listing import scan
from twins.workspace.workspace import TwinLayout, Workspace

WHY = (
    "It came in an egg as data that nobody trusted here signed, and would run from this version of rappd on."
)
_SEEN = "code-rules"
_RULES = hashlib.sha256(
    orjson.dumps(
        [AGENT_SUFFIXES, SERVICE_SUFFIXES, CODE_SUFFIXES, sorted(Role), sorted(DECIDING), DECIDING_ENDS]
    )
).hexdigest()


class _Found(NamedTuple):
    receipt: Receipt
    row: PlacedFile
    role: Role


def hold_former_data(
    home: Path, host: Workspace, quarantine: QuarantineList, receipts: Receipts
) -> list[str]:
    """Holds such files where they lie, and where forks have the same ones; returns their names, as the list has them.

    To be called before any code of the home runs. Looks once for each change of the rules: the receipt of a file that was
    held says so from then on, so that an approval stays. Raises ``BadFileError`` for a damaged list, and ``OSError``.
    """
    seen = receipts.folder / _SEEN
    if not receipts.folder.is_dir() or (seen.is_file() and seen.read_text() == _RULES):
        return []
    found = list(_laid_as_data(receipts))
    at = utc(datetime.now(UTC))
    holds: dict[tuple[str, str], QuarantineEntry] = {}
    for one in found:
        for path in _places(one, home, host):
            if (digest := _sha256_of(path)) and not quarantine.is_held(path, digest):
                key = quarantine.key_of(path)
                holds[key, digest] = QuarantineEntry(key, digest, WHY, one.receipt.name, at)
    if holds:
        quarantine.hold_all(holds.values())
    by_receipt: dict[str, list[_Found]] = {}
    for one in found:
        by_receipt.setdefault(one.receipt.id, []).append(one)
    for some in by_receipt.values():
        receipt, now = some[0].receipt, {one.row.path: one for one in some}
        receipt.files = [
            _held_row(now[row.path], home, quarantine) if row.path in now else row for row in receipt.files
        ]
        write_atomically(receipts.path(receipt.id), receipt.encode())
    write_atomically(seen, _RULES.encode())
    return sorted({key for key, _ in holds})


def _laid_as_data(receipts: Receipts) -> Iterator[_Found]:
    for ident in receipts.idents():
        try:
            receipt = receipts.read(ident)
            destination = Destination(receipt.destination)
            rows = [(row, Role(row.role)) for row in receipt.files if not row.record and not row.held]
        except (TwinError, ValueError):
            continue  # a damaged receipt is told by what needs it whole
        if destination is Destination.INERT or receipt.standing in (Standing.SELF, Standing.TRUSTED):
            continue
        for row, before in rows:
            role = role_here(row.path, before, destination)
            if is_held_like_code(role):
                yield _Found(receipt, row, role)


def _held_row(one: _Found, home: Path, quarantine: QuarantineList) -> PlacedFile:
    key = quarantine.key_of(one.row.moved_to or home / one.receipt.workspace / one.row.path)
    return replace(one.row, role=one.role.value, held=key)


def _places(one: _Found, home: Path, host: Workspace) -> Iterator[Path]:
    """The file's own place, also where its twin is archived by now, and those where a fork has the same content."""
    root = home / one.receipt.workspace
    own = Path(one.row.moved_to) if one.row.moved_to else root / one.row.path
    yield own
    layout = TwinLayout(home)
    twins = [*scan(layout).twins, *scan(layout, archived=True).twins]
    for folder in (host.root, *(twin.workspace.root for twin in twins)):
        path = folder / one.row.path
        if path != own and (folder.name == root.name or _sha256_of(path) == one.row.sha256):
            yield path


def _sha256_of(path: Path) -> str:
    try:
        with LinkFreeFolder(path.parent) as walk:
            return walk.sha256(path.name)
    except OSError:
        return ""
