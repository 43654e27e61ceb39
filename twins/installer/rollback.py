"""Undoing a hatching: what it replaced comes back, what it brought goes, what changed since is never lost."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TypedDict, cast

import msgspec
from msgspec.structs import asdict, replace

from agents.storage.atomic_write import sync_tree
from agents.storage.safe_walk import FileKind, LinkFreeFolder, LinkFreeFolders
from twins.errors import BadFileError, TwinConflictError
from twins.fs.file_transaction import Journal, Location, Move, apply_journal, lay, name_of
from twins.installer.receipts import PlacedFile, Receipt, Receipts
from twins.installer.staging import abandon, hash_of, make_staging, new_id, stage_file
from twins.trust.quarantine import QuarantineList
from twins.workspace.identity_file import utc
from twins.workspace.workspace import OF_RUNNING, exclusive_lock, is_placeholder

_SHOWN = 3


class RolledBackRow(TypedDict):
    """A rollback, see ``RollbackResult``."""

    id: str
    name: str
    restored: list[str]
    removed: list[str]
    stayed: list[str]
    aside: str
    already: bool
    notes: list[str]


class RollbackResult(msgspec.Struct):
    """The result of a rollback. Paths are relative to the workspace.

    ``stayed``: the daemon's own records that went on since, and are left. ``aside``: where files that had
    changed since the hatching are now. ``already``: it had been rolled back before; nothing was done.
    """

    id: str
    name: str
    restored: list[str] = msgspec.field(default_factory=list)
    removed: list[str] = msgspec.field(default_factory=list)
    stayed: list[str] = msgspec.field(default_factory=list)
    aside: str = ""
    already: bool = False
    notes: list[str] = msgspec.field(default_factory=list)

    def as_json(self) -> RolledBackRow:
        """For the command line and the page."""
        return cast(RolledBackRow, asdict(self))


def roll_back(
    receipt: Receipt,
    *,
    home: Path,
    receipts: Receipts,
    quarantine: QuarantineList,
    even_if_changed: bool = False,
    now: datetime | None = None,
) -> RollbackResult:
    """Undoes one hatching, whole or not at all. Doing it twice does it once.

    Raises ``changed_since``, naming files, when some changed since; told ``even_if_changed``, those are
    put aside. A later hatching into the same workspace has to be undone first. Conversations that the
    threads took in stay there, and code that was held stays held should it come back.
    """
    if receipt.rolled_back_at:
        return RollbackResult(receipt.id, receipt.name, already=True)
    at = now or datetime.now(UTC)
    undoing = _Rollback(receipt, home, receipts)
    if undoing.changed and not even_if_changed:
        names = sorted(undoing.changed)
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        raise TwinConflictError(
            f"{', '.join(names[:_SHOWN])}{more} changed since {receipt.name} hatched; nothing was touched.",
            do=f"`rappd egg rollback {receipt.id} --even-if-changed` keeps them aside.",
            code="changed_since",
        )
    return undoing.run(quarantine, at)


class _Rollback:
    """One rollback under way. ``changed``: paths that are not as the hatching left them."""

    def __init__(self, receipt: Receipt, home: Path, receipts: Receipts) -> None:
        self._receipt = receipt
        self._home = home
        self._receipts = receipts
        self._root = home / receipt.workspace
        self._done = RollbackResult(receipt.id, receipt.name)
        with LinkFreeFolders(home) as opened:
            self.changed = self._changed_whole() if self._is_whole else self._changed_files(opened)

    def run(self, quarantine: QuarantineList, at: datetime) -> RollbackResult:
        root, done = self._root, self._done
        root.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        ident = new_id(at)
        staging = make_staging(root.parent, ident)
        journal = Journal(ident, freed=[(one.held, one.sha256) for one in self._receipt.files if one.held])
        try:
            if self._is_whole:
                self._take_whole(journal, staging)
            else:
                with LinkFreeFolders(self._home) as opened:
                    self._put_back(journal, staging, opened)
            self._close(journal, staging, at)
            sync_tree(staging)
            if self._is_whole or not root.is_dir():
                done.notes += apply_journal(staging, journal, quarantine, self._home)
            else:
                with exclusive_lock(root):
                    done.notes += apply_journal(staging, journal, quarantine, self._home)
        except BaseException:
            abandon(staging)
            raise
        return done

    @property
    def _is_whole(self) -> bool:
        return self._receipt.whole and bool(self._receipt.files)

    def _changed_files(self, opened: LinkFreeFolders) -> set[str]:
        """One that the hatching brought and that is gone is no loss; the daemon's records may go on."""
        found = set()
        for file in self._receipt.files:
            spot = self._spot(file)
            walk = opened[spot.base]
            gone = not file.old and walk.find(spot.path).kind is FileKind.NOTHING
            if not file.record and not gone and walk.sha256(spot.path) != file.sha256:
                found.add(file.path)
        return found

    def _changed_whole(self) -> set[str]:
        root = self._root
        if not root.is_dir() or root.is_symlink():
            raise TwinConflictError(
                f"{self._receipt.name} is not at {root.name[:16]} any more; nothing was touched.",
                do="rappd twins list --archived",
            )
        known = {file.path: file.sha256 for file in self._receipt.files}
        with LinkFreeFolder(root) as walk:
            there = set(walk.files())
            found = {path: walk.sha256(path) for path in there}
        changed = {path for path, sha256 in found.items() if sha256 != known.get(path)}
        # What was made of the egg's own files, since its code runs, is nobody's work.
        made = {
            path
            for path in changed - known.keys()
            if is_placeholder(path, found[path])
            or path.startswith(tuple(f"{folder}/" for folder in OF_RUNNING))
        }
        return (changed - made) | (known.keys() - there)

    def _take_whole(self, journal: Journal, staging: Path) -> None:
        root = self._root
        aside = self._staged(staging, "gone")
        if self.changed:
            folder = self._receipts.undone(self._receipt.id)
            if self._receipts.folder.stat().st_dev != root.stat().st_dev:
                folder = root.parent / f".{folder.name}"  # a folder cannot be renamed to another disk
            aside = Location(name_of(folder, self._home), root.name)
            self._done.aside = str(folder / root.name)
            journal.made.append(Location(name_of(folder.parent, self._home), folder.name))
        journal.moves.append(
            Move(Location(name_of(root.parent, self._home), root.name), aside=aside, folder=True)
        )
        self._done.removed = sorted(file.path for file in self._receipt.files)

    def _put_back(self, journal: Journal, staging: Path, opened: LinkFreeFolders) -> None:
        done = self._done
        made: set[Location] = set()
        for number, file in enumerate(self._receipt.files):
            target = self._spot(file)
            there = opened[target.base].find(target.path)
            now = opened[target.base].sha256(target.path)
            is_other = there.kind not in (FileKind.FILE, FileKind.NOTHING)
            if is_other or (file.record and now != file.sha256):
                done.stayed.append(file.path)
                continue
            aside = self._staged(staging, f"gone/{number:06d}")
            if file.path in self.changed and now:
                aside = self._own(f"{self._receipts.undone(self._receipt.id).name}/{file.path}")
                done.aside = str(self._receipts.undone(self._receipt.id))
                made |= {
                    Location(aside.base, folder) for folder in opened[aside.base].missing_folders(aside.path)
                }
            if file.old:
                source = self._kept(file, staging, opened)
                journal.moves.append(Move(target, source, aside if now else None, now, file.old))
                done.restored.append(file.path)
            elif now:
                journal.moves.append(Move(target, aside=aside, old=now))
                done.removed.append(file.path)
        journal.made = sorted(made, key=lambda spot: spot.path)
        journal.pruned = [Location(base, path) for base, path in self._receipt.made]
        journal.dropped = [self._own(self._receipts.kept(self._receipt.id).name)]

    def _kept(self, file: PlacedFile, staging: Path, opened: LinkFreeFolders) -> Location:
        """The earlier version, laid into the staging folder; its place beside the receipt keeps it too."""
        kept = self._own(f"{self._receipts.kept(self._receipt.id).name}/{file.kept}")
        if opened[kept.base].sha256(kept.path) != file.old:
            raise BadFileError(
                f"The earlier {file.path} is not as it was kept; nothing was touched.",
                do="Restore the workspace from its pre-bond egg.",
            )
        source = self._staged(staging, f"old/{file.kept}")
        lay(kept, source, opened)
        return source

    def _close(self, journal: Journal, staging: Path, at: datetime) -> None:
        """The receipt goes on, saying that it was rolled back; conversations that still wait go."""
        frames = self._receipts.frames(self._receipt.id)
        if frames.exists():
            waiting = hash_of(frames).sha256
            journal.moves.append(
                Move(self._own(frames.name), aside=self._staged(staging, "frames"), old=waiting)
            )
        path = self._receipts.path(self._receipt.id)
        staged = stage_file(staging, "receipt", replace(self._receipt, rolled_back_at=utc(at)).encode())
        journal.moves.append(
            Move(
                self._own(path.name),
                self._staged(staging, "receipt"),
                self._staged(staging, "receipt.old"),
                hash_of(path).sha256,
                staged.sha256,
            )
        )

    def _spot(self, file: PlacedFile) -> Location:
        if file.moved_to:
            path = Path(file.moved_to)
            return Location(name_of(path.parent, self._home), path.name)
        return Location(self._receipt.workspace, file.path)

    def _own(self, path: str) -> Location:
        return Location(name_of(self._receipts.folder, self._home), path)

    def _staged(self, staging: Path, path: str) -> Location:
        return Location(name_of(staging, self._home), path)
