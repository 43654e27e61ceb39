"""An egg comes to its place whole, and what was there before counts."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.twins.installer.a_home import (
    BY_KITCHEN,
    BY_SELF,
    GARDENER,
    KEY,
    LATER,
    NOW,
    OWN,
    RAPPID,
    AHome,
    egg,
    gardener,
    leftovers,
    lies,
    part,
)
from twins.eggs import frames
from twins.eggs.parsed_egg import Destination, ParsedEgg, Part, Role, Seal
from twins.errors import BadEggError, HostileEggError, TwinConflictError
from twins.installer.errors import PlanChangedError
from twins.installer.installer import Installer
from twins.installer.placement_rules import Category
from twins.installer.planning import Action
from twins.work_progress import Progress
from twins.workspace.bonds import events
from twins.workspace.rappid import Rappid, widened
from twins.workspace.workspace import Workspace

FRAMES = list(frames.chained("s", [("2026-11-21T09:00:00Z", "user", {"text": "dry?"})] * 3))


class Threads:
    """Takes conversations in as the daemon's store does."""

    def __init__(self) -> None:
        self.taken: dict[str, dict[str, Any]] = {}
        self.broken = False

    def restore(self, key: str, frames: Iterable[dict[str, Any]]) -> int:
        if self.broken:
            raise TwinConflictError("The store is busy.")
        known = self.taken.setdefault(key, {})
        before = len(known)
        known.update({frame["hash"]: frame for frame in frames})
        return len(known) - before


def _talked() -> ParsedEgg:
    content = b"".join(frames.encoded(FRAMES))
    return egg(GARDENER, part(".brainstem_data/frames.json", content, Role.CONVERSATIONS))


def test_a_new_twin_comes_whole_with_receipts(home: AHome) -> None:
    done = home.importer().hatch(gardener(), source="gardener.egg", now=NOW)
    there = lies(home.twin)
    assert {path: there[path] for path in GARDENER} == GARDENER
    receipt = json.loads(there["HATCH_RECEIPT.json"])
    assert receipt == {
        "hatcher_version": receipt["hatcher_version"],
        "rappid": RAPPID,
        "name": "gardener",
        "kind": "place",
        "source": "gardener.egg",
        "hatched_at": "2026-11-21T09:40:00Z",
        "workspace": str(home.twin),
        "files": sorted(GARDENER),
        "re_hatched": False,
    }
    assert [event["kind"] for event in events(Workspace.at(home.twin))] == ["hatch"]
    assert done.receipt is not None
    assert home.importer().receipts.read(done.receipt.id) == done.receipt
    assert done.receipt.workspace == f"twins/{KEY}"
    assert not leftovers(home.root)


