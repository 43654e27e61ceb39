"""Reading archives: pieces, caps, files that are none, several threads."""

from __future__ import annotations

import hashlib
import os
import random
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.twins.eggs.crafted_zip import DEFLATED, Crafted, built
from twins.errors import BadEggError, BadFileError, HostileEggError, NoSuchFileError
from twins.zip.chunks import PIECE
from twins.zip.extracting import extract
from twins.zip.reader import Archive

TEXT = b"The tomatoes are dry.\n" * 100_000
NOISE = random.Random(1).randbytes(3 * PIECE + 7)


@pytest.fixture
def egg(tmp_path: Path) -> Path:
    path = tmp_path / "gardener.egg"
    members = [
        Crafted(b"soul.md", TEXT, DEFLATED),
        Crafted(b"short", b"short", DEFLATED),
        Crafted(b"noise", NOISE),
        Crafted(b"noise deflated", NOISE, DEFLATED),
        Crafted(b"one piece", bytes(PIECE)),
        Crafted(b"empty"),
        Crafted(b"empty deflated", b"", DEFLATED),
        Crafted(b"agents/"),
    ]
    path.write_bytes(built(members))
    return path


CONTENTS = {
    "soul.md": TEXT,
    "short": b"short",
    "noise": NOISE,
    "noise deflated": NOISE,
    "one piece": bytes(PIECE),
    "empty": b"",
    "empty deflated": b"",
}


def test_members_tell_what_is_in_them(egg: Path) -> None:
    with Archive.open(egg) as archive:
        assert [member.name for member in archive.members] == list(CONTENTS)
        soul = archive.member("soul.md")
        assert (soul.size, soul.stored) == (len(TEXT), False)
        assert 0 < soul.compressed < soul.size
        assert archive.member("noise").stored
        assert archive.folders == ("agents",)
        assert archive.total == sum(map(len, CONTENTS.values()))
        assert "soul.md" in archive
        assert "agents" not in archive


def test_contents_come_in_bounded_pieces_as_often_as_asked(egg: Path) -> None:
    with Archive.open(egg) as archive:
        for _ in range(2):
            for name, content in CONTENTS.items():
                pieces = list(archive.chunks(name))
                assert b"".join(pieces) == content
                assert all(0 < len(piece) <= PIECE for piece in pieces)
        assert archive.read("short") == b"short"
        assert archive.digest("noise") == hashlib.sha256(NOISE).hexdigest()
        archive.verify()


def test_a_cap_is_kept(egg: Path) -> None:
    with Archive.open(egg) as archive:
        assert archive.read("short", limit=5) == b"short"
        with pytest.raises(BadEggError, match=r"short is too large \(5 bytes\)"):
            archive.read("short", limit=4)


def test_a_member_that_is_not_there(egg: Path) -> None:
    with (
        Archive.open(egg) as archive,
        pytest.raises(BadEggError, match=r"gardener\.egg holds no members\.json"),
    ):
        archive.chunks("members.json")


def test_threads_read_at_the_same_time(egg: Path) -> None:
    wrong: list[str] = []

    def read(archive: Archive, name: str) -> None:
        for _ in range(5):
            if b"".join(archive.chunks(name)) != CONTENTS[name]:
                wrong.append(name)

    with Archive.open(egg) as archive:
        threads = [threading.Thread(target=read, args=(archive, name)) for name in CONTENTS]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(NoSuchFileError, match=r"There is no file .*missing\.egg"):
        Archive.open(tmp_path / "missing.egg")
    with pytest.raises(BadFileError, match="no file that can be opened"):
        Archive.open(tmp_path)
    with pytest.raises(NoSuchFileError, match=r"There is no file .*a\\x00\.egg"):
        Archive.open(tmp_path / "a\0.egg")
    pipe = tmp_path / "pipe.egg"
    os.mkfifo(pipe)
    with pytest.raises(BadFileError, match="no file that can be opened"):
        Archive.open(pipe)
    locked = tmp_path / "locked.egg"
    locked.write_bytes(b"")
    locked.chmod(0)
    if os.geteuid():
        with pytest.raises(BadFileError, match="cannot be read"):
            Archive.open(locked)


def test_an_eggs_own_name_is_shown_safely(tmp_path: Path) -> None:
    path = tmp_path / "\x1b[2J.egg"
    path.write_bytes(b"PK\3\4")
    with pytest.raises(BadEggError, match=r"^\\x1b\[2J\.egg is damaged \(its end is missing\)"):
        Archive.open(path)


def test_a_file_cut_while_it_is_open(egg: Path) -> None:
    with Archive.open(egg) as archive:
        os.truncate(egg, len(TEXT) // 1000)
        with pytest.raises(BadEggError, match="is damaged"):
            archive.verify()


def test_closing_twice_is_once(egg: Path) -> None:
    archive = Archive.open(egg)
    archive.close()
    archive.close()


def test_extraction_to_other_places(egg: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with Archive.open(egg) as archive:
        written = extract(archive, out, targets={"soul.md": "twins/4f/soul.md", "empty": "twins/4f/a/b/e"})
    assert {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()} == {
        "twins/4f/soul.md",
        "twins/4f/a/b/e",
    }
    assert [(one.name, one.size, one.sha256) for one in written] == [
        ("soul.md", len(TEXT), hashlib.sha256(TEXT).hexdigest()),
        ("empty", 0, hashlib.sha256(b"").hexdigest()),
    ]
    assert (out / "twins/4f/soul.md").read_bytes() == TEXT
    assert (out / "twins/4f/soul.md").stat().st_mode & 0o777 == 0o600
    assert (out / "twins").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "targets",
    [
        {"soul.md": "ok.md", "short": "../short"},
        {"soul.md": "/tmp/soul.md"},
        {"soul.md": "same", "short": "SAME"},
        {"soul.md": "a", "short": "a/b"},
    ],
)
def test_targets_that_lead_astray_write_nothing(targets: dict[str, str], egg: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with Archive.open(egg) as archive, pytest.raises(HostileEggError):
        extract(archive, out, targets=targets)
    assert list(out.iterdir()) == []


def test_extraction_replaces_nothing_and_follows_no_link(egg: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / "precious").write_text("precious")
    (out / "soul.md").symlink_to(tmp_path / "precious")
    with Archive.open(egg) as archive, pytest.raises(FileExistsError):
        extract(archive, out)
    assert (tmp_path / "precious").read_text() == "precious"


@settings(deadline=None, max_examples=60)
@given(
    st.dictionaries(
        st.text("abcé✓ .-", min_size=1, max_size=8).map(lambda name: f"d/{name}z"),
        st.tuples(st.binary(max_size=2000), st.sampled_from([0, DEFLATED])),
        max_size=8,
    )
)
def test_whatever_is_packed_comes_out(tmp_path_factory: pytest.TempPathFactory, files: dict) -> None:  # type: ignore[type-arg]
    from twins.fs.untrusted_names import folded

    if len({folded(name) for name in files}) < len(files):
        return
    path = tmp_path_factory.mktemp("egg") / "made.egg"
    path.write_bytes(built([Crafted(name.encode(), *packed) for name, packed in files.items()]))
    with Archive.open(path) as archive:
        assert {one.name: archive.read(one.name) for one in archive.members} == {
            name: content for name, (content, _) in files.items()
        }
