"""A neighborhood whose links are cut and whose programs are killed at random moments; each time it is resumed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from lan.interruptions import cut_hatch_and_resume, cut_snapshot_and_resume, fill
from lan.neighborhood_hosts import Neighborhood
from lan.network import Lan, require

from tests.storm.storm import SECONDS

_ROUNDS = 20 if SECONDS else 1
_TARS = ("gnu", "busybox", "bsdtar")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("way", ["link", "one", "desk"])
def test_snapshot_and_hatch_cut_at_random_offsets_are_resumed(tmp_path: Path, way: str) -> None:
    require()
    chance = random.Random(way)
    with Lan() as lan, Neighborhood(lan, tmp_path, _TARS) as neighborhood:
        fill(neighborhood, chance)
        cut = [cut_snapshot_and_resume(neighborhood, chance, way) for _ in range(_ROUNDS)]
        egg = neighborhood.snapshot()["snapshot"]["name"]
        cut += [cut_hatch_and_resume(neighborhood, chance, egg, way) for _ in range(_ROUNDS)]
    print(f"{way}: {sum(cut)} of {len(cut)} were cut off, and each was resumed")
    assert sum(cut) >= len(cut) // 4 or not SECONDS
