"""Eggs: a tree of sources on one core, beside tar with zstd and Info-ZIP, and on all; memory at 2 GB."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from twins.zip.deflate import CODEC
from twins.zip.extracting import extract
from twins.zip.reader import Archive
from twins.zip.writer import ArchiveWriter

TREE_BYTES = 200_000_000
LARGE_BYTES = 2_000_000_000
ROUNDS = 3


def run() -> list[tuple[str, str]]:
    """Rows of (what, figure). MB are 10**6 bytes of content; the tree lies in memory where the system allows."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        root = Path(folder)
        with _one_core():
            size, count = _tree(root / "tree")
            rows = [(f"{count:,} sources, {size / 1e6:.0f} MB", f"deflate by {CODEC}")]
            rows += _packing(root, size)
            rows += _unpacking(root, size)
            rows += _opening(root)
        rows += _on_all_cores(root, size)
    if not Path("/proc/self/status").exists():
        return [*rows, ("one file of 2 GB", "skipped, needs /proc to tell its memory")]
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        rows += _large(Path(folder))
    return rows


def _packing(root: Path, size: int) -> list[tuple[str, str]]:
    ways: dict[str, Callable[[], object]] = {"pack, every file hashed": lambda: _pack(root)}
    if _has("tar", "zstd"):
        ways["tar and zstd -3"] = lambda: _shell(root, "tar -cf - tree | zstd -q -3 -T1 -f -o tree.tar.zst")
    if _has("zip"):
        ways["zip"] = lambda: _shell(root, "rm -f tree.zip && cd tree && zip -qr ../tree.zip .")
    results = {"pack, every file hashed": "tree.egg", "tar and zstd -3": "tree.tar.zst", "zip": "tree.zip"}
    taken = _best(ways)
    return _compared(taken, size, {way: (root / results[way]).stat().st_size for way in taken})


def _unpacking(root: Path, size: int) -> list[tuple[str, str]]:
    ways: dict[str, Callable[[], object]] = {"extract, every file hashed": lambda: _extract(root)}
    if _has("tar", "zstd"):
        ways["zstd and tar"] = lambda: _shell(root, "zstd -dcq tree.tar.zst | tar -xf - -C out")
    if _has("unzip"):
        ways["unzip"] = lambda: _shell(root, "unzip -q tree.egg -d out")

    def fresh(way: Callable[[], object]) -> Callable[[], object]:
        def once() -> float:
            shutil.rmtree(root / "out", ignore_errors=True)
            (root / "out").mkdir()
            began = time.perf_counter()
            way()
            return time.perf_counter() - began

        return once

    taken = _best({name: fresh(way) for name, way in ways.items()})
    shutil.rmtree(root / "out")
    with Archive.open(root / "tree.egg") as archive:
        verified = _best({"verify": archive.verify})
    return _compared(taken, size, {}) + _compared(verified, size, {})


def _on_all_cores(root: Path, size: int) -> list[tuple[str, str]]:
    def extracted() -> float:
        (root / "out").mkdir()
        began = time.perf_counter()
        _extract(root)
        seconds = time.perf_counter() - began
        shutil.rmtree(root / "out")
        return seconds

    with Archive.open(root / "tree.egg") as archive:
        taken = _best({"pack": lambda: _pack(root), "extract": extracted, "verify": archive.verify})
    cores = os.cpu_count() or 1
    return [
        (f"{what}, on {cores} cores", f"{size / 1e6 / seconds:,.0f} MB/s") for what, seconds in taken.items()
    ]


def _opening(root: Path) -> list[tuple[str, str]]:
    """Measures reading an archive's records and refusing hostile ones."""
    rows = []
    for count in (150, 1_500, 15_000):
        path = root / "opened.egg"
        with path.open("wb") as file:
            writer = ArchiveWriter(file)
            for number in range(count):
                writer.add(f"twins/4f/agents/@someone/{number // 50}/weather_{number}_agent.py", b"x" * 50)
            writer.finish()
        taken = _best({"open": lambda path=path: Archive.open(path).close()})["open"]  # type: ignore[misc]
        rows.append((f"open, {count:,} files", f"{taken * 1e3:.1f} ms"))
    return rows


