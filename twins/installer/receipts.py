"""Receipts: what a hatching put where, and what it replaced. One file each under ``$RAPP_HOME/eggs/receipts``.

<id>.json          the receipt
<id>.kept/         what was replaced, until a rollback puts it back
<id>.frames.json   conversations that wait for the daemon
<id>.undone/       what a forced rollback took away although it had changed
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, TypedDict

import msgspec
import orjson
from msgspec.structs import asdict

from twins.eggs.parsed_egg import ParsedEgg
from twins.errors import BadFileError, TwinError
from twins.installer.restored_conversations import SUFFIX
from twins.workspace.identity_file import read_regular, utc

SCHEMA = "rappd-hatching/1.0"
HATCHER_VERSION = "rappd 1.0"
_MAX_BYTES = 256 << 20
_ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{6}")


class PlacedFile(msgspec.Struct, frozen=True):
    """One file that a hatching wrote, by its path below the workspace.

    ``old`` is the SHA-256 of what it replaced ("" for nothing), kept as ``kept``. ``record``: the daemon's
    own bookkeeping. ``moved_to``: where it lies instead, in a workspace whose folders settings moved.
    """

    path: str
    role: str
    sha256: str
    size: int
    old: str = ""
    kept: str = ""
    held: str = ""
    """The name under which it is held (``QuarantineList.key_of``), "" when it is not."""
    record: bool = False
    moved_to: str = ""


class ReceiptRow(TypedDict):
    """A hatching; ``rolled_back_at`` is "" while it counts."""

    id: str
    name: str
    kind: str
    hatched_at: str
    workspace: str
    files: int
    rolled_back_at: str


class Receipt(msgspec.Struct):
    """One hatching, as it is kept. ``workspace`` is relative to the home, or absolute outside of it."""

    id: str
    hatched_at: str
    name: str
    rappid: str
    schema: str
    kind: str
    sha256: str
    source: str
    packed_at: str
    signer: str
    standing: str
    destination: str
    key: str
    workspace: str
    plan: str
    overwrite: list[str]
    whole: bool
    """True when the workspace itself came with it."""
    files: list[PlacedFile] = msgspec.field(default_factory=list)
    stayed: list[str] = msgspec.field(default_factory=list)
    """Paths of which the egg held another version."""
    refused: list[dict[str, str]] = msgspec.field(default_factory=list)
    made: list[tuple[str, str]] = msgspec.field(default_factory=list)
    """Folders that it made, (base, path), outermost first."""
    notes: list[str] = msgspec.field(default_factory=list)
    pre_bond_egg: str = ""
    rolled_back_at: str = ""

    def encode(self) -> bytes:
        """The receipt's file."""
        return orjson.dumps({"receipt": SCHEMA, **asdict(self)}, asdict, orjson.OPT_INDENT_2)

    @classmethod
    def decode(cls, content: bytes) -> Receipt:
        """Reads what ``encode`` wrote. Raises ``BadFileError``."""
        try:
            found = orjson.loads(content)
            if found.pop("receipt") != SCHEMA:
                raise ValueError("another schema")
            found["files"] = [PlacedFile(**row) for row in found["files"]]
            found["made"] = [(base, path) for base, path in found["made"]]
            return cls(**found)
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadFileError(
                "This receipt is damaged; nothing was touched.", do="Restore it from a backup."
            ) from error

    def summary(self) -> ReceiptRow:
        """One row of a list."""
        return {
            "id": self.id,
            "name": self.name,
            "kind": self.kind,
            "hatched_at": self.hatched_at,
            "workspace": self.workspace,
            "files": len(self.files),
            "rolled_back_at": self.rolled_back_at,
        }


class Receipts:
    """The receipts of one home."""

    def __init__(self, home: Path) -> None:
        self.folder = Path(os.path.realpath(home)) / "eggs" / "receipts"

    def listing(self) -> list[Receipt]:
        """All of them, newest first. Raises ``BadFileError`` for a damaged one."""
        return [self.read(ident) for ident in reversed(self.idents())]

    def find(self, selector: str) -> Receipt:
        """The receipt whose id starts with ``selector``; the id alone is enough. Raises ``no_such_hatching``."""
        found = [ident for ident in self.idents() if selector and ident.startswith(selector)]
        if len(found) != 1:
            what = (
                f'Several hatchings begin with "{selector[:40]}".'
                if found
                else f'No hatching "{selector[:40]}".'
            )
            raise TwinError(what, do="rappd egg hatchings", code="no_such_hatching")
        return self.read(found[0])

    def read(self, ident: str) -> Receipt:
        """The receipt of exactly that id."""
        content = read_regular(self.path(ident), _MAX_BYTES) if _ID.fullmatch(ident) else None
        if content is None:
            raise TwinError(f'No hatching "{ident[:40]}".', do="rappd egg hatchings", code="no_such_hatching")
        return Receipt.decode(content)

    def forget(self, ident: str) -> None:
        """Takes the receipt of a hatching away that came to nothing."""
        self.path(ident).unlink(missing_ok=True)

    def path(self, ident: str) -> Path:
        """The path of the receipt of that id."""
        return self.folder / f"{ident}.json"

    def kept(self, ident: str) -> Path:
        """The folder of the files that it replaced."""
        return self.folder / f"{ident}.kept"

    def undone(self, ident: str) -> Path:
        """The folder into which a forced rollback puts changed files."""
        return self.folder / f"{ident}.undone"

    def frames(self, ident: str) -> Path:
        """The file in which its conversations wait."""
        return self.folder / f"{ident}{SUFFIX}"

    def waiting(self) -> list[str]:
        """Ids of the hatchings whose conversations wait for the daemon, oldest first."""
        names = (path.name.removesuffix(SUFFIX) for path in self.folder.glob(f"*{SUFFIX}"))
        return sorted(name for name in names if _ID.fullmatch(name))

    def idents(self) -> list[str]:
        """The ids of all of them, oldest first."""
        if not self.folder.is_dir():
            return []
        names = (
            entry.name.removesuffix(".json") for entry in self.folder.iterdir() if entry.suffix == ".json"
        )
        return sorted(name for name in names if _ID.fullmatch(name))


def published_receipt(
    opened: ParsedEgg,
    *,
    kind: str,
    workspace: Path,
    files: list[str],
    again: bool,
    source: str,
    now: datetime,
) -> bytes:
    """``HATCH_RECEIPT.json`` as published hatchers write it into the workspace."""
    receipt: Mapping[str, Any] = {
        "hatcher_version": HATCHER_VERSION,
        "rappid": opened.rappid.text if opened.rappid else None,
        "name": opened.name,
        "kind": kind,
        "source": source,
        "hatched_at": utc(now),
        "workspace": str(workspace),
        "files": files,
        "re_hatched": again,
    }
    return orjson.dumps(receipt, option=orjson.OPT_INDENT_2)
