"""A neighborhood whose links are cut and whose programs are killed at random moments; each time it is resumed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from lan.interruptions import cut_hatch_and_resume, cut_snapshot_and_resume, fill
from lan.neighborhood_hosts import Neighborhood
from lan.network import Lan, require

from tests.storm.storm import SECONDS, rounds

_TARS = ("gnu", "busybox", "bsdtar")


@pytest.mark.timeout(900 + int(SECONDS))
@pytest.mark.parametrize("way", ["link", "one", "desk"])
def test_snapshot_and_hatch_cut_at_random_offsets_are_resumed(tmp_path: Path, way: str) -> None:
    require()
    chance = random.Random(way)
    with Lan() as lan, Neighborhood(lan, tmp_path, _TARS) as neighborhood:
        fill(neighborhood, chance)
        cut = [cut_snapshot_and_resume(neighborhood, chance, way) for _ in rounds(0.04)]
        egg = neighborhood.snapshot()["snapshot"]["name"]
        cut += [cut_hatch_and_resume(neighborhood, chance, egg, way) for _ in rounds(0.04)]
    print(f"{way}: {sum(cut)} of {len(cut)} were cut off, and each was resumed")
    assert sum(cut) >= len(cut) // 4 or len(cut) < 20
