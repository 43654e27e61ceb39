"""Archives made to do harm: refused whole, in one line, before anything is written."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.twins.eggs import hostile_corpus
from tests.twins.eggs.crafted_zip import DEFLATED, Crafted, built
from tests.twins.eggs.hostile_corpus import HOSTILE, Hostile, nested, zeros
from twins.errors import BadEggError, HostileEggError
from twins.zip.archive_bounds import Limits
from twins.zip.extracting import extract
from twins.zip.reader import Archive


def open_files() -> int:
    """The number of descriptors this process holds; 0 where that cannot be seen."""
    listed = Path("/proc/self/fd")
    return len(list(listed.iterdir())) if listed.exists() else 0


@pytest.fixture
def handles() -> Iterator[None]:
    """Nothing that was opened stays open."""
    before = open_files()
    yield
    assert open_files() <= before


def put(folder: Path, octets: bytes) -> Path:
    path = folder / "gardener.egg"
    path.write_bytes(octets)
    return path


def test_the_corpus_names_its_archives_once() -> None:
    assert len({one.name for one in HOSTILE}) == len(HOSTILE)


def test_without_the_harm_the_same_archive_is_read(tmp_path: Path) -> None:
    with Archive.open(put(tmp_path, hostile_corpus.honest())) as archive:
        assert {one.name: archive.read(one.name) for one in archive.members} == hostile_corpus.HONEST
        assert archive.deviations == []


@pytest.mark.parametrize("hostile", HOSTILE, ids=repr)
def test_hostile_archives_are_refused(hostile: Hostile, tmp_path: Path, handles: None) -> None:
    path = put(tmp_path, hostile.octets)
    if hostile.late:
        with Archive.open(path) as archive, pytest.raises(BadEggError) as refused:
            archive.verify()
    else:
        with pytest.raises(BadEggError) as refused:
            Archive.open(path)
    sentence = str(refused.value)
    assert hostile.says in sentence
    assert sentence.isprintable()
    assert len(sentence) < 200
    assert refused.value.do
    assert "refused whole" in sentence or "nothing was written" in sentence


@pytest.mark.parametrize("hostile", [one for one in HOSTILE if one.late], ids=repr)
def test_what_only_shows_in_the_contents_stops_extraction(hostile: Hostile, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with Archive.open(put(tmp_path, hostile.octets)) as archive, pytest.raises(BadEggError):
        extract(archive, out)
    written = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    assert written < 8 << 20


def test_the_sentences_of_the_design(tmp_path: Path) -> None:
    said = {one.name: one for one in HOSTILE}
    with pytest.raises(HostileEggError) as refused:
        Archive.open(put(tmp_path, said["name-parent"].octets))
    assert str(refused.value) == "This egg writes outside its folder; refused whole"
    assert refused.value.do == "don't use it"
    with (
        Archive.open(put(tmp_path, said["crc-0"].octets)) as archive,
        pytest.raises(BadEggError) as refused_late,
    ):
        archive.read("data/notes")
    assert str(refused_late.value) == "gardener.egg is damaged (data/notes); nothing was written"
    assert refused_late.value.do == "get it again"


def test_a_gigabyte_behind_ten_bytes_costs_no_memory(tmp_path: Path) -> None:
    """Read in a process that may take only little more memory than it has at the start."""
    names = ("size-10-of-1-gb", "size-3-mb-of-1-gb", "bomb-manifest-of-1-gb", "bomb-count")
    for name in names:
        (tmp_path / name).write_bytes(next(one.octets for one in HOSTILE if one.name == name))
    script = f"""
import resource, sys
from pathlib import Path
from twins.zip.reader import Archive
from twins.errors import HostileEggError
pages = int(Path("/proc/self/statm").read_text().split()[0])
most = pages * resource.getpagesize() + (100 << 20)
resource.setrlimit(resource.RLIMIT_AS, (most, most))
for name in {names!r}:
    try:
        with Archive.open(Path({str(tmp_path)!r}) / name) as archive:
            archive.verify()
    except HostileEggError:
        print(name)
