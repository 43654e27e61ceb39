"""Archives made to do harm, and damaged ones: every one of them is refused before anything is written.

``HOSTILE`` holds them around a small honest twin egg; ``hostile(base)`` makes them around other members.
"""

from __future__ import annotations

import stat
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from struct import pack

from tests.twins.eggs.crafted_zip import (
    DEFLATED,
    SIZES_FOLLOW,
    UTF8,
    Crafted,
    built,
    deflated,
    extra_field,
    wide_end,
)

HONEST: dict[str, bytes] = {
    "manifest.json": b'{"schema":"rapp-egg/2.0","scale":"twin","name":"gardener"}',
    "rappid.json": b'{"rappid":"rappid:@desk/gardener:' + b"4f" * 32 + b'","name":"gardener"}',
    "soul.md": b"# gardener\n\nThe tomatoes are dry.\n" * 20,
    "agents/weather_agent.py": b"# an agent\n" * 40,
    "data/memory.json": b'{"memories":{}}',
}
"""The members that the corpus is built around."""

FULL = 0xFFFFFFFF


@dataclass(frozen=True)
class Hostile:
    """An archive.

    ``says`` is part of the sentence that refuses it; ``late``: only its contents show it, so that it opens
    and is refused while they are read.
    """

    name: str
    made: bytes | Callable[[], bytes]
    says: str
    late: bool = False

    @property
    def octets(self) -> bytes:
        return self.made if isinstance(self.made, bytes) else self.made()

    def __repr__(self) -> str:
        return self.name


OUTSIDE = "writes outside its folder"
NAMES: list[tuple[str, bytes, str]] = [
    ("name-parent", b"../outside.txt", OUTSIDE),
    ("name-parent-inside", b"agents/../../outside.txt", OUTSIDE),
    ("name-parent-last", b"agents/..", OUTSIDE),
    ("name-parent-after-here", b"./../outside.txt", OUTSIDE),
    ("name-here", b"agents/./outside.txt", OUTSIDE),
    ("name-absolute", b"/etc/cron.d/outside", OUTSIDE),
    ("name-absolute-after-here", b".//etc/outside", OUTSIDE),
    ("name-share", b"//server/share/outside", OUTSIDE),
    ("name-folder-parent", b"../", OUTSIDE),
    ("name-folder-root", b"/", "without a name"),
    ("name-drive", b"C:/outside.txt", OUTSIDE),
    ("name-drive-relative", b"c:outside.txt", OUTSIDE),
    ("name-drive-inside", b"agents/D:/outside.txt", OUTSIDE),
    ("name-backslash-parent", b"..\\outside.txt", OUTSIDE),
    ("name-backslash-inside", b"agents\\..\\..\\outside.txt", OUTSIDE),
    ("name-backslash-share", b"\\\\server\\share\\outside", OUTSIDE),
    ("name-parent-and-space", b".. /outside.txt", OUTSIDE),
    ("name-parent-and-dots", b"agents/..../outside.txt", OUTSIDE),
    ("name-empty", b"", "without a name"),
    ("name-empty-inside", b"agents//outside.txt", "without a name"),
    ("name-nul", b"soul.md\x00.txt", "cannot be shown"),
    ("name-line-end", b"soul.md\nall is well", "cannot be shown"),
    ("name-escape", b"\x1b[2Jsoul.md", "cannot be shown"),
    ("name-delete", b"soul\x7f.md", "cannot be shown"),
    ("name-right-to-left", "agents/weather_\u202eyp.txt".encode(), "cannot be shown"),
    ("name-paragraph", "a\u2029b".encode(), "cannot be shown"),
    ("name-surrogate", b"a\xed\xa0\x80b", "damaged"),
    ("name-not-utf8", b"\xff\xfe.txt", "damaged"),
    ("name-overlong-utf8", b"\xc0\xae\xc0\xae/outside", "damaged"),
    ("name-long", b"a" * 256, "too long"),
    ("name-long-path", b"/".join([b"a" * 100] * 11), "too long"),
    ("name-deep", b"/".join([b"a"] * 65), "too long"),
]

