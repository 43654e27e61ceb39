"""The staged files of a hatching, beside their destination on the same disk, before anything there is touched.

The parts of the egg, and the records that rappd itself writes into a workspace (events, the history of the soul, a
receipt), so that they come to their place together.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec
import orjson

from agents.storage.atomic_write import sync_folder
from agents.storage.safe_walk import FileKind, LinkFreeFolder, split
from agents.storage.sparse_file import end_sparse, write_sparse
from twins.byte_sizes import format_bytes
from twins.eggs.parsed_egg import Destination, ParsedEgg, Part, Role
from twins.errors import BadEggError, BadFileError, HostileEggError
from twins.fs.file_transaction import MOVING, PREFIX, UNDOING
from twins.installer.errors import DiskFullError
from twins.installer.placement_rules import RECEIPT_FILE, to_threads
from twins.installer.planning import Action, Plan
from twins.installer.receipts import published_receipt
from twins.work_progress import STAGE, PhaseCounter, Progress
from twins.workspace import bonds
from twins.workspace.identity_file import FILE as IDENTITY_FILE
from twins.workspace.identity_file import MAX_BYTES as MAX_IDENTITY
from twins.workspace.identity_file import Identity, read_regular
from twins.workspace.rappid import same
from twins.workspace.workspace import Workspace
from twins.zip.ordered_pool import OrderedThreadPool, in_tasks

_SPARE = 4 << 20  # what journals and receipts may need besides
_LARGE = 1 << 20  # bytes of a file that the disk begins to write at once
WORKSPACES = (Destination.TWIN, Destination.HOST, Destination.BRAINSTEM)
"""Destinations where something lives."""
_RECEIVED = (Destination.TWIN, Destination.BRAINSTEM, Destination.INERT)
_MANIFEST = re.compile(r"rapps/[^/]+/manifest\.json")
_HISTORY = ".brainstem_data/soul_history"


class StagedFile(msgspec.Struct, frozen=True):
    """One written file."""

    sha256: str
    size: int


def new_id(now: datetime) -> str:
    """The name of one hatching: sorts by time, within a second too unless only the second is known."""
    within = f"{now.microsecond >> 4:04x}{secrets.token_hex(1)}" if now.microsecond else secrets.token_hex(3)
    return f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}-{within}"


def make_staging(beside: Path, ident: str) -> Path:
    """An empty staging folder in ``beside``, the folder that the destination lies in."""
    beside.mkdir(mode=0o700, parents=True, exist_ok=True)
    staging = beside / f"{PREFIX}{ident}"
    staging.mkdir(mode=0o700)
    sync_folder(beside)
    return staging


def abandon(staging: Path) -> None:
    """Throws a staging folder away, unless a journal says that it is still needed."""
    if not (staging / MOVING).exists() and not (staging / UNDOING).exists():
        shutil.rmtree(
            staging, ignore_errors=True
        )  # the failure that led here is told; leftovers go at the start


def check_disk_space(beside: Path, needed: int, name: str) -> None:
    """Raises ``DiskFullError`` when ``needed`` bytes do not fit on the disk of ``beside``."""
    found = os.statvfs(beside)
    missing = needed + _SPARE - found.f_bavail * found.f_frsize
    if missing > 0:
        raise DiskFullError(
            f"The disk is full; {name} is not hatched, not even half.",
            do=f"Free {format_bytes(missing)}, rerun.",
        )


def stage_parts(
    opened: ParsedEgg, parts: list[Part], tree: Path, progress: Progress | None = None
) -> dict[str, StagedFile]:
    """Writes ``parts`` below ``tree`` by their targets; what was written, by target.

    Raises ``BadEggError`` when a part is not as long as the egg says.
    """
    counter = PhaseCounter(progress, STAGE, sum(part.size for part in parts))
    written: dict[str, StagedFile] = {}
    tree.mkdir(mode=0o700, exist_ok=True)
    with OrderedThreadPool[dict[str, StagedFile]](meanwhile=counter.tell) as ahead:
        tasks = in_tasks((part, part.size) for part in parts)
        for staged in ahead.each(partial(_stage, opened.name, task, tree, counter, ahead) for task in tasks):
            counter.tell()
            written |= staged
    counter.finish()
    return written


def _stage(
    egg: str,
    parts: list[Part],
    tree: Path,
    progress: PhaseCounter,
    ahead: OrderedThreadPool[dict[str, StagedFile]],
) -> dict[str, StagedFile]:
    written = {}
    with LinkFreeFolder(tree, durable=False) as walk:
        for part in parts:
            digest = hashlib.sha256()
            size = 0
            above, name = split(part.target)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            handle = os.open(name, flags, 0o600, dir_fd=walk.folder(above, make=True))
            try:
                for chunk in ahead.unless_stopped(part.chunks()):
                    size += len(chunk)
                    if size > part.size:
                        break
                    digest.update(chunk)
                    write_sparse(handle, chunk)
                    progress.add(len(chunk))
                end_sparse(handle)
                if size >= _LARGE and hasattr(os, "posix_fadvise"):
                    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(handle)
            if size != part.size:
                raise BadEggError(f"{egg} is damaged ({part.name}); nothing was written.", do="Get it again.")
            written[part.target] = StagedFile(digest.hexdigest(), size)
    return written


def stage_file(tree: Path, target: str, content: bytes) -> StagedFile:
    """Writes one file of this machine's own below ``tree``, over an earlier one."""
    with LinkFreeFolder(tree, durable=False) as walk:
        above, name = split(target)
        folder = walk.folder(above, make=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(name, flags, 0o600, dir_fd=folder), "wb") as file:
            file.write(content)
    return StagedFile(hashlib.sha256(content).hexdigest(), len(content))


