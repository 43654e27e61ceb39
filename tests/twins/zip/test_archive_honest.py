"""Honest archives of any program: the programs people have, and oddities that do no harm."""

from __future__ import annotations

import io
import os
import random
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from struct import pack

import pytest

from tests.twins.eggs.crafted_zip import DEFLATED, SIZES_FOLLOW, UTF8, Crafted, built, extra_field, wide_end
from twins.errors import BadEggError
from twins.zip.extracting import extract
from twins.zip.reader import Archive

FULL = 0xFFFFFFFF


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "agents").mkdir(parents=True)
    (root / "données").mkdir()
    (root / "empty folder").mkdir()
    (root / "manifest.json").write_text("{}")
    (root / "agents" / "a_agent.py").write_text("".join(f"print({n})\n" for n in range(20_000)))
    (root / "données" / "naïve ✓.txt").write_text("x")
    (root / "zero").touch()
    (root / "zeros").write_bytes(bytes(3_000_000))
    (root / "random").write_bytes(random.Random(1).randbytes(300_000))
    return root


def contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


PROGRAMS: dict[str, str] = {
    "zip": "zip -qr ../made.zip .",
    "zip without extras": "zip -qrX0D ../made.zip .",
    "zip to a pipe": "zip -qr - . | cat > ../made.zip",
    "zip of a list": "find . -type f | zip -q ../made.zip -@",
    "zip with 64-bit sizes": "zip -q -fz -r ../made.zip .",
    "bsdtar": "bsdtar --format zip -cf ../made.zip .",
    "bsdtar to a pipe": "bsdtar --format zip -cf - * | cat > ../made.zip",
    "bsdtar stored": "bsdtar --format zip --options zip:compression=store -cf ../made.zip *",
    "7z": "7z a -bso0 -bsp0 -tzip ../made.zip .",
    "7z stored": "7z a -bso0 -bsp0 -tzip -mx0 ../made.zip *",
    "jar": "jar --create --no-manifest --file ../made.zip .",
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_archives_of_programs_are_read(program: str, tree: Path, tmp_path: Path) -> None:
    command = PROGRAMS[program]
    name = command.split("|")[-1].split()[0] if "-@" in command else command.split()[0]
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    subprocess.run(command, shell=True, cwd=tree, check=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
    with Archive.open(tmp_path / "made.zip") as archive:
        assert {one.name: archive.read(one.name) for one in archive.members} == contents(tree)
        assert all("/" not in folder or folder.split("/")[0] for folder in archive.folders)
        out = tmp_path / "out"
        out.mkdir()
        extract(archive, out)
    assert contents(out) == contents(tree)


class Pipe(io.RawIOBase):
    """A file that cannot go back, as a socket cannot."""

    def __init__(self) -> None:
        self.octets = b""

    def writable(self) -> bool:
        return True

    def write(self, octets: object) -> int:
        self.octets += bytes(octets)  # type: ignore[call-overload]
        return len(bytes(octets))  # type: ignore[call-overload]


@pytest.mark.parametrize("piped", [False, True])
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_archives_of_pythons_zipfile_are_read(method: int, piped: bool, tree: Path, tmp_path: Path) -> None:
    file = Pipe() if piped else io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as written:  # type: ignore[arg-type]
        for path in sorted(tree.rglob("*")):
            written.write(path, path.relative_to(tree))
        with written.open("wide.txt", "w", force_zip64=True) as member:
            member.write(b"wide")
    path = tmp_path / "made.zip"
    path.write_bytes(file.octets if isinstance(file, Pipe) else file.getvalue())
    with Archive.open(path) as archive:
        expected = contents(tree) | {"wide.txt": b"wide"}
        assert {one.name: archive.read(one.name) for one in archive.members} == expected
        assert archive.folders == ("agents", "données", "empty folder")
        assert archive.deviations == (["Sizes follow the files."] if piped else [])


def _followed(signed: bool, wide: bool) -> Crafted:
    one = Crafted(b"data/notes", b"notes " * 100, DEFLATED, flags=UTF8 | SIZES_FOLLOW)
    told = one.told()
    letters = "<IQQ" if wide else "<III"
    sizes = pack(letters, told["crc"], told["compressed"], told["size"])
    one.behind = (b"PK\7\x08" if signed else b"") + sizes
    one.local = {"crc": 0, "size": 0, "compressed": 0}
    return one


def _wide(**where: object) -> bytes:
    one = Crafted(b"data/notes", b"notes")
    one.central = where
    return built([one])


def _at_front(**fields: object) -> bytes:
    return built([Crafted(b"data/notes", b"notes", local=dict(fields))])


def _wide_end() -> bytes:
    one = Crafted(b"data/notes", b"notes")
    plain = built([one])
    start = len(one.before()) + 5
    size = len(plain) - 22 - start
    return built([one], wide=wide_end(1, size, start, len(plain) - 22))


def _other_order() -> bytes:
    one, other = Crafted(b"b", b"b"), Crafted(b"data/notes", b"notes")
    first, second = (member.before() + member.content for member in (one, other))
    listed = other.record(len(first)) + one.record(0)
    plain = built([one, other])
    return first + second + listed + plain[-22:]


SIZE = pack("<Q", 5)
ODD: dict[str, tuple[Callable[[], bytes], str]] = {
    "comment": (lambda: built([Crafted(b"data/notes", b"notes")], comment=b"made by hand"), "comment"),
    "comment of a file": (lambda: _wide(comment=b"nice"), "comments"),
    "sizes behind": (lambda: built([_followed(False, False)]), "Sizes follow"),
    "sizes behind, signed": (lambda: built([_followed(True, False)]), "Sizes follow"),
    "sizes behind, wide": (lambda: built([_followed(False, True)]), "Sizes follow"),
    "sizes behind, wide, signed": (lambda: built([_followed(True, True)]), "Sizes follow"),
    "sizes announced only": (
        lambda: built([Crafted(b"data/notes", b"notes", flags=UTF8 | SIZES_FOLLOW)]),
        "missing there",
    ),
    "wide size": (lambda: _wide(size=FULL, extra=extra_field(1, SIZE)), ""),
    "wide everything": (
        lambda: _wide(size=FULL, compressed=FULL, offset=FULL, extra=extra_field(1, SIZE * 2 + bytes(8))),
        "",
    ),
    "wide for nothing": (lambda: _wide(extra=extra_field(1, SIZE * 2)), "64-bit"),
    "wide in front": (
        lambda: _at_front(size=FULL, compressed=FULL, extra=extra_field(1, SIZE * 2)),
        "",
    ),
    "wide in front for nothing": (lambda: _at_front(extra=extra_field(1, SIZE * 2)), "64-bit"),
    "wide end": (_wide_end, "64-bit"),
    "padding in front": (lambda: _at_front(extra=bytes(3)), ""),
    "unknown extra": (lambda: built([Crafted(b"data/notes", b"notes", extra=extra_field(0x4242, b"?"))]), ""),
    "owner and times": (
        lambda: built([Crafted(b"data/notes", b"notes", extra=extra_field(0x000D, bytes(12)))]),
        "",
    ),
    "mode in an extra": (
        lambda: built(
            [
                Crafted(
                    b"data/notes",
                    b"notes",
                    extra=extra_field(0x756E, pack("<IHIHH", 0, 0o100644, 0, 0, 0)),
                )
            ]
        ),
        "",
    ),
    "other order": (
        _other_order,
        "another order",
    ),
    "zeros to the block": (lambda: built([Crafted(b"data/notes", b"notes")]) + bytes(9000), "Zeros fill"),
    "here": (lambda: built([Crafted(b"./"), Crafted(b"./data/"), Crafted(b"./data/notes", b"notes")]), './'),
    "version of the future": (lambda: _wide(version=63, made=0x033F), ""),
    "speed told once": (lambda: _at_front(flags=UTF8 | 4), ""),
    "time told once": (lambda: _wide(attributes=0o100644 << 16, made=0x0314), ""),
    "deflated nothing": (lambda: built([Crafted(b"data/notes", b"notes"), Crafted(b"z", b"", DEFLATED)]), ""),
}  # fmt: skip


@pytest.mark.parametrize("oddity", ODD)
def test_harmless_oddities_are_read_and_named(oddity: str, tmp_path: Path) -> None:
    make, says = ODD[oddity]
    path = tmp_path / "odd.egg"
    path.write_bytes(make())
    with Archive.open(path) as archive:
        assert archive.read("data/notes") in (b"notes", b"notes " * 100)
        archive.verify()
        if says:
            assert any(says in one for one in archive.deviations), archive.deviations
        else:
            assert archive.deviations == []


@pytest.mark.parametrize(
    ("raw", "flags", "extra", "name"),
    [
        ("naïve".encode(), UTF8, b"", "naïve"),
        ("naïve".encode(), 0, b"", "naïve"),
        (b"na\x8bve", 0, b"", "naïve"),
        (b"na\x8bve", 0, "ï".encode(), "naïve"),
        (b"plain", 0, b"", "plain"),
    ],
)
def test_names_in_every_spelling(raw: bytes, flags: int, extra: bytes, name: str, tmp_path: Path) -> None:
    import zlib

    if extra:
        extra = extra_field(0x7075, pack("<BI", 1, zlib.crc32(raw)) + "naïve".encode())
    path = tmp_path / "made.egg"
    path.write_bytes(built([Crafted(raw, b"here", flags=flags, extra=extra)]))
    with Archive.open(path) as archive:
        assert [one.name for one in archive.members] == [name]
        unmarked = not flags and not raw.isascii()
        assert archive.deviations == (["Names outside ASCII are not marked as UTF-8."] if unmarked else [])


def test_a_second_name_for_another_name_is_none(tmp_path: Path) -> None:
    """The Unicode field carries a checksum of the name it is about; renaming tools leave old ones behind."""
    stale = extra_field(0x7075, pack("<BI", 1, 12345) + b"old name")
    path = tmp_path / "made.egg"
    path.write_bytes(built([Crafted(b"new name", b"here", extra=stale)]))
    with Archive.open(path) as archive:
        assert archive.read("new name") == b"here"


def test_an_archive_of_nothing(tmp_path: Path) -> None:
    path = tmp_path / "empty.egg"
    path.write_bytes(built([]))
    with Archive.open(path) as archive:
        assert archive.members == ()
        with pytest.raises(BadEggError, match=r"empty\.egg holds no manifest\.json"):
            archive.read("manifest.json")
