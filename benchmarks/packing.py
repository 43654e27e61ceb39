"""Packing a twin of 200 MB into an egg, every file hashed and looked at; the secret scan timed apart."""

from __future__ import annotations

import os
import random
import resource
import shutil
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import orjson

from envelopes.identity.keys import IdentityKey
from twins.eggs.writers.formats import EggFormat
from twins.eggs.writers.pack import pack
from twins.eggs.writers.secret_scan import SecretScan
from twins.workspace.twin import mint
from twins.workspace.workspace import TwinLayout, Workspace

_AT = datetime(2026, 11, 22, tzinfo=UTC)
_MB = 1_000_000


def run() -> list[tuple[str, str]]:
    """Rows of (what, figure): best of three from a warm cache. Sources, JSON lines and noise, a third each."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        root = Path(folder)
        workspace = _twin(root)
        files = [path for path in workspace.root.rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
        key = IdentityKey.generate()

        def packed(form: EggFormat) -> float:
            target = root / f"{form}.egg"
            return _best(lambda: pack(workspace, target, form=form, at=_AT, key=key, overwrite=True))

        rows = [("the twin", f"{size / _MB:.0f} MB in {len(files):,} files")]
        taken = {
            form: packed(form) for form in (EggFormat.TWIN, EggFormat.ORGANISM, EggFormat.RAPP1_ORGANISM)
        }
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
        rows.append(("memory at its height, interpreter included", f"{peak:.0f} MB"))
        for form, seconds in taken.items():
            shrunk = size / (root / f"{form}.egg").stat().st_size
            rows.append((f"pack, {form}", f"{size / _MB / seconds:.0f} MB/s, {shrunk:.2f} : 1"))
        scan = _best(lambda: _scan(files))
        rows.append(("of which the secret scan, reading included", f"{size / _MB / scan:.0f} MB/s"))
        rows += [(f"scan of {kind}", f"{rate:.0f} MB/s") for kind, rate in _rates(workspace).items()]
        with _unscanned():
            without = packed(EggFormat.TWIN)
        rows.append(("pack, nothing looked at", f"{size / _MB / without:.0f} MB/s"))
        for name, command in _peers(workspace.root, root):
            seconds = _best(lambda command=command: subprocess.run(command, shell=True, check=True))  # type: ignore[misc]
            rows.append(
                (name, f"{size / _MB / seconds:.0f} MB/s; {seconds / taken[EggFormat.TWIN]:.1f} x our time")
            )
        return rows


def _twin(root: Path) -> Workspace:
    workspace = mint(TwinLayout(root / "home"), "gardener", owner="local", now=_AT).workspace
    chance = random.Random(1)
    words = [word for word in Path(random.__file__).read_text().split() if len(word) < 20]
    stdlib = Path(sysconfig.get_paths()["stdlib"])
    # Its tests hold passwords, which would stop the packing.
    others = {"site-packages", "test", "tests"}
    sources = sorted(path for path in stdlib.rglob("*.py") if others.isdisjoint(path.parts))
    copies = workspace.data / "notes"
    left, number = 67 * _MB, 0
    while left > 0:
        content = sources[number % len(sources)].read_bytes()
        target = copies / str(number // 500) / f"{number}_{sources[number % len(sources)].name}"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        left -= len(content)
        number += 1
    for part in range(40):
        with (workspace.data / f"memory_{part}.jsonl").open("wb") as file:
            while file.tell() < 67 * _MB // 40:
                text = " ".join(chance.choices(words, k=40))
                file.write(orjson.dumps({"id": chance.getrandbits(60), "said": text}) + b"\n")
    for part in range(12):
        (workspace.data / f"picture_{part}.jpg").write_bytes(chance.randbytes(67 * _MB // 12))
    return workspace


@contextmanager
def _unscanned() -> Iterator[None]:
    """Packing whose scan lets everything through: what is left is reading, hashing, deflating, writing, syncing."""
    watch, look = SecretScan.watch, SecretScan.look
    SecretScan.watch = lambda self, path, pieces: iter(pieces)  # type: ignore[method-assign]
    SecretScan.look = lambda self, path, content: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        SecretScan.watch, SecretScan.look = watch, look  # type: ignore[method-assign]


def _scan(files: list[Path]) -> None:
    scan = SecretScan()
    for path in files:
        scan.look(path.name, path.read_bytes())


def _rates(workspace: Workspace) -> dict[str, float]:
    """MB/s of looking at each kind of file, read already."""
    rates = {}
    for kind, pattern in (("sources", "*.py"), ("JSON lines", "*.jsonl"), ("noise", "*.jpg")):
        contents = [path.read_bytes() for path in sorted(workspace.root.rglob(pattern))[:600]]

        def looked(contents: list[bytes] = contents) -> None:
            scan = SecretScan()
            for content in contents:
                scan.look("file.py", content)

        rates[kind] = sum(map(len, contents)) / _MB / _best(looked)
    return rates


def _peers(tree: Path, root: Path) -> list[tuple[str, str]]:
    peers = []
    if shutil.which("zstd"):
        peers.append(("tar + zstd -3", f"tar -C {tree} -cf - . | zstd -3 -q -f -o {root}/peer.tar.zst"))
    if shutil.which("zip"):
        peers.append(("Info-ZIP", f"cd {tree} && rm -f {root}/peer.zip && zip -qr {root}/peer.zip ."))
    return peers


def _best(work: Callable[[], object]) -> float:
    seconds = []
    for _ in range(3):
        os.sync()
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return min(seconds)
