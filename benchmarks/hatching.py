"""Hatching a twin of 200 MB: opened and checked, planned, staged, synced, moved; beside unzip and zstd with tar."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.packing import _twin
from envelopes.keys import IdentityKey
from twins.eggs.opening import open_egg
from twins.eggs.opening.inspecting import look_at
from twins.eggs.packing.pack import pack
from twins.importer.holding import Held
from twins.importer.importer import Importer
from twins.importer.signers import Signers

_AT = datetime(2026, 11, 22, tzinfo=UTC)
_ROUNDS = 3
_MB = 1_000_000


def run() -> list[tuple[str, str]]:
    """Rows of (what, figure): best of three, each into a fresh home; in memory where the system allows, then
    on the disk, whose speed is most of what the second figures tell."""
    rows = _rows(Path("/dev/shm"), "in memory") if Path("/dev/shm").is_dir() else []
    return rows + _rows(Path("/var/tmp"), "synced to the disk")


def _rows(where: Path, how: str) -> list[tuple[str, str]]:
    with tempfile.TemporaryDirectory(dir=where) as folder:
        root = Path(folder)
        workspace = _twin(root)
        files = [path for path in workspace.root.rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
        key = IdentityKey.generate()
        egg = root / "twin.egg"
        pack(workspace, egg, at=_AT, key=key)
        rows = [
            (
                "the twin",
                f"{size / _MB:.0f} MB in {len(files):,} files, {egg.stat().st_size / _MB:.0f} MB packed",
            )
        ]

        look = _best(lambda: look_at(egg).close())
        rows.append(("look at it (rappd egg inspect)", f"{look * 1000:.0f} ms"))
        whole = _best(lambda: open_egg(egg).close())
        rows.append(("read and compare every byte", f"{size / _MB / whole:.0f} MB/s"))

        homes = (root / f"new{number}" for number in itertools.count())

        def hatch() -> None:
            with open_egg(egg) as opened:
                _importer(_fresh(homes), key).hatch(opened)

        taken = _best(hatch)
        rows.append((f"hatch, {how}", f"{size / _MB / taken:.0f} MB/s"))
        for name, command in (
            (f"unzip, {how}", "unzip -q {egg} -d {new} && sync -f {new}"),
            (f"zstd and tar, {how}", "zstd -dcq {tar} | tar -xf - -C {new} && sync -f {new}"),
        ):
            if shutil.which(command.split()[0]) is None:
                continue
            tar = root / "twin.tar.zst"
            if not tar.exists():
                subprocess.run(
                    f"tar -cf - -C {workspace.root} . | zstd -q -3 -f -o {tar}", shell=True, check=True
                )

            def peer(command: str = command, tar: Path = tar) -> None:
                ready = command.format(egg=egg, tar=tar, new=_fresh(homes))
                subprocess.run(ready, shell=True, check=True)

            seconds = _best(peer)
            rows.append((name, f"{size / _MB / seconds:.0f} MB/s; {seconds / taken:.1f} x our time"))
        return rows


def _importer(home: Path, key: IdentityKey) -> Importer:
    held, signers = Held(home / "held.json", home), Signers(home / "signers.json")
    return Importer(home, held=held, signers=signers, fingerprint=key.fingerprint)


def _fresh(homes: Iterator[Path]) -> Path:
    """Another empty home. Nothing is removed in between: ext4 avoids freed inodes for some seconds, and
    that would be what is timed."""
    folder = next(homes)
    folder.mkdir()
    return folder


def _best(work: Callable[[], object]) -> float:
    taken = []
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return min(taken)
