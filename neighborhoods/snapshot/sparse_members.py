"""Holes of files in a tar stream: members of type ``S`` in GNU's old form, which GNU tar and bsdtar lay out as they were.

Both write the zeros of a plain member to the disk; BusyBox knows no other.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from agents.storage.sparse_file import is_hole

LEAST = 1 << 20
"""Bytes of the smallest file whose holes are looked for."""

_PIECE = 1 << 16
_MOST_RUNS = 10_000
"""A file in more runs of data goes as a plain one: its map would be as long as a small file."""
_BLOCK = 512
_HEADER = (386, 4, 482)
"""In a header: the offset of the map, its number of runs, the offset of the mark that more follow in a block of their own."""
_MORE = (0, 21, 504)
_REAL_SIZE = 483
_CHECKSUM = slice(148, 156)


class Run(NamedTuple):
    """Bytes of a file between two holes: whole blocks, but at the file's end, since each run begins a block in a member."""

    start: int
    size: int


def data_runs(content: Iterable[bytes]) -> list[Run] | None:
    """Returns the runs of data of a file with holes; None for one that has none, or too many."""
    runs: list[Run] = []
    at = 0
    has_hole = False
    for piece in _even(content):
        if is_hole(piece):
            has_hole = True
        elif runs and sum(runs[-1]) == at:
            runs[-1] = Run(runs[-1].start, runs[-1].size + len(piece))
        else:
            runs.append(Run(at, len(piece)))
        at += len(piece)
        if len(runs) > _MOST_RUNS:
            return None
    if not has_hole:
        return None
    if not runs or sum(runs[-1]) < at:
        runs.append(Run(at, 0))  # tells the end of a file that ends in a hole
    return runs


def data_of(content: Iterable[bytes]) -> Iterator[bytes]:
    """The bytes of the runs that ``data_runs`` finds in the same content."""
    return (piece for piece in _even(content) if not is_hole(piece))


def sparse_header(info: tarfile.TarInfo, runs: Sequence[Run]) -> bytes:
    """The blocks before the data of a member with these runs; ``info.size`` is the size of the whole file."""
    whole, info.size, info.type = info.size, sum(run.size for run in runs), tarfile.GNUTYPE_SPARSE
    octets = bytearray(info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape"))
    header = octets[-_BLOCK:]  # a long name comes in blocks before it
    rest = _enter(header, runs, *_HEADER)
    header[_REAL_SIZE : _REAL_SIZE + 12] = _number(whole)
    header[_CHECKSUM] = b" " * 8
    header[_CHECKSUM] = b"%06o\0 " % sum(header)
    octets[-_BLOCK:] = header
    while rest:
        block = bytearray(_BLOCK)
        rest = _enter(block, rest, *_MORE)
        octets += block
    return bytes(octets)


def _enter(block: bytearray, runs: Sequence[Run], at: int, most: int, more: int) -> Sequence[Run]:
    """Writes as many runs into a block as it takes; returns the rest."""
    for run in runs[:most]:
        block[at : at + 24] = _number(run.start) + _number(run.size)
        at += 24
    block[more] = len(runs) > most
    return runs[most:]


def _number(value: int) -> bytes:
    if value < 8**11:
        return b"%011o\0" % value
    return b"\x80" + value.to_bytes(11, "big")


def _even(content: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces of one size, of which each is a hole or data."""
    batch = bytearray()
    for piece in content:
        batch += piece
        whole = len(batch) - len(batch) % _PIECE
        for at in range(0, whole, _PIECE):
            yield bytes(batch[at : at + _PIECE])
        del batch[:whole]
    if batch:
        yield bytes(batch)
