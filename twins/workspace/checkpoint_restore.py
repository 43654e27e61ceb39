"""Going back to a checkpoint: the twin's files as they were then, whole or not at all.

The folder that the twin is to have is built beside its own: what the checkpoint holds, and besides it all
that never was in an egg and so stays as it is (``.env``, packages, what the daemon keeps, secrets, links),
each of those by another name for the same file. Then the two folders change places, by a journal that
the next start after a crash finishes (``twins.fs.file_transaction``).
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from agents.storage.atomic_write import sync_tree
from agents.storage.safe_walk import FileKind, LinkFreeFolder
from twins.eggs.frames import MEMBER as CONVERSATIONS
from twins.eggs.parsed_egg import ParsedEgg, Part
from twins.eggs.readers.detect import open_egg
from twins.eggs.writers.workspaces import MEMORY, SOUL, whole_workspace
from twins.errors import BadEggError, TwinConflictError
from twins.fs.file_transaction import Journal, Location, Move, apply_journal, name_of
from twins.fs.untrusted_names import shown, why_not_portable
from twins.installer.errors import DiskFullError
from twins.installer.installer import recover_all
from twins.installer.receipts import Receipts
from twins.installer.staging import abandon, make_staging, new_id, stage_file, stage_parts
from twins.trust.quarantine import QuarantineList
from twins.workspace.bonds import FILE as BONDS
from twins.workspace.checkpoints import Checkpoint, Checkpoints, RestoreView
from twins.workspace.identity_file import FILE as IDENTITY
from twins.workspace.rappid import same
from twins.workspace.twin import Twin
from twins.workspace.workspace import TwinLayout, Workspace, exclusive_lock
from twins.workspace.workspace_env import FILE as ENV

_STAYS = frozenset({IDENTITY, BONDS, CONVERSATIONS, ENV})
"""Members that no going back touches: the twin's identity and bonds, the conversations, and variables of
agents: a checkpoint has none, unless somebody else made it."""
_HISTORY = f"{MEMORY}/soul_history"
_MAX_DEPTH = 200
_NO_LINKS = frozenset({errno.EPERM, errno.EXDEV, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK})
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

Stamps = dict[str, tuple[int, int, int]]


@dataclass(slots=True)
class RestoreResult:
    """The result of a restore, or its plan.

    Paths are relative to the workspace. ``before``: the checkpoint of the state that was left; None when
    nothing differed, or nothing was done yet. ``notes``: what could not be tidied up.
    """

    checkpoint: Checkpoint
    restored: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    kept: int = 0
    before: Checkpoint | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def differs(self) -> bool:
        """True when there is anything to do."""
        return bool(self.restored or self.removed)

    def as_json(self) -> RestoreView:
        """For the command line and the page."""
        return {
            "checkpoint": self.checkpoint.as_json(),
            "before": self.before.as_json() if self.before else None,
            "restored": self.restored,
            "removed": self.removed,
            "kept": self.kept,
            "notes": self.notes,
        }


def plan_restore(checkpoints: Checkpoints, twin: Twin, selector: str = "") -> RestoreResult:
    """The plan of a restore. Reads every byte of the egg, writes nothing.

    Raises ``no_such_checkpoint``, and ``BadEggError`` for one that is damaged or somebody else's.
    """
    checkpoint = checkpoints.find(twin, selector)
    with open_egg(checkpoint.egg) as opened:
        return _Difference(twin, checkpoint, opened).result


def restore(
    checkpoints: Checkpoints,
    places: TwinLayout,
    twin: Twin,
    selector: str = "",
    *,
    quarantine: QuarantineList,
    host: Workspace,
    now: datetime | None = None,
) -> RestoreResult:
    """Brings the twin back to a checkpoint; of the state it leaves a checkpoint is made first.

    The twin must not be running. Code that is held stays held, should it come back. Raises what
    ``plan_restore`` raises; ``TwinConflictError`` when a file changed meanwhile; ``DiskFullError``. Nothing was touched
    then. After a crash the importer's recovery brings it to its end.
    """
    at = now or datetime.now(UTC)
    home = Path(os.path.realpath(places.home))
    receipts = Receipts(home).folder
    try:
        receipts.mkdir(mode=0o700, parents=True, exist_ok=True)
        with exclusive_lock(receipts):  # no hatching meanwhile; and nobody takes what is staged for a crash's
            recover_all(home, host, quarantine)
            checkpoint = checkpoints.find(twin, selector)
            root = Path(os.path.realpath(places.twins)) / twin.key
            stamps = _stamps(root)
            with open_egg(checkpoint.egg) as opened:
                difference = _Difference(twin, checkpoint, opened)
                done = difference.result
                if done.differs:
                    note = f"before going back to {checkpoint.id}"
                    done.before = checkpoints.make(twin, note=note, before=checkpoint.id, now=at)
                    done.notes += _change_places(root, stamps, difference, at, quarantine, home)
    except OSError as error:
        raise _from_disk(error, twin.name) from error
    return done


def _change_places(
    root: Path, stamps: Stamps, difference: _Difference, at: datetime, quarantine: QuarantineList, home: Path
) -> list[str]:
    """Builds the folder of then beside the one of now, and swaps them; what could not be tidied up."""
    ident = new_id(at)
    staging = make_staging(root.parent, ident)
    try:
        _RestoreBuilder(root, staging / "new", difference, at).build()
        sync_tree(staging)
        if _stamps(root) != stamps:
            raise TwinConflictError("The twin changed meanwhile; it was left as it is.", do="Try again.")
        with exclusive_lock(root):
            return apply_journal(staging, _swap(root, staging, home, ident), quarantine, home)
    except BaseException:
        abandon(staging)
        raise


class _Difference:
    """The difference between a checkpoint and its twin as it is.

    ``paths``: everything of the twin that an egg would hold now. ``parts``: what the checkpoint holds, by
    path; ``same`` of them are as they are now.
    """

    def __init__(self, twin: Twin, checkpoint: Checkpoint, opened: ParsedEgg) -> None:
        _check(twin, checkpoint, opened)
        self.opened = opened
        with ExitStack() as stack:
            load = whole_workspace(twin.workspace, stack, conversations=None, exclude_memory=False)
        self.paths = {member.path for member in load.members if member.name not in _STAYS}
        parts = {_path(part.name): part for part in opened.parts if part.name not in _STAYS}
        # What is here under such a name stays as it is; none comes in anew.
        odd = {path: why for path in parts if path not in self.paths and (why := why_not_portable(path))}
        self.parts = {path: part for path, part in parts.items() if path not in odd}
        with LinkFreeFolder(twin.workspace.root) as walk:
            self.same = {path for path, part in self.parts.items() if _is_same(walk, path, part)}
        self.result = RestoreResult(
            checkpoint,
            sorted(self.parts.keys() - self.same),
            sorted(self.paths - self.parts.keys()),
            len(self.same),
            notes=[f"{shown(path)} stays in the checkpoint: {why}." for path, why in odd.items()],
        )


class _RestoreBuilder:
    """Builds the folder that the twin is to have, out of the one it has and a checkpoint."""

    def __init__(self, root: Path, target: Path, difference: _Difference, now: datetime) -> None:
        self._root = root
        self._target = target
        self._difference = difference
        self._now = now

    def build(self) -> None:
        """Writes what the checkpoint has otherwise, then brings all that stays."""
        parts = [
            part._replace(target=path)
            for path, part in self._difference.parts.items()
            if path not in self._difference.same
        ]
        stage_parts(self._difference.opened, parts, self._target)
        with LinkFreeFolder(self._root) as source, LinkFreeFolder(self._target, durable=False) as target:
            self._bring_folder("", source, target)
        shutil.copystat(self._root, self._target)
        self._keep_soul()

    def _bring_folder(self, path: str, source: LinkFreeFolder, target: LinkFreeFolder) -> bool:
        """Brings what stays of a folder; whether there is anything of it now, or was nothing before."""
        found = sorted(source.entries(path))
        brought = not found
        for name, status in found:
            inner = f"{path}/{name}" if path else name
            if stat.S_ISDIR(status.st_mode):
                brought |= self._bring_inner(inner, status.st_mode, source, target)
            else:
                brought |= self._bring_file(inner, status.st_mode, source, target)
        return brought

    def _bring_inner(self, path: str, mode: int, source: LinkFreeFolder, target: LinkFreeFolder) -> bool:
        if path.count("/") > _MAX_DEPTH:
            raise TwinConflictError(f"{path[:60]}… lies too deep; nothing was touched.", do="Move it up.")
        if target.find(path).kind is FileKind.FILE:  # it was a file then
            if _holds_what_stays(path, source, self._difference.paths):
                raise _in_the_way(path)
            return True
        brought = self._bring_folder(path, source, target)
        if brought:
            target.folder(path, make=True)
        if target.find(path).kind is FileKind.FOLDER:
            _chmod(target, path, mode | stat.S_IRWXU)
        return brought

    def _bring_file(self, path: str, mode: int, source: LinkFreeFolder, target: LinkFreeFolder) -> bool:
        there = target.find(path).kind
        if path in self._difference.paths and path not in self._difference.same:
            if there is FileKind.FILE and path in self._difference.parts:
                _chmod(target, path, mode)
            return there is FileKind.FILE
        if there is FileKind.NOTHING:
            _link(path, mode, source, target)
            return True
        if stat.S_ISREG(mode):
            raise _in_the_way(path)
        return True  # a link, or what is no file, that came since to the place of something

    def _keep_soul(self) -> None:
        """A soul that is replaced joins the history, as after any other edit."""
        with LinkFreeFolder(self._root) as walk:
            if SOUL in self._difference.same or walk.find(SOUL).kind is not FileKind.FILE:
                return
            content = walk.content(SOUL)
        stem = f"{_HISTORY}/{self._now.astimezone(UTC):%Y-%m-%dT%H-%M-%SZ}-before-going-back"
        with LinkFreeFolder(self._target, durable=False) as target:
            name, count = f"{stem}.md", 1
            while target.find(name).kind is not FileKind.NOTHING:
                count += 1
                name = f"{stem}-{count}.md"
        stage_file(self._target, name, content)


def _check(twin: Twin, checkpoint: Checkpoint, opened: ParsedEgg) -> None:
    if opened.seal.whole is not True or checkpoint.sha256 not in ("", opened.digest):
        raise BadEggError(
            f"The checkpoint {checkpoint.id} is damaged; nothing was touched.", do="Take another."
        )
    if opened.rappid is None or not same(opened.rappid, twin.rappid):
        raise BadEggError(
            f"{checkpoint.egg.name} is no checkpoint of {twin.name}; nothing was touched.", do=""
        )


def _path(name: str) -> str:
    """The path that a member of a twin's egg was packed from."""
    return f"{MEMORY}/{name[5:]}" if name.startswith("data/") else name


