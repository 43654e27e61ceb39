"""Carrying a plan out: stage everything, say in a journal what goes where, then move it as one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from agents.storage.atomic_write import sync_tree
from agents.storage.safe_walk import LinkFreeFolders
from twins.eggs.parsed_egg import Destination
from twins.errors import BadEggError
from twins.fs.file_transaction import Journal, Location, Move, apply_journal, name_of
from twins.installer import restored_conversations
from twins.installer.placement_rules import to_threads
from twins.installer.planning import Action, Plan, Row
from twins.installer.receipts import PlacedFile, Receipt, Receipts
from twins.installer.staging import (
    StagedTree,
    abandon,
    changes_workspace,
    check_disk_space,
    check_identity,
    hash_of,
    make_staging,
    new_id,
    record_hatching,
    stage_file,
    stage_parts,
)
from twins.trust.quarantine import QuarantineEntry, QuarantineList
from twins.work_progress import MOVE, SYNC, Cancellation, Progress, WorkCancelledError
from twins.workspace.identity_file import utc
from twins.workspace.workspace import exclusive_lock

PreBond = Callable[[Path, Progress], Path]
"""Packs the workspace at a path before it is touched; returns where the egg lies. What it raises stops
the hatching."""

_WHY_HELD = "It came in an egg that nobody trusted here signed."
_FRAMES, _RECEIPT, _TREE = "frames", "receipt", "new"


def hatch_plan(
    plan: Plan,
    *,
    home: Path,
    receipts: Receipts,
    quarantine: QuarantineList,
    pre_bond: PreBond | None = None,
    source: str = "",
    now: datetime | None = None,
    progress: Progress | None = None,
    cancellation: Cancellation | None = None,
) -> Receipt:
    """Carries ``plan`` out, whole or not at all, and returns its receipt.

    Nothing outside the staging folder is touched before everything is written and checked. Raises what
    the egg or the disk is to blame for, and ``WorkCancelledError``.
    """
    cancellation = cancellation or Cancellation()
    watched = cancellation.watching(progress)
    at = now or datetime.now(UTC)
    root = plan.ground.root
    targets = {row.target for row in plan.placed}
    parts = [part for part in plan.opened.parts if part.target in targets]
    root.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    check_disk_space(root.parent, sum(part.size for part in parts), plan.opened.name)
    ident = new_id(at)
    staging = make_staging(root.parent, ident)
    egg = ""
    try:
        tree = StagedTree(
            plan, staging / _TREE, at, source, stage_parts(plan.opened, parts, staging / _TREE, watched)
        )
        _check_code(tree)
        check_identity(tree)
        has_frames = _take_frames(tree, staging)
        cancellation.check()
        egg = _egg_before(plan, pre_bond, watched)
        record_hatching(tree)
        receipt = _receipt(tree, ident, egg, home)
        journal = _HatchWriter(tree, staging, receipt, receipts, quarantine, home).journal(has_frames)
        sync_tree(staging, partial(watched, SYNC))
        alone_there: AbstractContextManager[None] = nullcontext()
        if not plan.ground.new and root.is_dir():
            alone_there = exclusive_lock(root)
        with alone_there:
            cancellation.decide(receipt.id)
            moved = partial(progress or _untold, MOVE)
            receipt.notes += apply_journal(staging, journal, quarantine, home, moved)
    except BaseException as error:
        abandon(staging)
        if isinstance(error, WorkCancelledError) and egg:
            Path(egg).unlink(missing_ok=True)
        raise
    return receipt


def _check_code(tree: StagedTree) -> None:
    """Checks that the code staged is the code that the plan saw."""
    for row in tree.plan.placed:
        if row.new and tree.written[row.target].sha256 != row.new:
            raise BadEggError(
                f"{tree.plan.opened.name} changed while it was read; nothing was written.", do="Try again."
            )


def _take_frames(tree: StagedTree, staging: Path) -> bool:
    """Checks conversations and takes them out of the tree; whether there are any."""
    plan = tree.plan
    row = next(
        (row for row in plan.placed if to_threads(row.role, plan.opened.destination, trusted=plan.trusted)),
        None,
    )
    if row is None:
        return False
    staged = tree.root / row.target
    restored_conversations.check(staged)
    staged.rename(staging / _FRAMES)
    del tree.written[row.target]
    folder = staged.parent
    while folder != tree.root and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent
    return True


def _untold(phase: str, done: int, whole: int) -> None:
    """The default of ``tell``: progress goes nowhere."""


def _egg_before(plan: Plan, pre_bond: PreBond | None, progress: Progress) -> str:
    # An empty brainstem has nothing to lose, and nobody lives there whom an egg could be of.
    wanted = changes_workspace(plan) and plan.opened.destination in (Destination.TWIN, Destination.HOST)
    if pre_bond is None or not wanted or plan.ground.new or not plan.ground.root.exists():
        return ""
    return str(pre_bond(plan.ground.root, progress))


def _receipt(tree: StagedTree, ident: str, egg: str, home: Path) -> Receipt:
    plan, opened = tree.plan, tree.plan.opened
    return Receipt(
        id=ident,
        hatched_at=utc(tree.now),
        name=opened.name,
        rappid=opened.rappid.text if opened.rappid else "",
        schema=opened.family.tag,
        kind=opened.family.kind,
        sha256=opened.digest,
        source=tree.source,
        packed_at=opened.packed_at,
        signer=opened.seal.signer,
        standing=plan.standing.value,
        destination=opened.destination.value,
        key=plan.ground.root.name if opened.destination is Destination.TWIN else opened.key,
        workspace=name_of(plan.ground.root, home),
        plan=plan.digest,
        overwrite=sorted(plan.overwrite),
        whole=plan.ground.new,
        stayed=[row.target for row in plan.of(Action.KEEP) if not row.same],
        refused=[{"path": row.target, "why": row.why} for row in plan.of(Action.REFUSE)],
        notes=[*opened.notes, *tree.notes],
        pre_bond_egg=egg,
    )


class _HatchWriter:
    """Writes the journal, and the receipt that tells of the same moves: the last file to be staged."""

    def __init__(
        self,
        tree: StagedTree,
        staging: Path,
        receipt: Receipt,
        receipts: Receipts,
        quarantine: QuarantineList,
        home: Path,
    ) -> None:
        self._tree = tree
        self._ground = tree.plan.ground
        self._staging = staging
        self._receipt = receipt
        self._receipts = receipts
        self._quarantine = quarantine
        self._home = home

    def journal(self, has_frames: bool) -> Journal:
        receipt, journal = self._receipt, Journal(self._receipt.id)
        for row in self._tree.plan.placed:
            if row.target in self._tree.written:
                receipt.files.append(self._placed(row))
        for target, old in sorted(self._tree.records.items()):
            staged = hash_of(self._tree.root / target)
            kept = self._next() if old else ""
            file = PlacedFile(target, "record", staged.sha256, staged.size, old, kept, "", True)
            receipt.files.append(file)
        journal.holds = [
            QuarantineEntry(file.held, file.sha256, _WHY_HELD, receipt.name, receipt.hatched_at)
            for file in receipt.files
            if file.held
        ]
        with LinkFreeFolders(self._home) as opened:
            self._moves(journal, opened)
        if has_frames:
            self._move_own(journal, _FRAMES, self._receipts.frames(receipt.id).name)
        stage_file(self._staging, _RECEIPT, receipt.encode())
        self._move_own(journal, _RECEIPT, self._receipts.path(receipt.id).name)
        return journal

    def _moves(self, journal: Journal, opened: LinkFreeFolders) -> None:
        root, receipt = self._ground.root, self._receipt
        if self._ground.new:
            if receipt.files:
                target = Location(name_of(root.parent, self._home), root.name)
                journal.moves.append(Move(target, self._staged(_TREE), folder=True))
            return
        made: set[Location] = set()
        for file in receipt.files:
            base, path = self._ground.locate(file.path)
            target = Location(name_of(base, self._home), path)
            aside = self._own(f"{receipt.id}.kept/{file.kept}") if file.old else None
            source = self._staged(f"{_TREE}/{file.path}")
            journal.moves.append(Move(target, source, aside, file.old, file.sha256))
            made |= {Location(target.base, folder) for folder in opened[target.base].missing_folders(path)}
        journal.made = sorted(made, key=lambda spot: (spot.base, spot.path))
        receipt.made = [(spot.base, spot.path) for spot in journal.made]
        if any(file.kept for file in receipt.files):
            journal.made.append(self._own(f"{receipt.id}.kept"))

    def _placed(self, row: Row) -> PlacedFile:
        base, path = self._ground.locate(row.target)
        staged = self._tree.written[row.target]
        return PlacedFile(
            row.target,
            row.role.value,
            staged.sha256,
            staged.size,
            row.old,
            self._next() if row.old else "",
            self._quarantine.key_of(base / path) if row.quarantined else "",
            moved_to="" if base == self._ground.root else str(base / path),
        )

    def _next(self) -> str:
        return f"{len(self._receipt.files):06d}"

    def _move_own(self, journal: Journal, name: str, target: str) -> None:
        """A file that goes beside the receipts."""
        journal.moves.append(
            Move(self._own(target), self._staged(name), new=hash_of(self._staging / name).sha256)
        )

    def _own(self, path: str) -> Location:
        return Location(name_of(self._receipts.folder, self._home), path)

    def _staged(self, path: str) -> Location:
        return Location(name_of(self._staging, self._home), path)
