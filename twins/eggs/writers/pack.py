"""Packing an egg: gathered, scanned, written beside its place, moved there whole or not at all."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from agents.storage.atomic_write import write_atomically
from envelopes.identity.keys import IdentityKey
from twins.eggs import integrity
from twins.eggs.frames import ConversationSource
from twins.eggs.parsed_egg import ARCHIVED, Ancestors
from twins.eggs.writers import manifests, rapp1
from twins.eggs.writers.contents import EggContents, IsHeld
from twins.eggs.writers.env_blanking import known_values
from twins.eggs.writers.exclusions import ExclusionReason
from twins.eggs.writers.formats import EggFormat, EggMaker, PackedEgg
from twins.eggs.writers.member_filter import MemberFilter
from twins.eggs.writers.rapplications import Rapplication, one_agent
from twins.eggs.writers.secret_scan import SecretScan
from twins.eggs.writers.unread_kinds import unread_kinds
from twins.eggs.writers.workspaces import in_nfc, whole_workspace
from twins.errors import BadFileError, TwinConflictError
from twins.fs.atomic_file import atomic_file, settled
from twins.fs.untrusted_names import why_not_portable
from twins.work_progress import Progress
from twins.workspace.identity_file import utc
from twins.workspace.workspace import Workspace
from twins.zip.writer import ArchiveWriter


def pack(
    workspace: Workspace,
    target: Path,
    *,
    form: EggFormat = EggFormat.TWIN,
    item: str = "",
    at: datetime | None = None,
    key: IdentityKey | None = None,
    maker: EggMaker | None = None,
    conversations: ConversationSource | None = None,
    is_held: IsHeld | None = None,
    exclude_memory: bool = False,
    allow: Collection[str] = (),
    overwrite: bool = False,
    ancestors: Ancestors | None = None,
    archived: bool = False,
    progress: Progress | None = None,
) -> PackedEgg:
    """Packs ``workspace``, or ``item`` out of it (an agent's file name, a rapplication's id), into ``target``.

    Same content, moment, maker and key: same bytes. ``key`` signs; code that is ``is_held`` stays behind, and
    where it is the item itself, that is a ``BadFileError``. ``allow`` holds the ids of findings that
    may travel. ``ancestors``: the versions that the files of a merged workspace were made of. ``archived``: the twin
    hatches into the archive. ``progress`` is called from this thread. Raises ``SecretsFoundError``,
    ``TwinConflictError`` (the place is taken, the disk is full, a file changed meanwhile), ``BadFileError``,
    ``NoSuchTwinError``, ``NoSuchFileError``; then ``target`` is as it was.
    Blocks on the disk.
    """
    moment = (at or datetime.now(UTC)).astimezone(UTC)
    with ExitStack() as open_trees:
        load = _gathered(workspace, open_trees, form, item, conversations, exclude_memory, is_held, archived)
        load.ancestors = ancestors or {}
        load.lifecycle = ARCHIVED if archived else ""
        if is_held is not None:
            load.leave_held(is_held)
            _check_item(load, form)
        load.settle()
        passing = MemberFilter(load, SecretScan(known_values(workspace)), allow, progress)
        with atomic_file(target, overwrite=overwrite) as file:
            if form.is_rapp1:
                hashes = _write_rapp1(file, load, passing, form, moment)
            else:
                hashes = _write(file, load, passing, form, moment, maker or EggMaker(), key)
            size, digest = settled(file)
    return PackedEgg(
        path=target,
        form=form,
        name=load.name,
        rappid=load.identity.rappid if load.identity else None,
        size=size,
        sha256=digest,
        files=len(hashes),
        left_out=tuple(load.left_out),
        allowed=passing.allowed,
        signature=_sign_beside(target, digest, moment, key) if form.is_rapp1 else None,
        unread=unread_kinds(hashes),
        odd_names={one.path: why for one in load.members if (why := why_not_portable(one.name))},
    )


def _check_item(load: EggContents, form: EggFormat) -> None:
    quarantined = [one.path for one in load.left_out if one.why is ExclusionReason.HELD]
    if form.needs_item and quarantined:
        raise BadFileError(
            f"{quarantined[0]} is quarantined; nothing was packed.",
            do=f"Read it, then: rappd agents approve {quarantined[0].rpartition('/')[2]}",
        )


def _gathered(
    workspace: Workspace,
    open_trees: ExitStack,
    form: EggFormat,
    item: str,
    conversations: ConversationSource | None,
    exclude_memory: bool,
    is_held: IsHeld | None,
    archived: bool,
) -> EggContents:
    if form.needs_item != bool(item):
        raise ValueError(f"the form {form} packs {'one item' if form.needs_item else 'no single item'}")
    if form is EggFormat.AGENT:
        return one_agent(workspace, item, open_trees)
    if form is EggFormat.RAPPLICATION:
        return Rapplication(workspace, item, open_trees).organ_shape(exclude_memory=exclude_memory)
    if form is EggFormat.RAPP1_RAPPLICATION:
        load = Rapplication(workspace, item, open_trees).rapp1_shape(exclude_memory=exclude_memory)
        in_nfc(load)
        return load
    load = whole_workspace(
        workspace,
        open_trees,
        conversations=conversations,
        exclude_memory=exclude_memory,
        published_only=form is EggFormat.ORGANISM,
        is_held=is_held,
        archived=archived,
    )
    if form is EggFormat.RAPP1_ORGANISM:
        in_nfc(load)
        if not load.holds("soul.md"):
            raise BadFileError("A RAPP/1 egg needs a soul, and there is no soul.md.", do="Write one first.")
    return load


def _write(
    file: BinaryIO,
    load: EggContents,
    passing: MemberFilter,
    form: EggFormat,
    at: datetime,
    maker: EggMaker,
    key: IdentityKey | None,
) -> dict[str, str]:
    with ArchiveWriter(file, at=at) as writer:
        hashes = {written.name: written.sha256 for written in passing.into(writer)}
        manifest = manifests.manifest(form, load, hashes, at=at, maker=maker)
        listed = {**hashes, manifests.NAME: writer.add(manifests.NAME, manifest).sha256}
        writer.add(integrity.MEMBER, integrity.seal(listed, at=utc(at), key=key))
        writer.finish()
    return hashes


def _write_rapp1(
    file: BinaryIO, load: EggContents, passing: MemberFilter, form: EggFormat, at: datetime
) -> dict[str, str]:
    assert load.identity is not None
    contents, expected = passing.hashed()
    load.keep(rapp1.in_order(contents))
    variant = form.value.removeprefix("rapp1-")
    writer = ArchiveWriter(file, stored=True)
    writer.add(manifests.NAME, rapp1.manifest(variant, load.identity.rappid, contents, at=at))
    written = {one.name: one.sha256 for one in passing.into(writer)}
    for name, digest in expected.items():
        if written.get(name) != digest:
            raise TwinConflictError(f"{name} changed while it was packed.", do="Try again.")
    writer.finish()
    return written


def _sign_beside(target: Path, digest: str, at: datetime, key: IdentityKey | None) -> Path | None:
    if key is None:
        return None
    beside = target.with_name(target.name + integrity.SIGNATURE_SUFFIX)
    write_atomically(beside, integrity.seal({target.name: digest}, at=utc(at), key=key), mode=0o644)
    return beside