_KINDS: list[tuple[str, dict[str, int], str]] = [
    ("kind-symlink", {"attributes": (stat.S_IFLNK | 0o777) << 16, "made": 0x0314}, "symbolic link"),
    ("kind-symlink-dos-host", {"attributes": (stat.S_IFLNK | 0o777) << 16}, "symbolic link"),
    ("kind-symlink-macos-host", {"attributes": stat.S_IFLNK << 16, "made": 0x1314}, "symbolic link"),
    ("kind-reparse-point", {"attributes": 0x400, "made": 0x0A14}, "symbolic link"),
    ("kind-pipe", {"attributes": stat.S_IFIFO << 16, "made": 0x0314}, "is a pipe"),
    ("kind-socket", {"attributes": stat.S_IFSOCK << 16, "made": 0x0314}, "is a socket"),
    ("kind-character-device", {"attributes": stat.S_IFCHR << 16, "made": 0x0314}, "is a device"),
    ("kind-block-device", {"attributes": stat.S_IFBLK << 16, "made": 0x0314}, "is a device"),
    ("kind-unheard-of", {"attributes": 0xE000 << 16, "made": 0x0314}, "neither file nor folder"),
    ("kind-dos-device", {"attributes": 0x40}, "is a device"),
    ("kind-dos-volume", {"attributes": 0x08}, "is a device"),
    ("kind-folder-without-slash", {"attributes": stat.S_IFDIR << 16, "made": 0x0314}, "a file and a folder"),
    ("kind-dos-folder-without-slash", {"attributes": 0x10}, "a file and a folder"),
]

PAIRS: list[tuple[str, str, str, str]] = [
    ("twice", "agents/one.py", "agents/one.py", "twice"),
    ("case", "agents/one.py", "agents/ONE.py", "one file on some disks"),
    ("case-of-folder", "notes/one.txt", "Notes/two.txt", "one file on some disks"),
    ("case-beyond-ascii", "straße", "STRASSE", "one file on some disks"),
    ("composed", "caf\u00e9", "cafe\u0301", "one file on some disks"),
    ("composed-folder", "caf\u00e9/one", "cafe\u0301/two", "one file on some disks"),
    ("kelvin", "5K", "5\u212a", "one file on some disks"),
    ("trailing-dot", "one.txt", "one.txt.", "one file on some disks"),
    ("trailing-space", "one/a", "one /a", "one file on some disks"),
    ("invisible-sign", "one.txt", "o\u200cne.txt", "one file on some disks"),
    ("file-then-folder", "one", "one/two", "a file and a folder"),
    ("folder-then-file", "one/two/three", "one", "a file and a folder"),
    ("file-then-folder-case", "one", "ONE/two", "a file and a folder"),
    ("file-then-listed-folder", "one", "one/", "a file and a folder"),
]

_METHODS = {"deflate64": 9, "bzip2": 12, "lzma": 14, "zstd": 93, "xz": 95, "ppmd": 98, "unheard-of": 777}


def hostile(base: Mapping[str, bytes] = HONEST) -> list[Hostile]:
    """The whole corpus, each archive holding ``base`` and what makes it hostile."""
    honest = [Crafted(name.encode(), content, DEFLATED) for name, content in base.items()]
    return [
        *_by_names(honest),
        *_by_kinds(honest),
        *_by_amount(honest),
        *_by_sizes(honest),
        *_by_two_readings(honest),
        *_by_wide_numbers(honest),
        *_unreadable(honest),
        *_damaged(honest),
    ]


def honest(base: Mapping[str, bytes] = HONEST) -> bytes:
    """The same archive without harm."""
    return built([Crafted(name.encode(), content, DEFLATED) for name, content in base.items()])


def nested(depth: int, *, method: int = 0) -> bytes:
    """An archive with ``inner.egg`` in it, ``depth`` archives in all, and a file at the bottom."""
    octets = built([Crafted(b"bottom.txt", b"here")])
    for _ in range(depth - 1):
        octets = built([Crafted(b"inner.egg", octets, method)])
    return octets


@cache
def zeros(count: int) -> bytes:
    """``count`` zeros (a multiple of 1 MiB), deflated."""
    stream = zlib.compressobj(9, zlib.DEFLATED, -15)
    piece = stream.compress(bytes(1 << 20)) + stream.flush(zlib.Z_FULL_FLUSH)
    return piece * (count >> 20) + b"\3\0"