def hash_of(path: Path) -> StagedFile:
    """Hash and size of a staged file."""
    with path.open("rb") as file:
        return StagedFile(hashlib.file_digest(file, "sha256").hexdigest(), path.stat().st_size)


class StagedTree(msgspec.Struct):
    """The staged files of one hatching, by target below ``root``.

    ``written``: the egg's parts. ``records``: the daemon's own files, with the SHA-256 of the file in the
    workspace that each replaces ("" for none).
    """

    plan: Plan
    root: Path
    now: datetime
    source: str
    written: dict[str, StagedFile]
    records: dict[str, str] = msgspec.field(default_factory=dict)
    notes: list[str] = msgspec.field(default_factory=list)


def changes_workspace(plan: Plan) -> bool:
    """True when any file is placed; conversations alone are none."""
    return any(not to_threads(row.role, plan.opened.destination, trusted=plan.trusted) for row in plan.placed)


def check_identity(tree: StagedTree) -> None:
    """A twin is who its egg says: nobody moves in under another's name. Raises ``HostileEggError``, ``BadEggError``."""
    opened = tree.plan.opened
    if opened.destination is not Destination.TWIN or opened.rappid is None:
        return
    if tree.plan.ground.new and IDENTITY_FILE not in tree.written:
        raise BadEggError(f"{opened.name} has no {IDENTITY_FILE}; nothing was written.", do="Get it again.")
    if IDENTITY_FILE not in tree.written:
        return
    try:
        found = Identity.decode(read_regular(tree.root / IDENTITY_FILE, MAX_IDENTITY) or b"")
    except BadFileError as error:
        raise BadEggError(
            f"{opened.name} is damaged ({IDENTITY_FILE}); nothing was written.", do="Get it again."
        ) from error
    if not same(found.rappid, opened.rappid):
        raise HostileEggError(
            f"{opened.name} claims to be somebody else than its {IDENTITY_FILE} says; refused whole",
            do="don't use it",
        )


def record_hatching(tree: StagedTree) -> None:
    """Adds the daemon's own files to the tree."""
    plan = tree.plan
    if not changes_workspace(plan):
        return
    if plan.opened.destination in WORKSPACES:
        if plan.ground.new:
            for folder in ("agents", "services", ".brainstem_data"):
                (tree.root / folder).mkdir(mode=0o700, exist_ok=True)
        _keep_soul(tree)
        _record_event(tree)
        if plan.opened.destination is Destination.HOST:
            _note_rapplication(tree)
    if plan.opened.destination in _RECEIVED:
        _write_receipt(tree)


