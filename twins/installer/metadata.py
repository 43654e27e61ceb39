"""Records that rappd writes into a workspace when an egg hatches: events, the soul's history, a receipt.

Everything is written into the staged tree, so that it comes to its place together with the egg's files.
"""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import orjson

from agents.storage.safe_walk import FileKind, LinkFreeFolder
from twins.eggs.parsed_egg import Destination, Role
from twins.errors import BadEggError, BadFileError, HostileEggError
from twins.installer.planning import Action, Plan
from twins.installer.receipts import published_receipt
from twins.installer.rules import RECEIPT_FILE, to_threads
from twins.installer.staging import StagedFile, stage_file
from twins.workspace import bonds
from twins.workspace.identity_file import FILE as IDENTITY_FILE
from twins.workspace.identity_file import MAX_BYTES as MAX_IDENTITY
from twins.workspace.identity_file import Identity, read_regular
from twins.workspace.rappid import same
from twins.workspace.workspace import Workspace

WORKSPACES = (Destination.TWIN, Destination.HOST, Destination.BRAINSTEM)
"""Destinations where something lives."""
_RECEIVED = (Destination.TWIN, Destination.BRAINSTEM, Destination.INERT)
_MANIFEST = re.compile(r"rapps/[^/]+/manifest\.json")
_HISTORY = ".brainstem_data/soul_history"


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
