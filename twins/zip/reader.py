"""Reading an archive: everything dangerous is refused on opening, everything damaged while streaming."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from twins.byte_sizes import format_bytes
from twins.errors import BadEggError, HostileEggError
from twins.fs.untrusted_names import LEAVE_IT, NameSet, shown
from twins.zip.archive_bounds import Allowance, FileSlice, Limits
from twins.zip.central_directory import read_directory
from twins.zip.chunks import PIECE
from twins.zip.deflate import InflateError, crc32, inflating
from twins.zip.local_headers import LocatedMember, Member, locate, locate_one
from twins.zip.ordered_pool import OrderedThreadPool, in_tasks
from twins.zip.record_formats import CENTRAL, EPOCH, UTF8

_TAKEN = 1 << 18

__all__ = ["PIECE", "Archive", "Member"]


class Archive:
    """A ZIP archive that was looked through: names, kinds, sizes and places of all members are checked.

    ``folders`` are the folders it lists by themselves, ``deviations`` oddities that were let pass, one
    sentence each, ``total`` the bytes of all files. Contents are checked while they are read. A context
    manager; threads may read at the same time.

    One opened for a ``glance`` was judged by the list of its files alone; the record in front of a file is
    read with the file, and all of them by ``look_through``.
    """

    def __init__(
        self, window: FileSlice, allowance: Allowance, depth: int = 1, *, glance: bool = False
    ) -> None:
        """Takes ``window`` over and closes it when the archive is refused. Use ``Archive.open``."""
        self._window = window
        self._allowance = allowance
        self._depth = depth
        self._oddities: dict[str, None] = {}
        self._located: LocatedMember | None = None
        self._members: dict[str, Member] = {}
        try:
            self._directory = read_directory(window, allowance.limits, self._oddities)
            self._judge_list()
            if not glance:
                self.look_through()
        except BaseException:
            window.close()
            raise

    def _judge_list(self) -> None:
        directory = self._directory
        if directory.plain is not None:
            self.total = self._allowance.take(directory.plain.sizes)
            return
        self.total = self._allowance.take(entry.size for entry in directory.entries)
        names = NameSet()
        for entry in directory.entries:
            if entry.name:
                names.add(entry.name, folder=entry.folder)

    def look_through(self) -> None:
        """Reads the record in front of every file. Raises as ``open``; a second time it does nothing."""
        if self._located is None:
            located = locate(self._window, self._directory, self._oddities)
            self._members = {member.name: member for member in located.members}
            self._located = located

    @property
    def members(self) -> tuple[Member, ...]:
        """The archive's files in the order of its list."""
        self.look_through()
        assert self._located is not None
        return tuple(self._located.members)

    @property
    def names(self) -> list[str]:
        """The names of the archive's files."""
        return list(self._directory.files)

    @property
    def sizes(self) -> Mapping[str, int]:
        """The names of the archive's files, with the bytes that each unpacks to."""
        return self._directory.files

    @property
    def folders(self) -> tuple[str, ...]:
        return self._directory.folders

    @property
    def deviations(self) -> list[str]:
        return list(self._oddities)

    @classmethod
    def open(cls, path: Path, *, limits: Limits | None = None, glance: bool = False) -> Archive:
        """Opens a file and refuses it whole, before anything is unpacked, if it could do harm.

        Raises ``HostileEggError`` (made to do harm), ``BadEggError`` (damaged, no ZIP, or packed in a way that
        cannot be read here), ``NoSuchFileError``, ``BadFileError`` (not a regular file).
        """
        window = FileSlice.of(path)
        return cls(window, Allowance(limits or Limits(), window.length), glance=glance)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Gives the file back; twice is once."""
        self._window.close()

    def __contains__(self, name: str) -> bool:
        return name in self._directory.files

    def size_of(self, name: str) -> int:
        """The bytes that a file unpacks to. Raises ``BadEggError`` when there is none of that name."""
        try:
            return self._directory.files[name]
        except KeyError:
            raise self._missing(name) from None

    def member(self, name: str) -> Member:
        """The file of exactly this name. Raises ``BadEggError`` when there is none."""
        found = self._members.get(name)
        if found is None:
            if self._located is not None or name not in self:
                raise self._missing(name)
            found = self._members[name] = locate_one(self._window, self._directory, name)
        return found

    def chunks(self, name: str) -> Iterator[bytes]:
        """The content, in pieces of at most ``PIECE`` bytes; size and CRC have held when it ends.

        Raises ``BadEggError`` for damage and ``HostileEggError`` for more bytes than declared, in the middle too:
        what was written of it is to be thrown away.
        """
        member = self.member(name)
        if member.size <= PIECE and member.compressed <= PIECE:
            return iter((self._whole(member),) if member.size else self._empty(member))
        return self._stored(member) if member.stored else self._inflated(member)

    def read(self, name: str, *, limit: int = 16 << 20) -> bytes:
        """All of a file that has at most ``limit`` bytes. Raises ``BadEggError`` for a larger one."""
        member = self.member(name)
        if member.size > limit:
            raise BadEggError(
                f"{shown(name)} is too large ({format_bytes(member.size)}); nothing was written", do=LEAVE_IT
            )
        return b"".join(self.chunks(name))

    def digest(self, name: str) -> str:
        """SHA-256 of the content, in hex; read and checked like ``chunks``."""
        digest = hashlib.sha256()
        for chunk in self.chunks(name):
            digest.update(chunk)
        return digest.hexdigest()

    def verify(self) -> None:
        """Reads every file to its end, on all cores. Raises as ``chunks`` does at the first that is not whole."""
        self.look_through()
        with OrderedThreadPool[None]() as ahead:
            tasks = in_tasks(self.sizes.items())
            for _ in ahead.each(partial(self._verify_all, names, ahead) for names in tasks):
                pass

    def _verify_all(self, names: list[str], ahead: OrderedThreadPool[None]) -> None:
        for name in names:
            for _ in ahead.unless_stopped(self.chunks(name)):
                pass

    def rapp1_deviations(self) -> list[str]:
        """Differences from the exact layout of RAPP/1 eggs, one sentence each; empty for none.

        That members are stored, which files there are and in what order is for the caller to compare.
        """
        self.look_through()
        assert self._located is not None
        bare = self._directory.bare and self._located.bare
        found = departures(self._directory.heads, folders=self._directory.any_folder, bare=bare)
        return found + [oddity for oddity in self.deviations if oddity not in found]

    def nested(self, name: str) -> Archive:
        """The archive that a member is, opened as strictly; what it holds counts with all that holds it.

        Raises as ``open``, and ``HostileEggError`` deeper than ``Limits.nesting``.
        """
        member = self.member(name)
        if self._depth >= self._allowance.limits.nesting:
            raise self._window.hostile(f"{shown(name)} is an archive too deep inside others")
        if member.stored:
            self.digest(name)
            inner = self._window.part(member.data, member.size, shown(name))
        else:
            with tempfile.TemporaryFile() as copy:
                for chunk in self.chunks(name):
                    copy.write(chunk)
                copy.flush()
                inner = FileSlice(os.dup(copy.fileno()), 0, member.size, shown(name))
        return Archive(inner, self._allowance, self._depth + 1)

    def _whole(self, member: Member) -> bytes:
        octets = self._window.read(member.data, member.compressed)
        if member.stored:
            content = octets
        else:
            stream = inflating()
            try:
                content = stream.decompress(octets, member.size + 1)
            except InflateError as error:
                raise self._window.damaged(shown(member.name)) from error
            if len(content) > member.size:
                raise self._overflows(member)
            if not stream.eof or stream.unused_data or len(content) < member.size:
                raise self._window.damaged(shown(member.name))
        if crc32(content) != member.crc:
            raise self._window.damaged(shown(member.name))
        return content

    def _empty(self, member: Member) -> Iterator[bytes]:
        self._whole(member)
        return iter(())

    def _stored(self, member: Member) -> Iterator[bytes]:
        crc = 0
        for at in range(0, member.size, PIECE):
            piece = self._window.read(member.data + at, min(PIECE, member.size - at))
            crc = crc32(piece, crc)
            yield piece
        if crc != member.crc:
            raise self._window.damaged(shown(member.name))

    def _inflated(self, member: Member) -> Iterator[bytes]:
        stream = inflating()
        at, left = member.data, member.compressed
        size = crc = 0
        octets = b""
        while not stream.eof:
            if not octets and left:
                octets = self._window.read(at, min(left, _TAKEN))
                at += len(octets)
                left -= len(octets)
            before = len(octets)
            try:
                piece = stream.decompress(octets, PIECE)
            except InflateError as error:
                raise self._window.damaged(shown(member.name)) from error
            octets = stream.unconsumed_tail
            if not piece and len(octets) == before and not stream.eof:
                break
            size += len(piece)
            if size > member.size:
                raise self._overflows(member)
            crc = crc32(piece, crc)
            if piece:
                yield piece
        if not stream.eof or stream.unused_data or octets or left or size != member.size or crc != member.crc:
            raise self._window.damaged(shown(member.name))

    def _missing(self, name: str) -> BadEggError:
        return BadEggError(
            f"{self._window.label} holds no {shown(name)}; nothing was written", do="get it again"
        )

    def _overflows(self, member: Member) -> HostileEggError:
        return self._window.hostile(
            f"{shown(member.name)} unpacks to more than the {member.size} bytes it names"
        )


_VERSION = 20
_VARYING = slice(16, 32)  # CRC, sizes and lengths; with the offset they alone may differ from file to file
_UNVARYING_END = CENTRAL.size - 4


def departures(heads: Iterable[bytes], *, folders: bool, bare: bool) -> list[str]:
    """One sentence for each way in which the records differ from the layout. ``heads`` are their fixed parts."""
    found: dict[str, None] = {}
    for head in {
        head[: _VARYING.start] + head[_VARYING.stop : _UNVARYING_END]: head for head in heads
    }.values():
        _, made, needed, flags, _, time, date, _, _, _, _, _, _, _, inner, outer, _ = CENTRAL.unpack(head)
        if (made, needed) != (_VERSION, _VERSION):
            found["The archive names another ZIP version than 2.0."] = None
        if flags != UTF8:
            found["Names are not marked as UTF-8, or more than that is marked."] = None
        if (time, date) != EPOCH:
            found["Files carry other times than 1980-01-01."] = None
        if inner or outer:
            found["Files carry attributes."] = None
    if folders:
        found["Folders are listed."] = None
    if not bare:
        found["Records carry comments, extra fields, or differ from the list."] = None
    return list(found)
