"""Snapshots and restores of a neighborhood that are cut off on their way, and then run again."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from lan.neighborhood_hosts import Host, Neighborhood, same, tree

_DONE, _PARTLY = 0, 7
MEGABITS = 10
"""The speed of each link: what is sent takes long enough to be cut off within."""


def fill(neighborhood: Neighborhood, chance: random.Random, *, octets: int = 700_000) -> None:
    """Gives each host three twins, which take a moment to travel."""
    for host in neighborhood.hosts:
        host.slow_down(MEGABITS)
        for number in range(3):
            key = random.Random(f"{host.name}/{number}").randbytes(32).hex()
            host.twin(key, {"soul.md": b"I stay.\n", "data.bin": chance.randbytes(octets)})


def change(neighborhood: Neighborhood, chance: random.Random) -> None:
    """Changes every twin, so that the next snapshot reads each anew."""
    for host in neighborhood.hosts:
        for data in (host.home / "twins").glob("*/data.bin"):
            data.write_bytes(chance.randbytes(data.stat().st_size))


def cut_snapshot_and_resume(neighborhood: Neighborhood, chance: random.Random, way: str) -> bool:
    """A host's link is cut, or either side killed, at a random offset; the next run gets what is missing.

    Returns whether it came in time to matter.
    """
    change(neighborhood, chance)
    host = chance.choice(neighborhood.hosts)
    before = {one.name for one in (neighborhood.home / "eggs/neighborhood").glob("*.egg")}
    running = _begun(neighborhood, "snapshot", "--json", "--no-drill")
    _strike(host, running, chance, way, of=sum(map(len, host.tree().values())))
    output, errors = running.communicate(timeout=600)
    assert "Traceback" not in errors
    finished = set()
    if way == "desk":
        assert running.returncode in (_DONE, -9), output + errors
        assert {one.name for one in (neighborhood.home / "eggs/neighborhood").glob("*.egg")} - before <= (
            _listed(neighborhood)
        )
    else:
        assert running.returncode in (_DONE, _PARTLY), output + errors
        done = json.loads(output.splitlines()[-1])
        lost = [one["path"] for one in done["failed"]]
        assert all(path.partition("/")[0] == host.name for path in lost), lost
        assert all("\n" not in one["why"] for one in done["failed"])
        finished = {one.name for one in neighborhood.hosts} - {host.name}
    again = neighborhood.snapshot()
    assert again["snapshot"]["restorable"], again
    assert again["reused"] >= 3 * len(finished)
    shutil.rmtree(neighborhood.home / "simulated", ignore_errors=True)
    hatched = neighborhood.hatch(again["snapshot"]["name"], "--target", "local-simulate")
    assert hatched["failed"] == []
    for one in neighborhood.hosts:
        assert same(tree(neighborhood.home / "simulated" / one.name / "twins"), one.tree())
    hidden = (neighborhood.home / "eggs/neighborhood").glob(".*/**/*")
    assert [path for path in hidden if path.is_file()] == []
    return running.returncode != _DONE


def cut_hatch_and_resume(neighborhood: Neighborhood, chance: random.Random, egg: str, way: str) -> bool:
    """All hosts are wiped, and one is cut off while it gets its twins back: none of them is there half."""
    whole = {host.name: host.tree() for host in neighborhood.hosts}
    for host in neighborhood.hosts:
        host.wipe()
    host = chance.choice(neighborhood.hosts)
    running = _begun(neighborhood, "hatch", egg, "--yes", "--json")
    _strike(host, running, chance, way, of=sum(map(len, whole[host.name].values())))
    output, errors = running.communicate(timeout=600)
    assert "Traceback" not in errors
    assert running.returncode in ((_DONE, -9) if way == "desk" else (_DONE, _PARTLY)), output + errors
    _settle(neighborhood)
    for one in neighborhood.hosts:
        present = {path.name for path in (one.home / "twins").glob("[!.]*")}
        there = {path: content for path, content in whole[one.name].items() if path[:64] in present}
        assert same(one.tree(), there), f"half a twin on {one.name}"
    neighborhood.hatch(egg)
    for one in neighborhood.hosts:
        assert same(one.tree(), whole[one.name])
    return running.returncode != _DONE


def _begun(neighborhood: Neighborhood, *arguments: str) -> subprocess.Popen[str]:
    return neighborhood.desk.start(
        neighborhood.command(*arguments),
        environment=neighborhood.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _strike(host: Host, running: subprocess.Popen[Any], chance: random.Random, way: str, *, of: int) -> None:
    """Waits until a random part of ``of`` octets went over the host's link, and cuts there."""
    until = host.octets + chance.uniform(0.01, 1.1) * of
    while host.octets < until and running.poll() is None:
        time.sleep(0.002)
    if way == "desk":
        running.kill()
    elif way == "one":
        host.kill_one(chance)
    else:
        host.cut()


def _settle(neighborhood: Neighborhood) -> None:
    """Waits until no program that the desk started on a host runs any more: one that has all may still move it."""
    until = time.monotonic() + 100
    while any(map(_programs, neighborhood.hosts)):
        assert time.monotonic() < until
        time.sleep(0.05)


def _programs(host: Host) -> list[str]:
    found = []
    for pid in host.sessions():
        try:
            found.append(Path(f"/proc/{pid}/comm").read_text().strip())
        except OSError:  # it has just ended
            continue
    return [name for name in found if not name.startswith("sshd")]  # a connection stays for a minute


def _listed(neighborhood: Neighborhood) -> set[str]:
    index = neighborhood.home / "eggs/neighborhood/snapshots.json"
    return (
        {Path(one["path"]).name for one in json.loads(index.read_text())["snapshots"]}
        if index.exists()
        else set()
    )
