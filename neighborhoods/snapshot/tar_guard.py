"""Reads a tar stream from another machine and lets through only what a snapshot may hold.

Nothing in the stream is believed: names are checked, links and devices dropped, sizes counted. It takes ustar,
GNU and pax, as GNU tar, BusyBox tar and bsdtar write them.
"""

from __future__ import annotations

import tarfile
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress

import msgspec

from neighborhoods.errors import BadMemberStreamError, MemberTooLargeError
from twins.byte_sizes import format_bytes
from twins.eggs.writers import exclusions
from twins.errors import HostileEggError
from twins.fs.untrusted_names import NameSet, safe_path, shown

BLOCK = 512
_MOST_HEADER_BYTES = 1 << 20
"""Of one pax header or long name: a name has at most 1,024 bytes, and some carry file attributes beside it."""
_MOST_NAMED = 1000
_MOST_PADDING = 1 << 20
"""Of what follows the end mark: each tar fills its last record, of 10 KB, with zeros."""
_MAX_MTIME = 8**11 - 1
_REGULAR = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE)
_WITHOUT_CONTENT = (
    tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.DIRTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE,
)  # fmt: skip
_HOLES = "is stored with holes, which is not read"
LEFT_OUT = "RAPPD.left_out"
"""The pax key under which a sender's reason stands. The entry is a link, which no reader lets through."""
LISTED = "RAPPD.listed"
"""The key of a global pax header with names that the sender found, before it left any out; a NUL ends each."""
_MOST_LISTED_BYTES = 64 << 20
"""Of names that are kept; where there are more, none is compared."""
UNEXPLAINED = "was there, and did not come; nothing says why"
"""The reason of a name that the sender found, and neither sent nor named."""
_REASONS = frozenset(reason.value for reason in exclusions.ExclusionReason)
_LINKS = (tarfile.LNKTYPE, tarfile.SYMTYPE)
_LONG = (
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
)


class TarEntry(msgspec.Struct, frozen=True):
    """A regular file: its path below the twin's folder. ``mtime`` is in whole seconds.

    With ``left_out`` it is the name alone of what the sender keeps back for that reason, a file or a folder.
    """

    path: str
    size: int
    executable: bool = False
    mtime: int = 0
    left_out: str = ""


class LeftOut(msgspec.Struct, frozen=True):
    """A name of the stream that was not let through, fit to be shown, and the reason."""

    path: str
    reason: str
    is_odd: bool = False
    """True for a file that its owner would miss: it stays out for its name or form alone."""


class TarLimits(msgspec.Struct, frozen=True):
    """Bounds of one stream: bytes of files that are let through, bytes and entries in all, and seconds."""

    file_bytes: int = 16 << 30
    stream_bytes: int = 64 << 30
    entries: int = 500_000
    seconds: float = 6 * 3600.0


