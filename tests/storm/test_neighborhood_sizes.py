"""Snapshots of very many files and of a very large twin, over SSH: they come back, and memory stays bounded."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

import pytest
from lan.neighborhood_hosts import Neighborhood, same, tree
from lan.network import Lan, require

from tests.storm.storm import SECONDS

KEY = "a" * 64
_FILES = 50_000 if SECONDS else 2_000
_OCTETS = 1 << 30 if SECONDS else 96 << 20
_MOST_MEMORY_KB = 150_000


@pytest.mark.timeout(900)
@pytest.mark.parametrize("tar", ["gnu", "busybox", "bsdtar"])
def test_very_many_small_files_come_back(tmp_path: Path, tar: str) -> None:
    require()
    with Lan() as lan, Neighborhood(lan, tmp_path, (tar,)) as neighborhood:
        (host,) = neighborhood.hosts
        neighborhood.patience = 600.0
        host.twin(KEY, {f"notes/{number // 500}/{number}.txt": b"%d" % number for number in range(_FILES)})
        before = host.tree()
        egg = neighborhood.snapshot("--no-drill")["snapshot"]["name"]
        host.wipe()
        neighborhood.hatch(egg)
        assert same(host.tree(), before)


@pytest.mark.timeout(900)
def test_large_twin_is_taken_and_comes_back_in_bounded_memory(tmp_path: Path) -> None:
    require()
    with Lan() as lan, Neighborhood(lan, tmp_path, ("gnu",)) as neighborhood:
        (host,) = neighborhood.hosts
        folder = host.twin(KEY, {"soul.md": b"large\n", "noise.bin": os.urandom(8 << 20)})
        with (folder / "large.bin").open("wb") as file:
            file.truncate(_OCTETS)
            file.seek(_OCTETS // 2)
            file.write(os.urandom(1 << 20))
        peaks = [_peak(neighborhood, "snapshot", "--max-twin-bytes", str(3 * _OCTETS))]
        before = host.tree() if not SECONDS else {}
        egg = next((neighborhood.home / "eggs/neighborhood").glob("*.egg"))
        if SECONDS:
            (folder / "large.bin").rename(tmp_path / "large.bin")
        host.wipe()
        peaks.append(_peak(neighborhood, "hatch", egg.stem, "--yes"))
        if SECONDS:
            subprocess.run(["cmp", tmp_path / "large.bin", host.home / f"twins/{KEY}/large.bin"], check=True)
        else:
            assert same(tree(host.home / "twins"), before)
    print(f"memory at its height: {[peak // 1000 for peak in peaks]} MB")
    assert max(peaks) < _MOST_MEMORY_KB, peaks


def _peak(neighborhood: Neighborhood, *arguments: str) -> int:
    """The most memory that one command of ``rappd neighborhood`` took, in KB."""
    process = neighborhood.desk.start(
        neighborhood.command(*arguments),
        environment=neighborhood.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    peak = 0
    status = Path(f"/proc/{process.pid}/status")
    while process.poll() is None:  # the kernel's own peak of a child begins with that of its parent
        found = re.search(r"^VmHWM:\s*(\d+)", status.read_text(), re.MULTILINE)
        peak = int(found[1]) if found else peak
        time.sleep(0.02)
    assert process.returncode == 0
    return peak
