"""From saving one changed agent among 200 to its new answer."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.daemon import AGENT, BenchDaemon

_RUNS = 20


def run() -> list[tuple[str, str]]:
    """Milliseconds from the end of the write until a turn answers from the new version."""
    taken = []
    with tempfile.TemporaryDirectory() as folder, BenchDaemon(Path(folder) / "home", LLM_FAKE="1") as daemon:
        for number in range(200):
            daemon.drop(f"b{number:03d}_agent.py", AGENT.format(name=f"B{number:03d}"))
        daemon.drop("a_agent.py", AGENT.format(name="A"))
        daemon.start()
        time.sleep(1.5)
        for number in range(_RUNS):
            daemon.drop("a_agent.py", AGENT.format(name="A").replace("answered ", f"answered {number} "))
            began = time.perf_counter()
            while f"answered {number} " not in daemon.chat("go")["agent_logs"]:
                time.sleep(0.002)
            taken.append((time.perf_counter() - began) * 1000)
            time.sleep(0.3)
    return [
        ("saved to live, median", f"{statistics.median(taken):.0f} ms"),
        ("saved to live, slowest of 20", f"{max(taken):.0f} ms"),
    ]
