"""Archives as they are written: same input, same bytes; flat in memory; nothing that the reader refuses."""

from __future__ import annotations

import hashlib
import io
import os
import random
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.twins.eggs.crafted_zip import Crafted, built
from twins.errors import BadFileError
from twins.fs.untrusted_names import folded
from twins.zip.chunks import PIECE
from twins.zip.reader import Archive
from twins.zip.writer import ArchiveWriter

NOISE = random.Random(1).randbytes(3 * PIECE + 7)
TEXT = b"".join(b"line %d of a long story\n" % n for n in range(200_000))
FILES: dict[str, bytes] = {
    "manifest.json": b'{"schema":"rapp-egg/2.0"}',
    "agents/weather_agent.py": b"print('weather')\n" * 50,
    "données/naïve ✓.txt": "naïve".encode(),
    "data/story.txt": TEXT,
    "data/noise": NOISE,
    "data/one piece": NOISE[:PIECE],
    "data/a piece and more": TEXT[: PIECE + 1],
    "data/empty": b"",
    "data/noise and text": NOISE[: PIECE // 2] + TEXT,
    "data/text and noise": TEXT + NOISE,
}


def packed(files: Mapping[str, bytes | Path | Iterable[bytes]], **how: object) -> bytes:
    file = io.BytesIO()
    writer = ArchiveWriter(file, **how)  # type: ignore[arg-type]
    for name, source in files.items():
        writer.add(name, source)
    assert writer.finish() == len(file.getvalue())
    return file.getvalue()


def test_what_goes_in_comes_out(tmp_path: Path) -> None:
    path = tmp_path / "made.egg"
    with path.open("wb") as file:
        writer = ArchiveWriter(file)
        for name, content in FILES.items():
            written = writer.add(name, content)
            assert written == (name, len(content), hashlib.sha256(content).hexdigest())
        writer.finish()
    with Archive.open(path) as archive:
        assert {one.name: archive.read(one.name) for one in archive.members} == FILES
        assert archive.deviations == []
    with zipfile.ZipFile(path) as theirs:
        assert theirs.testzip() is None
        assert {name: theirs.read(name) for name in theirs.namelist()} == FILES


@pytest.mark.parametrize(
    "command", ["unzip -tqq {}", "7z t -bso0 -bsp0 {}", "bsdtar -xOf {} data/noise", "jar --list --file {}"]
)
def test_other_programs_read_it(command: str, tmp_path: Path) -> None:
    words = command.split()
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    path = tmp_path / "made.egg"
    path.write_bytes(packed(FILES))
    done = subprocess.run(
        [*command.format(path).split()], capture_output=True, env={**os.environ, "LC_ALL": "C.UTF-8"}
    )
    assert done.returncode == 0, done.stderr
    if "-xOf" in words:
        assert done.stdout == NOISE


def test_what_does_not_shrink_is_kept_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "made.egg"
    path.write_bytes(packed(FILES))
    with Archive.open(path) as archive:
        stored = {one.name for one in archive.members if one.stored}
        sizes = {one.name: one.compressed for one in archive.members}
    assert {"data/noise", "data/one piece", "data/empty"} <= stored
    assert not stored & {"agents/weather_agent.py", "data/story.txt", "data/text and noise"}
    assert all(sizes[name] <= len(content) * 1.001 for name, content in FILES.items())
    assert sizes["data/story.txt"] < len(TEXT) / 3
    assert sizes["data/text and noise"] < len(TEXT) / 3 + len(NOISE) * 1.001


@pytest.mark.parametrize("stored", [False, True])
def test_same_input_and_time_give_the_same_bytes(stored: bool, tmp_path: Path) -> None:
    """The bytes are the same for content in memory or in a file, whatever its times, modes and place."""
    moment = datetime(2026, 11, 21, 18, 4, 30, tzinfo=UTC)
    first = packed(FILES, stored=stored, at=moment)
    for folder, mode in (("one", 0o600), ("other", 0o755)):
        sources: dict[str, bytes | Path | Iterable[bytes]] = {}
        for name, content in FILES.items():
            path = tmp_path / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(mode)
            os.utime(path, (mode, mode))
            sources[name] = path
        assert packed(sources, stored=stored, at=moment) == first
    assert packed(FILES, stored=stored, at=moment.astimezone(timezone(timedelta(hours=5)))) == first
    assert packed(FILES, stored=stored) != first


def _in_parts(content: bytes, step: int) -> Iterable[bytes]:
    return (content[at : at + step] for at in range(0, len(content), step))


def test_how_pieces_are_cut_does_not_show() -> None:
    made = {
        packed({name: _in_parts(content, step) for name, content in FILES.items()})
        for step in (1000, PIECE - 1, PIECE, PIECE + 1, 1 << 30)
    }
    assert len(made) == 1


@pytest.mark.parametrize(
    ("at", "shown"),
    [
        (None, (1980, 1, 1, 0, 0, 0)),
        (datetime(2026, 11, 21, 18, 4, 31, tzinfo=UTC), (2026, 11, 21, 18, 4, 30)),
        (datetime(2026, 11, 21, 18, 4, 30), (2026, 11, 21, 18, 4, 30)),
        (datetime(1970, 1, 1, tzinfo=UTC), (1980, 1, 1, 0, 0, 0)),
        (datetime(2200, 12, 31, 23, 59, 59, tzinfo=UTC), (2107, 12, 31, 23, 59, 58)),
    ],
)
def test_times(at: datetime | None, shown: tuple[int, ...]) -> None:
    octets = packed({"a": b"a"}, at=at)
    assert zipfile.ZipFile(io.BytesIO(octets)).getinfo("a").date_time == shown


NAMES = st.text("aäb/.✓ ", min_size=1, max_size=10)


@settings(deadline=None, max_examples=150)
@given(st.dictionaries(NAMES, st.binary(max_size=300), max_size=6))
def test_every_archive_that_is_written_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]
) -> None:
    """A name that no egg may carry is refused by the writer; what it takes, the reader takes."""
    path = tmp_path_factory.mktemp("egg") / "made.egg"
    try:
        path.write_bytes(packed(files))
    except BadFileError as refused:
        assert "cannot go into an egg" in str(refused)
        return
    with Archive.open(path) as archive:
        assert {one.name: archive.read(one.name) for one in archive.members} == files
        assert len({folded(name) for name in files}) == len(files)


