"""The formats that can be packed, and the result of packing."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from twins.eggs.writers.exclusions import ExclusionReason
from twins.workspace.rappid import Rappid

if TYPE_CHECKING:
    from twins.eggs.writers.secret_scan import Finding


class EggFormat(StrEnum):
    """A published shape.

    The first three are ``rapp-egg/2.0`` by scale, then come ``brainstem-egg/2.2-organism`` and
    ``-rapplication``, then ``rapp/1-egg`` by variant.
    """

    AGENT = "agent"
    TWIN = "twin"
    BRAINSTEM = "brainstem"
    ORGANISM = "organism"
    RAPPLICATION = "rapplication"
    RAPP1_ORGANISM = "rapp1-organism"
    RAPP1_RAPPLICATION = "rapp1-rapplication"

    @property
    def is_rapp1(self) -> bool:
        """True when it is a ``rapp/1-egg``, whose exact layout has no room for an integrity layer."""
        return self in (EggFormat.RAPP1_ORGANISM, EggFormat.RAPP1_RAPPLICATION)

    @property
    def needs_item(self) -> bool:
        """True when it packs one thing out of a workspace, which must be named."""
        return self in (EggFormat.AGENT, EggFormat.RAPPLICATION, EggFormat.RAPP1_RAPPLICATION)


SESSION_FORM: Final = "session"
"""Asked for like these shapes, but made of a session's records and of no workspace."""


class EggMaker(msgspec.Struct, frozen=True):
    """The packer as manifests name it. ``host`` is the machine's name, "" when it is not to be told."""

    name: str = "rappd"
    version: str = ""
    host: str = ""

    @property
    def signature(self) -> str:
        """Name and version in one."""
        return f"{self.name} {self.version}".rstrip()


class ExcludedFile(NamedTuple):
    """An entry of the workspace that the egg does not hold: a file, or a folder with all in it."""

    path: str
    why: ExclusionReason


class PackedEgg(msgspec.Struct, frozen=True):
    """An egg that lies on disk, whole.

    ``files`` counts what came from the workspace; ``allowed`` are the likely secrets in it that the owner let
    pass. ``signature`` is the file beside it, where there is one. ``odd_names``: path to the reason for which
    nobody installs a file of that name. ``unread``: kind to number of the files that were not looked into for
    secrets.
    """

    path: Path
    form: EggFormat
    name: str
    rappid: Rappid | None
    size: int
    sha256: str
    files: int
    left_out: tuple[ExcludedFile, ...]
    allowed: tuple[Finding, ...]
    signature: Path | None
    unread: dict[str, int] = {}
    odd_names: dict[str, str] = {}