class TarGuard:
    """Incremental reader of one stream. It keeps names and no content.

    ``root`` is a first folder that is taken off the names that have it: the hash, in a snapshot's archives.
    """

    def __init__(self, *, root: str = "", limits: TarLimits | None = None) -> None:
        self._root = f"{root}/".encode() if root else b""
        self._limits = limits or TarLimits()
        self._until = time.monotonic() + self._limits.seconds
        self._buffer = bytearray()
        self._names = NameSet()
        self._content = 0  # bytes of the present member that are still to come
        self._padding = 0
        self._passes = False
        self._header: bytearray | None = None  # a pax header or long name on its way
        self._header_type = b""
        self._pax: dict[bytes, bytes] = {}
        self._has_more_sparse = False
        self._stream_bytes = self._entries = self._after_end = 0
        self.is_over = False
        self.file_bytes = 0
        self.files = 0
        self.left_out: list[LeftOut] = []
        """The first thousand names that were not let through; a folder that stays behind is named once."""
        self._left: set[str] = set()
        self._listed: set[str] = set()
        self._listed_bytes = 0

    def feed(self, piece: bytes) -> list[TarEntry | bytes]:
        """Returns the files of the next bytes of the stream: an entry, then its content in one or more pieces.

        Raises ``BadMemberStreamError`` for what is no tar, ``MemberTooLargeError`` beyond the limits.
        """
        self._count(len(piece))
        if self.is_over:
            self._after_end += len(piece)
            if self._after_end > _MOST_PADDING:
                raise BadMemberStreamError(
                    "The stream of files goes on after its end.", do="Look what tar is there."
                )
            return []
        events: list[TarEntry | bytes] = []
        at = 0
        while at < len(piece) and not self.is_over:
            if self._content:
                portion = piece[at : at + self._content]
                at += len(portion)
                self._content -= len(portion)
                if self._header is not None:
                    self._header += portion
                    if not self._content:
                        self._finish_header()
                elif self._passes:
                    events.append(portion)
            elif self._padding:
                skipped = min(self._padding, len(piece) - at)
                at += skipped
                self._padding -= skipped
            else:
                portion = piece[at : at + BLOCK - len(self._buffer)]
                at += len(portion)
                self._buffer += portion
                if len(self._buffer) == BLOCK:
                    block = bytes(self._buffer)
                    self._buffer.clear()
                    self._take_block(block, events)
        return events

    def close(self) -> None:
        """Raises ``BadMemberStreamError`` when the stream ended before its end mark."""
        if not self.is_over:
            raise BadMemberStreamError("The stream of files was cut off.", do="Try again.")
        for path in sorted(self._listed):
            above = path.split("/")
            if not any("/".join(above[:n]) in self._left for n in range(1, len(above) + 1)):
                self._leave_out(path, UNEXPLAINED)

    def _count(self, added: int) -> None:
        self._stream_bytes += added
        if self._stream_bytes > self._limits.stream_bytes:
            raise MemberTooLargeError(
                f"More than {format_bytes(self._limits.stream_bytes)} arrived.",
                do="Look there for what is so large, or raise the limit.",
            )
        if time.monotonic() > self._until:
            raise MemberTooLargeError(
                f"The stream took longer than {self._limits.seconds:g} s.",
                do="Try again on a faster network.",
            )

    def _take_block(self, block: bytes, events: list[TarEntry | bytes]) -> None:
        if self._has_more_sparse:
            self._has_more_sparse = block[504] != 0
            return
        if not block.strip(b"\0"):
            self.is_over = True
            return
        try:
            header = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except (tarfile.HeaderError, ValueError) as error:
            raise BadMemberStreamError(
                "The stream of files is no tar archive, or it is damaged.", do="Try again."
            ) from error
        self._entries += 1
        if self._entries > self._limits.entries:
            raise MemberTooLargeError(
                f"More than {self._limits.entries:,} files arrived.",
                do="Look there for a folder of scratch files, or raise the limit.",
            )
        if header.type in _LONG:
            self._begin_header(header)
        else:
            self._begin_member(header, block, events)

    def _begin_header(self, header: tarfile.TarInfo) -> None:
        if not 0 <= header.size <= _MOST_HEADER_BYTES:
            raise BadMemberStreamError("A header in the stream is too large.", do="Look what runs there.")
        self._header, self._header_type = bytearray(), header.type
        self._expect(header.size)
        if not header.size:
            self._finish_header()

    def _finish_header(self) -> None:
        content, self._header = bytes(self._header or b""), None
        if self._header_type == tarfile.GNUTYPE_LONGNAME:
            self._pax.setdefault(b"path", content.rstrip(b"\0"))
        elif self._header_type in (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE):
            self._pax.update(_pax_records(content))
        elif LISTED.encode() in content:
            self._take_listed(dict(_pax_records(content)).get(LISTED.encode(), b""))

    def _take_listed(self, names: bytes) -> None:
        self._listed_bytes += len(names)
        if self._listed_bytes > _MOST_LISTED_BYTES:
            self._listed.clear()
            return
        self._listed.update(_as_text(name) for name in names.split(b"\0") if name)

    def _begin_member(self, header: tarfile.TarInfo, block: bytes, events: list[TarEntry | bytes]) -> None:
        pax, self._pax = self._pax, {}
        size, mtime = _pax_number(pax, b"size", header.size), _pax_number(pax, b"mtime", header.mtime)
        if not 0 <= size < 1 << 62:
            raise BadMemberStreamError("A file in the stream has no size.", do="Look what runs there.")
        raw = pax.get(b"path", header.name.encode("utf-8", "surrogateescape"))
        is_sparse = header.type == tarfile.GNUTYPE_SPARSE or any(key.startswith(b"GNU.sparse") for key in pax)
        self._has_more_sparse = header.type == tarfile.GNUTYPE_SPARSE and block[482] != 0
        self._passes = False
        if header.type not in _WITHOUT_CONTENT:
            self._expect(size)
        if header.type == tarfile.DIRTYPE:
            self._take_folder(raw)
            return
        left_out = pax.get(LEFT_OUT.encode(), b"").decode("utf-8", "replace")
        problem = _kind_problem(header.type, is_sparse)
        if problem and left_out in _REASONS:
            problem = left_out
        path = self._checked_path(raw, problem)
        if path is None:
            return
        self.file_bytes += size
        if self.file_bytes > self._limits.file_bytes:
            raise MemberTooLargeError(
                f"More than {format_bytes(self._limits.file_bytes)} of files arrived.",
                do="Raise the limit, or look there for what is so large.",
            )
        self.files += 1
        self._passes = True
        self._listed.discard(path)
        events.append(TarEntry(path, size, bool(header.mode & 0o100), min(max(0, int(mtime)), _MAX_MTIME)))

    def _expect(self, size: int) -> None:
        self._content, self._padding = size, -size % BLOCK

    def _take_folder(self, raw: bytes) -> None:
        """A folder comes with its files, and is named where it stays behind: its sender may send nothing of it."""
        with suppress(UnicodeDecodeError, HostileEggError):
            self._stays_by_name(safe_path(self._below(raw).rstrip(b"/").decode("utf-8")))

    def _below(self, raw: bytes) -> bytes:
        """A name without what stands for the twin's own folder."""
        while raw.startswith(b"./"):
            raw = raw[2:].lstrip(b"/")
        return raw.removeprefix(self._root)

    def _stays_by_name(self, path: str) -> bool:
        """True for what stays behind for its name or that of a folder above, which is recorded."""
        above = ""
        for component in path.split("/"):
            above += component
            if (reason := exclusions.by_name(component)) is not None:
                self._leave_out(above, reason.value)
                return True
            above += "/"
        return False

    def _checked_path(self, raw: bytes, problem: str) -> str | None:
        """The path of a file that is let through, else None after the reason was recorded."""
        raw = self._below(raw)
        try:
            path = raw.decode("utf-8")
        except UnicodeDecodeError:
            self._leave_out(_as_text(raw), "its name is not UTF-8", is_odd=True)
            return None
        try:
            safe_path(path)
        except HostileEggError as error:
            self._leave_out(path, _why_unsafe(error), is_odd=True)
            return None
        if self._stays_by_name(path):
            return None
        if problem:
            self._leave_out(path, problem, is_odd=problem == _HOLES)
            return None
        try:
            self._names.add(path)
        except HostileEggError:
            reason = "another file has this name, or one that some disks take for the same"
            self._leave_out(path, reason, is_odd=True)
            return None
        return path

    def _leave_out(self, path: str, reason: str, *, is_odd: bool = False) -> None:
        if path not in self._left and len(self.left_out) < _MOST_NAMED:
            self.left_out.append(LeftOut(shown(path), reason, is_odd))
        self._left.update((path, path.partition("\n")[0]))  # a list by lines has no more of a name


