"""From typing the command to listening, and what an idle daemon and a fresh worker hold."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.daemon import AGENT, BenchDaemon

_RUNS = 7


def run() -> list[tuple[str, str]]:
    """Medians of several starts; memory in MB of the daemon 3 s after its first turn."""
    listening, ready, resident, described, fresh = [], [], [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(_RUNS):
            with BenchDaemon(Path(folder) / f"home{number}", LLM_FAKE="1") as daemon:
                daemon.drop("a_agent.py", AGENT.format(name="A"))
                listens, describes = daemon.start()
                listening.append(listens * 1000)
                ready.append(describes * 1000)
                daemon.chat("hi")
                time.sleep(3)
                family = daemon.family()
                resident.append(_smaps(family[0], "Rss:"))
                described.append(min(_smaps(pid, "Private_") for pid in family[2:]))
                for pid in family[2:]:
                    os.kill(pid, signal.SIGKILL)
                daemon.chat("hi")
                fresh.append(min(_smaps(pid, "Private_") for pid in daemon.family()[2:]))
    help_ms = []
    for _ in range(_RUNS):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "rappd", "--help"], capture_output=True, check=True)
        help_ms.append((time.perf_counter() - began) * 1000)
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import aiohttp.web"], check=True)
    peer = (time.perf_counter() - began) * 1000
    return [
        ("start to listening", f"{_shown(listening)} ms"),
        ("start to agents described", f"{_shown(ready)} ms"),
        ("daemon idle, resident", f"{statistics.median(resident):.0f} MB"),
        ("fresh worker after its first turn, its own", f"{statistics.median(fresh):.1f} MB"),
        ("the first worker, that described all agents", f"{statistics.median(described):.1f} MB"),
        ("rappd --help", f"{_shown(help_ms)} ms"),
        ("python importing aiohttp.web alone", f"{peer:.0f} ms"),
        ("ratio, start to listening to it", f"{statistics.median(listening) / peer:.2f}"),
    ]


def _smaps(pid: int, key: str) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(key)) / 1024


def _shown(values: list[float]) -> str:
    return f"{statistics.median(values):.0f} (min {min(values):.0f}, max {max(values):.0f})"
