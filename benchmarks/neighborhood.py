"""A snapshot of five peers over SSH, an unchanged second one, and the way back; beside ssh with tar, and rsync."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.ssh_peers import SshPeers
from benchmarks.ssh_peers import missing as missing

_MB = 1_000_000
_PEERS = 5
_EACH = 30 * _MB
"""Octets of a peer's only twin: sources, JSON lines and noise, a third each."""
_ROUNDS = 2
_SLOW = 10
"""Mbit/s of a slow line: there the lines bound all, not the two processors that everything here shares."""
_RAPPD = Path(sys.executable).with_name("rappd")


def run() -> list[tuple[str, str]]:
    """Rows of (what, figure): the best of two each, by turns."""
    return [*_measured(0, _rows), *_measured(_SLOW, _slow_rows)]


def _measured(
    megabits: int, rows: Callable[[Path, SshPeers], list[tuple[str, str]]]
) -> list[tuple[str, str]]:
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="nb") as folder:
        root = Path(folder)
        with SshPeers(root, _PEERS, megabits=megabits) as peers:
            for name in peers.names:
                _twin(peers.homes[name], name)
            return rows(root, peers)


def _rows(root: Path, peers: SshPeers) -> list[tuple[str, str]]:
    desk = _Desk(root, peers)
    times: dict[str, list[float]] = {}
    peak = 0.0
    for _ in range(_ROUNDS):
        _note(times, "tar", lambda: max(_timed(partial(_tar, peers, name, root)) for name in peers.names))
        _note(times, "all tars", lambda: _timed(lambda: _tars(peers, root)))
        _note(times, "rsync", lambda: _timed(lambda: _rsync(peers, root)))
        desk.forget()
        seconds, memory = desk.run("snapshot", "--no-drill")
        peak = max(peak, memory)
        times.setdefault("first", []).append(seconds)
        seconds, memory = desk.run("snapshot", "--no-drill")
        peak = max(peak, memory)
        times.setdefault("second", []).append(seconds)
        egg = desk.newest()
        seconds, memory = desk.run("drill", egg)
        peak = max(peak, memory)
        times.setdefault("drill", []).append(seconds)
        _note(times, "untar", lambda: max(_timed(partial(_untar, peers, name, root)) for name in peers.names))
        _note(times, "all untars", lambda: _timed(lambda: _untars(peers, root)))
        for home in peers.homes.values():
            shutil.rmtree(home / "twins")
        seconds, memory = desk.run("hatch", egg, "--yes")
        peak = max(peak, memory)
        times.setdefault("hatch", []).append(seconds)
        for name in peers.names:
            assert len(list((peers.homes[name] / "twins").glob("*/soul.md"))) == 1
    best = {name: min(taken) for name, taken in times.items()}
    size = _PEERS * _EACH / _MB
    first, tar = best["first"], best["tar"]
    return [
        ("the trees", f"{_PEERS} peers of {_EACH / _MB:.0f} MB each, all on this machine"),
        ("ssh HOST tar -czf -, the slowest single peer", f"{tar:.2f} s"),
        ("the same for all five at once", f"{best['all tars']:.2f} s"),
        ("rsync -az of all five at once, into nothing", f"{best['rsync']:.2f} s"),
        ("snapshot of all five", f"{first:.2f} s, {size / first:.0f} MB/s; {_ratio(first, best, 'tar')}"),
        ("  beside all five tars at once", _ratio(first, best, "all tars")),
        ("  beside rsync", _ratio(first, best, "rsync")),
        ("unchanged second snapshot", f"{best['second']:.2f} s; {first / best['second']:.1f} x faster"),
        ("restore drill", f"{best['drill']:.2f} s"),
        ("ssh HOST tar -xzf -, the slowest single peer", f"{best['untar']:.2f} s"),
        ("the same for all five at once", f"{best['all untars']:.2f} s"),
        ("hatch in place on all five", f"{best['hatch']:.2f} s; {_ratio(best['hatch'], best, 'untar')}"),
        ("  beside all five at once", _ratio(best["hatch"], best, "all untars")),
        ("memory at its height, interpreter included", f"{peak:.0f} MB"),
    ]


def _slow_rows(root: Path, peers: SshPeers) -> list[tuple[str, str]]:
    """All lines carry the same, so that one of them stands for the slowest."""
    desk, one = _Desk(root, peers), peers.names[0]
    tar = _timed(partial(_tar, peers, one, root))
    snapshot, _ = desk.run("snapshot", "--no-drill")
    untar = _timed(partial(_untar, peers, one, root))
    for home in peers.homes.values():
        shutil.rmtree(home / "twins")
    hatch, _ = desk.run("hatch", desk.newest(), "--yes")
    for name in peers.names:
        assert len(list((peers.homes[name] / "twins").glob("*/soul.md"))) == 1
    return [
        (f"lines of {_SLOW} Mbit/s: ssh HOST tar -czf - of one", f"{tar:.1f} s"),
        ("  snapshot of all five", f"{snapshot:.1f} s; {snapshot / tar:.2f} x its time"),
        ("  ssh HOST tar -xzf - of one", f"{untar:.1f} s"),
        ("  hatch in place on all five", f"{hatch:.1f} s; {hatch / untar:.2f} x its time"),
    ]


