"""Hatching a twin of 200 MB: opened and checked, planned, staged, synced, moved; beside unzip and zstd with tar."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from benchmarks.packing import _twin
from envelopes.identity.keys import IdentityKey
from twins.eggs.readers.detect import open_egg
from twins.eggs.readers.inspect import look_at
from twins.eggs.writers.pack import pack
from twins.installer.installer import Installer
from twins.trust.quarantine import QuarantineList
from twins.trust.signers import Signers

_AT = datetime(2026, 11, 22, tzinfo=UTC)
_ROUNDS = 5
_MB = 1_000_000


def run() -> list[tuple[str, str]]:
    """Rows of (what, figure): best of five, each into a fresh home.

    In memory where the system allows, then on the disk, whose speed is most of what the second figures tell.
    """
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

        homes = _Homes(root)

        def hatch() -> None:
            with open_egg(egg) as opened:
                _importer(homes.fresh(), key).hatch(opened)

        works: dict[str, Callable[[], object]] = {f"hatch, {how}": hatch}
        tar = root / "twin.tar.zst"
        for name, command in (
            (f"unzip, {how}", "unzip -q {egg} -d {new} && sync -f {new}"),
            (f"zstd and tar, {how}", "zstd -dcq {tar} | tar -xf - -C {new} && sync -f {new}"),
        ):
            if shutil.which(command.split()[0]) is not None:
                works[name] = partial(_peer, command, egg, tar, homes)
        subprocess.run(f"tar -cf - -C {workspace.root} . | zstd -q -3 -f -o {tar}", shell=True, check=True)
        times = _by_turns(works, homes)
        taken = next(iter(times.values()))
        for name, seconds in times.items():
            ratio = f"; {seconds / taken:.1f} x our time" if seconds is not taken else ""
            rows.append((name, f"{size / _MB / seconds:.0f} MB/s{ratio}"))
        return rows


def _importer(home: Path, key: IdentityKey) -> Installer:
    held, signers = QuarantineList(home / "held.json", home), Signers(home / "signers.json")
    return Installer(home, quarantine=held, signers=signers, fingerprint=key.fingerprint)


class _Homes:
    """Empty homes.

    One that was filled is let out of memory, so that all find as much of it that the system has at hand; on a
    disk it stays: ext4 avoids freed inodes for minutes, and that would be what is timed.
    """

    def __init__(self, root: Path) -> None:
        self._numbers = itertools.count()
        self._root = root
        self._latest: Path | None = None

    def fresh(self) -> Path:
        self._latest = self._root / f"new{next(self._numbers)}"
        self._latest.mkdir()
        return self._latest

    def let_go(self) -> None:
        if self._latest is None:
            return
        if self._latest.is_relative_to("/dev/shm"):
            shutil.rmtree(self._latest)
        else:
            os.sync()
            for path in self._latest.rglob("*"):
                if path.is_file():
                    handle = os.open(path, os.O_RDONLY)
                    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
                    os.close(handle)
        self._latest = None


def _peer(command: str, egg: Path, tar: Path, homes: _Homes) -> None:
    subprocess.run(command.format(egg=egg, tar=tar, new=homes.fresh()), shell=True, check=True)


def _by_turns(works: dict[str, Callable[[], object]], homes: _Homes) -> dict[str, float]:
    """The best time of each. They take turns: a disk's speed comes and goes."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(_ROUNDS):
        for name, work in works.items():
            times[name].append(_timed(work))
            homes.let_go()
    return {name: min(taken) for name, taken in times.items()}


def _best(work: Callable[[], object]) -> float:
    return min(_timed(work) for _ in range(_ROUNDS))


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
