"""The load of an egg: which file goes in under which name, gathered before anything is written."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from twins.eggs.parsed_egg import Ancestors
from twins.eggs.readers.workspace_paths import decides, is_code, is_workflow
from twins.eggs.writers.exclusions import ExclusionReason
from twins.eggs.writers.formats import ExcludedFile
from twins.eggs.writers.source_tree import SourceTree, Verdict
from twins.errors import BadFileError, HostileEggError, TwinConflictError
from twins.fs.untrusted_names import folded, safe_path, shown
from twins.workspace.identity_file import Identity

Content = bytes | Iterator[bytes]
IsHeld = Callable[[Path, str], bool]
"""True when the file at a place must not run with the content of that SHA-256."""
FIRST = ("rappid.json", "soul.md", ".env")
"""Members that come before all others, in this order, where the shape leaves the order open."""


@dataclass(slots=True, frozen=True)
class Member:
    """One file of the egg.

    ``path`` is its name as a person knows it, ``file`` its place on disk. ``open`` gives its content as it is
    now, small ones as bytes; None when it is gone.
    """

    name: str
    path: str
    size: int
    open: Callable[[], Content | None] = field(repr=False)
    file: Path | None = None

    def named(self, name: str) -> Member:
        """The same file under another name."""
        return replace(self, name=name)


@dataclass(slots=True)
class EggContents:
    """The contents to be packed.

    ``identity`` is whose it is, None for what is nobody; ``facts`` are what the form's manifest says besides, and
    ``ancestors`` the versions that its files were merged from. ``lifecycle``: ``archived`` for a twin that goes to
    an archive.
    """

    name: str
    identity: Identity | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    ancestors: Ancestors = field(default_factory=dict)
    lifecycle: str = ""
    members: list[Member] = field(default_factory=list)
    left_out: list[ExcludedFile] = field(default_factory=list)

    def put(self, name: str, content: bytes, *, path: str = "") -> None:
        """Takes in bytes under ``name``."""
        self.members.append(Member(name, path or name, len(content), lambda: content))

    def put_stream(self, name: str, content: Callable[[], Iterable[bytes]]) -> None:
        """Takes in what comes piece by piece, of unknown size; nothing when no piece comes."""
        self.members.append(Member(name, name, 0, lambda: _unless_empty(content())))

    def put_file(self, name: str, tree: SourceTree, path: str, *, shown_as: str = "") -> bool:
        """Takes in one file of a tree; False when there is none."""
        size = tree.size(path)
        if size is None:
            return False
        place = tree.folder / path
        self.members.append(Member(name, shown_as or path, size, partial(tree.open, path), place))
        return True

    def put_folder(
        self, tree: SourceTree, start: str, verdict: Verdict, rename: Callable[[str], str]
    ) -> None:
        """Takes in everything below ``start`` that ``verdict`` lets travel, under the names that ``rename`` makes of the paths."""
        for path, size, why in tree.walk(start, verdict):
            if why is not None:
                if not _holds_nothing(tree, path):
                    self.leave(path, why)
                continue
            content = partial(tree.open, path)
            self.members.append(Member(rename(path), path, size, content, tree.folder / path))

    def leave(self, path: str, why: ExclusionReason) -> None:
        """Notes that something stays behind."""
        if why is not ExclusionReason.ELSEWHERE:
            self.left_out.append(ExcludedFile(path, why))

    def leave_held(self, is_held: IsHeld) -> None:
        """Leaves behind what is code and ``is_held``; what is not held now must not become so on its way."""
        kept = []
        for member in self.members:
            if member.file is None or not _waits(member):
                kept.append(member)
            elif is_held(member.file, _sha256(member.open())):
                self.leave(member.path, ExclusionReason.HELD)
            else:
                kept.append(replace(member, open=partial(_unless_held, member, is_held)))
        self.members = kept

    def settle(self) -> None:
        """Brings the members into their order. A file whose name is not UTF-8 stays behind alone.

        Raises ``BadFileError`` for a name that no egg may carry, and when two would be one file on some disk.
        """
        seen: dict[str, Member] = {}
        for member in (one for one in self.members if not _is_utf8(one.name)):
            self.leave(os.fsencode(member.path).decode("utf-8", "backslashreplace"), ExclusionReason.NOT_UTF8)
        self.members = [member for member in self.members if _is_utf8(member.name)]
        for member in self.members:
            try:
                safe_path(member.name)
            except HostileEggError as error:
                raise BadFileError(
                    f"{shown(member.path)} has a name that no egg may carry; nothing was packed.",
                    do="Rename it.",
                ) from error
            other = seen.setdefault(folded(member.name), member)
            if other is not member:
                raise BadFileError(
                    f"{shown(other.path)} and {shown(member.path)} are one file on some disks; nothing was packed.",
                    do="Rename one of them.",
                )
        self.members.sort(key=lambda member: (_rank(member.name), member.name.encode()))
        self.left_out.sort(key=lambda left: os.fsencode(left.path))

    def keep(self, names: Iterable[str]) -> None:
        """Leaves just these members, in this order."""
        members = {member.name: member for member in self.members}
        self.members = [members[name] for name in names]

    def holds(self, name: str) -> bool:
        """True when there is a member of that name."""
        return any(member.name == name for member in self.members)

    @property
    def size(self) -> int:
        """Bytes in all, as far as they are known."""
        return sum(member.size for member in self.members)


def _holds_nothing(tree: SourceTree, path: str) -> bool:
    """True for an empty folder or file, which rappd makes in every workspace: that it stays behind is not named."""
    try:
        return tree.is_bare(path)
    except (OSError, BadFileError):
        return False


def _is_utf8(name: str) -> bool:
    return name.isascii() or not any("\udc80" <= sign <= "\udcff" for sign in name)


def _waits(member: Member) -> bool:
    """True for a file of the kinds that may be held."""
    return member.file is not None and (
        is_code(member.file.name) or is_workflow(member.path) or decides(member.path)
    )


def _unless_held(member: Member, is_held: IsHeld) -> Content | None:
    content = member.open()
    if content is not None and not isinstance(content, bytes):
        content = b"".join(content)
    if content is not None and member.file is not None and is_held(member.file, _sha256(content)):
        raise TwinConflictError(f"{shown(member.path)} changed while it was packed.", do="Try again.")
    return content


def _sha256(content: Content | None) -> str:
    digest = hashlib.sha256()
    for piece in (content or b"",) if isinstance(content, bytes | None) else content:
        digest.update(piece)
    return digest.hexdigest()


def _rank(name: str) -> int:
    return FIRST.index(name) if name in FIRST else len(FIRST)


def _unless_empty(pieces: Iterable[bytes]) -> Iterator[bytes] | None:
    source = iter(pieces)
    first = next(source, None)
    return None if first is None else _rejoined(first, source)


def _rejoined(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest
