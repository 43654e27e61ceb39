"""Archives with any bytes changed: refused in our own words, or read as others read them. Never a hang."""

from __future__ import annotations

import io
import random
import tracemalloc
import zipfile
from pathlib import Path
from struct import pack_into

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.twins.eggs import hostile_corpus
from tests.twins.eggs.crafted_zip import DEFLATED, SIZES_FOLLOW, UTF8, Crafted, built, extra_field
from twins.errors import BadEggError
from twins.zip.reader import Archive
from twins.zip.writer import ArchiveWriter

QUIET = settings(deadline=None, max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])


def _seeds() -> list[bytes]:
    by_zipfile = io.BytesIO()
    with zipfile.ZipFile(by_zipfile, "w", zipfile.ZIP_DEFLATED) as written:
        for name, content in hostile_corpus.HONEST.items():
            written.writestr(name, content)
        written.mkdir("empty")
        with written.open("wide", "w", force_zip64=True) as member:
            member.write(b"wide" * 10)
    ours = io.BytesIO()
    writer = ArchiveWriter(ours)
    writer.add("long", [b"a long story " * 200_000])
    writer.add("short", b"short")
    writer.finish()
    follows = Crafted(b"follows", b"follows " * 9, DEFLATED, flags=UTF8 | SIZES_FOLLOW)
    told = follows.told()
    follows.behind = b"".join(told[key].to_bytes(4, "little") for key in ("crc", "compressed", "size"))
    follows.local = {"crc": 0, "size": 0, "compressed": 0}
    wide = Crafted(b"w", b"w", central={"size": 0xFFFFFFFF, "extra": extra_field(1, b"\1" + bytes(7))})
    return [
        hostile_corpus.honest(),
        by_zipfile.getvalue(),
        ours.getvalue(),
        built([follows, wide], comment=b"a comment"),
        built([]),
    ]


SEEDS = _seeds()
NUMBERS = [0, 1, 8, 22, 0x7F, 0xFF, 0xFFFE, 0xFFFF, 0x10000, 0x7FFFFFFF, 0xFFFFFFFE, 0xFFFFFFFF]


@st.composite
def changed(draw: st.DrawFn) -> bytes:
    """Any of the seeds after a few changes: bytes, numbers, stretches gone, doubled or moved."""
    octets = bytearray(draw(st.sampled_from(SEEDS)))
    records = [at for at in range(len(octets) - 4) if octets[at : at + 2] == b"PK"]
    for _ in range(draw(st.integers(1, 4))):
        if len(octets) < 8:
            break
        near = draw(st.sampled_from(records)) + draw(st.integers(0, 50))
        at = min(draw(st.one_of(st.just(near), st.integers(0, len(octets) - 1))), len(octets) - 5)
        length = draw(st.integers(1, 60))
        kind = draw(st.sampled_from("bbbnnncdmi"))
        if kind == "b":
            octets[at] = draw(st.integers(0, 255))
        elif kind == "n":
            pack_into("<I", octets, at, draw(st.sampled_from([*NUMBERS, at, len(octets), *records])))
        elif kind == "c":
            del octets[at : at + length]
        elif kind == "d":
            octets[at:at] = octets[at : at + length]
        elif kind == "m":
            part = octets[at : at + length]
            del octets[at : at + length]
            to = draw(st.integers(0, len(octets)))
            octets[to:to] = part
        else:
            octets[at:at] = draw(st.binary(min_size=1, max_size=8))
    return bytes(octets)


def outcome(path: Path, octets: bytes) -> dict[str, bytes] | None:
    """All files of the archive, or None when it was refused as it should be."""
    path.write_bytes(octets)
    try:
        with Archive.open(path) as archive:
            archive.verify()
            return {member.name: archive.read(member.name) for member in archive.members}
    except BadEggError as refused:
        assert str(refused).isprintable()
        assert len(str(refused)) < 200
        return None


@QUIET
@given(changed())
@example(b"PK\5\6" + bytes(18))
@example(b"PK\5\6" * 20_000)
@example(bytes(70_000))
def test_changed_archives_read_as_others_or_are_refused(tmp_path: Path, octets: bytes) -> None:
    files = outcome(tmp_path / "changed.egg", octets)
    if files is None:
        return
    with zipfile.ZipFile(io.BytesIO(octets)) as theirs:
        names = [info for info in theirs.infolist() if not info.is_dir()]
        assert len(names) == len(files)
        for info, content in zip(names, files.values(), strict=True):
            assert theirs.read(info) == content


@settings(QUIET, max_examples=200)
@given(st.binary(max_size=400).map(lambda octets: b"PK\3\4" + octets + b"PK\5\6" + bytes(18)))
def test_noise_between_marks(tmp_path: Path, octets: bytes) -> None:
    assert outcome(tmp_path / "noise.egg", octets) is None


@pytest.mark.parametrize("seed", range(len(SEEDS)))
def test_every_cut_is_noticed(seed: int, tmp_path: Path) -> None:
    octets = SEEDS[seed]
    step = max(1, len(octets) // 200)
    for length in range(0, len(octets), step):
        assert outcome(tmp_path / "cut.egg", octets[:length]) is None


def test_every_changed_byte_is_noticed_or_harmless(tmp_path: Path) -> None:
    """In an archive of our own making, whatever byte turns: no content ever differs unnoticed."""
    octets = SEEDS[0]
    chance = random.Random(7)
    for at in range(len(octets)):
        turned = bytearray(octets)
        turned[at] ^= 1 << chance.randrange(8)
        files = outcome(tmp_path / "turned.egg", bytes(turned))
        assert files is None or list(files.values()) == list(hostile_corpus.HONEST.values())


def test_refusing_costs_little_memory(tmp_path: Path) -> None:
    small = [one for one in hostile_corpus.HOSTILE if len(one.octets) < 2 << 20]
    tracemalloc.start()
    try:
        for one in small:
            outcome(tmp_path / "hostile.egg", one.octets)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16 << 20
