"""Hosts that are hostile, away, odd or full, and a desk without room: one clear line each, and the rest is done."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fixtures.hostile_tars import EVIL, hostile_stream
from fixtures.member_homes import NAMES
from fixtures.ssh_server import SshServer

from lan.neighborhood_hosts import Host, Neighborhood, same, tree
from lan.network import Lan

pytestmark = pytest.mark.timeout(900)
KEY = "a" * 64
OTHER = "b" * 64
PAGE = os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def neighborhood(lan: Lan, tmp_path: Path) -> Iterator[Neighborhood]:
    with Neighborhood(lan, tmp_path, ("gnu", "busybox", "bsdtar")) as made:
        for host in made.hosts:
            host.twin(KEY, {"soul.md": b"gardener\n", "data.bin": os.urandom(50_000)})
        yield made


def failure(neighborhood: Neighborhood, code: int = 7) -> tuple[str, str]:
    """The only thing that failed in a snapshot: its name and the sentence. The rest is whole and restorable."""
    done = neighborhood.rappd("snapshot", "--json")
    assert done.returncode == code, done.stdout + done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["snapshot"]["restorable"], found
    assert len(found["failed"]) == 1, found
    said = found["failed"][0]
    assert "\n" not in said["why"]
    return said["path"], said["why"]


def replace_tar(host: Host, lines: str) -> None:
    """Another program in the place of tar: it does as asked, but for the stream of a twin."""
    program = host.folder / "bin/tar"
    program.unlink()
    program.write_text(
        '#!/bin/sh\ncase "$*" in --version) echo "tar (GNU tar)"; exit;; *"/dev/null"*) exit;; esac\n' + lines
    )
    program.chmod(0o755)


def test_hostile_stream_lets_honest_files_through_and_no_other(
    neighborhood: Neighborhood, tmp_path: Path
) -> None:
    host = neighborhood.hosts[0]
    there = host.home / f"twins/{KEY}"
    honest = {name: (there / name).read_bytes() for name in ("rappid.json", "data.bin")}
    honest["soul.md"] = b"gardener\n"
    (tmp_path / "stream").write_bytes(hostile_stream(honest))
    replace_tar(host, f"exec cat {tmp_path}/stream\n")
    taken = neighborhood.snapshot()
    assert len([one for one in taken["left_out"] if one["path"].startswith("host1/")]) > 40
    assert taken["snapshot"]["restorable"]
    egg = taken["snapshot"]["name"]
    neighborhood.hatch(egg, "--target", "local-simulate")
    found = tree(neighborhood.home / "simulated/host1/twins")
    assert found[f"{KEY}/soul.md"].endswith(b"gardener\n")
    evil = [path for path, content in found.items() if content.endswith(EVIL)]
    assert evil == [f"{KEY}/etc/outside"]  # ".//etc/outside", which lies inside
    assert all(path.startswith(f"{KEY}/") for path in found)
    assert [path for path in tmp_path.rglob("*outside*") if "simulated" not in path.parts] == []


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ("exec head -c 2000000 /dev/urandom", "no tar archive"),
        ("echo Welcome; exit 0", "cut off"),
        ("tar=$(command -v true); exec cat /dev/zero", "goes on after its end"),
        ("kill -9 $PPID", "host1"),
        ("echo 'tar: disk error' >&2; exit 2", "host1"),
    ],
    ids=["noise", "words", "endless", "kills", "fails"],
)
def test_peer_whose_tar_misbehaves_fails_alone(neighborhood: Neighborhood, lines: str, says: str) -> None:
    (neighborhood.hosts[0].folder / "bin/head").symlink_to("/usr/bin/head")
    replace_tar(neighborhood.hosts[0], f"{lines}\n")
    path, why = failure(neighborhood)
    assert path == f"host1/{KEY[:8]}"
    assert says in why, why


def test_odd_names_come_back_or_are_named(neighborhood: Neighborhood) -> None:
    for host in neighborhood.hosts:
        odd = host.twin(OTHER, {name: name.encode() for name in NAMES} | {"a  b/ü .txt": b"1"})
        (odd / "two\nlines.txt").write_bytes(b"x")
        Path(os.fsdecode(os.fsencode(odd) + b"/caf\xe9")).write_bytes(b"x")
    done = neighborhood.rappd("snapshot")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Restorable" in done.stdout
    assert f'! left out: host1/{OTHER[:8]}/say "hi".txt' in done.stdout
    assert "Rename it, rerun." in done.stdout
    taken = neighborhood.snapshot()
    odd_ones = {one["path"]: one["why"] for one in taken["left_out"] if one.get("do")}
    for host in neighborhood.hosts:
        twin = f"{host.name}/{OTHER[:8]}/"
        left = {path.removeprefix(twin) for path in odd_ones if path.startswith(twin)}
        assert left == {'say "hi".txt', "two\\nlines.txt", "caf\\xe9"}
    before = {host.name: host.tree() for host in neighborhood.hosts}
    for host in neighborhood.hosts:
        host.wipe()
    neighborhood.hatch(taken["snapshot"]["name"])
    for host in neighborhood.hosts:
        kept = {
            path: content
            for path, content in before[host.name].items()
            if not path.endswith(('say "hi".txt', "lines.txt")) and "caf" not in path
        }
        assert same(host.tree(), kept)


def test_peer_asleep_is_asked_three_times_and_the_rest_is_taken(neighborhood: Neighborhood) -> None:
    neighborhood.hosts[1].machine.unplug()
    done = neighborhood.rappd("snapshot", "--json")
    assert done.returncode == 7, done.stdout + done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    tries = [one["try"] for one in events if one.get("state") == "no answer" and one["machine"] == "host2"]
    assert tries == [2, 3]
    assert [one["path"] for one in events[-1]["failed"]] == ["host2"]
    assert "Wake it, rerun." in events[-1]["failed"][0]["why"]
    neighborhood.hosts[1].machine.plug()
    again = neighborhood.snapshot()
    assert again["reused"] >= 2


def test_second_snapshot_at_once_is_refused(neighborhood: Neighborhood) -> None:
    host = neighborhood.hosts[0]
    host.slow_down(4)
    (host.home / f"twins/{KEY}/large.bin").write_bytes(
        os.urandom(6_000_000)
    )  # longer than a command needs to begin
    first = neighborhood.desk.start(
        neighborhood.command("snapshot", "--json"),
        environment=neighborhood.environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert first.stdout is not None
    first.stdout.readline()
    second = neighborhood.rappd("snapshot")
    assert second.returncode == 9
    assert "Another snapshot of this home is under way\n" in second.stderr
    host.slow_down(1000)
    first.communicate(timeout=100)
    assert first.returncode == 0


@pytest.mark.parametrize("room", [0.3, 1.2, 2.2, 3.0])
def test_disk_full_here_leaves_no_half_snapshot(neighborhood: Neighborhood, room: float) -> None:
    """The share of the content that the disk holds beside it: the parts, the egg, its last members, the drill."""
    for host in neighborhood.hosts:
        (host.home / f"twins/{KEY}/large.bin").write_bytes(os.urandom(1_000_000))
    small = neighborhood.home / "eggs"
    small.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={int(room * 3_150_000)}", "tmpfs", small], check=True
    )
    try:
        done = neighborhood.rappd("snapshot")
        said = " ".join((done.stdout + done.stderr).split())
        assert done.returncode in (1, 7, 9), said
        assert "Traceback" not in said
        assert "disk is full" in said or "No space left on device; nothing was packed" in said, said
        assert "Errno" not in said
        assert list(small.rglob("*.tmp")) == []
        for egg in small.rglob("*.egg"):  # with some machines in it, but whole
            with zipfile.ZipFile(egg) as archive:
                assert archive.testzip() is None
    finally:
        subprocess.run(["umount", "-l", small], check=True)
    assert neighborhood.snapshot()["snapshot"]["restorable"]


@contextmanager
def used_pages(disk: Path, most: list[int]) -> Iterator[None]:
    """Adds the most pages that were seen in use to ``most``."""
    ended = threading.Event()

    def look() -> None:
        seen = 0
        while not ended.wait(0.001):
            found = os.statvfs(disk)
            seen = max(seen, found.f_blocks - found.f_bfree)
        most.append(seen)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield
    finally:
        ended.set()
        looking.join()


def _on_small_disk(
    neighborhood: Neighborhood, pages: int, most: list[int]
) -> subprocess.CompletedProcess[str]:
    """A snapshot on a disk of so many pages; a failed one leaves no egg, and every egg is whole."""
    small = neighborhood.home / "eggs"
    small.mkdir(exist_ok=True)
    size = f"size={pages * PAGE}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", small], check=True)
    try:
        with used_pages(small, most):
            done = neighborhood.rappd("snapshot", "--no-drill")
        assert list(small.rglob("*.tmp")) == []
        if done.returncode not in (0, 7):
            assert list(small.rglob("*.egg")) == []
        for egg in small.rglob("*.egg"):
            with zipfile.ZipFile(egg) as archive:
                assert archive.testzip() is None
        return done
    finally:
        subprocess.run(["umount", "-l", small], check=True)


def test_disk_that_lacks_one_page_for_the_snapshot_leaves_none(neighborhood: Neighborhood) -> None:
    """The smallest disk that holds it is looked for; with one page less its last writes fail."""
    for host in neighborhood.hosts:
        (host.home / f"twins/{KEY}/large.bin").write_bytes(os.urandom(300_000))
    most: list[int] = []
    assert _on_small_disk(neighborhood, 900, most).returncode == 0
    too_few, enough = most[0] - 1, 900
    failed = _on_small_disk(neighborhood, too_few, most)
    assert failed.returncode != 0, f"{too_few} pages were enough"
    step = 1  # what was seen in use is perhaps a little less than what was
    while too_few + 1 < enough:
        pages = min(too_few + step, (too_few + enough) // 2)
        done = _on_small_disk(neighborhood, pages, most)
        if done.returncode == 0:
            enough = pages
        else:
            too_few, failed, step = pages, done, 2 * step
    said = " ".join((failed.stdout + failed.stderr).split())
    assert failed.returncode in (1, 7, 9), said
    assert "full" in said or "No space left" in said, said
    assert "Traceback" not in said and "Errno" not in said


@pytest.mark.parametrize("tar", [0, 1, 2], ids=["gnu", "busybox", "bsdtar"])
def test_host_whose_disk_lacks_one_page_keeps_no_half_twin(neighborhood: Neighborhood, tar: int) -> None:
    host = neighborhood.hosts[tar]
    before = host.tree()
    egg = neighborhood.snapshot("--no-drill")["snapshot"]["name"]
    needed = sum(
        -(-path.stat().st_size // PAGE) for path in (host.home / "twins").rglob("*") if path.is_file()
    )
    host.wipe()
    size = ["mount", "-t", "tmpfs", "-o", f"size={(needed - 1) * PAGE}", "tmpfs", host.home]
    subprocess.run(size, check=True)
    host.stop()  # programs of a namespace see what was mounted before they began
    (host.folder / "sshd.log").write_text("")
    host.start()
    try:
        done = neighborhood.rappd("hatch", egg, "--yes", "--json")
        assert done.returncode == 7, done.stdout + done.stderr
        (why,) = json.loads(done.stdout)["hatched"]["failed"]
        assert host.name in why and "full" in why, why
        assert host.tree() == {}
        assert [one for one in host.home.rglob("*") if one.is_file()] == []
        subprocess.run(["mount", "-o", f"remount,size={needed * PAGE}", host.home], check=True)
        neighborhood.hatch(egg)
        assert same(host.tree(), before)
    finally:
        subprocess.run(["umount", "-l", host.home], check=True)


def test_clock_skew_hides_no_change(neighborhood: Neighborhood) -> None:
    host = neighborhood.hosts[0]
    soul = host.home / f"twins/{KEY}/soul.md"
    ahead = 4_000_000_000
    os.utime(soul, (ahead, ahead))
    neighborhood.snapshot()
    assert neighborhood.snapshot()["reused"] == 3
    soul.write_bytes(b"gardener!")
    soul.write_bytes(b"gardenes\n")  # the same size and, by a clock that stands still, the same time
    os.utime(soul, (ahead, ahead))
    taken = neighborhood.snapshot()
    assert taken["reused"] == 2
    before = host.tree()
    host.wipe()
    neighborhood.hatch(taken["snapshot"]["name"])
    assert same(host.tree(), before)


def test_peer_that_is_this_machine_is_named_and_the_rest_is_taken(
    neighborhood: Neighborhood, tmp_path: Path
) -> None:
    machine = neighborhood.desk
    with SshServer(
        tmp_path / "self",
        address=machine.address,
        port=22,
        prefix=["ip", "netns", "exec", machine.namespace],
        environment={"RAPP_HOME": str(neighborhood.home)},
    ) as me:
        neighborhood.also(me, "other-name")
        path, why = failure(neighborhood)
    assert (path, why) == ("other-name", "other-name is this machine itself. Take it out of peers.json.")


def test_tree_changed_after_approval_is_refused_with_code_nine(neighborhood: Neighborhood) -> None:
    egg = neighborhood.snapshot()["snapshot"]["name"]
    neighborhood.hosts[0].wipe()
    planned = json.loads(neighborhood.rappd("plan", egg, "--json").stdout)["plan"]
    neighborhood.hosts[1].wipe()
    done = neighborhood.rappd("hatch", egg, "--approved", planned["digest"])
    assert done.returncode == 9, done.stdout + done.stderr
    assert not (neighborhood.hosts[0].home / "twins").exists()
    assert neighborhood.rappd("hatch", egg).returncode == 6


def test_two_generations_come_back_in_either_order(neighborhood: Neighborhood) -> None:
    old = neighborhood.snapshot()["snapshot"]["name"]
    before = {host.name: host.tree() for host in neighborhood.hosts}
    for host in neighborhood.hosts:
        (host.home / f"twins/{KEY}/soul.md").write_bytes(b"newer\n")
        host.twin(OTHER, {"soul.md": b"second\n"})
    time.sleep(1.1)  # names of snapshots have seconds
    new = neighborhood.snapshot()["snapshot"]["name"]
    after = {host.name: host.tree() for host in neighborhood.hosts}
    for host in neighborhood.hosts:
        host.wipe()
    neighborhood.hatch(old)
    assert all(same(host.tree(), before[host.name]) for host in neighborhood.hosts)
    neighborhood.hatch(new, "--overwrite-peer-twins")
    assert all(same(host.tree(), after[host.name]) for host in neighborhood.hosts)
    neighborhood.hatch(old, "--overwrite-peer-twins")
    for host in neighborhood.hosts:
        assert same(host.tree(), {**after[host.name], **before[host.name]})


def test_files_beside_the_agents_of_a_peer_stay_in_the_egg_and_are_named(
    neighborhood: Neighborhood,
) -> None:
    agents = neighborhood.hosts[0].home / "brainstem/agents"
    (agents / "weather").mkdir(parents=True)
    (agents / "clock_agent.py").write_text("clock = 1\n")
    (agents / "weather/rain.py").write_text("rain = 1\n")
    taken = neighborhood.snapshot()
    with zipfile.ZipFile(taken["snapshot"]["path"]) as archive:
        assert archive.read("peers/host1/brainstem/agents/weather/rain.py") == b"rain = 1\n"
    shown = neighborhood.rappd("plan", taken["snapshot"]["name"]).stdout
    assert "1 agent of its brainstem, is there" in shown
    assert "1 file beside its agents stays in the egg" in shown
