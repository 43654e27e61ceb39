"""Bringing a snapshot back: in place, simulated, a second time, after a refusal; and the drill."""

from __future__ import annotations

import asyncio
import gzip
import io
import os
import tarfile
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from pathlib import Path

import orjson
import pytest
from fixtures.refusals import refused
from msgspec.structs import replace

from neighborhoods.snapshot.capture import SnapshotResult
from neighborhoods.snapshot.drill import drill
from neighborhoods.snapshot.manifest import SnapshotOptions
from neighborhoods.snapshot.member_capture import SnapshotPeer
from neighborhoods.snapshot.member_transport import MemberListing
from neighborhoods.snapshot.original_file_names import listing_of
from neighborhoods.snapshot.plan import Target
from neighborhoods.snapshot.served_home import SharedHome
from neighborhoods.snapshot.snapshot_contents import PeerBlock
from neighborhoods.snapshot.tar_guard import UNEXPLAINED
from neighborhoods.snapshot.transports import twin_folder
from neighborhoods.snapshot.transports.rappd import RappdTransport
from tests.neighborhoods.snapshot.machines import NOW, FolderMember, Machine, to_folders, tree
from twins.eggs.readers.detect import open_egg
from twins.eggs.writers import exclusions
from twins.eggs.writers.formats import EggFormat
from twins.eggs.writers.pack import pack
from twins.eggs.writers.source_tree import SourceFile, SourceTree, Verdict
from twins.installer.errors import PlanChangedError
from twins.lifecycle.archive_moves import archive_body
from twins.lifecycle.state_index import list_archived
from twins.lifecycle.tombstones import archived_record
from twins.workspace.twin import Twin
from twins.workspace.workspace import TwinLayout


@pytest.fixture
def desk(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path / "desk", "desk")
    machine.brainstem()
    machine.twin("gardener", {"notes.txt": b"dry\n", "run.sh": b"#!/bin/sh\n"})
    (machine.root / "twins" / _key(machine) / "run.sh").chmod(0o755)
    return machine


@pytest.fixture
def pi(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path / "pi", "pi")
    machine.brainstem()
    machine.twin("cook", {"big.bin": os.urandom(200_000)})
    machine.twin("baker")
    return machine


@pytest.fixture
def taken(desk: Machine, pi: Machine) -> SnapshotResult:
    return desk.take([SnapshotPeer("pi", FolderMember(pi.root))])


@pytest.fixture
def laptop(tmp_path: Path, desk: Machine) -> Machine:
    """A fresh machine that trusts the desk's signature."""
    machine = Machine(tmp_path / "laptop", "laptop")
    machine.signers.trust(desk.key.fingerprint, "desk")
    return machine


class AtHome:
    """A peer's requests, answered by a home on this disk."""

    def __init__(self, home: SharedHome) -> None:
        self._home = home

    async def answer(self, path: str) -> bytes:
        return orjson.dumps(await (self._home.listing() if path else self._home.probe()))

    async def stream(self, path: str) -> AsyncIterator[bytes]:
        kind, _, twin = path[1:].partition("/")
        kept = self._home.copy_twin(twin, for_owner=True) if kind == "twins" else self._home.copy_agents()
        copy = await kept
        with copy:
            yield copy.read()

    async def send_egg(self, egg: Path) -> bool:
        raise AssertionError("nothing is sent")

    async def aclose(self) -> None:
        pass


def test_simulation_brings_back_every_file_and_starts_nothing(
    desk: Machine, pi: Machine, taken: SnapshotResult, laptop: Machine
) -> None:
    def never(block: object) -> None:
        raise AssertionError("a simulation asks for no way to another machine")

    done = laptop.hatch(Path(taken.record.path), never, target=Target.LOCAL_SIMULATE)
    assert not done.is_partial
    assert tree(laptop.root / "twins") == tree(desk.root / "twins")
    assert tree(laptop.root / "simulated" / "pi" / "twins") == tree(pi.root / "twins")
    run = laptop.root / "twins" / _key(desk) / "run.sh"
    assert (run.stat().st_mode & 0o777, int(run.stat().st_mtime)) == (0o700, 1_700_000_000)
    assert (laptop.host.agents / "clock_agent.py").read_bytes() == b"clock = 1\n"
    again = laptop.hatch(Path(taken.record.path), never, target=Target.LOCAL_SIMULATE)
    assert again.receipts == []
    counts = again.as_json()["categories"]
    assert counts["twins"]["created"] == counts["peer_twins"]["created"] == 0
    assert counts["peer_twins"]["skipped"] == 2