def _by_names(honest: list[Crafted]) -> Iterator[Hostile]:
    for name, raw, says in NAMES:
        yield Hostile(name, built([*honest, Crafted(raw, b"here" if raw[-1:] != b"/" else b"")]), says)
    unmarked = Crafted(b"..\x5coutside\xe9.txt", b"here", flags=0)
    yield Hostile("name-code-page", built([*honest, unmarked]), OUTSIDE)
    for name, one, other, says in PAIRS:
        pair = [Crafted(one.encode(), b"1"), Crafted(other.encode(), b"" if other[-1] == "/" else b"2")]
        yield Hostile(f"pair-{name}", built(honest + pair), says)
    again = replace(honest[0], content=b"{}")
    yield Hostile("pair-manifest-twice", built([*honest, again]), "twice")
    crc = pack("<BI", 1, zlib.crc32(b"notes.txt"))
    second = extra_field(0x7075, crc + b"../outside.txt")
    both = Crafted(b"notes.txt", b"here", extra=second)
    yield Hostile("name-second", built([*honest, both]), "second name")
    yield Hostile("name-second-in-list", built([*honest, replace(both, local={"extra": b""})]), "second name")
    front = replace(both, central={"extra": b""})
    yield Hostile("name-second-in-front", built([*honest, front]), "second name")
    hidden = Crafted(b"\xff.txt", b"here", flags=0)
    crc = pack("<BI", 1, zlib.crc32(hidden.name))
    hidden.extra = extra_field(0x7075, crc + b"../outside.txt")
    yield Hostile("name-only-second", built([*honest, hidden]), OUTSIDE)
    hidden = replace(hidden, extra=extra_field(0x7075, crc + b"a") + extra_field(0x7075, crc + b"b"))
    yield Hostile("name-third", built([*honest, hidden]), "second name")


def _by_kinds(honest: list[Crafted]) -> Iterator[Hostile]:
    target = b"../../../.ssh/authorized_keys"
    for name, fields, says in _KINDS:
        yield Hostile(name, built([*honest, Crafted(b"notes", target, **fields)]), says)
    link = extra_field(0x000D, bytes(12) + b"soul.md")
    yield Hostile("kind-hard-link", built([*honest, Crafted(b"notes", extra=link)]), "a link or a device")
    in_front = Crafted(b"notes", local={"extra": link})
    yield Hostile("kind-hard-link-in-front", built([*honest, in_front]), "a link or a device")
    for name, mode, rest in (("link", stat.S_IFLNK, target), ("device", stat.S_IFCHR, b"")):
        field = extra_field(0x756E, pack("<IHIHH", 0, mode | 0o777, len(rest), 0, 0) + rest)
        yield Hostile(f"kind-asi-{name}", built([*honest, Crafted(b"n", extra=field)]), "a link or a device")
    full = Crafted(b"agents/", b"not a folder")
    yield Hostile("kind-folder-with-content", built([*honest, full]), "a file and a folder")


def _by_amount(honest: list[Crafted]) -> Iterator[Hostile]:
    for name, count in (("ratio", 200 << 20), ("manifest-of-1-gb", 1 << 30)):
        where = b"data/zeros" if name == "ratio" else b"manifest.json"
        others = [one for one in honest if one.name != where]
        bomb = Crafted(where, method=DEFLATED, data=zeros(count), crc=0, size=count)
        yield Hostile(f"bomb-{name}", built([bomb, *others]), "times its size")
    half = 60 << 20
    many = [Crafted(b"%d" % n, method=DEFLATED, data=zeros(half), crc=0, size=half) for n in range(4)]
    yield Hostile("bomb-ratio-in-parts", built(honest + many), "times its size")
    claims = Crafted(b"data/all", method=DEFLATED, data=b"\3\0", crc=0, size=FULL - 1)
    wide = extra_field(1, pack("<Q", 1 << 50))
    yield Hostile("bomb-claimed", built([*honest, claims]), "times its size")
    wider = replace(claims, size=FULL, central={"extra": wide})
    yield Hostile("bomb-claimed-wide", built([*honest, wider]), "unpacks to")
    yield Hostile("bomb-count", _crowded, "more than 100000 files")
    kernel = Crafted(b"kernel", method=DEFLATED, data=zeros(10 << 20), crc=0, size=10 << 20)
    quoted = [replace(kernel, name=b"q%05d" % n, central={"offset": 0}, lies=False) for n in range(3)]
    yield Hostile("bomb-overlapping", built([replace(kernel, name=b"q99999"), *quoted]), "shares bytes")
    long = Crafted(b"long", b"x" * 100)
    inner = Crafted(b"deep", b"y" * 10)
    around = replace(long, content=b"x" * 20 + inner.before() + inner.content)
    found = {"offset": len(long.before()) + 20}
    overlapping = [around, replace(inner, central=found, lies=False)]
    yield Hostile("bomb-inside-another", built(overlapping), "shares bytes")