@pytest.mark.parametrize(
    "name", ["../up", "/root", "a//b", "a\0b", "C:x", "SOUL.md", "soul.md", "soul.md/x", ""]
)
def test_names_that_no_egg_may_carry(name: str) -> None:
    writer = ArchiveWriter(io.BytesIO())
    writer.add("soul.md", b"here")
    with pytest.raises(BadFileError, match="cannot go into an egg"):
        writer.add(name, b"here")
    with pytest.raises(ValueError, match="failed"):
        writer.add("other", b"here")
    with pytest.raises(ValueError, match="failed"):
        writer.finish()


def test_sources_that_are_no_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (tmp_path / "link").symlink_to(secret)
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", ".", "missing"):
        with pytest.raises(BadFileError):
            ArchiveWriter(io.BytesIO()).add("x", tmp_path / name)


def test_a_file_that_shrinks_while_it_is_packed(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(NOISE)

    class Watching(io.BytesIO):
        def write(self, octets: object) -> int:
            os.truncate(path, PIECE)
            return super().write(octets)  # type: ignore[arg-type]

    with pytest.raises(BadFileError, match="changed while it was packed"):
        ArchiveWriter(Watching()).add("log", path)


def test_only_a_fresh_file_is_written() -> None:
    used = io.BytesIO()
    used.write(b"something")
    with pytest.raises(ValueError, match="first byte"):
        ArchiveWriter(used)
    writer = ArchiveWriter(io.BytesIO())
    writer.finish()
    with pytest.raises(ValueError, match="finished"):
        writer.finish()


def test_more_files_than_short_numbers_count(tmp_path: Path) -> None:
    path = tmp_path / "many.egg"
    with path.open("wb") as file:
        writer = ArchiveWriter(file)
        for number in range(65_536):
            writer.add(f"{number:x}", b"")
        writer.finish()
    with Archive.open(path) as archive:
        assert len(archive.members) == 65_536
    with zipfile.ZipFile(path) as theirs:
        assert len(theirs.namelist()) == 65_536
    if shutil.which("unzip"):
        listed = subprocess.run(["unzip", "-Z1", path], capture_output=True, check=True).stdout
        assert listed.count(b"\n") == 65_536


def test_more_files_than_an_egg_holds() -> None:
    writer = ArchiveWriter(io.BytesIO())
    for number in range(100_000):
        writer.add(f"{number:x}", b"")
    with pytest.raises(BadFileError, match="100000 files at most"):
        writer.add("one more", b"")


def test_what_shrinks_to_nothing_is_no_bomb_to_the_reader(tmp_path: Path) -> None:
    """120 MB of zeros: alone they would shrink a thousandfold, and our own reader would refuse them."""
    zeros = bytes(PIECE)
    for name, sources in {
        "one": {"zeros": [zeros] * 120},
        "many": {f"zeros{n}": zeros for n in range(120)},
        "both": {"soul.md": b"soul", "zeros": [zeros] * 60, **{f"zeros{n}": zeros for n in range(60)}},
    }.items():
        path = tmp_path / f"{name}.egg"
        path.write_bytes(packed(sources))
        assert path.stat().st_size < 8 << 20
        with Archive.open(path) as archive:
            assert archive.total >= 120 << 20
            archive.verify()
        if shutil.which("unzip"):
            subprocess.run(["unzip", "-tqq", path], check=True)


def _exact(files: Mapping[str, bytes]) -> bytes:
    return built([Crafted(name.encode(), content) for name, content in files.items()])


def test_the_exact_layout_of_rapp1(tmp_path: Path) -> None:
    """Stored, 1980-01-01, marked as UTF-8, version 2.0, no attributes, nothing extra (rapp/1 §9)."""
    octets = packed(FILES, stored=True)
    assert octets == _exact(FILES)
    path = tmp_path / "made.egg"
    path.write_bytes(octets)
    with Archive.open(path) as archive:
        assert archive.rapp1_deviations() == []
        assert all(one.stored for one in archive.members)


def _by_zipfile(files: Mapping[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as written:
        for name, content in files.items():
            written.writestr(zipfile.ZipInfo(name), content)
    return file.getvalue()


def _with(**fields: object) -> Callable[[], bytes]:
    return lambda: built([Crafted(b"manifest.json", b"{}", **fields)])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: _by_zipfile({"manifest.json": b"{}"}), "not marked as UTF-8"),
        (lambda: _by_zipfile({"manifest.json": b"{}"}), "attributes"),
        (lambda: packed({"manifest.json": b"{}"}, at=datetime(2026, 1, 1, tzinfo=UTC)), "other times"),
        (_with(extra=b"\x42\x42\0\0"), "extra fields"),
        (_with(local={"extra": b"\x42\x42\0\0"}), "extra fields"),
        (_with(central={"comment": b"nice"}), "comments"),
        (_with(made=0x0314), "another ZIP version"),
        (_with(attributes=0o100644 << 16), "attributes"),
        (lambda: built([Crafted(b"manifest.json", b"{}"), Crafted(b"data/")]), "Folders are listed"),
        (lambda: built([Crafted(b"manifest.json", b"{}")], comment=b"nice"), "comment"),
        (lambda: packed({"a": [NOISE]}), "another ZIP version"),
    ],
)
def test_departures_from_the_exact_layout_are_named(
    make: Callable[[], bytes], says: str, tmp_path: Path
) -> None:
    path = tmp_path / "made.egg"
    path.write_bytes(make())
    with Archive.open(path) as archive:
        assert any(says in one for one in archive.rapp1_deviations()), archive.rapp1_deviations()


def test_memory_stays_flat(tmp_path: Path) -> None:
    """300 MB from a file, as pieces and back, in a process that may take 60 MB beyond what it has."""
    if not Path("/proc/self/statm").exists():
        pytest.skip("needs /proc")
    source = tmp_path / "noise"
    with source.open("wb") as file:
        for _ in range(150):
            file.write(NOISE[: 1 << 20])
    script = f"""
import resource
from pathlib import Path
from twins.zip.chunks import PIECE
from twins.zip.reader import Archive
from twins.zip.writer import ArchiveWriter
source = Path({str(source)!r})
text = bytes(range(64)) * 16384
pages = int(Path("/proc/self/statm").read_text().split()[0])
most = pages * resource.getpagesize() + (60 << 20)
resource.setrlimit(resource.RLIMIT_AS, (most, most))
path = source.with_name("made.egg")
with path.open("wb") as file:
    writer = ArchiveWriter(file)
    writer.add("noise", source)
    writer.add("text", (text for _ in range(150)))
    writer.finish()
with Archive.open(path) as archive:
    archive.verify()
    print(archive.total)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100)
    assert done.stdout.split() == [str(300 << 20)], done.stderr
