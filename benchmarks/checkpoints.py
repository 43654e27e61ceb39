"""Checkpoints of a twin with 200 MB of memories and 5,000 files of packages: made, and gone back to."""

from __future__ import annotations

import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from envelopes.identity.keys import IdentityKey
from twins.eggs.frames import Frame
from twins.eggs.writers.formats import EggMaker
from twins.trust.quarantine import QuarantineList
from twins.workspace.checkpoint_restore import plan_restore, restore
from twins.workspace.checkpoints import Checkpoints
from twins.workspace.twin import Twin, mint
from twins.workspace.workspace import TwinLayout, Workspace

MEMORIES = 200
MEMORY_BYTES = 1 << 20
PACKAGE_FILES = 5000
ROUNDS = 3


class _Silence:
    def frames(self, key: str) -> Iterator[Frame]:
        return iter(())


def run() -> list[tuple[str, str]]:
    """Rows of (what, figure), each the median of three; beside them a plain copy of the folder, synced."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        home = Path(folder) / "home"
        places = TwinLayout(home)
        twin = mint(places, "gardener", owner="bench")
        _fill(twin)
        checkpoints = Checkpoints(
            places, key=IdentityKey.generate(), maker=EggMaker(), conversations=lambda key: _Silence()
        )
        held, host = QuarantineList(home / "held.json", home), Workspace.at(home / "brainstem")

        def back(selector: str) -> Any:
            return restore(checkpoints, places, twin, selector, quarantine=held, host=host)

        def change_three() -> None:
            for number in range(3):
                (twin.workspace.data / f"{number}.bin").write_bytes(random.randbytes(1000))

        first = checkpoints.make(twin)
        megabytes = MEMORIES * MEMORY_BYTES / 1e6
        made = _median(lambda: checkpoints.make(twin))
        looked = _median(lambda: plan_restore(checkpoints, twin, first.id))
        went = _median(lambda: back(first.id), before=change_three)
        copied = _median(lambda: _copy(twin.workspace.root, Path(folder) / "copy"))
        return [
            ("made", f"{made:.2f} s, {megabytes / made:,.0f} MB/s"),
            ("compared, nothing changed", f"{looked:.2f} s"),
            ("gone back, 3 files changed", f"{went:.2f} s, with the checkpoint of before"),
            ("the folder copied and synced", f"{copied:.2f} s"),
        ]


def _fill(twin: Twin) -> None:
    for number in range(MEMORIES):
        (twin.workspace.data / f"{number}.bin").write_bytes(random.randbytes(MEMORY_BYTES))
    for number in range(PACKAGE_FILES):
        path = twin.workspace.deps / f"package{number % 50}" / f"module{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")


def _copy(source: Path, target: Path) -> None:
    os.system(f"rm -rf {target} && cp -a {source} {target} && sync -f {target}")


def _median(work: Callable[[], object], *, before: Callable[[], None] = lambda: None) -> float:
    found = []
    for _ in range(ROUNDS):
        before()
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return statistics.median(found)