@cache
def _crowded() -> bytes:
    """As ``built``, with more files than the last record can count."""
    one = Crafted(b"one", b"x")
    members = [one, *(Crafted(b"%d" % n, b"x", central={"offset": 0}, lies=False) for n in range(100_001))]
    plain = built(members[:1])
    start = len(members[0].before()) + len(members[0].packed())
    listed = b"".join(member.record(0) for member in members)
    wide = wide_end(len(members), len(listed), start, start + len(listed))
    last = pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, FULL, FULL, 0)
    return plain[:start] + listed + wide + last


def _by_sizes(honest: list[Crafted]) -> Iterator[Hostile]:
    more = Crafted(b"data/notes", b"n" * 1000, DEFLATED)
    yield Hostile("size-less", built([*honest, replace(more, size=10)]), "more than the 10 bytes", late=True)
    yield Hostile("size-none", built([*honest, replace(more, size=0)]), "more than the 0 bytes", late=True)
    yield Hostile("size-more", built([*honest, replace(more, size=1001)]), "is damaged", late=True)
    big = Crafted(b"data/notes", method=DEFLATED, data=zeros(1 << 30), crc=0, size=10)
    yield Hostile("size-10-of-1-gb", built([*honest, big]), "more than the 10 bytes", late=True)
    slow = replace(big, size=3 << 20)
    yield Hostile("size-3-mb-of-1-gb", built([*honest, slow]), "more than the 3145728 bytes", late=True)
    stored = Crafted(b"data/notes", b"n" * 1000, size=900)
    yield Hostile("size-stored-differs", built([*honest, stored]), "two sizes")
    tail = replace(more, data=deflated(more.content) + b"hidden")
    yield Hostile("size-hidden-tail", built([*honest, tail]), "is damaged", late=True)
    long = Crafted(b"data/notes", bytes(range(256)) * 8192, DEFLATED)
    tail = replace(long, data=deflated(long.content) + b"hidden" * 100_000)
    yield Hostile("size-hidden-long-tail", built([*honest, tail]), "is damaged", late=True)
    cut = replace(more, data=deflated(more.content)[:-3])
    yield Hostile("size-stream-cut", built([*honest, cut]), "is damaged", late=True)
    cut = replace(long, data=deflated(long.content)[:-3])
    yield Hostile("size-long-stream-cut", built([*honest, cut]), "is damaged", late=True)
    junk = replace(more, data=b"\xff" * 100)
    yield Hostile("size-no-stream", built([*honest, junk]), "is damaged", late=True)
    for name, count in (("crc", 1000), ("crc-of-long", 3 << 20)):
        for method in (0, DEFLATED):
            wrong = Crafted(b"data/notes", bytes(range(256)) * (count // 256), method, crc=1)
            yield Hostile(f"{name}-{method}", built([*honest, wrong]), "is damaged (data/notes)", late=True)


def _by_two_readings(honest: list[Crafted]) -> Iterator[Hostile]:
    one = Crafted(b"agents/one_agent.py", b"print(1)\n" * 20, DEFLATED)
    differing = {
        "name": ({"name": b"agents/two_agent.py"}, "second name"),
        "name-length": ({"name": b"agents/one_agent.pyc"}, ""),
        "method": ({"method": 0}, "two ways"),
        "encryption": ({"flags": UTF8 | 1}, "two ways"),
        "language": ({"flags": 0}, "two ways"),
        "crc": ({"crc": 7}, "two sizes"),
        "size": ({"size": 7}, "two sizes"),
        "compressed": ({"compressed": 7}, "two sizes"),
        "nothing-said": ({"crc": 0, "size": 0, "compressed": 0}, "two sizes"),
    }
    for name, (fields, says) in differing.items():
        yield Hostile(f"front-other-{name}", built([*honest, replace(one, local=fields)]), says)
    later = {"crc": 0, "size": 0, "compressed": 0}
    for width, letters in ((32, "<III"), (64, "<IQQ")):
        for signed in (b"", b"PK\7\x08"):
            behind = signed + pack(letters, 1, len(one.packed()), len(one.content))
            wrong = replace(one, flags=UTF8 | SIZES_FOLLOW, behind=behind, local=later)
            label = f"behind-other-{width}{'-signed' if signed else ''}"
            yield Hostile(label, built([*honest, wrong]), "two sizes")
    right = pack("<4sIII", b"PK\7\x08", one.told()["crc"], len(one.packed()), len(one.content))
    follows = replace(one, flags=UTF8 | SIZES_FOLLOW, local=later)
    yield Hostile("behind-and-more", built([replace(follows, behind=right + b"more"), *honest]), "")
    yield Hostile("behind-half", built([replace(follows, behind=right[:8]), *honest]), "hides bytes")
    yield Hostile("hidden-between", built([replace(one, behind=b"hidden bytes"), *honest]), "hides bytes")
    yield Hostile("hidden-file", built([honest[0], replace(one, listed=False), *honest[1:]]), "hides bytes")
    yield Hostile("hidden-first-file", built([replace(one, listed=False), *honest]), "in front of")
    yield Hostile("hidden-behind-list", built(honest, behind_list=b"hidden"), "hides bytes")
    whole = built(honest)
    other = built([one])
    yield Hostile("joined-twice", whole + whole, "in front of")
    yield Hostile("joined", other + whole, "in front of")
    yield Hostile("joined-corrected", built(honest, front=other, base=len(other)), "in front of")
    yield Hostile("front-script", b"#!/bin/sh\necho hello\n" + whole, "in front of")
    yield Hostile("front-script-corrected", built(honest, front=b"#!/bin/sh\n", base=10), "in front of")
    yield Hostile("behind-letter", whole + b"x", "stands behind")
    yield Hostile("behind-page", whole + b"<script>alert(1)</script>" * 40, "stands behind")
    yield Hostile("behind-much", whole + b"x" * 100_000, "its end is missing")
    yield Hostile("behind-zeros", whole + bytes(10_240), "stands behind")
    yield Hostile("two-ends", built(honest, comment=other), "two ends")
    yield Hostile("two-ends-empty", built(honest, comment=built([])), "two ends")
    yield Hostile("comment-cut", built(honest, comment=b"a comment")[:-1], "its end is missing")


def _by_wide_numbers(honest: list[Crafted]) -> Iterator[Hostile]:
    text = b"wide" * 50
    size, crc = len(text), zlib.crc32(text)
    one = Crafted(b"data/wide", text, crc=crc)

    def listed(numbers: bytes, **fields: int) -> bytes:
        return built([*honest, replace(one, central={"extra": extra_field(1, numbers), **fields})])

    yield Hostile("wide-twice", built([*honest, replace(one, central={
        "size": FULL, "extra": extra_field(1, pack("<Q", size)) + extra_field(1, pack("<Q", 9)),
    })]), "64-bit sizes")  # fmt: skip
    yield Hostile("wide-missing", built([*honest, replace(one, central={"size": FULL})]), "damaged")
    yield Hostile("wide-short", listed(b"\1\2\3", size=FULL), "two sizes")
    yield Hostile("wide-too-many", listed(pack("<QQ", size, size), size=FULL), "two sizes")
    yield Hostile("wide-unasked-other", listed(pack("<QQ", 9, 9)), "two sizes")
    yield Hostile("wide-offset-away", listed(pack("<Q", 1 << 60), offset=FULL), "")
    yield Hostile("wide-offset-top", listed(b"\xff" * 8, offset=FULL), "")
    yield Hostile("wide-compressed-top", listed(b"\xff" * 8, compressed=FULL), "two sizes")
    in_front = extra_field(1, pack("<QQ", 9, 9))
    lying = replace(one, local={"size": FULL, "compressed": FULL, "extra": in_front})
    yield Hostile("wide-front-other", built([*honest, lying]), "two sizes")
    bare = replace(one, local={"size": FULL, "compressed": FULL})
    yield Hostile("wide-front-missing", built([*honest, bare]), "damaged")
    agreed = replace(
        bare, central={"size": FULL, "compressed": FULL, "extra": extra_field(1, pack("<QQ", size, size))}
    )
    yield Hostile("wide-front-missing-agreed", built([*honest, agreed]), "damaged")
    broken = replace(one, extra=pack("<HH", 1, 500))
    yield Hostile("extra-beyond", built([*honest, broken]), "damaged")
    plain = built(honest)
    start = int.from_bytes(plain[-6:-2], "little")
    length = len(plain) - 22 - start
    end = len(plain) - 22
    differing = wide_end(len(honest) - 1, length, start, end)
    yield Hostile("wide-end-other", built(honest, wide=differing), "two ends")
    elsewhere = wide_end(len(honest), length, start, 0)
    yield Hostile("wide-end-elsewhere", built(honest, wide=elsewhere), "in or around")
    away = wide_end(len(honest), length, start, 1 << 60)
    yield Hostile("wide-end-away", built(honest, wide=away, files=0xFFFF, here=0xFFFF), "in or around")
    parted = wide_end(len(honest), length, start, end, disks=3)
    yield Hostile("wide-end-parts", built(honest, wide=parted), "in or around")
    huge = wide_end(1 << 40, length, start, end)
    yield Hostile("wide-end-huge", built(honest, wide=huge, files=0xFFFF, here=0xFFFF), "more than 100000")
    swollen = bytearray(wide_end(len(honest), length, start, end))
    swollen[4] = 200
    yield Hostile("wide-end-swollen", built(honest, wide=bytes(swollen)), "damaged")


def _unreadable(honest: list[Crafted]) -> Iterator[Hostile]:
    for name, method in _METHODS.items():
        odd = Crafted(b"data/notes", b"notes", method)
        yield Hostile(f"method-{name}", built([*honest, odd]), "cannot be read here")
    later = Crafted(b"data/notes", b"notes", central={"version": 64})
    yield Hostile("version-later", built([*honest, later]), "a later ZIP")
    for name, flags in (("encrypted", 1), ("strongly", 0x41), ("masked", 0x2000), ("patched", 0x20)):
        locked = Crafted(b"data/notes", b"notes", flags=UTF8 | flags)
        yield Hostile(f"locked-{name}", built([*honest, locked]), "is encrypted")
    aes = Crafted(b"data/notes", b"notes", 99, flags=UTF8 | 1, extra=extra_field(0x9901, b"\2\0AE\3\0\0"))
    yield Hostile("locked-aes", built([*honest, aes]), "is encrypted")
    yield Hostile("parts-disk", built(honest, disk=1), "several parts")
    yield Hostile("parts-here", built(honest, here=1), "several parts")
    elsewhere = replace(honest[0], central={"disk": 2})
    yield Hostile("parts-file", built([elsewhere, *honest[1:]]), "several parts")


def _damaged(honest: list[Crafted]) -> Iterator[Hostile]:
    whole = built(honest)
    for name, length in (("nothing", 0), ("sign", 4), ("half", len(whole) // 2), ("last", len(whole) - 1)):
        yield Hostile(f"cut-to-{name}", whole[:length], "damaged (its end is missing)")
    yield Hostile("cut-end-record", whole[:-22], "damaged (its end is missing)")
    yield Hostile("cut-start", whole[40:], "")
    yield Hostile("cut-middle", whole[:200] + whole[240:], "")
    yield Hostile("count-less", built(honest, files=2, here=2), "hides bytes in its list")
    yield Hostile("count-more", built(honest, files=9, here=9), "damaged")
    yield Hostile("list-elsewhere", built(honest, start=0), "")
    yield Hostile("list-away", built(honest, start=FULL - 1), "damaged")
    yield Hostile("list-of-nothing", built(honest, size=0), "damaged")
    yield Hostile("list-empty", built(honest, size=0, files=0, here=0), "hides bytes")
    nowhere = replace(honest[-1], central={"offset": 0x7FFFFFFF})
    yield Hostile("file-away", built([*honest[:-1], nowhere]), "")
    no_record = bytearray(whole)
    no_record[0:4] = b"XXXX"
    yield Hostile("file-without-record", bytes(no_record), "damaged")


HOSTILE: tuple[Hostile, ...] = tuple(hostile())
"""Every archive of the corpus, around ``HONEST``."""
