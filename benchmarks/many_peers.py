"""``/chat`` beside 1,000 paired peers and 1,000 written-down machines, against the same without any."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import orjson

from benchmarks.chat import LUA, load, missing
from benchmarks.daemon import AGENT, BenchDaemon, free_port

__all__ = ["missing", "run"]

_HERE, _AWAY, _WRITTEN = 500, 500, 1000
_AGENTS = 50
_ROUNDS = 3
_SETTLE_SECONDS = 180.0
_CALM_SECONDS = 60.0  # who is away is asked ever more rarely
_IDLE_SECONDS = 20.0
_TICKS = os.sysconf("SC_CLK_TCK")

Figures = dict[str, float]


def run() -> list[tuple[str, str]]:
    """Rate at 32 connections, latency at one, processor time a turn: without peers and with, turn about."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script = folder / "post.lua"
        script.write_text(LUA)
        machines = _machines(folder)
        try:
            with _daemon(folder / "alone") as alone, _daemon(folder / "among") as among:
                asyncio.run(_trust(among.home, orjson.loads((folder / "peers.json").read_bytes())))
                alone.start(cores="0")
                among.start(cores="0")
                here, settled = _settle(among)
                rows = [
                    (f"{here} of {_HERE + _AWAY:,} paired peers here after", f"{settled:.0f} s"),
                    (
                        "of a core until then",
                        f"{_used(alone) / settled:.1%} alone, {_used(among) / settled:.1%}",
                    ),
                ]
                time.sleep(_CALM_SECONDS)
                rows += _turn_about(alone, among, script)
                rows += _idle(alone, among)
            return rows
        finally:
            assert machines.stdin is not None
            machines.stdin.close()
            machines.wait(30)


def _machines(folder: Path) -> subprocess.Popen[bytes]:
    command = ["taskset", "-c", "1", sys.executable, "-m", "benchmarks.simulated_peers"]
    process = subprocess.Popen(
        [*command, str(_HERE), str(_AWAY), str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    if process.stdout.readline() != b"ready\n":
        raise RuntimeError("the simulated machines did not start")
    return process


def _daemon(home: Path) -> BenchDaemon:
    daemon = BenchDaemon(
        home,
        LLM_FAKE="1",
        RAPPD_PEERS_LISTEN="on",
        RAPPD_PEERS_PORT=str(free_port()),
        RAPPD_PEERS_ADDRESS="127.0.0.1",
        RAPPD_PEERS_LOOPBACK="on",
    )
    for number in range(_AGENTS):
        daemon.drop(f"a{number:04d}_agent.py", AGENT.format(name=f"A{number:04d}"))
    return daemon


async def _trust(home: Path, machines: list[dict[str, Any]]) -> None:
    """Writes the peers into a home at rest, and other machines' addresses into its list."""
    from neighborhoods.peer import Peer
    from rappd.daemon.home import Home
    from rappd.store.peer_table import PeerTable
    from rappd.store.store import Store

    Home(home).create()
    store = await Store.open(Home(home).database)
    rows = PeerTable(store)
    now = time.time_ns() // 1000
    await asyncio.gather(
        *(
            rows.save_peer(
                Peer(
                    fingerprint=one["fingerprint"],
                    name=one["name"],
                    whose="mine",
                    public_key=bytes.fromhex(one["public_key"]),
                    certificate=base64.b64decode(one["certificate"]),
                    sealing_key="",
                    scopes=("*",),
                    paired_at=now,
                    called=one["name"],
                    address=one["address"],
                    seen_at=now,
                )
            )
            for one in machines
        )
    )
    await store.close()
    written = [
        {"name": f"found{number:04d}", "url": f"https://127.1.{number >> 8}.{number & 255}:9"}
        for number in range(_WRITTEN)
    ]
    (home / "peers.json").write_bytes(orjson.dumps({"peers": written}))


def _settle(daemon: BenchDaemon) -> tuple[int, float]:
    """Waits until everybody who answers counts as here: how many do, and after how many seconds."""
    began = time.perf_counter()
    while True:
        rows = daemon.control("GET", "/peers")["peers"]
        here = sum(row["presence"] == "here" for row in rows)
        taken = time.perf_counter() - began
        if here >= _HERE or (taken > _SETTLE_SECONDS and here >= _HERE / 2):
            return here, taken
        if taken > _SETTLE_SECONDS:
            raise RuntimeError(f"only {here} of {_HERE} peers came within {taken:.0f} s")
        time.sleep(3)


def _turn_about(alone: BenchDaemon, among: BenchDaemon, script: Path) -> list[tuple[str, str]]:
    found: dict[str, list[Figures]] = {"alone": [], "among": []}
    both = (("alone", alone, among), ("among", among, alone))
    for number in range(_ROUNDS + 1):
        for name, measured, other in both:
            _signal(other, signal.SIGSTOP)  # else it would work beside, on the same core
            try:
                figures = _measure(measured, script)
            finally:
                _signal(other, signal.SIGCONT)
            if number:  # the first warms up
                found[name].append(figures)
    rows = []
    for key, what, unit, inverse in (
        ("rate", "/chat at 32 connections", "/s", False),
        ("p50", "/chat at one connection, p50", " ms", True),
        ("cost", "processor time of the daemon for a turn", " µs", True),
    ):
        single, many = (statistics.median(figures[key] for figures in found[name]) for name in found)
        ratio = single / many if inverse else many / single
        shown = "{:,.0f}" if key != "p50" else "{:.2f}"
        told = (
            f"{shown.format(single)}{unit} alone, {shown.format(many)}{unit} among peers, {ratio:.2f} of it"
        )
        rows.append((what, told))
    return rows


def _measure(daemon: BenchDaemon, script: Path) -> Figures:
    daemon.pin("0")
    before = _used(daemon)
    busy = load(daemon.port, script, 32, 4)
    cost = (_used(daemon) - before) / (busy["rate"] * 4) * 1e6
    return {"rate": busy["rate"], "cost": cost, "p50": load(daemon.port, script, 1, 2)["p50"]}


def _idle(alone: BenchDaemon, among: BenchDaemon) -> list[tuple[str, str]]:
    """Measures the use of a core by both while nobody asks anything."""
    time.sleep(5)
    before = [_used(alone), _used(among)]
    time.sleep(_IDLE_SECONDS)
    one, other = (
        (_used(daemon) - was) / _IDLE_SECONDS for daemon, was in zip((alone, among), before, strict=True)
    )
    return [("of a core while nobody asks", f"{one:.2%} alone, {other:.2%} among peers")]


def _used(daemon: BenchDaemon) -> float:
    """Seconds of processor time of the daemon's own process so far."""
    assert daemon.process is not None
    fields = Path(f"/proc/{daemon.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _signal(daemon: BenchDaemon, number: int) -> None:
    assert daemon.process is not None
    daemon.process.send_signal(number)