"""
    if not Path("/proc/self/statm").exists():
        pytest.skip("needs /proc")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100)
    assert done.stdout.split() == list(names), done.stderr


def test_a_manifest_above_the_cap_is_not_read(tmp_path: Path) -> None:
    path = put(tmp_path, built([Crafted(b"manifest.json", b" " * (17 << 20), DEFLATED)]))
    with Archive.open(path) as archive:
        with pytest.raises(BadEggError, match=r"manifest\.json is too large \(18 MB\); nothing was written"):
            archive.read("manifest.json")
        assert len(archive.read("manifest.json", limit=17 << 20)) == 17 << 20


def test_limits_of_the_callers_own(tmp_path: Path) -> None:
    path = put(tmp_path, built([Crafted(b"%d" % n, b"x" * 100) for n in range(10)]))
    for limits in (Limits(members=9), Limits(total=999), Limits(member_size=99)):
        with pytest.raises(HostileEggError):
            Archive.open(path, limits=limits)
    Archive.open(path, limits=Limits(members=10, total=1000, member_size=100)).close()


def test_what_shrinks_well_but_is_small_is_no_bomb(tmp_path: Path) -> None:
    log = Crafted(b"log", bytes(32 << 20), DEFLATED, data=zeros(32 << 20))
    with Archive.open(put(tmp_path, built([log]))) as archive:
        archive.verify()
    with pytest.raises(HostileEggError, match="times its size"):
        Archive.open(tmp_path / "gardener.egg", limits=Limits(harmless=1 << 20))


@pytest.mark.parametrize("method", [0, DEFLATED])
def test_archives_inside_archives(method: int, tmp_path: Path, handles: None) -> None:
    with (
        Archive.open(put(tmp_path, nested(4, method=method))) as first,
        first.nested("inner.egg") as second,
        second.nested("inner.egg") as third,
    ):
        with pytest.raises(HostileEggError, match="too deep"):
            third.nested("inner.egg")
        assert len(third.read("inner.egg")) == third.member("inner.egg").size


def test_an_archive_inside_is_looked_through_as_strictly(tmp_path: Path, handles: None) -> None:
    for hostile in HOSTILE:
        if hostile.late or len(hostile.octets) > 1 << 20 or hostile.name.startswith("bomb"):
            continue
        outer = built([Crafted(b"inner.egg", hostile.octets), Crafted(b"after", b"hidden" * 20)])
        with Archive.open(put(tmp_path, outer)) as archive:
            with pytest.raises(BadEggError) as refused:
                archive.nested("inner.egg")
            assert "gardener.egg" not in str(refused.value)


def test_a_damaged_archive_inside_is_found(tmp_path: Path) -> None:
    inner = Crafted(b"inner.egg", nested(1), crc=5)
    with (
        Archive.open(put(tmp_path, built([inner]))) as archive,
        pytest.raises(BadEggError, match=r"damaged \(inner\.egg\)"),
    ):
        archive.nested("inner.egg")


def test_bombs_add_up_over_the_archives_inside(tmp_path: Path) -> None:
    part = Crafted(b"zeros", method=DEFLATED, data=zeros(40 << 20), crc=0, size=40 << 20)
    eggs = [Crafted(b"%d.egg" % n, built([replace(part)])) for n in range(3)]
    with Archive.open(put(tmp_path, built(eggs))) as archive:
        archive.nested("0.egg").close()
        with pytest.raises(HostileEggError, match="times its size"):
            archive.nested("1.egg")


@pytest.mark.parametrize("hostile", [one for one in HOSTILE if not one.late], ids=repr)
def test_what_a_glance_lets_pass_is_refused_before_it_is_used(
    hostile: Hostile, tmp_path: Path, handles: None
) -> None:
    path = put(tmp_path, hostile.octets)
    with pytest.raises(BadEggError) as refused, Archive.open(path, glance=True) as archive:
        archive.look_through()
    assert hostile.says in str(refused.value)
    with pytest.raises(BadEggError), Archive.open(path, glance=True) as archive:
        archive.verify()


def test_glance_equals_a_full_read(tmp_path: Path) -> None:
    path = put(tmp_path, hostile_corpus.honest())
    with Archive.open(path, glance=True) as archive:
        assert {name: archive.read(name) for name in archive.names} == hostile_corpus.HONEST
        assert {name: archive.size_of(name) for name in archive.names} == {
            name: len(content) for name, content in hostile_corpus.HONEST.items()
        }
        assert "nothing" not in archive
        with pytest.raises(BadEggError, match="holds no nothing"):
            archive.read("nothing")
