"""``egg merge BASE OURS THEIRS``: two eggs of one being, laid out as the workspace of both lives.

Conversations are merged frame by frame (``dimensions``), JSON memories key by key (``records``), every
other file as a whole: what only one side changed is taken, and where both did ours stays and theirs is kept
aside. Nothing is run, and nothing that is kept aside ever lies where something would run it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agents.storage.sparse_file import end_sparse, write_sparse
from twins.cartridges.buddy_state import FULL
from twins.cartridges.buddy_store import FILE as BUDDY
from twins.cartridges.buddy_store import SHELL
from twins.cartridges.json_documents import MAX_BYTES, Document, encode, parse
from twins.cartridges.shape_conversion import convert
from twins.cartridges.shapes import ORGANISM, Shape, checked
from twins.eggs.frames import Frame, decoded, verified
from twins.eggs.parsed_egg import Ancestors, Destination, ParsedEgg, Part, Role, ancestors
from twins.eggs.readers.workspace_paths import decides
from twins.errors import BadCartridgeError, BadEggError, HostileEggError, TwinConflictError
from twins.fs.untrusted_names import NameSet, safe_path
from twins.merge import alternates, frame_merge, json_merge
from twins.merge.alternates import Alternates, AlternatesFile
from twins.merge.frame_merge import Side
from twins.merge.json_merge import MergeResult, same_lineage
from twins.work_progress import MERGE, PhaseCounter, Progress
from twins.workspace.identity_file import utc
from twins.workspace.workspace import Workspace

_BUDDIES = (f".brainstem_data/{BUDDY}", f".brainstem_data/{SHELL}")
_MEMORY = ".brainstem_data/"
_REMEMBERED = (Role.MEMORY, Role.ROSTER, Role.OTHER)


@dataclass(slots=True)
class MergeReport:
    """The result of a merge. Files by path, frames by number, ``dimensions`` that lie aside now in all.

    ``already``: theirs was merged into ours before, so ours stays as it is; ``forward``: ours was merged
    into theirs, so theirs is both. ``foreign_code``: files that would run and that nobody trusted has signed;
    an egg that holds any is not to be signed by this machine.
    """

    name: str
    rappid: str
    shared: int = 0
    new: int = 0
    contradicting: int = 0
    dimensions: int = 0
    taken: list[str] = field(default_factory=list)
    joined: list[str] = field(default_factory=list)
    set_aside: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    foreign_code: list[str] = field(default_factory=list)
    already: bool = False
    forward: bool = False

    def as_json(self) -> dict[str, Any]:
        """One object for ``--json``."""
        return {key: getattr(self, key) for key in self.__slots__}


@dataclass(slots=True)
class MergedEggs:
    """The workspace of both, in the folder that was given, and its conversations: ready to be packed.

    ``ancestors``: the versions that its memory was made of, with those that eggs of trusted signers name.
    """

    workspace: Workspace
    conversations: Conversations
    report: MergeReport
    ancestors: Ancestors


@dataclass(slots=True, frozen=True)
class Conversations:
    """The merged frames as packing asks for them."""

    merged: tuple[Frame, ...]

    def frames(self, key: str) -> Iterator[Frame]:
        """All of them; there is one being only."""
        return iter(self.merged)


def merge(
    base: ParsedEgg | None,
    ours: ParsedEgg,
    theirs: ParsedEgg,
    folder: Path,
    *,
    at: datetime | None = None,
    trusted: Collection[str] = (),
    progress: Progress | None = None,
) -> MergedEggs:
    """Lays the merged being out in ``folder``, which is empty and the caller's to remove.

    ``base`` is what both came from, None when it is not known: then nothing counts as removed. ``trusted``
    are the fingerprints whose code this machine may sign for. Raises ``TwinConflictError`` for two different
    beings, ``BadEggError``.
    """
    opened = [one for one in (base, ours, theirs) if one is not None]
    if not all(one.seal.checked for one in opened):
        raise ValueError("an egg that was only looked at is not merged")
    for one in opened:
        if one.rappid is None or one.destination not in (Destination.TWIN, Destination.BRAINSTEM):
            raise BadEggError(
                f"{one.file or one.name} is no twin and cannot be merged.", do="Merge eggs of twins."
            )
    if len({one.destination for one in opened}) > 1:
        raise BadEggError("A twin and a whole brainstem cannot be merged.", do="Merge eggs of one kind.")
    same_lineage([one.rappid.text for one in opened if one.rappid is not None])
    return _EggMerge(base, ours, theirs, folder, at or datetime.now(UTC), trusted, progress).merged()


class _EggMerge:
    def __init__(
        self,
        base: ParsedEgg | None,
        ours: ParsedEgg,
        theirs: ParsedEgg,
        folder: Path,
        at: datetime,
        trusted: Collection[str],
        progress: Progress | None,
    ) -> None:
        assert ours.rappid is not None
        self._base, self._ours, self._theirs = base, ours, theirs
        self._folder = folder
        self._at = utc(at)
        self._trusted = trusted
        self._progress = progress
        self._labels = _labels(ours, theirs)
        self._names = NameSet()
        self._written: set[str] = set()
        self._kept = Alternates(ours.rappid.text)
        self._report = MergeReport(ours.name, ours.rappid.text)
        self._ancestors: dict[str, frozenset[str]] = {}

    def merged(self) -> MergedEggs:
        self._note_ancestors()
        known = [_alternates(one) for one in (self._base, self._ours, self._theirs)]
        report = self._report
        report.already = self._theirs.digest in {self._ours.digest, *known[1].merged}
        report.forward = not report.already and self._ours.digest in known[2].merged
        if report.already or report.forward:
            # One of them holds the other; whatever else would count twice what both had counted.
            whole, what = (self._ours, known[1]) if report.already else (self._theirs, known[2])
            self._ours = self._theirs = whole
            self._base, known = None, [Alternates(""), what, Alternates("")]
        self._kept = Alternates(report.rappid, merged={**known[2].merged, **known[1].merged})
        if self._ours is not self._theirs:
            self._kept.merged.setdefault(self._ours.digest, self._at)
            self._kept.merged.setdefault(self._theirs.digest, self._at)
        for one in (*known[2].files, *known[1].files):
            self._kept = self._kept.with_file(one)
        frames = self._frames(known)
        self._files()
        if not self._kept.is_empty:
            self._write(alternates.FILE, (self._kept.encoded(),))
        return MergedEggs(
            Workspace.at(self._folder), Conversations(tuple(frames)), self._report, self._ancestors
        )

    def _note_ancestors(self) -> None:
        found: dict[str, set[str]] = {}
        for one in (self._base, self._ours, self._theirs):
            if one is None:
                continue
            for part in one.parts:
                if part.role in _REMEMBERED:
                    found.setdefault(part.target, set()).add(_digest(part))
            if one.seal.whole is True and one.seal.signer in self._trusted:
                for path, digests in ancestors(one.manifest).items():
                    found.setdefault(path, set()).update(digests)
        self._ancestors = {path: frozenset(digests) for path, digests in found.items() if len(digests) > 1}

    def _frames(self, known: list[Alternates]) -> list[Frame]:
        sides = [
            Side(label, _frames_of(one), kept.dimensions)
            for label, one, kept in zip(
                ("base", *self._labels), (self._base, self._ours, self._theirs), known, strict=True
            )
            if one is not None
        ]
        *base, ours, theirs = sides
        merged = frame_merge.merge(ours, theirs, base[0] if base else None)
        report = self._report
        report.shared, report.new, report.contradicting = merged.shared, merged.new, merged.contradicting
        report.dimensions = len(merged.aside)
        self._kept = Alternates(self._kept.rappid, tuple(merged.aside), self._kept.files, self._kept.merged)
        return merged.frames

    def _files(self) -> None:
        base, ours, theirs = (_files_of(one) for one in (self._base, self._ours, self._theirs))
        # Ours first: where two names cannot lie on one disk, theirs is the one that is kept aside.
        paths = [*sorted(ours), *sorted(theirs.keys() - ours.keys())]
        counter = PhaseCounter(self._progress, MERGE, len(paths))
        for path in paths:
            self._file(path, base.get(path), ours.get(path), theirs.get(path))
            counter.add(1)
        counter.finish()

    def _file(self, path: str, base: Part | None, ours: Part | None, theirs: Part | None) -> None:
        was, here, there = _digest(base), _digest(ours), _digest(theirs)
        identity = ours is not None and ours.role is Role.IDENTITY
        if here == there or there == was or identity:
            wanted, side = ours, self._ours
        elif here == was or ours is None:
            wanted, side = theirs, self._theirs
        elif theirs is None or not self._join(path, base, ours, theirs):
            wanted, side = ours, self._ours
            if theirs is not None:
                self._set_aside(path, theirs, there)
        else:
            return
        if wanted is None:
            self._report.removed.append(path)
        elif side is self._theirs and side is not self._ours and not self._has_room(path):
            self._set_aside(path, wanted, there)
        else:
            self._take(path, wanted, side)

    def _has_room(self, path: str) -> bool:
        """True when ``path`` can lie beside what is there, on any disk."""
        try:
            self._names.add(path)
        except HostileEggError:
            return path in self._written
        return True

    def _join(self, path: str, base: Part | None, ours: Part, theirs: Part) -> bool:
        """Two versions of a JSON memory as one; False when that is not what they are."""
        if not path.startswith(_MEMORY) or not (path.endswith(".json") or path in _BUDDIES):
            return False
        try:
            versions = [None if one is None else _document(one) for one in (base, ours, theirs)]
            assert versions[1] is not None
            assert versions[2] is not None
            together = merge_buddies if path in _BUDDIES else json_merge.merge
            joined = together(versions[0], versions[1], versions[2])
            octets = encode(joined.document)
        except (BadCartridgeError, TwinConflictError):
            return False
        self._write(path, (octets,))
        self._report.joined.append(path)
        if joined.contradictions:
            self._set_aside(path, theirs, _digest(theirs))
        return True

    def _take(self, path: str, part: Part, side: ParsedEgg) -> None:
        self._write(path, part.chunks())
        if side is self._theirs and side is not self._ours:
            self._report.taken.append(path)
        signed = side.seal.whole is True and side.seal.signer in self._trusted
        if (part.role.is_code or part.role is Role.WORKFLOW or decides(part.target)) and not signed:
            self._report.foreign_code.append(path)

    def _set_aside(self, path: str, part: Part, digest: str) -> None:
        aside = AlternatesFile(path, digest, (self._labels[1],), self._at)
        self._write(aside.kept_as, part.chunks())
        self._kept = self._kept.with_file(aside)
        self._report.set_aside.append(path)

    def _write(self, path: str, chunks: Iterable[bytes]) -> None:
        if path in self._written:  # what is kept aside is named by its hash
            return
        if path not in self._names:
            self._names.add(path)
        self._written.add(path)
        target = self._folder.joinpath(*safe_path(path).split("/"))
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with target.open("xb") as file:
            for chunk in chunks:
                write_sparse(file.fileno(), chunk)
            end_sparse(file.fileno())


def _labels(ours: ParsedEgg, theirs: ParsedEgg) -> tuple[str, str]:
    """The names of the two sides where something of them lies aside."""
    if ours.file and theirs.file and ours.file != theirs.file:
        return ours.file, theirs.file
    return "ours", "theirs"


def _alternates(opened: ParsedEgg | None) -> Alternates:
    for part in opened.parts if opened is not None else ():
        if part.target == alternates.FILE:
            return alternates.decoded(part.read())
    return Alternates("")


def _frames_of(opened: ParsedEgg) -> list[Frame]:
    return [
        frame
        for part in opened.parts
        if part.role is Role.CONVERSATIONS
        for frame in verified(decoded(part.chunks()))
    ]


def _files_of(opened: ParsedEgg | None) -> dict[str, Part]:
    """Every part but the conversations and what was kept aside earlier, by its place."""
    return {
        part.target: part
        for part in (opened.parts if opened is not None else ())
        if part.role is not Role.CONVERSATIONS and part.target != alternates.FILE
    }


def _digest(part: Part | None) -> str:
    """SHA-256 of a part, "" for none."""
    return "" if part is None else part.sha256()


def _document(part: Part) -> Document:
    if part.size > MAX_BYTES:
        raise BadCartridgeError(f"{part.target} is too large to be joined.", do="Keep both.")
    return parse(part.read(), name=part.target)


def merge_buddies(base: Document | None, ours: Document, theirs: Document) -> MergeResult:
    """``.rappter.egg`` documents of any shape as one in the Buddy's. Raises ``BadCartridgeError``, ``TwinConflictError``."""
    versions = [None if one is None else convert(one, Shape.BUDDY) for one in (base, ours, theirs)]
    assert versions[1] is not None
    assert versions[2] is not None
    joined = json_merge.merge(versions[0], versions[1], versions[2])
    organism = joined.document["organism"]
    for key in ("energy", "mood"):
        if key in organism and ORGANISM[key].test(organism[key]):
            organism[key] = max(0, min(FULL, organism[key]))
    checked(joined.document)
    return joined
