"""A list that is judged in one go is judged as record by record, and without ISA-L as with it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from struct import pack
from zlib import crc32

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.twins.eggs.crafted_zip import DEFLATED, STORED, UTF8, Crafted, built, extra_field
from tests.twins.eggs.hostile_corpus import HOSTILE
from twins.errors import BadEggError
from twins.zip import central_directory
from twins.zip.archive_bounds import FileSlice, Limits
from twins.zip.reader import Archive
from twins.zip.writer import ArchiveWriter

_PIECE = st.text(
    st.sampled_from([*"abAB.-+=_@ ~:(%\\éÉßſ\u212a\u0301\u200c\u2009\x01\x7f"]), min_size=0, max_size=4
)
NAMES = st.lists(
    st.one_of(
        st.lists(st.sampled_from(["a", "A", "b", "a.py", ".a", "..", ".", "", "a."]), min_size=1, max_size=3),
        st.lists(_PIECE, min_size=1, max_size=3),
    ).map("/".join),
    min_size=1,
    max_size=6,
)


def outcome(path: Path, octets: bytes) -> object:
    """The content of an archive, or the reason why it is refused."""
    path.write_bytes(octets)
    try:
        with Archive.open(path) as archive:
            return archive.members, archive.folders, archive.total, archive.deviations
    except BadEggError as refused:
        return str(refused)


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(NAMES)
@example(["a/b", "A/c"])
@example(["a", "a/b"])
@example(["a/b", "a"])
@example(["a", "A"])
@example(["/".join("a" * 70)])
@example(["a" * 256])
@example(["a/.-b"])
@example(["PK\x01\x02"])
@example(["page 1 (draft).html", "page 2.html"])
@example(["gärten/a", "GÄRTEN/b"])
@example(["straße", "STRASSE"])
@example(["e\u0301", "é"])
@example(["a \u0301"])
@example(["a ", "b"])
@example(["\u200ca", "a"])
def test_names_are_taken_or_refused_alike(tmp_path: Path, names: list[str]) -> None:
    octets = built([Crafted(name.encode(), b"x") for name in names])
    at_once = outcome(tmp_path / "x.egg", octets)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(central_directory, "columns", lambda *_: None)
        assert outcome(tmp_path / "x.egg", octets) == at_once


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_archives_with_wrong_bytes_are_taken_or_refused_alike(tmp_path: Path, data: st.DataObject) -> None:
    octets = bytearray(
        built(
            Crafted(f"a/{name}".encode(), b"x" * 40, method=method)
            for name, method in (("b", STORED), ("ü", DEFLATED), ("c", STORED))
        )
    )
    for _ in range(data.draw(st.integers(1, 3))):
        octets[data.draw(st.integers(0, len(octets) - 1))] = data.draw(
            st.sampled_from([0, 1, 2, 8, 46, 47, 255])
        )
    at_once = outcome(tmp_path / "x.egg", bytes(octets))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(central_directory, "columns", lambda *_: None)
        assert outcome(tmp_path / "x.egg", bytes(octets)) == at_once


TIMES = extra_field(0x5455, b"\3abcd")
OWNERS = extra_field(0x7875, b"\1\4abcd\4abcd")
EXTRAS = [
    b"",
    TIMES,
    TIMES + OWNERS,
    OWNERS + TIMES,
    extra_field(0x5455, b"\1wxyz"),
    extra_field(0x7875, b""),
    extra_field(1, bytes(8)),
    extra_field(0x9901, b"ab"),
    extra_field(0x756E, bytes(14)),
    extra_field(0x7075, b"\1" + pack("<I", crc32(b"a")) + b"b"),
    b"\0\0",
    b"UT\x09\0abc",
]
MEMBERS = st.builds(
    Crafted,
    st.sampled_from(
        [b"a", b"a/", b"A/", b"a/b", b"a/b/", b"b/c", b"b/", b"./", b"B", "ü/".encode(), "ü/a".encode()]
    ),
    st.sampled_from([b"", b"x", b"xyz" * 9]),
    method=st.sampled_from([STORED, DEFLATED]),
    attributes=st.sampled_from([0, 0x10, 0o040755 << 16 | 0x10, 0o100644 << 16, 0o120777 << 16]),
    central=st.sampled_from(EXTRAS).map(lambda extra: {"extra": extra}),
)


@settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(MEMBERS, min_size=1, max_size=4))
def test_folders_and_extra_fields_are_taken_or_refused_alike(tmp_path: Path, members: list[Crafted]) -> None:
    octets = built(members)
    at_once = outcome(tmp_path / "x.egg", octets)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(central_directory, "columns", lambda *_: None)
        assert outcome(tmp_path / "x.egg", octets) == at_once


@pytest.mark.parametrize("flags", [0, UTF8])
@pytest.mark.parametrize("name", ["gärten/a b.md".encode(), "gärten/a b.md".encode("cp437")])
def test_letters_are_read_alike_whatever_their_marks(tmp_path: Path, name: bytes, flags: int) -> None:
    octets = built([Crafted(name, b"x", flags=flags), Crafted(b"b", b"y", flags=UTF8)])
    at_once = outcome(tmp_path / "x.egg", octets)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(central_directory, "columns", lambda *_: None)
        assert outcome(tmp_path / "x.egg", octets) == at_once


@pytest.mark.parametrize("extra", [b"", TIMES + OWNERS])
def test_a_plain_list_is_read_in_one_go(tmp_path: Path, extra: bytes) -> None:
    path = tmp_path / "x.egg"
    files = [Crafted(f"gärten/{number} (1).md".encode(), b"x", extra=extra) for number in range(300)]
    path.write_bytes(built([Crafted("gärten/".encode(), attributes=0o040755 << 16 | 0x10), *files]))
    window = FileSlice.of(path)
    found = central_directory.read_directory(window, Limits(), {})
    window.close()
    assert found.plain is not None
    assert len(found.files) == 300
    assert found.folders == ("gärten",)


STORY = b"".join(b"line %d of a long story\n" % n for n in range(100_000))


def test_the_same_archives_on_zlib(tmp_path: Path) -> None:
    late = {one.name: one.says for one in HOSTILE if one.late}
    for one in HOSTILE:
        if one.late:
            (tmp_path / one.name).write_bytes(one.octets)
    with (tmp_path / "ours.egg").open("wb") as file:
        writer = ArchiveWriter(file)
        writer.add("short", STORY[:1000])
        writer.add("story", STORY)
        writer.finish()
    script = f"""
import json, sys
sys.modules["isal"] = None
from pathlib import Path
from twins.zip import deflate
from twins.zip.reader import Archive
from twins.zip.writer import ArchiveWriter
from twins.errors import BadEggError
root = Path({str(tmp_path)!r})
said = {{"codec": deflate.CODEC}}
for name in {sorted(late)!r}:
    try:
        with Archive.open(root / name) as archive:
            archive.verify()
    except BadEggError as refused:
        said[name] = str(refused)
with Archive.open(root / "ours.egg") as archive, (root / "theirs.egg").open("wb") as file:
    writer = ArchiveWriter(file)
    for member in archive.members:
        writer.add(member.name, archive.chunks(member.name))
    writer.finish()
print(json.dumps(said))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said.pop("codec") == "zlib"
    assert said.keys() == late.keys()
    assert all(says in said[name] for name, says in late.items())
    with Archive.open(tmp_path / "theirs.egg") as archive:
        assert archive.read("story") == STORY
        assert archive.read("short") == STORY[:1000]
        assert not any(member.stored for member in archive.members)