class _Desk:
    """The home that takes the snapshots."""

    def __init__(self, root: Path, peers: SshPeers) -> None:
        self._home = root / "desk"
        self._home.mkdir(mode=0o700)
        self._sockets = root / "s"
        self._sockets.mkdir(mode=0o700)
        self._config = peers.config
        entries = [{"name": name, "ssh_host": name} for name in peers.names]
        (self._home / "peers.json").write_text(json.dumps({"peers": entries}))

    def run(self, *arguments: str) -> tuple[float, float]:
        """Seconds of one command, and its memory at its height in MB."""
        environment = {
            **os.environ,
            "RAPP_HOME": str(self._home),
            "RAPPD_SSH_CONFIG": str(self._config),
            "XDG_RUNTIME_DIR": str(self._sockets),
        }
        command: list[str | Path] = [_RAPPD, "neighborhood", *arguments]
        began = time.perf_counter()
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        peak, status = 0, Path(f"/proc/{process.pid}/status")
        while process.poll() is None:  # the kernel's own peak of a child begins with that of its parent
            found = re.search(r"^VmHWM:\s*(\d+)", status.read_text(), re.MULTILINE)
            peak = int(found[1]) if found else peak
            time.sleep(0.005)
        seconds = time.perf_counter() - began
        if process.returncode:
            raise RuntimeError(f"{' '.join(map(str, command))} failed")
        return seconds, peak / 1000

    def newest(self) -> str:
        """The name of the last snapshot."""
        listed = json.loads((self._home / "eggs/neighborhood/snapshots.json").read_text())
        return str(max(listed["snapshots"], key=lambda one: one["taken_at"])["name"])

    def forget(self) -> None:
        """Takes every snapshot away, so that the next one reads all."""
        shutil.rmtree(self._home / "eggs", ignore_errors=True)


def _twin(home: Path, name: str) -> None:
    chance = random.Random(name)
    key = hashlib.sha256(name.encode()).hexdigest()
    folder = home / "twins" / key
    folder.mkdir(parents=True)
    (folder / "rappid.json").write_text(json.dumps({"rappid": f"rappid:@me/{name}:{key}", "name": name}))
    (folder / "soul.md").write_text("You are slow and thorough.\n")
    stdlib = Path(sysconfig.get_paths()["stdlib"])
    others = {"site-packages", "test", "tests"}  # they hold passwords
    sources = sorted(path for path in stdlib.rglob("*.py") if others.isdisjoint(path.parts))
    left, number = _EACH // 3, 0
    while left > 0:
        source = sources[number % len(sources)]
        target = folder / "notes" / str(number // 500) / f"{number}_{source.name}"
        target.parent.mkdir(parents=True, exist_ok=True)
        left -= target.write_bytes(source.read_bytes())
        number += 1
    words = [word for word in Path(random.__file__).read_text().split() if len(word) < 20]
    for part in range(10):
        lines, size = [], 0
        while size < _EACH // 30:
            lines.append(
                json.dumps({"id": chance.getrandbits(60), "said": " ".join(chance.choices(words, k=40))})
            )
            size += len(lines[-1]) + 1
        (folder / f"memory_{part}.jsonl").write_text("\n".join(lines))
    for part in range(4):
        (folder / f"picture_{part}.jpg").write_bytes(chance.randbytes(_EACH // 12))


def _tar(peers: SshPeers, name: str, root: Path) -> None:
    with (root / f"{name}.tar.gz").open("wb") as file:
        command = f"tar -czf - -C {peers.homes[name]}/twins ."
        subprocess.run([*peers.ssh(), name, command], stdout=file, check=True)


def _untar(peers: SshPeers, name: str, root: Path) -> None:
    target = peers.homes[name] / "beside"
    target.mkdir()
    with (root / f"{name}.tar.gz").open("rb") as file:
        subprocess.run([*peers.ssh(), name, f"tar -xzf - -C {target}"], stdin=file, check=True)
    shutil.rmtree(target)


def _tars(peers: SshPeers, root: Path) -> None:
    programs = []
    for name in peers.names:
        with (root / f"{name}.tar.gz").open("wb") as file:
            command = f"tar -czf - -C {peers.homes[name]}/twins ."
            programs.append(subprocess.Popen([*peers.ssh(), name, command], stdout=file))
    _ended(programs)


def _untars(peers: SshPeers, root: Path) -> None:
    targets = [peers.homes[name] / "beside" for name in peers.names]
    programs = []
    for name, target in zip(peers.names, targets, strict=True):
        target.mkdir()
        with (root / f"{name}.tar.gz").open("rb") as file:
            programs.append(subprocess.Popen([*peers.ssh(), name, f"tar -xzf - -C {target}"], stdin=file))
    _ended(programs)
    for target in targets:
        shutil.rmtree(target)


def _rsync(peers: SshPeers, root: Path) -> None:
    target = root / "rsync"
    target.mkdir()
    _ended(
        [
            subprocess.Popen(
                [
                    "rsync",
                    "-az",
                    "-e",
                    " ".join(peers.ssh()),
                    f"{name}:{peers.homes[name]}/twins",
                    target / name,
                ]
            )
            for name in peers.names
        ]
    )
    shutil.rmtree(target)


def _ended(programs: list[subprocess.Popen[bytes]]) -> None:
    for program in programs:
        if program.wait():
            raise RuntimeError(f"{program.args!r} failed")


def _note(times: dict[str, list[float]], name: str, work: Callable[[], float]) -> None:
    times.setdefault(name, []).append(work())


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _ratio(seconds: float, best: dict[str, float], other: str) -> str:
    return f"{seconds / best[other]:.2f} x its time"