def _write_receipt(tree: StagedTree) -> None:
    plan = tree.plan
    identity = plan.ground.identity
    if identity is None and (tree.root / IDENTITY_FILE).is_file():
        try:
            identity = Identity.read(tree.root)
        except BadFileError:  # data that nothing runs may hold anything
            identity = None
    content = published_receipt(
        plan.opened,
        kind=identity.kind if identity else plan.opened.family.kind,
        workspace=plan.ground.root,
        files=sorted(tree.written),
        again=not plan.ground.new,
        source=tree.source or plan.opened.name,
        now=tree.now,
    )
    _note(tree, RECEIPT_FILE, content)


def _note_rapplication(tree: StagedTree) -> None:
    """``placed.json`` beside the manifest of a rapplication, as installing one leaves it: what uninstalling takes away.

    Its memory is not among it.
    """
    listed = {part.target for part in tree.plan.opened.parts if _MANIFEST.fullmatch(part.target)}
    if len(listed) != 1 or not tree.written:
        return
    folder = listed.pop().rpartition("/")[0]
    target = f"{folder}/placed.json"
    try:
        found = orjson.loads(_present(tree.plan, target) or b"[]")
    except orjson.JSONDecodeError:
        found = []
    earlier = {path for path in found if isinstance(path, str)} if isinstance(found, list) else set()
    placed = {path for path in tree.written if path.startswith(("agents/", "services/", f"{folder}/"))}
    _note(tree, target, orjson.dumps(sorted(earlier | placed)))


def _record_event(tree: StagedTree) -> None:
    """Events and incarnations are counted in copies, which then move with everything else."""
    plan, opened = tree.plan, tree.plan.opened
    copied = {}
    for name in (bonds.FILE, IDENTITY_FILE):
        content = _present(plan, name)
        if content is not None and name not in tree.written:
            copied[name] = content
            stage_file(tree.root, name, content)
    workspace = Workspace.at(tree.root)
    note = f"{opened.name}, egg {opened.digest[:12]}"
    if opened.destination is Destination.TWIN and not plan.ground.new:
        bonds.record_bond(workspace, at=tree.now, note=note)
    else:
        kind = "graft" if opened.destination is Destination.HOST else "hatch"
        try:
            bonds.record_event(workspace, kind, at=tree.now, note=note)
        except BadFileError:
            if bonds.FILE not in tree.written:
                raise
            tree.notes.append(f"The egg's {bonds.FILE} is damaged; it came along as it is.")
    for name in (bonds.FILE, IDENTITY_FILE):
        path = tree.root / name
        if not path.is_file():
            continue
        content = path.read_bytes()
        if name in tree.written:
            tree.written[name] = StagedFile(hashlib.sha256(content).hexdigest(), len(content))
        elif content == copied.get(name):
            path.unlink()
        else:
            _note(tree, name, content)


def _keep_soul(tree: StagedTree) -> None:
    """A soul that is replaced joins the history, as after any other edit."""
    plan = tree.plan
    row = next((row for row in plan.of(Action.REPLACE) if row.role is Role.SOUL), None)
    content = _present(plan, row.target) if row else None
    if content is None:
        return
    stamp = tree.now.astimezone(UTC).strftime("%Y-%m-%dT%H-%M-%SZ")
    with LinkFreeFolder(plan.ground.root) as walk:
        count = 1
        while True:
            more = "" if count == 1 else f"-{count}"
            target = f"{_HISTORY}/{stamp}-before-hatching{more}.md"
            found = walk.find(target).kind
            if found is FileKind.BLOCKED:
                raise BadFileError("soul_history is a link; nothing was written.", do="Remove the link.")
            if found is FileKind.NOTHING and target not in tree.written:
                break
            count += 1
    _note(tree, target, content)


def _note(tree: StagedTree, target: str, content: bytes) -> None:
    """Puts a file of the daemon's own into the tree, and notes what it replaces."""
    stage_file(tree.root, target, content)
    present = _present(tree.plan, target)
    tree.records[target] = "" if present is None else hashlib.sha256(present).hexdigest()


def _present(plan: Plan, target: str) -> bytes | None:
    """The workspace's own file at ``target``; None without one."""
    if plan.ground.new:
        return None
    base, path = plan.ground.locate(target)
    with LinkFreeFolder(base) as walk:
        return walk.content(path) if walk.find(path).kind is FileKind.FILE else None