def read_tar(pieces: Iterable[bytes], guard: TarGuard) -> Iterator[TarEntry | bytes]:
    """The files of a whole stream, as ``TarGuard.feed`` gives them. Raises as it does, and for a cut-off stream."""
    for piece in pieces:
        yield from guard.feed(piece)
    guard.close()


def files_of(events: Iterator[TarEntry | bytes]) -> Iterator[tuple[TarEntry, Iterator[bytes]]]:
    """(entry, content) of each file of ``read_tar``. What is not read of a content is skipped at the next file."""
    for event in events:
        assert isinstance(event, TarEntry)
        content = _content(events, event.size)
        yield event, content
        for _ in content:
            pass


def _content(events: Iterator[TarEntry | bytes], size: int) -> Iterator[bytes]:
    while size:
        piece = next(events)
        assert isinstance(piece, bytes)
        size -= len(piece)
        yield piece


def _as_text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


def _kind_problem(kind: bytes, is_sparse: bool) -> str:
    if kind in _LINKS:
        return exclusions.ExclusionReason.LINK.value
    if is_sparse:
        return _HOLES
    return "" if kind in _REGULAR else exclusions.ExclusionReason.NO_FILE.value


def _pax_records(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The key and value of each record: ``LENGTH KEY=VALUE\\n``, its own length counted."""
    at = 0
    while at < len(content) and content[at]:
        space = content.find(b" ", at, at + 12)
        digits = content[at:space] if space > 0 else b""
        length = int(digits) if digits.isdigit() else 0
        record = content[space + 1 : at + length]
        key, equals, value = record.partition(b"=")
        if length <= space - at + 1 or at + length > len(content) or not equals or value[-1:] != b"\n":
            raise BadMemberStreamError("A header in the stream is damaged.", do="Try again.")
        yield key, value[:-1]
        at += length


def _pax_number(pax: dict[bytes, bytes], key: bytes, other: float) -> int:
    if key not in pax:
        return int(other)
    try:
        return int(pax[key].split(b".")[0] or b"0")
    except ValueError:
        raise BadMemberStreamError("A header in the stream is damaged.", do="Try again.") from None


def _why_unsafe(error: HostileEggError) -> str:
    text = str(error)
    if "too long" in text:
        return "its name is too long"
    if "cannot be shown" in text:
        return "its name holds signs that cannot be shown"
    if "Windows" in text:
        return "Windows cannot hold its name"
    return "its name leads outside the twin's folder"
