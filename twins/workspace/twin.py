"""A twin on disk: born, read, renamed. Someone with a soul, memory and agents, in one folder."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from twins.errors import NoSuchTwinError, TwinConflictError
from twins.workspace.bonds import record_event
from twins.workspace.identity_file import DEFAULT_KIND, Identity, proper_kind, proper_name
from twins.workspace.new_twin_staging import move_into_place, staged_twin
from twins.workspace.rappid import Rappid, mint_rappid
from twins.workspace.souls import default_soul, proper_soul
from twins.workspace.workspace import TwinLayout, Workspace, exclusive_lock

KINDS = ("personal", "pre-founder", "memorial", "project", "place", "custom", "buddy")
"""The kinds with a soul of their own; any other is kept as it is written."""
HOST_KIND = "brainstem-instance"
"""The kind of the one who lives in the host's own workspace, as published."""


class Twin(msgspec.Struct, frozen=True):
    """One twin as it lies on disk. Reading it reads ``rappid.json`` and nothing else."""

    workspace: Workspace
    identity: Identity

    @classmethod
    def read(cls, folder: Path) -> Twin:
        """The twin at ``folder``. Raises ``NoSuchTwinError`` when none lives there, ``BadFileError``."""
        return cls(Workspace.at(folder), Identity.read(folder))

    @property
    def key(self) -> str:
        """The name of the twin's folder."""
        return self.workspace.root.name

    @property
    def rappid(self) -> Rappid:
        """The rappid. Never changes."""
        return self.identity.rappid

    @property
    def name(self) -> str:
        """The name for people."""
        return self.identity.name

    @property
    def kind(self) -> str:
        """One of ``KINDS``, or whatever its maker wrote."""
        return self.identity.kind

    @property
    def born_at(self) -> str:
        """The time of birth, as its ``rappid.json`` says it."""
        return self.identity.born_at

    @property
    def archived(self) -> bool:
        """True when it is set aside."""
        return self.workspace.root.parent.name == ".archive"


def mint(
    places: TwinLayout,
    name: str,
    *,
    owner: str,
    kind: str = DEFAULT_KIND,
    soul: str = "",
    now: datetime | None = None,
    entropy: bytes | None = None,
) -> Twin:
    """A new twin, whole or not at all. ``owner`` and ``name`` are free text; labels are made of them.

    ``soul`` is the kind's own when empty. Raises ``BadNameError``, ``BadFileError``.
    """
    at = now or datetime.now(UTC)
    rappid = mint_rappid(owner, name, entropy)
    identity = Identity.new(rappid, name=name, kind=proper_kind(kind), born_at=at)
    content = proper_soul(soul or default_soul(identity.kind, identity.name))
    with staged_twin(places, rappid.key) as staged:
        workspace = Workspace.at(staged)
        workspace.files.write_durably(workspace.soul, content)
        workspace.create()
        identity.write(staged)
        record_event(workspace, "birth", at=at)
        return settle(places, staged, identity)


def adopt(
    workspace: Workspace,
    name: str,
    *,
    owner: str,
    host: str,
    platform: str,
    now: datetime | None = None,
    entropy: bytes | None = None,
) -> Twin:
    """The one who lives in the host's workspace; gets a rappid, once, where there is none yet.

    Raises ``BadNameError``, ``BadFileError``.
    """
    at = now or datetime.now(UTC)
    with exclusive_lock(workspace.root):
        try:
            return Twin(workspace, Identity.read(workspace.root))
        except NoSuchTwinError:
            rappid = mint_rappid(owner, name, entropy)
        identity = Identity.new(rappid, name=name, kind=HOST_KIND, born_at=at)
        identity = identity.changed(host=host, platform=platform)
        identity.write(workspace.root)
        record_event(workspace, "adoption", at=at)
    return Twin(workspace, identity)


def settle(places: TwinLayout, staged: Path, identity: Identity) -> Twin:
    """Moves a staged twin to its place among the active.

    Raises ``TwinConflictError`` when one is there, or in the archive.
    """
    key = identity.rappid.key
    if places.archived(key).exists():
        raise TwinConflictError(f"{identity.name} is archived here.", do=f"rappd twins unarchive {key[:12]}")
    move_into_place(staged, places.active(key))
    return Twin(Workspace.at(places.active(key)), identity)


def rename(twin: Twin, name: str) -> Twin:
    """Gives it another name. Identity, folder and slug stay. Raises ``BadNameError``."""
    text = proper_name(name)
    root = twin.workspace.root
    with exclusive_lock(root):
        identity = Identity.read(root)
        # A file that shows a display name would go on showing it.
        shown = {"display_name": text} if identity.fields.get("display_name") else {}
        identity = identity.changed(name=text, **shown)
        identity.write(root)
    return Twin(twin.workspace, identity)
