"""Taking a snapshot: its shape, what stays behind, what is missing, and going on after a break."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from fixtures.refusals import refused

from envelopes.errors import ReportableError
from neighborhoods.errors import SnapshotRunningError
from neighborhoods.snapshot.capture import SnapshotResult, take_snapshot
from neighborhoods.snapshot.diff import compare_snapshots
from neighborhoods.snapshot.drill import drill
from neighborhoods.snapshot.manifest import SnapshotOptions
from neighborhoods.snapshot.member_capture import SnapshotPeer
from neighborhoods.snapshot.snapshot_contents import SnapshotContents
from tests.neighborhoods.snapshot.machines import NOW, FolderMember, Machine
from twins.eggs.readers.detect import open_egg
from twins.eggs.readers.inspect import lines
from twins.workspace.workspace import Workspace

SECRET = b"token = 'ghp_" + b"A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8'\n"


@pytest.fixture
def desk(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path / "desk", "desk")
    machine.brainstem()
    machine.twin("gardener", {"notes.txt": b"dry\n", ".env": b"A=1", "node_modules/x.js": b"x"})
    return machine


@pytest.fixture
def pi(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path / "pi", "pi")
    machine.brainstem()
    machine.twin("cook", {".env": b"KEY=1", "agents/__pycache__/x.pyc": b"x", "run.sh": b"#!/bin/sh\n"})
    return machine


def _manifest(path: str) -> dict[str, Any]:
    with zipfile.ZipFile(path) as archive:
        found: dict[str, Any] = orjson.loads(archive.read("manifest.json"))
        return found


def test_snapshot_of_two_machines_has_published_layout(desk: Machine, pi: Machine) -> None:
    done = desk.take([SnapshotPeer("pi", FolderMember(pi.root), ssh_host="pi.local", ssh_user="ada")])
    gardener, cook = _key(desk), _key(pi)
    with zipfile.ZipFile(done.record.path) as archive:
        names = archive.namelist()
        manifest = orjson.loads(archive.read("manifest.json"))
        assert orjson.loads(archive.read("members.json")) == manifest["members"]
        assert orjson.loads(archive.read("peers/pi/peer.json")) == manifest["members"]["peers"][0]
    assert set(names) == {
        *("manifest.json", "members.json", "stamps.json", "listing.json", "integrity.json"),
        *(f"brainstem/{name}" for name in ("rappid.json", "soul.md", "bonds.json")),
        *("brainstem/agents/clock_agent.py", "brainstem/data/notes.json"),
        *(
            f"twins/{gardener}/{name}"
            for name in ("rappid.json", "soul.md", "bonds.json", "agents/water_agent.py", "notes.txt")
        ),
        *("peers/pi/peer.json", f"peers/pi/twins/{cook}.tar.gz", "peers/pi/brainstem/agents/clock_agent.py"),
    }
    assert list(manifest)[:6] == [
        "schema",
        "scale",
        "name",
        "snapshotted_at",
        "snapshotted_from",
        "created_by",
    ]
    assert (manifest["schema"], manifest["scale"]) == ("rapp-egg/2.0", "neighborhood")
    assert manifest["created_by"] == "NeighborhoodSnapshot"
    assert manifest["options"]["max_twin_bytes"] == 50_000_000
    local = manifest["members"]["local"]
    assert local["agent_files_captured"] == ["clock_agent.py"]
    assert local["brainstem_data_files"] == ["notes.json"]
    twin = local["twins"][0]
    assert (twin["name"], twin["has_soul"], twin["agents"]) == ("gardener", True, ["water_agent.py"])
    peer = manifest["members"]["peers"][0]
    assert (peer["ssh_ok"], peer["agent_files"]) == (True, ["clock_agent.py"])
    assert peer["twins"][0]["captured_path_in_egg"] == f"peers/pi/twins/{cook}.tar.gz"
    with open_egg(Path(done.record.path)) as opened:
        assert opened.seal.whole
        assert opened.seal.signer == desk.key.fingerprint
    listed = subprocess.run(
        ["tar", "-tzf", "-"],
        input=zipfile.ZipFile(done.record.path).read(f"peers/pi/twins/{cook}.tar.gz"),
        stdout=subprocess.PIPE,
        check=True,
    ).stdout.decode()
    assert sorted(listed.split()) == sorted(
        f"{cook}/{name}"
        for name in ("rappid.json", "soul.md", "bonds.json", "agents/water_agent.py", "run.sh")
    )


def test_snapshot_of_same_state_has_same_bytes(desk: Machine, pi: Machine) -> None:
    first = desk.take([SnapshotPeer("pi", FolderMember(pi.root))], name="one").record
    content = Path(first.path).read_bytes()
    Path(first.path).unlink()
    second = desk.take([SnapshotPeer("pi", FolderMember(pi.root))], name="one").record
    assert Path(second.path).read_bytes() == content
    third = desk.take([SnapshotPeer("pi", FolderMember(pi.root))], name="one", overwrite=True)
    assert third.reused == 3
    assert Path(third.record.path).read_bytes() == content


def test_two_snapshots_of_one_second_have_names_of_their_own(desk: Machine) -> None:
    first, second = desk.take([], now=NOW).record, desk.take([], now=NOW).record
    assert second.name == f"{first.name}-2"
    assert Path(first.path).exists()
    assert Path(second.path).name == f"{second.name}.egg"


@pytest.mark.parametrize(
    "name", ["../../../elsewhere", "a/b", ".hidden", "red\x1b[31m", 'say "hi"', "x" * 200]
)
def test_name_that_is_no_plain_file_name_is_refused(desk: Machine, tmp_path: Path, name: str) -> None:
    before = sorted(tmp_path.rglob("*.egg"))
    with refused("bad_snapshot_name"):
        desk.take([], name=name)
    assert sorted(tmp_path.rglob("*.egg")) == before


def test_unchanged_twin_is_not_read_again_and_changed_one_is(desk: Machine, pi: Machine) -> None:
    member = FolderMember(pi.root)
    desk.take([SnapshotPeer("pi", member)])
    baker = pi.twin("baker").key
    member.reads.clear()
    later = desk.take([SnapshotPeer("pi", member)], now=NOW + timedelta(hours=1))
    assert member.reads == [baker]
    with zipfile.ZipFile(later.record.path) as archive:
        assert sum(name.endswith(".tar.gz") for name in archive.namelist()) == 2
    with open_egg(Path(later.record.path)) as opened:
        assert opened.seal.whole


def test_diff_names_what_was_copied_and_differs(desk: Machine, pi: Machine) -> None:
    first = desk.take([SnapshotPeer("pi", FolderMember(pi.root))], name="one").record
    later = NOW + timedelta(hours=1)
    same = desk.take([SnapshotPeer("pi", FolderMember(pi.root))], name="two", now=later).record
    assert compare_snapshots(Path(first.path), Path(same.path)).files == ()
    baker = pi.twin("baker").key
    other = desk.take([SnapshotPeer("pi", FolderMember(pi.root))], name="three", now=later).record
    (found,) = compare_snapshots(Path(first.path), Path(other.path)).files
    assert (found.what, found.target) == ("added", f"peers/pi/twins/{baker}.tar.gz")


def test_machine_without_answer_is_missing_and_others_are_taken(desk: Machine, pi: Machine) -> None:
    shed = SnapshotPeer("shed", FolderMember(pi.root, asleep="no answer"))
    done = desk.take(
        [shed, SnapshotPeer("pi", FolderMember(pi.root)), SnapshotPeer("url only", url="http://x:7071")]
    )
    assert done.is_partial
    assert [(one.path, one.why) for one in done.failed] == [
        ("shed", "no answer"),
        ("url only", "no way to read it is known"),
    ]
    assert done.record.missing == ("shed", "url only")
    assert done.record.machines == 2
    peers = _manifest(done.record.path)["members"]["peers"]
    assert [len(peer["twins"]) for peer in peers] == [0, 1, 0]


def test_oversize_twin_is_recorded_with_its_reason(desk: Machine, pi: Machine) -> None:
    desk.twin("atlas", {"map.bin": bytes(200_000)})
    pi.twin("globe", {"map.bin": bytes(200_000)})
    done = desk.take(
        [SnapshotPeer("pi", FolderMember(pi.root))], options=SnapshotOptions(max_twin_bytes=100_000)
    )
    assert sorted(one.path for one in done.oversize) == ["atlas", "pi/globe"]
    members = _manifest(done.record.path)["members"]
    rows = [*members["local"]["twins"], *members["peers"][0]["twins"]]
    assert [row["reason"] for row in rows if row.get("captured") is False] == ["oversize", "oversize"]
    assert not done.is_partial
    assert done.record.left_behind == ("desk/atlas", "pi/globe")
    assert not done.record.holds_whole("desk") and not done.record.holds_whole("pi")


def test_twins_without_their_files_are_left_behind_and_not_counted(desk: Machine, pi: Machine) -> None:
    options = SnapshotOptions(include_twin_workspaces=False)
    record = desk.take([SnapshotPeer("pi", FolderMember(pi.root))], options=options).record
    assert record.twins == 0
    assert {path.partition("/")[0] for path in record.left_behind} == {"desk", "pi"}


def test_likely_secret_stays_behind_until_it_is_allowed(desk: Machine, pi: Machine) -> None:
    desk.twin("clerk", {"mail_agent.py": SECRET})
    pi.twin("porter", {"mail_agent.py": SECRET})
    peers = [SnapshotPeer("pi", FolderMember(pi.root))]
    done = desk.take(peers)
    found = [one for one in done.left_out if one.id]
    assert sorted(one.path for one in found) == ["clerk/mail_agent.py", "pi/porter/mail_agent.py"]
    assert b"ghp_A1b2" not in _everything(Path(done.record.path))
    again = desk.take(peers, now=NOW + timedelta(hours=1))
    assert [one for one in again.left_out if one.id] == found
    allowed = desk.take(peers, now=NOW + timedelta(hours=2), allow=[one.id for one in found])
    assert b"ghp_A1b2" in _everything(Path(allowed.record.path))


def test_env_files_and_keys_never_lie_on_this_disk(desk: Machine, pi: Machine) -> None:
    key = b"-----BEGIN OPENSSH PRIVATE KEY-----\n" + b"QUJD" * 40
    pi.twin("smith", {"id_ed25519": key, "keys/a.pem": key, ".env.local": b"S=1", "x/.ssh/id_rsa": key})
    done = desk.take([SnapshotPeer("pi", FolderMember(pi.root))])
    everywhere = b"".join(path.read_bytes() for path in desk.root.rglob("*") if path.is_file())
    assert b"OPENSSH" not in everywhere + _everything(Path(done.record.path))


def test_archived_twins_travel_only_when_asked_for(desk: Machine, pi: Machine) -> None:
    for machine in (desk, pi):
        twin = machine.twin("old")
        archive = machine.root / "twins" / ".archive"
        archive.mkdir()
        twin.workspace.root.rename(archive / twin.key)
    peers = [SnapshotPeer("pi", FolderMember(pi.root))]
    assert not any(".archive" in name for name in _names(desk.take(peers).record.path))
    done = desk.take(peers, options=SnapshotOptions(include_archived=True), now=NOW + timedelta(hours=1))
    names = _names(done.record.path)
    assert any(name.startswith("twins/.archive/") for name in names)
    assert any(name.startswith("peers/pi/twins/.archive/") for name in names)
    rows = _manifest(done.record.path)["members"]["local"]["twins"]
    assert [row["lifecycle"] for row in rows] == ["active", "archived"]


def test_snapshot_cut_off_goes_on_with_the_twin_it_stopped_at(desk: Machine, pi: Machine) -> None:
    for number in range(4):
        pi.twin(f"twin{number}", {"data.bin": os.urandom(300_000)})
    member = FolderMember(pi.root, cut_after=200_000)
    broken = desk.take([SnapshotPeer("pi", member)])
    assert [one.why for one in broken.failed] == ["The connection broke."]
    member.reads.clear()
    done = desk.take([SnapshotPeer("pi", member)], now=NOW + timedelta(minutes=1))
    assert len(member.reads) == 1
    assert not done.is_partial


def test_snapshot_that_was_stopped_reads_anew_only_what_changed_since(desk: Machine, pi: Machine) -> None:
    class Stopped(FolderMember):
        """A member during whose fourth twin the snapshot is stopped."""

        async def read_twin(self, twin: str, *, archived: bool = False) -> AsyncIterator[bytes]:
            if len(self.reads) == 3:
                raise asyncio.CancelledError
            async for piece in super().read_twin(twin, archived=archived):
                yield piece

    twins = {twin.key: twin for twin in (pi.twin(f"twin{number}", {"a.txt": b"a"}) for number in range(4))}
    stopped, member = Stopped(pi.root), FolderMember(pi.root)
    with pytest.raises(asyncio.CancelledError):
        desk.take([SnapshotPeer("pi", stopped)])
    changed = next(key for key in stopped.reads if key in twins)
    (twins[changed].workspace.root / "a.txt").write_bytes(b"changed")
    assert not desk.take([SnapshotPeer("pi", member)]).is_partial
    assert len(member.reads) == 3
    assert set(member.reads) & set(stopped.reads) == {changed}


def test_snapshot_killed_midway_keeps_finished_parts(desk: Machine, pi: Machine, tmp_path: Path) -> None:
    for number in range(5):
        pi.twin(f"twin{number}", {"data.bin": os.urandom(100_000)})
    script = tmp_path / "killed.py"
    script.write_text(
        "import os, sys\n"
        "from pathlib import Path\n"
        "from neighborhoods.snapshot import staged_parts\n"
        "from neighborhoods.snapshot.member_capture import SnapshotPeer\n"
        "from tests.neighborhoods.snapshot.machines import FolderMember, Machine\n"
        "keep, count = staged_parts.PeerParts.keep, []\n"
        "def kept(*given):\n"
        "    count.append(1)\n"
        "    if len(count) == 4: os._exit(9)\n"
        "    return keep(*given)\n"
        "staged_parts.PeerParts.keep = kept\n"
        "desk = Machine.__new__(Machine)\n"
        "Path.mkdir = (lambda mkdir: lambda self, *a, **k: mkdir(self, *a, **{**k, 'exist_ok': True}))(Path.mkdir)\n"
        "desk.__init__(Path(sys.argv[1]), 'desk')\n"
        "desk.take([SnapshotPeer('pi', FolderMember(Path(sys.argv[2])))])\n"
    )
    killed = subprocess.run(
        [sys.executable, str(script), str(desk.root), str(pi.root)],
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        check=False,
    )
    assert killed.returncode == 9
    assert desk.folder.listing() == []
    assert not list(desk.folder.root.glob("*.egg"))
    member = FolderMember(pi.root)
    done = desk.take([SnapshotPeer("pi", member)])
    assert len(member.reads) == 6 - 3
    assert not done.is_partial
    assert not desk.folder.parts.exists()
    assert [path.name for path in desk.folder.root.iterdir() if path.name.endswith(".tmp")] == []


def test_second_snapshot_at_once_is_refused(desk: Machine) -> None:
    with desk.folder.alone(), pytest.raises(SnapshotRunningError):
        desk.take()


def test_local_twin_that_never_rests_is_recorded_as_unstable_and_read_anew(desk: Machine) -> None:
    clerk = desk.twin("clerk", {"log.txt": b"0"})
    count = iter(range(1, 100))

    class Busy:
        """Conversations whose reading finds the twin at work."""

        def __init__(self, workspace: Workspace) -> None:
            self._log = workspace.root / "log.txt"

        def frames(self, key: str) -> Iterator[dict[str, Any]]:
            if self._log.exists():
                self._log.write_text("x" * next(count))
            return iter(())

    def take(hours: int, **more: Any) -> SnapshotResult:
        local = desk.local(**more)
        with desk.folder.alone():
            at = NOW + timedelta(hours=hours)
            return asyncio.run(take_snapshot(local, [], desk.folder, desk.key, now=at))

    done = take(0, conversations=Busy)
    assert [one.path for one in done.unstable] == ["clerk"]
    assert done.is_partial
    rows = {row["name"]: row for row in _manifest(done.record.path)["members"]["local"]["twins"]}
    assert (rows["clerk"]["unstable"], "unstable" in rows["gardener"]) == (True, False)
    assert f"twins/{clerk.key}/log.txt" in _names(done.record.path)
    again = take(1)
    assert again.unstable == []
    assert not again.is_partial


@pytest.mark.parametrize("name", ['say "hi".txt', "two\nlines.txt", "con.txt", "Notes.TXT"])
def test_local_file_whose_name_cannot_come_back_is_named_and_the_rest_taken(desk: Machine, name: str) -> None:
    clerk = desk.twin("clerk", {"notes.txt": b"1", name: b"2", "after.txt": b"3"})
    done = desk.take()
    odd = [one for one in done.left_out if one.do]
    assert [one.do for one in odd] == ["Rename it, rerun."]
    assert odd[0].path.startswith("clerk/")
    assert not done.is_partial
    assert f"twins/{clerk.key}/after.txt" in _names(done.record.path)
    assert asyncio.run(drill(Path(done.record.path), desk.folder.root, desk.key.fingerprint)).passed
    again = desk.take(now=NOW + timedelta(hours=1))
    assert [one for one in again.left_out if one.do] == odd


def test_two_machines_with_the_same_twin_keep_each_its_own(
    desk: Machine, pi: Machine, tmp_path: Path
) -> None:
    shed = Machine(tmp_path / "shed", "shed")
    twin = pi.root / "twins" / _key(pi)
    shutil.copytree(twin, shed.root / "twins" / twin.name)
    shutil.copytree(twin, desk.root / "twins" / twin.name)
    (shed.root / "twins" / twin.name / "soul.md").write_bytes(b"of the shed\n")
    done = desk.take(
        [SnapshotPeer("pi", FolderMember(pi.root)), SnapshotPeer("shed", FolderMember(shed.root))]
    )
    assert asyncio.run(drill(Path(done.record.path), desk.folder.root, desk.key.fingerprint)).passed
    with zipfile.ZipFile(done.record.path) as archive:
        packed = [archive.read(f"peers/{name}/twins/{twin.name}.tar.gz") for name in ("pi", "shed")]
        assert archive.read(f"twins/{twin.name}/soul.md") == (twin / "soul.md").read_bytes()
    assert packed[0] != packed[1]


def test_inspected_snapshot_says_that_it_hatches(desk: Machine) -> None:
    with open_egg(Path(desk.take().record.path)) as opened:
        texts = [line.text for line in lines(opened)]
    assert "rapp-egg/2.0, ZIP; hatches to the machines it came from" in texts


def test_snapshot_of_a_newer_schema_is_refused_in_a_sentence(desk: Machine, tmp_path: Path) -> None:
    done = desk.take()
    newer = tmp_path / "newer.egg"
    with zipfile.ZipFile(done.record.path) as archive, zipfile.ZipFile(newer, "w") as written:
        for name in archive.namelist():
            content = archive.read(name)
            if name == "manifest.json":
                content = content.replace(b"rapp-egg/2.0", b"rapp-egg/9.0")
            if name != "integrity.json":
                written.writestr(name, content)
    with pytest.raises(ReportableError) as refused:
        SnapshotContents.open(newer)
    assert refused.value.exit_code == 5
    assert "rapp-egg/9.0" in str(refused.value)
    assert refused.value.do.startswith("It was made by a newer rappd: update this one")


def _key(machine: Machine) -> str:
    return next(path.name for path in (machine.root / "twins").iterdir() if not path.name.startswith("."))


def _names(path: str) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


def _everything(path: Path) -> bytes:
    """The content of all members, archives in it unpacked."""
    import gzip

    found = b""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            content = archive.read(name)
            found += gzip.decompress(content) if name.endswith(".tar.gz") else content
    return found
