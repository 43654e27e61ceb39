"""Five hosts come back from one file: in place over SSH, and as a simulation on the desk."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from lan.neighborhood_hosts import SHARED, Neighborhood, same, tree
from lan.network import Lan

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def neighborhood(lan: Lan, tmp_path: Path) -> Iterator[Neighborhood]:
    with Neighborhood(lan, tmp_path) as made:
        chance = random.Random(5)
        for host in made.hosts:
            for number in range(3):
                folder = host.twin(
                    chance.randbytes(32).hex(),
                    {
                        "soul.md": f"You live on {host.name}.\n".encode(),
                        "agents/clock_agent.py": b"clock = 1\n",
                        ".brainstem_data/memory.json": b'{"a": %d}' % number,
                        "größe 大/it's (1).txt": b"odd",
                        "run.sh": b"#!/bin/sh\n",
                        "data.bin": chance.randbytes(200_000),
                        "empty": b"",
                    },
                )
                (folder / "run.sh").chmod(0o755)
            host.twin(SHARED, {"soul.md": f"The shared one of {host.name}.\n".encode()}, name="shared")
            (host.home / "brainstem/agents").mkdir(parents=True)
            (host.home / "brainstem/agents/clock_agent.py").write_text(f"# of {host.name}\n")
        yield made


def test_five_wiped_hosts_come_back_in_place_and_as_a_simulation(neighborhood: Neighborhood) -> None:
    before = {host.name: host.tree() for host in neighborhood.hosts}
    taken = neighborhood.snapshot()
    assert taken["snapshot"]["machines"] == 6
    assert taken["snapshot"]["twins"] == 20
    assert taken["snapshot"]["restorable"]
    egg = taken["snapshot"]["name"]

    simulated = neighborhood.hatch(egg, "--target", "local-simulate")
    assert simulated["failed"] == []
    for host in neighborhood.hosts:
        assert same(tree(neighborhood.home / "simulated" / host.name / "twins"), before[host.name])

    for host in neighborhood.hosts:
        host.wipe()
    hatched = neighborhood.hatch(egg)
    assert hatched["categories"]["peer_twins"] == {"created": 20, "overwritten": 0, "skipped": 0}
    for host in neighborhood.hosts:
        assert same(host.tree(), before[host.name])
        assert (host.home / "brainstem/agents/clock_agent.py").read_text() == f"# of {host.name}\n"
        assert [path.name for path in (host.home / "twins").iterdir() if path.name.startswith(".m")] == []
    again = neighborhood.hatch(egg)
    assert again["categories"]["peer_twins"] == {"created": 0, "overwritten": 0, "skipped": 20}


def test_text_travels_compressed_both_ways(lan: Lan, tmp_path: Path) -> None:
    words = " ".join(f"word{number}" for number in range(400_000)).encode()
    with Neighborhood(lan, tmp_path, ("gnu",)) as made:
        (host,) = made.hosts
        host.twin("a" * 64, {"soul.md": b"I remember.\n", "memory.txt": words})
        before, began = host.tree(), host.octets
        egg = made.snapshot("--no-drill")["snapshot"]["name"]
        read = host.octets - began
        host.wipe()
        began = host.octets
        made.hatch(egg)
        assert same(host.tree(), before)
        assert read < len(words) / 2
        assert host.octets - began < len(words) / 2