def test_files_are_for_their_owner_alone(home: AHome) -> None:
    home.importer().hatch(gardener())
    for path in [home.twin, *home.twin.rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path


def test_an_existing_twin_only_gets_what_it_lacks(home: AHome) -> None:
    mine = {
        "rappid.json": GARDENER["rappid.json"],
        "soul.md": b"I changed.\n",
        ".brainstem_data/memory.json": b'{"mine": 1}',
        "agents/water_agent.py": b"mine = 1\n",
    }
    home.live_in(home.twin, mine)
    done = home.importer().hatch(gardener(), now=NOW)
    there = lies(home.twin)
    assert {path: there[path] for path in mine if path != "rappid.json"} == {
        path: content for path, content in mine.items() if path != "rappid.json"
    }
    assert there[".brainstem_data/2026/nov/21.json"] == b"{}"
    assert [row.target for row in done.plan.of(Action.KEEP) if not row.same] == [
        "soul.md",
        "agents/water_agent.py",
        ".brainstem_data/memory.json",
    ]
    assert done.receipt is not None
    assert sorted(done.receipt.stayed) == sorted(set(mine) - {"rappid.json"})
    assert json.loads(there["HATCH_RECEIPT.json"])["re_hatched"] is True
    assert json.loads(there["rappid.json"])["incarnations"] == 1
    assert [event["kind"] for event in events(Workspace.at(home.twin))] == ["bond"]


@pytest.mark.parametrize(
    ("category", "path"),
    [
        ("soul", "soul.md"),
        ("agents", "agents/water_agent.py"),
        ("services", "services/pump_service.py"),
        ("memory", ".brainstem_data/memory.json"),
        ("memory", "members.json"),
        ("env", ".env"),
        ("pages", "rapps/beds/ui/index.html"),
        ("slots", "senses/wind.py"),
    ],
)
def test_each_category_is_overwritten_by_its_own_flag_alone(home: AHome, category: str, path: str) -> None:
    files = {**GARDENER, "senses/wind.py": b"wind = 1\n"}
    mine = {name: b"mine " + content for name, content in files.items() if name != "rappid.json"}
    home.live_in(home.twin, {**mine, "rappid.json": files["rappid.json"]})
    home.importer().hatch(egg(files), overwrite=[category], now=NOW)
    there = lies(home.twin)
    of_category = {path} | (
        {"members.json", *(one for one in files if "data/" in one)} if category == "memory" else set()
    )
    for name, content in mine.items():
        assert there[name] == (files[name] if name in of_category else content), name


def test_a_soul_that_is_replaced_joins_the_history(home: AHome) -> None:
    home.live_in(home.twin, {"rappid.json": GARDENER["rappid.json"], "soul.md": b"before\n"})
    home.importer().hatch(gardener(), overwrite=["soul"], now=NOW)
    history = home.twin / ".brainstem_data/soul_history"
    assert [(path.name, path.read_bytes()) for path in history.iterdir()] == [
        ("2026-11-21T09-40-00Z-before-hatching.md", b"before\n")
    ]


def test_hatching_the_same_again_does_nothing(home: AHome) -> None:
    home.importer().hatch(gardener(), now=NOW)
    before = lies(home.root)
    again = home.importer().hatch(gardener(), now=LATER)
    assert again.receipt is None
    assert lies(home.root) == before


def test_the_workspace_is_packed_before_it_is_touched(home: AHome) -> None:
    seen: list[tuple[Path, dict[str, object]]] = []

    def pack(workspace: Path, progress: Progress) -> Path:
        seen.append((workspace, lies(workspace)))
        return home.root / "eggs" / "before.egg"

    importer = home.importer(pre_bond=pack)
    importer.hatch(gardener(), now=NOW)
    assert not seen
    (home.twin / "soul.md").unlink()
    before = lies(home.twin)
    done = importer.hatch(gardener(), now=LATER)
    assert seen == [(home.twin, before)]
    assert done.receipt is not None
    assert done.receipt.pre_bond_egg.endswith("before.egg")


def test_a_workspace_that_cannot_be_packed_is_not_touched(home: AHome) -> None:
    home.live_in(home.twin, {"rappid.json": GARDENER["rappid.json"]})
    before = lies(home.twin)

    def pack(workspace: Path, progress: Progress) -> Path:
        raise TwinConflictError("A likely secret.")

    with pytest.raises(TwinConflictError, match="likely secret"):
        home.importer(pre_bond=pack).hatch(gardener())
    assert lies(home.twin) == before
    assert not leftovers(home.root)


def test_an_approval_is_for_one_plan(home: AHome) -> None:
    importer = home.importer()
    home.live_in(home.twin, {"rappid.json": GARDENER["rappid.json"], "soul.md": b"mine\n"})
    plan = importer.plan(gardener(), overwrite=["soul"])
    (home.twin / "soul.md").write_bytes(b"newer\n")
    before = lies(home.root)
    with pytest.raises(PlanChangedError) as caught:
        importer.hatch(gardener(), overwrite=["soul"], approved=plan.digest)
    assert caught.value.code == "plan_changed"
    with pytest.raises(PlanChangedError):
        importer.hatch(gardener(), approved=plan.digest)
    assert lies(home.root, without=lambda path: path.startswith("eggs")) == before
    plan = importer.plan(gardener(), overwrite=["soul"])
    importer.hatch(gardener(), overwrite=[Category.SOUL], approved=plan.digest)
    assert (home.twin / "soul.md").read_bytes() == GARDENER["soul.md"]


def test_a_part_that_changes_between_plan_and_staging_is_noticed(home: AHome) -> None:
    reads = iter([b"good = 1\n", b"good = 1\n", b"evil = 1\n"])
    swapped = Part("agents/x_agent.py", Role.AGENT, "agents/x_agent.py", 9, lambda: iter([next(reads)]))
    with pytest.raises(BadEggError, match="changed while it was read"):
        home.importer().hatch(egg({"rappid.json": GARDENER["rappid.json"]}, swapped))
    assert not home.twin.exists()


@pytest.mark.parametrize("size", [3, 11, 0])
def test_a_part_of_another_length_than_said_is_refused(home: AHome, size: int) -> None:
    broken = part(".brainstem_data/x", b"0123456789", size=size)
    with pytest.raises(BadEggError, match="damaged"):
        home.importer().hatch(egg(GARDENER, broken))
    assert not home.twin.exists()
    assert not leftovers(home.root)


def test_an_egg_that_failed_its_own_hashes_is_refused(home: AHome) -> None:
    with pytest.raises(BadEggError, match="damaged; nothing was written"):
        home.importer().hatch(gardener(seal=Seal(False)))
    with pytest.raises(BadEggError, match="only looked at"):
        home.importer().hatch(gardener(seal=Seal(None, checked=False)))
    assert not home.twin.exists()


def test_progress_is_told_in_bytes_and_can_stop_it(home: AHome) -> None:
    told: list[tuple[str, int, int]] = []
    home.importer().hatch(gardener(), progress=lambda *step: told.append(step))
    total = sum(map(len, GARDENER.values()))
    staged = [step for step in told if step[0] == "stage"]
    assert staged[-1] == ("stage", total, total)
    assert staged == sorted(staged)
    assert list(dict.fromkeys(step[0] for step in told)) == ["stage", "sync", "move"]

    def stop(step: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    other = RAPPID.replace("4f", "5f")
    files = {**GARDENER, "rappid.json": json.dumps({"rappid": other}).encode()}
    with pytest.raises(KeyboardInterrupt):
        home.importer().hatch(egg(files, rappid=other), progress=stop)
    assert [path.name for path in (home.root / "twins").iterdir()] == [KEY]


class TestWhoLivesThere:
    def test_somebody_else_is_never_moved_in_with(self, home: AHome) -> None:
        other = {"rappid": f"rappid:@bob/gardener:{KEY[:-1]}b", "name": "roses"}
        home.live_in(home.twin, {"rappid.json": json.dumps(other).encode()})
        before = lies(home.root)
        with pytest.raises(TwinConflictError, match=r"roses lives at .* somebody else than gardener"):
            home.importer().plan(gardener())
        assert lies(home.root) == before

    def test_a_folder_that_is_no_twin_is_not_taken_over(self, home: AHome) -> None:
        home.live_in(home.twin, {"notes.txt": b"mine"})
        with pytest.raises(TwinConflictError, match="holds no twin"):
            home.importer().plan(gardener())
        home.live_in(home.twin, {"rappid.json": b"{"})
        with pytest.raises(TwinConflictError, match="damaged"):
            home.importer().plan(gardener())

    def test_an_empty_folder_is_no_one(self, home: AHome) -> None:
        home.twin.mkdir(parents=True)
        home.importer().hatch(gardener())
        assert (home.twin / "soul.md").exists()

    def test_archived_and_purged_twins_are_a_conflict(self, home: AHome) -> None:
        archived = home.root / "twins/.archive" / KEY
        home.live_in(archived, {"rappid.json": GARDENER["rappid.json"]})
        with pytest.raises(TwinConflictError, match="gardener is archived here") as caught:
            home.importer().hatch(gardener())
        assert "unarchive" in caught.value.do
        archived.rename(home.root / "elsewhere")
        home.live_in(home.root / "twins/.purged", {f"{KEY}.json": b"{}"})
        with pytest.raises(TwinConflictError, match="purged here"):
            home.importer().hatch(gardener())
        assert not home.twin.exists()

    def test_another_form_of_the_rappid_finds_the_same_twin(self, home: AHome) -> None:
        short = "1b4e28ba2fa111d2883f0016d3cca427"
        old = f"rappid:v2:twin:@ada/gardener:{short}@github.com/ada/gardener"
        files = {**GARDENER, "rappid.json": json.dumps({"rappid": old}).encode()}
        home.importer().hatch(egg(files, rappid=old), now=NOW)
        new = widened(Rappid.parse(old)).text
        files = {
            **files,
            "rappid.json": json.dumps({"rappid": new}).encode(),
            "agents/new_agent.py": b"x = 1\n",
        }
        done = home.importer().hatch(egg(files, rappid=new), now=LATER)
        assert done.plan.ground.root.name == short
        assert (home.root / "twins" / short / "agents/new_agent.py").exists()

    def test_an_egg_whose_identity_file_is_somebody_else_is_refused(self, home: AHome) -> None:
        files = {**GARDENER, "rappid.json": json.dumps({"rappid": RAPPID.replace("4f", "5f")}).encode()}
        with pytest.raises(HostileEggError, match="claims to be somebody else"):
            home.importer().hatch(egg(files))
        with pytest.raises(BadEggError, match=r"damaged \(rappid.json\)"):
            home.importer().hatch(egg({**GARDENER, "rappid.json": b"[]"}))
        with pytest.raises(BadEggError, match=r"has no rappid.json"):
            home.importer().hatch(egg({"soul.md": b"x"}))
        with pytest.raises(BadEggError, match="does not say who it is"):
            home.importer().hatch(egg(GARDENER, rappid=""))
        assert list((home.root / "twins").iterdir()) == []

    @pytest.mark.parametrize("key", ["../x", "", ".archive", "a/b", "5f" * 32, "/etc"])
    def test_the_folder_is_the_rappids_own(self, home: AHome, key: str) -> None:
        with pytest.raises(HostileEggError):
            home.importer().hatch(gardener(key=key))


class TestConversations:
    def test_they_go_to_the_threads_and_leave_no_file(self, home: AHome) -> None:
        threads = Threads()
        done = home.importer(conversations=threads).hatch(_talked())
        assert done.conversations == 3
        assert list(threads.taken) == [KEY]
        assert not (home.twin / ".brainstem_data/frames.json").exists()
        assert not list(home.receipts.glob("*.frames.json"))

    def test_those_that_are_here_already_leave_no_receipt(self, home: AHome) -> None:
        threads = Threads()
        first = home.importer(conversations=threads).hatch(_talked(), now=NOW)
        again = home.importer(conversations=threads).hatch(_talked(), now=LATER)
        assert (again.conversations, again.receipt) == (0, None)
        assert [one.id for one in home.importer().receipts.listing()] == [first.receipt and first.receipt.id]

    def test_without_a_daemon_they_wait(self, home: AHome) -> None:
        done = home.importer().hatch(_talked())
        assert done.conversations is None
        threads = Threads()
        assert home.importer(conversations=threads).deliver_waiting() == 3
        assert home.importer(conversations=threads).deliver_waiting() == 0
        assert not list(home.receipts.glob("*.frames.json"))

    def test_threads_that_fail_lose_nothing(self, home: AHome) -> None:
        threads = Threads()
        threads.broken = True
        done = home.importer(conversations=threads).hatch(_talked())
        assert (home.twin / "soul.md").exists()
        assert "store is busy" in done.notes[-1]
        threads.broken = False
        assert home.importer(conversations=threads).deliver_waiting() == 3

    @pytest.mark.parametrize("seal", [BY_SELF, BY_KITCHEN], ids=["self", "unknown"])
    def test_brainstems_own_go_to_its_threads_for_a_trusted_signer_alone(
        self, home: AHome, seal: Seal
    ) -> None:
        content = b"".join(frames.encoded(FRAMES))
        said = part(".brainstem_data/frames.json", content, Role.CONVERSATIONS)
        graft = egg({}, said, destination=Destination.HOST, rappid="", key="", seal=seal)
        home.start_brainstem()
        threads = Threads()
        home.importer(conversations=threads).hatch(graft)
        kept = home.root / "brainstem/.brainstem_data/frames.json"
        assert (list(threads.taken), kept.exists()) == (
            (["brainstem"], False) if seal is BY_SELF else ([], True)
        )

    def test_damaged_ones_refuse_the_egg_before_it_is_hatched(self, home: AHome) -> None:
        content = b"".join(frames.encoded(FRAMES)).replace(b"dry?", b"wet!")
        damaged = part(".brainstem_data/frames.json", content, Role.CONVERSATIONS)
        with pytest.raises(BadEggError, match="conversations"):
            home.importer().hatch(egg(GARDENER, damaged))
        assert not home.twin.exists()

    def test_hatching_again_restores_them_again(self, home: AHome) -> None:
        threads = Threads()
        importer = home.importer(conversations=threads)
        importer.hatch(_talked(), now=NOW)
        before = lies(home.twin)
        threads.taken.clear()
        assert importer.hatch(_talked(), now=LATER).conversations == 3
        assert lies(home.twin) == before


def test_an_egg_with_an_answer_writes_nothing(home: AHome) -> None:
    session = egg({}, destination=Destination.ANSWER, answer="Open it in the page.")
    assert home.importer().plan(session).as_json()["answer"] == "Open it in the page."
    done = home.importer().hatch(session)
    assert (done.answer, done.receipt) == ("Open it in the page.", None)
    assert lies(home.root, without=lambda path: path in ("eggs", "eggs/receipts")) == {}


def test_two_homes_that_are_one_folder_by_a_link(home: AHome, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(home.root)
    Installer(link, quarantine=home.held, signers=home.signers, fingerprint=OWN).hatch(gardener())
    assert len(home.held.listing()) == 3
    assert home.importer().plan(gardener()).placed == []


def test_two_eggs_at_once_wait_for_each_other(home: AHome) -> None:
    failures: list[BaseException] = []

    def hatch(number: int) -> None:
        rappid = RAPPID[:-2] + f"{number:02d}"
        files = {**GARDENER, "rappid.json": json.dumps({"rappid": rappid}).encode()}
        try:
            home.importer().hatch(egg(files, rappid=rappid, name=f"twin {number}"))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=hatch, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len([path for path in (home.root / "twins").iterdir() if path.name[0] != "."]) == 6
    assert len(home.held.listing()) == 18