def test_in_place_writes_what_is_missing_to_its_machine(
    desk: Machine, pi: Machine, taken: SnapshotResult, laptop: Machine
) -> None:
    before = tree(pi.root / "twins")
    cook = next(path for path in (pi.root / "twins").iterdir() if (path / "big.bin").exists())
    for file in sorted(cook.rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    cook.rmdir()
    member = FolderMember(pi.root)
    laptop.hatch(Path(taken.record.path), target=Target.IN_PLACE)  # what is to lie here alone
    assert not laptop.plan(Path(taken.record.path), to_folders(pi=member)).is_settled, (
        "a machine is to be written to"
    )
    done = laptop.hatch(Path(taken.record.path), to_folders(pi=member))
    assert laptop.plan(Path(taken.record.path), to_folders(pi=member)).is_settled
    assert member.writes == [cook.name]
    assert tree(pi.root / "twins") == before
    assert done.as_json()["categories"]["peer_twins"] == {"created": 1, "overwritten": 0, "skipped": 1}
    assert list((laptop.folder.root / ".sending").iterdir()) == []
    assert laptop.hatch(Path(taken.record.path), to_folders(pi=member)).as_json()["categories"][
        "peer_twins"
    ] == {"created": 0, "overwritten": 0, "skipped": 2}


def test_in_place_fills_gaps_among_the_agents_of_its_machine(
    pi: Machine, taken: SnapshotResult, laptop: Machine, tmp_path: Path
) -> None:
    egg, agent = Path(taken.record.path), pi.host.agents / "clock_agent.py"
    way = to_folders(pi=FolderMember(pi.root))

    def steps(machine: Machine, **options: bool) -> list[tuple[str, str]]:
        made = machine.plan(egg, way, **options).as_json()["peers"][0]
        assert made["agents_kept"] == []
        return [(step["name"], step["action"]) for step in made["agents"]]

    agent.write_bytes(b"mine\n")
    assert steps(laptop) == steps(laptop, overwrite_agents=True) == [("clock_agent.py", "skip")]
    laptop.hatch(egg, way)
    assert agent.read_bytes() == b"mine\n"
    both = {"overwrite_agents": True, "overwrite_peer_twins": True}
    assert steps(laptop, **both) == [("clock_agent.py", "overwrite")]
    laptop.hatch(egg, way, **both)
    assert agent.read_bytes() == b"clock = 1\n"
    agent.unlink()
    assert steps(laptop) == [("clock_agent.py", "create")]
    stranger = Machine(tmp_path / "stranger", "stranger")
    assert steps(stranger) == [("clock_agent.py", "skip")]
    stranger.hatch(egg, way)
    assert not agent.exists()
    done = laptop.hatch(egg, way)
    assert (done.failed, agent.read_bytes()) == ([], b"clock = 1\n")


class Roster(FolderMember):
    """A member whose first twin is a repository without a ``rappid.json``."""

    async def list(self, *, include_archived: bool = False) -> MemberListing:
        found = await super().list(include_archived=include_archived)
        first, *others = found.twins
        (self.home / "twins" / first.hash / "rappid.json").unlink()
        return replace(found, twins=(replace(first, has_rappid_json=False), *others))


def test_member_without_rappid_leaves_the_rest_restorable(
    desk: Machine, pi: Machine, laptop: Machine
) -> None:
    taken = desk.take([SnapshotPeer("pi", Roster(pi.root))])
    egg = Path(taken.record.path)
    found = asyncio.run(drill(egg, desk.folder.root, desk.key.fingerprint))
    assert (found.problem, found.passed) == ("", True)
    (said,) = found.apart
    assert said.startswith("pi/") and "has no readable rappid.json" in said
    plan = laptop.plan(egg, target=Target.LOCAL_SIMULATE)
    assert sorted(step.action for step in plan.peers[0].steps) == ["create", "skip"]
    done = laptop.hatch(egg, target=Target.LOCAL_SIMULATE)
    assert not done.is_partial
    whole = next(path.parent for path in (pi.root / "twins").glob("*/rappid.json"))
    assert tree(laptop.root / "simulated" / "pi" / "twins") == {
        f"{whole.name}/{path}": content for path, content in tree(whole).items()
    }


def test_own_files_stay_unless_overwriting_is_asked_for(desk: Machine, taken: SnapshotResult) -> None:
    twin = desk.root / "twins" / _key(desk)
    (twin / "notes.txt").write_bytes(b"wet\n")
    (desk.host.agents / "clock_agent.py").write_bytes(b"clock = 2\n")
    (twin / "soul.md").unlink()
    egg = Path(taken.record.path)
    desk.hatch(egg, target=Target.LOCAL_SIMULATE)
    assert (twin / "notes.txt").read_bytes() == b"wet\n"
    assert (twin / "soul.md").exists()
    desk.hatch(egg, target=Target.LOCAL_SIMULATE, overwrite_twins=True)
    assert (twin / "notes.txt").read_bytes() == b"dry\n"
    assert (desk.host.agents / "clock_agent.py").read_bytes() == b"clock = 2\n"
    desk.hatch(egg, target=Target.LOCAL_SIMULATE, overwrite_agents=True)
    assert (desk.host.agents / "clock_agent.py").read_bytes() == b"clock = 1\n"


def test_plan_writes_nothing_anywhere(pi: Machine, taken: SnapshotResult, laptop: Machine) -> None:
    def stamps(root: Path) -> dict[str, tuple[int, int]]:
        return {
            str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in [root, *root.rglob("*")]
        }

    member = FolderMember(pi.root)
    before = stamps(laptop.root) | stamps(pi.root)
    for target in Target:
        made = laptop.plan(Path(taken.record.path), to_folders(pi=member), target=target)
        assert made.as_json()["categories"]["twins"]["created"] > 0
    assert stamps(laptop.root) | stamps(pi.root) == before
    assert member.writes == []


def test_tree_changed_after_approval_is_planned_anew(
    pi: Machine, taken: SnapshotResult, laptop: Machine
) -> None:
    egg, way = Path(taken.record.path), to_folders(pi=FolderMember(pi.root))
    approved = laptop.plan(egg, way).digest
    cook = pi.root / "twins" / _key(pi)
    cook.rename(pi.root / "moved")
    with pytest.raises(PlanChangedError):
        laptop.hatch(egg, way, approved=approved)
    assert not (laptop.root / "twins").exists()
    laptop.hatch(egg, way, approved=laptop.plan(egg, way).digest)
    assert (pi.root / "twins" / cook.name / "soul.md").exists()


def test_machine_without_answer_fails_and_the_rest_comes_back(
    desk: Machine, pi: Machine, laptop: Machine, taken: SnapshotResult
) -> None:
    asleep = to_folders(pi=FolderMember(pi.root, asleep="no answer"))
    done = laptop.hatch(Path(taken.record.path), asleep)
    assert done.is_partial
    assert done.failed == ["pi: no answer"]
    assert tree(laptop.root / "twins") == tree(desk.root / "twins")
    unknown = laptop.hatch(Path(taken.record.path))
    assert unknown.failed == [
        "pi: no way to it is known: write it to peers.json, or trust who signed the egg"
    ]


def test_code_of_unknown_signer_is_held_here_and_in_simulation(taken: SnapshotResult, tmp_path: Path) -> None:
    stranger = Machine(tmp_path / "stranger", "stranger")
    stranger.hatch(Path(taken.record.path), target=Target.LOCAL_SIMULATE)
    held = {one.path for one in stranger.held.listing()}
    assert "brainstem/agents/clock_agent.py" in held
    assert sum(path.startswith("twins/") for path in held) == 1
    assert sum(path.startswith("simulated/pi/twins/") for path in held) == 2


def test_addresses_in_the_egg_count_only_from_a_trusted_signer(
    desk: Machine, pi: Machine, laptop: Machine, tmp_path: Path
) -> None:
    peer = SnapshotPeer("pi", FolderMember(pi.root), url="http://pi:7071", ssh_user="ada", ssh_host="pi")
    egg = Path(desk.take([peer]).record.path)
    seen: list[object] = []

    def way(block: PeerBlock) -> None:
        seen.append(block.row.get("ssh_host") or block.row.get("url"))

    laptop.plan(egg, way)
    Machine(tmp_path / "stranger", "stranger").plan(egg, way)
    assert seen == ["pi", None]


def test_archived_twins_come_back_into_the_archive_only_when_asked(desk: Machine, laptop: Machine) -> None:
    twin = desk.twin("old")
    archive = desk.root / "twins" / ".archive"
    archive.mkdir()
    twin.workspace.root.rename(archive / twin.key)
    egg = Path(desk.take(options=SnapshotOptions(include_archived=True)).record.path)
    first = laptop.hatch(egg)
    assert first.plan.left_archived == 1
    assert not (laptop.root / "twins" / ".archive").exists()
    laptop.hatch(egg, restore_archived=True)
    assert (laptop.root / "twins" / ".archive" / twin.key / "soul.md").exists()
    assert not (laptop.root / "twins" / twin.key).exists()


def test_two_generations_come_back_in_either_order(desk: Machine, laptop: Machine, tmp_path: Path) -> None:
    old = Path(desk.take().record.path)
    (desk.root / "twins" / _key(desk) / "later.txt").write_bytes(b"later")
    new = Path(desk.take(now=NOW + timedelta(hours=1)).record.path)
    other = Machine(tmp_path / "other", "other")
    for machine, order in ((laptop, (old, new)), (other, (new, old))):
        for egg in order:
            assert not machine.hatch(egg, target=Target.LOCAL_SIMULATE).is_partial
        there = machine.root / "twins" / _key(desk)
        assert (there / "later.txt").read_bytes() == b"later"
        assert (there / "notes.txt").read_bytes() == b"dry\n"


def test_stray_apple_files_are_passed_over(taken: SnapshotResult, laptop: Machine, tmp_path: Path) -> None:
    key = _only_twin(taken)
    egg = _rewritten(
        Path(taken.record.path), tmp_path, {f"twins/{key}/._soul.md": b"x", f"twins/{key}/.DS_Store": b"x"}
    )
    laptop.hatch(egg, target=Target.LOCAL_SIMULATE)
    assert not [path for path in laptop.root.rglob("*") if path.name in ("._soul.md", ".DS_Store")]


@pytest.mark.parametrize(
    "entry",
    ["../../../escaped.txt", "/tmp/escaped.txt", "{hash}/../../escaped.txt", "{hash}/a/../../../escaped.txt"],
)
def test_tarball_with_names_that_lead_outside_writes_nothing_outside(
    entry: str, taken: SnapshotResult, laptop: Machine, pi: Machine, tmp_path: Path
) -> None:
    member = next(name for name in _members(taken) if name.endswith(".tar.gz"))
    twin = member.rpartition("/")[2].removesuffix(".tar.gz")

    def hostile(tar: tarfile.TarFile) -> None:
        info = tarfile.TarInfo(entry.format(hash=twin))
        info.size = 3
        tar.addfile(info, io.BytesIO(b"bad"))
        link = tarfile.TarInfo(f"{twin}/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc"
        tar.addfile(link)

    egg = _rewritten(Path(taken.record.path), tmp_path, {member: _tar(taken, member, hostile)})
    pi_copy = FolderMember(tmp_path / "empty")
    pi_copy.home.mkdir()
    laptop.hatch(egg, to_folders(pi=pi_copy))
    laptop.hatch(egg, target=Target.LOCAL_SIMULATE)
    found = [path for path in tmp_path.rglob("*") if path.name in ("escaped.txt", "link")]
    assert found == []
    assert not Path("/tmp/escaped.txt").exists()
    assert (pi_copy.home / "twins" / twin / "soul.md").exists()


def test_list_form_hatches_its_twins_and_a_roster(desk: Machine, laptop: Machine, tmp_path: Path) -> None:
    twin = desk.root / "twins" / _key(desk)
    rappid = orjson.loads((twin / "rappid.json").read_bytes())["rappid"]
    nhash = "d" * 64
    manifest = {
        "schema": "rapp-egg/2.0",
        "scale": "neighborhood",
        "rappid": f"rappid:@me/home:{nhash}",
        "hash": nhash,
        "name": "home",
        "members": [{"name": "gardener", "hash": twin.name, "rappid": rappid, "port_hint": 7081}],
        "boot_hint": {"ports": {"gardener": 7081}},
    }
    egg = tmp_path / "home.egg"
    with zipfile.ZipFile(egg, "w") as archive:
        archive.writestr("manifest.json", orjson.dumps(manifest))
        for path in ("rappid.json", "soul.md", "agents/water_agent.py"):
            archive.write(twin / path, f"twins/{twin.name}/{path}")
        archive.writestr(f"twins/{twin.name}/.brainstem_data/.keep", b"")
    done = laptop.hatch(egg)
    assert not done.is_partial
    there = laptop.root / "twins" / twin.name
    assert (there / "soul.md").exists()
    assert (there / ".brainstem_data").is_dir()
    roster = laptop.root / "neighborhoods" / nhash
    assert {path.name for path in roster.iterdir()} == {"members.json", "rappid.json", "HATCH_RECEIPT.json"}
    assert orjson.loads((roster / "members.json").read_bytes())["members"][0]["hash"] == twin.name


def test_egg_of_another_kind_is_named(desk: Machine, laptop: Machine, tmp_path: Path) -> None:
    egg = tmp_path / "gardener.egg"
    from twins.workspace.workspace import Workspace

    pack(Workspace.at(desk.root / "twins" / _key(desk)), egg, form=EggFormat.TWIN)
    with refused("not_a_snapshot", match="holds no neighborhood"):
        laptop.hatch(egg)


def test_drill_of_whole_snapshot_compares_every_file(desk: Machine, taken: SnapshotResult) -> None:
    found = asyncio.run(drill(Path(taken.record.path), desk.folder.root, desk.key.fingerprint))
    assert found.passed
    # 5 of the brainstem, 6 of gardener, 5 of cook, 4 of baker
    assert found.files == 20
    assert [path.name for path in desk.folder.root.iterdir() if path.name.startswith(".drill")] == []


def _archived(machine: Machine, name: str) -> Twin:
    """A twin of that machine, set aside with its record."""
    twin, places = machine.twin(name), TwinLayout(machine.root)
    record = archived_record(
        rappid=twin.rappid.text, key=twin.key, name=name, kind="personal", at=NOW, by="operator",
        reason="until spring", last_known={"alive_at_archive": True, "port": 7083},
    )  # fmt: skip
    places.archive.mkdir(exist_ok=True)
    archive_body(places, twin.workspace.root, record)
    return twin


def test_archived_twins_come_back_with_their_records(desk: Machine, pi: Machine, laptop: Machine) -> None:
    here, there = _archived(desk, "iris"), _archived(pi, "rose")
    options = SnapshotOptions(include_archived=True)
    first = desk.take([SnapshotPeer("pi", FolderMember(pi.root))], options=options)
    again = desk.take(
        [SnapshotPeer("pi", FolderMember(pi.root))], options=options, now=NOW + timedelta(minutes=1)
    )
    for taken in (first, again):  # the second takes over what did not change
        egg = Path(taken.record.path)
        assert asyncio.run(drill(egg, desk.folder.root, desk.key.fingerprint)).problem == ""
    done = laptop.hatch(egg, target=Target.LOCAL_SIMULATE, restore_archived=True)
    assert not done.is_partial
    for origin, twin, home in (
        (desk, here, laptop.root),
        (pi, there, laptop.root / "simulated" / "pi"),
    ):
        (entry,) = list_archived(TwinLayout(home))
        assert "note" not in entry
        assert (entry["hash"], entry["archived_reason"]) == (twin.key, "until spring")
        assert tree(TwinLayout(home).archive) == tree(TwinLayout(origin.root).archive)


def test_changed_record_of_an_archived_twin_is_taken_anew(desk: Machine, laptop: Machine) -> None:
    twin = _archived(desk, "iris")
    options = SnapshotOptions(include_archived=True)
    desk.take(options=options)
    record = TwinLayout(desk.root).archive / twin.key / "archived.json"
    record.write_bytes(record.read_bytes().replace(b"until spring", b"until autumn"))
    again = desk.take(options=options, now=NOW + timedelta(minutes=1))
    laptop.hatch(Path(again.record.path), restore_archived=True)
    (entry,) = list_archived(TwinLayout(laptop.root))
    assert entry["archived_reason"] == "until autumn"


def test_drill_notices_an_archived_twin_whose_record_was_excluded(
    desk: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    _archived(desk, "iris")
    at_root = exclusions.at_root
    monkeypatch.setattr(exclusions, "at_root", lambda name, *, archived=False: at_root(name))
    taken = desk.take(options=SnapshotOptions(include_archived=True))
    found = asyncio.run(drill(Path(taken.record.path), desk.folder.root, desk.key.fingerprint))
    assert found.problem == "iris does not come back as archived: It has no archived.json."


def test_drill_notices_a_file_that_was_neither_taken_nor_named(
    desk: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    walk = SourceTree.walk

    def forgetful(self: SourceTree, start: str, verdict: Verdict) -> Iterator[SourceFile]:
        return (one for one in walk(self, start, verdict) if one.path != "notes.txt")

    monkeypatch.setattr(SourceTree, "walk", forgetful)
    taken = desk.take()
    found = asyncio.run(drill(Path(taken.record.path), desk.folder.root, desk.key.fingerprint))
    assert found.problem == "gardener/notes.txt was there, is not in the snapshot, and nothing says why"


def test_drill_notices_what_another_machine_neither_sent_nor_named(
    desk: Machine, pi: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    _archived(pi, "rose")
    members = twin_folder._members
    monkeypatch.setattr(
        twin_folder,
        "_members",
        lambda *args: (one for one in members(*args) if one[0].path != "archived.json"),
    )
    options = SnapshotOptions(include_archived=True)
    for minutes in (0, 1):  # the second takes over what did not change
        taken = desk.take(
            [SnapshotPeer("pi", FolderMember(pi.root))], options=options, now=NOW + timedelta(minutes=minutes)
        )
        lost = [one.path for one in taken.left_out if one.why == UNEXPLAINED]
        assert lost == ["pi/rose/archived.json"]
        found = asyncio.run(drill(Path(taken.record.path), desk.folder.root, desk.key.fingerprint))
        assert found.problem == "pi/rose/archived.json was there, and did not come; nothing says why"


def test_drill_notices_what_is_packed_and_never_taken_out(
    desk: Machine, taken: SnapshotResult, tmp_path: Path
) -> None:
    member = next(name for name in _members(taken) if name.endswith(".tar.gz"))
    twin = member.rpartition("/")[2].removesuffix(".tar.gz")

    def with_file(name: str) -> str:
        def more(tar: tarfile.TarFile) -> None:
            info = tarfile.TarInfo(f"{twin}/{name}")
            info.size = 3
            tar.addfile(info, io.BytesIO(b"bad"))

        egg = _rewritten(Path(taken.record.path), tmp_path, {member: _tar(taken, member, more)})
        return asyncio.run(drill(egg, desk.folder.root, desk.key.fingerprint)).problem

    assert with_file("private/diary.md").endswith(
        "/private is packed, and is not taken out again: it is private"
    )
    assert with_file("._soul.md") == "", "what is made anew is missed by nobody"


def test_folders_that_stay_behind_are_named_with_their_reason(desk: Machine, pi: Machine) -> None:
    for machine in (desk, pi):
        for path in (".ai/decisions/one.md", ".git/config", ".notes/two.md", "private/three.md", ".env"):
            file = machine.root / "twins" / _key(machine) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("NAME=1\n")
        (file.parent / "link.txt").symlink_to("notes.txt")
        (file.parent / "agents/__init__.py").write_text("")  # rappd makes it: nobody misses it
    shared = SharedHome(pi.root, "pi", is_held=lambda path, digest: False, is_answering=lambda twin: False)
    taken = desk.take([SnapshotPeer("pi", RappdTransport("pi", AtHome(shared)))])
    left = {
        one.path.partition("/")[2] if one.path.startswith("pi/") else one.path: one.why
        for one in taken.left_out
    }
    twin = next(path for path in left if path.endswith("private") and not path.startswith("gardener"))[:-8]
    assert left == {
        "gardener/.ai": "belongs to this machine",
        "gardener/.git": "is made anew where it is needed",
        "gardener/.notes": "belongs to this machine",
        "gardener/private": "is private",
        "gardener/.env": "may hold secrets",
        "gardener/link.txt": "is a link, and links are not followed",
        f"{twin}/.git": "is made anew where it is needed",
        f"{twin}/private": "is private",
        f"{twin}/.env": "may hold secrets",
        f"{twin}/link.txt": "is a link, and links are not followed",
    }
    again = desk.take(now=NOW + timedelta(minutes=1))  # takes over what did not change, and its names
    assert {one.path: one.why for one in again.left_out} == {
        path: why for path, why in left.items() if path.startswith("gardener/")
    }
    first, second = (_listing(one) for one in (taken, again))
    assert second == first
    assert f"twins/{_key(desk)}/" in first
    for one in (taken, again):
        problem = asyncio.run(drill(Path(one.record.path), desk.folder.root, desk.key.fingerprint)).problem
        assert problem == ""


def _listing(taken: SnapshotResult) -> dict[str, list[str]]:
    with open_egg(Path(taken.record.path)) as opened:
        return listing_of(opened)


@pytest.mark.parametrize("harm", ["cut", "changed", "no identity"])
def test_drill_of_snapshot_that_cannot_come_back_says_so(
    harm: str, desk: Machine, taken: SnapshotResult, tmp_path: Path
) -> None:
    egg = Path(taken.record.path)
    member = next(name for name in _members(taken) if name.endswith(".tar.gz"))
    if harm == "cut":
        egg.write_bytes(egg.read_bytes()[:-2000])
    elif harm == "changed":
        content = bytearray(egg.read_bytes())
        content[len(content) // 3] ^= 1
        egg.write_bytes(content)
    else:
        egg = _rewritten(egg, tmp_path, {member: gzip.compress(bytes(1024))})
    found = asyncio.run(drill(egg, desk.folder.root, desk.key.fingerprint))
    assert not found.passed
    assert found.problem


def _key(machine: Machine) -> str:
    return next(path.name for path in (machine.root / "twins").iterdir() if not path.name.startswith("."))


def _members(taken: SnapshotResult) -> list[str]:
    with zipfile.ZipFile(taken.record.path) as archive:
        return archive.namelist()


def _only_twin(taken: SnapshotResult) -> str:
    return next(name.split("/")[1] for name in _members(taken) if name.startswith("twins/"))


def _rewritten(egg: Path, into: Path, changed: dict[str, bytes]) -> Path:
    """The same egg, unsigned, with other members besides or instead."""
    target = into / "rewritten.egg"
    with zipfile.ZipFile(egg) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            if name != "integrity.json":
                new.writestr(name, changed.pop(name, None) or old.read(name))
        for name, content in changed.items():
            new.writestr(name, content)
    return target


def _tar(taken: SnapshotResult, member: str, change: Callable[[tarfile.TarFile], None]) -> bytes:
    """The tarball of a member with more in it."""
    with zipfile.ZipFile(taken.record.path) as archive:
        content = archive.read(member)
    target = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(content)) as old, tarfile.open(fileobj=target, mode="w:gz") as new:
        for info in old:
            new.addfile(info, old.extractfile(info))
        change(new)
    return target.getvalue()
