"""The guard of tar streams: real archives of three tars, and archives made to do harm."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fixtures.twin_spool import TwinSpool

from neighborhoods.errors import BadMemberStreamError, MemberTooLargeError
from neighborhoods.snapshot.sparse_members import Run, sparse_header
from neighborhoods.snapshot.tar_archive import gunzipped, listing_headers, tar_pieces
from neighborhoods.snapshot.tar_guard import UNEXPLAINED, TarEntry, TarGuard, TarLimits, read_tar

TARS = {
    "gnu": ["tar"],
    "gnu-pax": ["tar", "--format=pax"],
    "ustar": ["bsdtar", "--format=ustar"],
    "bsdtar": ["bsdtar"],
    "bsdtar-gnu": ["bsdtar", "--format=gnutar"],
    "busybox": ["busybox", "tar"],
}


def files(pieces: Iterator[bytes] | list[bytes], guard: TarGuard) -> dict[str, tuple[TarEntry, bytes]]:
    found: dict[str, tuple[TarEntry, bytes]] = {}
    last = ""
    for event in read_tar(pieces, guard):
        if isinstance(event, TarEntry):
            last = event.path
            found[last] = (event, b"")
        else:
            found[last] = (found[last][0], found[last][1] + event)
    return found


def archive(*members: tuple[str, bytes] | tarfile.TarInfo, form: int = tarfile.PAX_FORMAT) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=form) as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                tar.addfile(info, io.BytesIO(member[1]))
    return raw.getvalue()


def special(name: str, kind: bytes, link: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, link, mode
    return info


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "twin"
    for name, content in {
        "soul.md": b"soul",
        "agents/a_agent.py": b"x" * 513,
        'agents/it\'s "quoted" $HOME.py': b"",
        f"deep/{'long-' * 30}/{'name-' * 30}.txt": b"long",
        "memory/größe.json": b"{}",
        "big.bin": os.urandom(300_000),
        "__pycache__/a.pyc": b"no",
        "sub/.env": b"SECRET=1",
        ".git/config": b"no",
        "._soul.md": b"no",
        "keys/id_ed25519": b"no",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (1_700_000_000, 1_700_000_000))
    (root / "agents/a_agent.py").chmod(0o4755)
    (root / "link").symlink_to("/etc/passwd")
    os.mkfifo(root / "pipe")
    Path(os.fsdecode(os.fsencode(root) + b"/caf\xe9")).write_bytes(b"latin")
    return root


@pytest.mark.parametrize("tar", TARS)
@pytest.mark.parametrize("piece", [1, 511, 1 << 16])
def test_guard_archive_of_each_tar_lets_through_the_same_files(tree: Path, tar: str, piece: int) -> None:
    if tar == "ustar":
        (tree / f"deep/{'long-' * 30}/{'name-' * 30}.txt").unlink()  # it holds no name of more than 100 bytes
    made = subprocess.run([*TARS[tar], "-cf", "-", "."], cwd=tree, capture_output=True, check=False).stdout
    if piece == 1:
        (tree / "big.bin").unlink()
        made = subprocess.run(
            [*TARS[tar], "-cf", "-", "."], cwd=tree, capture_output=True, check=False
        ).stdout
    guard = TarGuard()
    found = files([made[at : at + piece] for at in range(0, len(made), piece)], guard)
    kept = {"soul.md", "agents", "deep", "memory", "big.bin"}
    expected = {
        str(path.relative_to(tree)): path.read_bytes()
        for path in tree.rglob("*")
        if path.is_file() and path.relative_to(tree).parts[0] in kept
    }
    assert {path: content for path, (_, content) in found.items()} == expected
    assert found["agents/a_agent.py"][0] == TarEntry("agents/a_agent.py", 513, True, 1_700_000_000)
    reasons = {one.path: one.reason for one in guard.left_out}
    assert reasons["link"] == "is a link, and links are not followed"
    assert reasons["caf\\xe9"] == "its name is not UTF-8"
    assert reasons["sub/.env"] == "may hold secrets"
    if tar != "busybox":
        assert reasons["pipe"] == "is no regular file"


@pytest.mark.parametrize(
    ("member", "reason"),
    [
        (("/etc/cron.d/x", b"x"), "leads outside"),
        (("../x", b"x"), "leads outside"),
        (("a/../../x", b"x"), "leads outside"),
        (("a/.. /x", b"x"), "leads outside"),
        (("a\\..\\x", b"x"), "leads outside"),
        (("C:x", b"x"), "leads outside"),
        (("a\nb", b"x"), "cannot be shown"),
        (("a\x1b[2Jb", b"x"), "cannot be shown"),
        (("n" * 300, b"x"), "too long"),
        (("/".join("d" * 100), b"x"), "too long"),
        (("ok.txt", b"twice"), "another file has this name"),
        (("OK.TXT", b"twice"), "another file has this name"),
        (("ok.txt/below", b"x"), "another file has this name"),
        ((".venv/bin/python", b"x"), "made anew"),
        (("data/rappd.key", b"x"), "may hold secrets"),
        (special("l", tarfile.SYMTYPE, "/etc/shadow"), "link"),
        (special("l", tarfile.LNKTYPE, "ok.txt"), "link"),
        (special("d", tarfile.CHRTYPE), "no regular file"),
        (special("d", tarfile.BLKTYPE), "no regular file"),
    ],
)
@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_guard_hostile_member_is_left_out_with_its_reason(
    member: tuple[str, bytes] | tarfile.TarInfo, reason: str, form: int
) -> None:
    guard = TarGuard()
    found = files([archive(("ok.txt", b"fine"), member, ("after.txt", b"fine"), form=form)], guard)
    assert sorted(found) == ["after.txt", "ok.txt"]
    assert found["ok.txt"][1] == b"fine"
    assert [reason in one.reason for one in guard.left_out] == [True]
    assert guard.left_out[0].path.isprintable()


def test_guard_names_a_senders_reason_and_believes_only_known_ones() -> None:
    entries = [
        (TarEntry(name, 0, left_out=why), ()) for name, why in (("a", "is private"), ("b", "\x1b[2Jx"))
    ]
    guard = TarGuard()
    assert files([b"".join(tar_pieces(entries, is_sorted=False))], guard) == {}
    assert [(one.path, one.reason) for one in guard.left_out] == [
        ("a", "is private"),
        ("b", "is a link, and links are not followed"),
    ]


def test_guard_names_a_folder_that_stays_behind_once() -> None:
    """Also one that comes empty: senders know these names, too."""
    sent = [(".git/config", b"x"), (".git/objects/ab", b"x"), special("a/node_modules/", tarfile.DIRTYPE)]
    empty = [special(f"{name}/", tarfile.DIRTYPE) for name in ("a", "..", ".git", "caf\udce9")]
    guard = TarGuard()
    assert list(files([archive(("a/b.txt", b"x"), *sent, *empty)], guard)) == ["a/b.txt"]
    assert [(one.path, one.reason) for one in guard.left_out] == [
        (".git", "is made anew where it is needed"),
        ("a/node_modules", "is made anew where it is needed"),
    ]


def test_guard_link_then_file_below_it_writes_nothing_through_the_link() -> None:
    guard = TarGuard()
    found = files([archive(special("out", tarfile.SYMTYPE, "/etc"), ("out/passwd", b"x"))], guard)
    assert list(found) == ["out/passwd"]  # an ordinary folder of that name: the link was never made


def test_guard_root_is_taken_off_names() -> None:
    found = files([archive(("abc/soul.md", b"1"), ("abc/abc/x", b"2"))], TarGuard(root="abc"))
    assert list(found) == ["soul.md", "abc/x"]


@pytest.mark.parametrize("cut", [100, 512, 700, 1024, 1400])
def test_guard_stream_cut_off_raises(cut: int) -> None:
    with pytest.raises(BadMemberStreamError, match="cut off"):
        files([archive(("a", b"x" * 100), ("b", b"y"))[:cut]], TarGuard())


def _oversized_header() -> bytes:
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 8 << 30
    return info.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize(
    "make", [lambda: b"Welcome to this machine!\n" * 100, _oversized_header, lambda: b"\xff" * 1024]
)
def test_guard_stream_that_is_no_tar_raises(make: Callable[[], bytes]) -> None:
    with pytest.raises(BadMemberStreamError):
        files([make()], TarGuard())


@pytest.mark.parametrize(
    "limits",
    [TarLimits(file_bytes=10), TarLimits(stream_bytes=2000), TarLimits(entries=1), TarLimits(seconds=-1)],
)
def test_guard_stream_beyond_its_limits_raises(limits: TarLimits) -> None:
    with pytest.raises(MemberTooLargeError):
        files([archive(("a", b"x" * 9), ("b", b"y" * 9))], TarGuard(limits=limits))


def test_guard_endless_excluded_members_are_bounded() -> None:
    def endless() -> Iterator[bytes]:
        one = archive((".git/x", b"x"), form=tarfile.GNU_FORMAT)[:1024]
        while True:
            yield one

    with pytest.raises(MemberTooLargeError):
        files(endless(), TarGuard(limits=TarLimits(entries=2000)))


def _packed(tree: Path, folder: Path, command: list[str]) -> bytes:
    made = subprocess.run([*command, "-cf", "-", "."], cwd=tree, capture_output=True, check=False).stdout
    guard, target = TarGuard(), io.BytesIO()
    with TwinSpool(folder) as spool:
        spool.take(guard.feed(made))
        guard.close()
        spool.pack(target, "abc")
    return target.getvalue()


def test_spool_streams_of_different_tars_pack_to_the_same_bytes(tree: Path, tmp_path: Path) -> None:
    packed = {_packed(tree, tmp_path, TARS[tar]) for tar in ("gnu", "gnu-pax", "bsdtar", "busybox")}
    assert len(packed) == 1
    found = files(gunzipped(packed), TarGuard(root="abc"))
    assert found["memory/größe.json"][1] == b"{}"
    assert found["agents/a_agent.py"][0].executable
    assert not found["soul.md"][0].executable


@pytest.mark.parametrize("tar", ["gnu", "bsdtar", "busybox"])
def test_spool_archive_is_read_by_each_tar(tree: Path, tmp_path: Path, tar: str) -> None:
    archived = tmp_path / "t.tar.gz"
    archived.write_bytes(_packed(tree, tmp_path, ["tar"]))
    into = tmp_path / "into"
    into.mkdir()
    subprocess.run([*TARS[tar], "-xzf", str(archived)], cwd=into, check=True)
    got = into / "abc"
    assert (got / f"deep/{'long-' * 30}/{'name-' * 30}.txt").read_bytes() == b"long"
    assert (got / "big.bin").read_bytes() == (tree / "big.bin").read_bytes()
    assert (got / "agents/a_agent.py").stat().st_mode & 0o7777 == 0o700
    assert (got / "soul.md").stat().st_mode & 0o7777 == 0o600


def test_gunzipped_cut_archive_raises(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(BadMemberStreamError, match="cut off"):
        list(gunzipped([_packed(tree, tmp_path, ["tar"])[:-20]]))


def test_gunzipped_bomb_comes_in_bounded_pieces() -> None:
    made = subprocess.run(["gzip", "-9"], input=bytes(64 << 20), capture_output=True, check=True).stdout
    assert max(map(len, gunzipped([made]))) <= 1 << 18


def test_tar_pieces_files_out_of_order_raise() -> None:
    with pytest.raises(ValueError, match="out of order"):
        list(tar_pieces([(TarEntry("b", 0), ()), (TarEntry("a", 0), ())]))


def test_guard_compares_names_that_the_sender_found_with_what_came() -> None:
    named = [f"links/{n}".encode() for n in range(1500)]
    found = [b"soul.md", b"private", b"private/diary.md", b"lost/caf\xe9", *named]
    members = [special(name.decode(), tarfile.SYMTYPE, "x") for name in named]
    stream = b"".join(listing_headers(found)) + archive(
        ("soul.md", b"x"), ("private/diary.md", b"x"), *members
    )
    guard = TarGuard()
    assert list(files([stream], guard)) == ["soul.md"]
    assert len(guard.left_out) == 1000, "a thousand are named, and all count as named"
    guard = TarGuard()
    files([b"".join(listing_headers(found[:4])) + archive(("soul.md", b"x"), ("private/x", b"x"))], guard)
    assert [(one.path, one.reason) for one in guard.left_out] == [
        ("private", "is private"),
        ("lost/caf\\xe9", UNEXPLAINED),
    ]


def test_names_of_any_script_come_in_headers_that_the_guard_takes() -> None:
    found = [("🌱" * 60 + str(number)).encode() for number in range(5000)]
    guard = TarGuard()
    files([b"".join(listing_headers(found)) + archive(("soul.md", b"x"))], guard)
    assert len(guard.left_out) == 1000


def test_guard_list_of_names_without_end_is_not_kept() -> None:
    guard = TarGuard()
    tracemalloc.start()
    for number in range(400):
        for header in listing_headers([b"%d/" % number + b"x" * 1000] * 250):
            guard.feed(header)
        for header in listing_headers([b"%d/%d" % (number, n) + b"x" * 1000 for n in range(250)]):
            guard.feed(header)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    guard.feed(archive(("soul.md", b"x")))
    guard.close()
    assert (guard.files, guard.left_out) == (1, [])
    assert kept < 10 << 20


def test_names_that_the_sender_found_are_skipped_by_other_tars(tmp_path: Path) -> None:
    stream = b"".join(listing_headers([b"soul.md", b"lost"])) + archive(("soul.md", b"x"))
    for command in (["tar"], ["bsdtar"], ["busybox", "tar"]):
        done = subprocess.run([*command, "-tf", "-"], input=stream, capture_output=True, check=False)
        assert (done.returncode, done.stdout) == (0, b"soul.md\n"), done.stderr


@pytest.mark.parametrize("tar", ["tar", "bsdtar"])
@pytest.mark.parametrize("size", [8 << 30, 10 << 30])
def test_file_of_more_than_eight_gigabytes_is_laid_out_with_its_hole(
    tmp_path: Path, tar: str, size: int
) -> None:
    if shutil.which(tar) is None:
        pytest.skip(f"needs {tar}")
    info = tarfile.TarInfo("disk.img")
    info.size = size
    stream = sparse_header(info, [Run(0, 512), Run(size - 512, 512)]) + b"one".ljust(512) + b"x" * 512
    stream += bytes(1024)
    subprocess.run([tar, "-xf", "-"], input=stream, cwd=tmp_path, check=True)
    found = tmp_path / "disk.img"
    assert (found.stat().st_size, found.stat().st_blocks < 100) == (size, True)
    with found.open("rb") as file:
        assert file.read(514) == b"one".ljust(512) + b"\0\0"
        file.seek(size - 514)
        assert file.read() == b"\0\0" + b"x" * 512
