"""Twins on disk: a thousand of them listed, found and told apart; one born, one forked."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from twins.trust.quarantine import QuarantineList
from twins.workspace.fork import fork
from twins.workspace.lineage import Families
from twins.workspace.listing import MemoryCounter, find, list_twins
from twins.workspace.rappid import Rappid
from twins.workspace.twin import mint
from twins.workspace.workspace import TwinLayout

TWINS = 1000
MEMORIES = 131
ROUNDS = 9


def run() -> list[tuple[str, str]]:
    """Rows of (what, figure). Nothing but the file system's own cache is warm; a list is the median of nine."""
    rows: list[tuple[str, str]] = []
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        places = TwinLayout(Path(folder))
        began = time.perf_counter()
        twins = [mint(places, f"Twin {number}", owner="bench") for number in range(TWINS)]
        rows.append(("born, written through to the disk", f"{_each(began, TWINS):.2f} ms each"))

        plain = _median(
            lambda: [json.loads(path.read_bytes()) for path in places.twins.glob("*/rappid.json")]
        )
        listed = _median(lambda: list_twins(places))
        rows.append(
            (f"list {TWINS}", f"{listed:.0f} ms; {listed / plain:.1f} x reading their rappid.json alone")
        )
        rows.append((f"list {TWINS}, in a process of its own", f"{_alone(places.home):.0f} ms of the list"))

        memories = {f"id-{number}": {"message": "m" * 60, "theme": "fact"} for number in range(MEMORIES)}
        for twin in twins:
            path = twin.workspace.data / "shared_memories" / "memory.json"
            path.parent.mkdir()
            path.write_text(json.dumps(memories))
        rows.append(
            (
                f"list {TWINS} with {MEMORIES} memories each, first",
                f"{_median(lambda: list_twins(places)):.0f} ms",
            )
        )
        counter = MemoryCounter()
        again = _median(lambda: list_twins(places, counter=counter))
        rows.append(("the same again", f"{again:.0f} ms"))

        found = _median(lambda: find(places, "twin 500"))
        rows.append((f"find one of {TWINS} by name", f"{found:.0f} ms"))
        rows.append((f"lineage of {TWINS}", f"{_median(lambda: Families(places).tree()):.0f} ms"))

        held = QuarantineList(places.home / "held.json", places.home)
        began = time.perf_counter()
        for _ in range(20):
            fork(places, twins[0], quarantine=held, owner="bench", name="forked")
        rows.append(("forked", f"{_each(began, 20):.1f} ms each"))

        texts = [twin.rappid.text for twin in twins]
        began = time.perf_counter()
        for text in texts:
            Rappid.parse(text)
        rows.append(("read a rappid", f"{_each(began, TWINS) * 1e3:.1f} µs"))
    return rows


def _alone(home: Path) -> float:
    code = (
        "import sys, time, pathlib; from twins.workspace.listing import list_twins; from twins.workspace.workspace import TwinLayout;"
        "began = time.perf_counter(); rows = list_twins(TwinLayout(pathlib.Path(sys.argv[1]))).rows;"
        "print((time.perf_counter() - began) * 1e3)"
    )
    taken = [
        float(subprocess.run([sys.executable, "-c", code, str(home)], capture_output=True, check=True).stdout)
        for _ in range(ROUNDS)
    ]
    return sorted(taken)[ROUNDS // 2]


def _median(act: Callable[[], object]) -> float:
    """Milliseconds that ``act`` takes, the middle one of several rounds."""
    taken = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        act()
        taken.append((time.perf_counter() - began) * 1e3)
    return sorted(taken)[ROUNDS // 2]


def _each(began: float, count: int) -> float:
    return (time.perf_counter() - began) / count * 1e3