def _is_same(walk: LinkFreeFolder, path: str, part: Part) -> bool:
    found = walk.find(path)
    if found.kind is not FileKind.FILE or found.size != part.size:
        return False
    digest = hashlib.sha256()
    for chunk in part.chunks():
        digest.update(chunk)
    return walk.sha256(path) == digest.hexdigest()


def _holds_what_stays(path: str, source: LinkFreeFolder, goes: set[str]) -> bool:
    """True when a folder holds a file that no egg would."""
    return any(stat.S_ISREG(status.st_mode) and inner not in goes for inner, status in source.walk(path))


def _link(path: str, mode: int, source: LinkFreeFolder, target: LinkFreeFolder) -> None:
    """Gives a file its place in the new folder, too; a copy where the disk has no such links."""
    above, _, name = path.rpartition("/")
    here, there = os.dup(source.folder(above)), target.folder(above, make=True)
    try:
        os.link(name, name, src_dir_fd=here, dst_dir_fd=there, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if stat.S_ISLNK(mode):
            os.symlink(os.readlink(name, dir_fd=here), name, dir_fd=there)
        elif stat.S_ISREG(mode):
            stage_file(target.base, path, b"".join(source.chunks(path)))
            _chmod(target, path, mode)
    finally:
        os.close(here)


def _chmod(walk: LinkFreeFolder, path: str, mode: int) -> None:
    above, _, name = path.rpartition("/")
    os.chmod(name, stat.S_IMODE(mode), dir_fd=walk.folder(above))


def _stamps(root: Path) -> Stamps:
    """Everything below a folder that is no folder: when it last changed, its size, which file it is."""
    with LinkFreeFolder(root) as walk:
        return {
            path: (status.st_mtime_ns, status.st_size, status.st_ino)
            for path, status in walk.walk()
            if not stat.S_ISDIR(status.st_mode)
        }


def _swap(root: Path, staging: Path, home: Path, ident: str) -> Journal:
    place = Location(name_of(root.parent, home), root.name)
    old, new = (Location(name_of(staging, home), name) for name in ("old", "new"))
    return Journal(ident, [Move(place, aside=old, folder=True), Move(place, new, folder=True)])


def _in_the_way(path: str) -> TwinConflictError:
    return TwinConflictError(
        f"{path} is in the way, and never was in a checkpoint; nothing was touched.", do="Move it away first."
    )


def _from_disk(error: OSError, name: str) -> Exception:
    if error.errno in _FULL:
        return DiskFullError(f"The disk is full; {name} is as it was.", do="Make room, then try again.")
    reason = (error.strerror or str(error)).lower()
    return TwinConflictError(f"{name} is as it was: {reason}.", do="Look at its folder, then try again.")