_PACK = """
path = root / "large.egg"
with path.open("wb") as file:
    writer = ArchiveWriter(file)
    writer.add("data/large", root / "large")
    writer.finish()
"""
_EXTRACT = """
with Archive.open(root / "large.egg") as archive:
    extract(archive, root / "out")
"""


def _large(root: Path) -> list[tuple[str, str]]:
    """One file of 2 GB: half sources, half what does not shrink."""
    text = b"".join(path.read_bytes() for path in itertools.islice(_sources(), 3_000))[: 20 << 20]
    noise = os.urandom(20 << 20)
    with (root / "large").open("wb") as file:
        while file.tell() < LARGE_BYTES:
            file.write(text)
            file.write(noise)
        size = file.tell()
    (root / "out").mkdir()
    rows = []
    idle, _ = _child(root, "")
    for what, script in (("pack", _PACK), ("extract", _EXTRACT)):
        peak, seconds = _child(root, script)
        rows.append(
            (
                f"{what} one file of {size / 1e9:.1f} GB, on disk",
                f"{size / 1e6 / seconds:,.0f} MB/s; peak memory {peak:.0f} MB, {peak - idle:.0f} above idle",
            )
        )
    return rows


def _child(root: Path, script: str) -> tuple[float, float]:
    """Peak resident MB and seconds of ``script`` in a process of its own."""
    whole = f"""
import json, time
from pathlib import Path
from twins.zip.extracting import extract
from twins.zip.reader import Archive
from twins.zip.writer import ArchiveWriter
root = Path({str(root)!r})
began = time.perf_counter()
{script}
taken = time.perf_counter() - began
status = Path("/proc/self/status").read_text()
print(json.dumps([int(status.split("VmHWM:")[1].split()[0]) / 1024, taken]))
"""
    done = subprocess.run([sys.executable, "-c", whole], capture_output=True, text=True, check=True)
    peak, taken = json.loads(done.stdout)
    return peak, taken


def _pack(root: Path) -> None:
    tree = str(root / "tree")
    files = [f"{folder}/{name}" for folder, _, names in os.walk(tree) for name in names]
    with (root / "tree.egg").open("wb") as file:
        writer = ArchiveWriter(file)
        for path in sorted(files):
            writer.add(path[len(tree) + 1 :], Path(path))
        writer.finish()


def _extract(root: Path) -> None:
    with Archive.open(root / "tree.egg") as archive:
        extract(archive, root / "out")


def _shell(root: Path, command: str) -> None:
    subprocess.run(command, shell=True, cwd=root, check=True)


def _best(ways: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Seconds of the fastest of some rounds, in which every way takes its turn. A way may time itself."""
    taken = dict.fromkeys(ways, float("inf"))
    for _ in range(ROUNDS):
        for name, way in ways.items():
            began = time.perf_counter()
            own = way()
            seconds = own if isinstance(own, float) else time.perf_counter() - began
            taken[name] = min(taken[name], seconds)
    return taken


def _compared(taken: dict[str, float], size: int, packed: dict[str, int]) -> list[tuple[str, str]]:
    rows = []
    ours, *others = taken
    for name, seconds in taken.items():
        figure = f"{size / 1e6 / seconds:,.0f} MB/s"
        if name in packed:
            figure += f", {size / packed[name]:.2f} : 1"
        if name == ours and others:
            figure += "; " + ", ".join(f"{taken[other] / seconds:.1f} x {other}" for other in others)
        rows.append((name, figure))
    return rows


def _tree(root: Path) -> tuple[int, int]:
    """Copies Python's own sources until there are enough; returns bytes and files."""
    size = 0
    for count, path in enumerate(itertools.cycle(list(_sources())), 1):
        content = path.read_bytes()
        target = root / str(count // 1_000) / str(count // 50) / f"{count}_{path.name}"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        size += len(content)
        if size >= TREE_BYTES:
            return size, count
    raise RuntimeError("this Python has no sources to pack")


def _sources() -> Iterator[Path]:
    for place in ("stdlib", "purelib"):
        for path in sorted(Path(sysconfig.get_path(place)).rglob("*.py")):
            if path.stat().st_size > 0:
                yield path


def _has(*programs: str) -> bool:
    return all(shutil.which(program) for program in programs)


@contextmanager
def _one_core() -> Iterator[None]:
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


if __name__ == "__main__":
    for row in run():
        print(*row, sep="  ")
