"""A hatching can be undone: byte for byte, once, and never over what changed since."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from fixtures.refusals import refused

from tests.twins.installer.a_home import (
    GARDENER,
    KEY,
    LATER,
    NOW,
    RAPPID,
    AHome,
    egg,
    gardener,
    leftovers,
    lies,
    part,
)
from twins.eggs import frames
from twins.eggs.parsed_egg import Destination, Role
from twins.errors import BadFileError, TwinConflictError
from twins.installer.installer import Installer
from twins.installer.receipts import Receipt
from twins.lifecycle.lifecycle import Lifecycle
from twins.workspace.listing import Presence
from twins.workspace.workspace import TwinLayout

OTHER = RAPPID.replace(KEY, "f" * len(KEY))
MINE = {
    "rappid.json": GARDENER["rappid.json"],
    "soul.md": b"mine\n",
    ".brainstem_data/memory.json": b'{"mine": 1}',
    "agents/water_agent.py": b"mine = 1\n",
    "bonds.json": b'{"events": []}',
}


def _hatch(importer: Installer, **options: object) -> Receipt:
    done = importer.hatch(gardener(), now=NOW, **options)  # type: ignore[arg-type]
    assert done.receipt is not None
    return done.receipt


def _no_receipts(path: str) -> bool:
    return path.startswith("eggs") or path == "held.json"


def test_a_new_twin_goes_again(home: AHome) -> None:
    importer = home.importer()
    receipt = _hatch(importer)
    done = importer.rollback(receipt.id, now=LATER)
    assert not home.twin.exists()
    assert done.removed == sorted(file.path for file in receipt.files)
    assert importer.receipts.read(receipt.id).rolled_back_at == "2026-11-22T10:00:00Z"
    assert not leftovers(home.root)


def test_a_twin_whose_code_ran_goes_again(home: AHome) -> None:
    importer = home.importer()
    receipt = _hatch(importer)
    for made in (".brainstem_data/kept/good/0123456789abcdef.py", ".deps/yaml/__init__.py"):
        (home.twin / made).parent.mkdir(parents=True)
        (home.twin / made).write_bytes(GARDENER["agents/water_agent.py"])
    importer.rollback(receipt.id, now=LATER)
    assert not home.twin.exists()


@pytest.mark.parametrize("overwrite", [[], ["soul", "agents", "memory", "env", "pages", "services", "slots"]])
def test_an_existing_twin_is_as_it_was(home: AHome, overwrite: list[str]) -> None:
    home.live_in(home.twin, MINE)
    before = lies(home.twin)
    importer = home.importer()
    receipt = _hatch(importer, overwrite=overwrite)
    assert lies(home.twin) != before
    done = importer.rollback(receipt.id)
    assert lies(home.twin) == before
    assert ("soul.md" in done.restored) == bool(overwrite)
    assert not (home.receipts / f"{receipt.id}.kept").exists()
    assert not leftovers(home.root)


def test_twice_is_once(home: AHome) -> None:
    home.live_in(home.twin, MINE)
    importer = home.importer()
    receipt = _hatch(importer, overwrite=["soul"])
    assert not importer.rollback(receipt.id).already
    (home.twin / "soul.md").write_bytes(b"new life\n")
    before = lies(home.root)
    assert importer.rollback(receipt.id).already
    assert lies(home.root) == before


def test_changed_twin_is_replaced_only_if_told(home: AHome) -> None:
    importer = home.importer()
    receipt = _hatch(importer)
    (home.twin / ".brainstem_data/diary.md").write_bytes(b"dear diary")
    before = lies(home.root)
    with refused(
        "changed_since", match=r"diary\.md changed since gardener hatched; nothing was touched"
    ) as caught:
        importer.rollback(receipt.id)
    assert "--even-if-changed" in caught.value.do
    assert lies(home.root) == before
    lived = lies(home.twin)
    done = importer.rollback(receipt.id, even_if_changed=True)
    assert not home.twin.exists()
    assert lies(Path(done.aside)) == lived


def test_files_that_changed_are_put_aside_when_told(home: AHome) -> None:
    home.live_in(home.twin, MINE)
    before = lies(home.twin)
    importer = home.importer()
    receipt = _hatch(importer, overwrite=["soul"])
    (home.twin / "soul.md").write_bytes(b"edited since\n")
    (home.twin / "agents/water_agent.py").unlink()
    (home.twin / "services/pump_service.py").write_bytes(b"edited = 1\n")
    with refused("changed_since", match=r"services/pump_service\.py, soul\.md changed since"):
        importer.rollback(receipt.id)
    done = importer.rollback(receipt.id, even_if_changed=True)
    del before["agents/water_agent.py"]
    assert lies(home.twin) == before
    assert lies(Path(done.aside)) == {
        "services": "folder",
        "services/pump_service.py": b"edited = 1\n",
        "soul.md": b"edited since\n",
    }


def test_a_new_file_that_was_deleted_since_is_no_loss(home: AHome) -> None:
    home.live_in(home.twin, MINE)
    before = lies(home.twin)
    importer = home.importer()
    receipt = _hatch(importer)
    (home.twin / "members.json").unlink()
    importer.rollback(receipt.id)
    assert lies(home.twin) == before


def test_daemons_records_may_change(home: AHome) -> None:
    home.live_in(home.twin, MINE)
    importer = home.importer()
    receipt = _hatch(importer)
    renamed = json.loads((home.twin / "rappid.json").read_bytes()) | {"name": "Gardener"}
    (home.twin / "rappid.json").write_text(json.dumps(renamed))
    done = importer.rollback(receipt.id)
    assert done.stayed == ["rappid.json"]
    assert json.loads((home.twin / "rappid.json").read_bytes()) == renamed
    assert (home.twin / "bonds.json").read_bytes() == MINE["bonds.json"]


def test_hatchings_are_undone_in_reverse_order(home: AHome) -> None:
    home.live_in(home.twin, MINE)
    states = [lies(home.twin)]
    importer = home.importer()
    ids = []
    for number in range(3):
        files = {**GARDENER, "soul.md": b"soul %d\n" % number}
        done = importer.hatch(egg(files), overwrite=["soul"], now=LATER)
        assert done.receipt is not None
        ids.append(done.receipt.id)
        states.append(lies(home.twin))
    with refused("changed_since"):
        importer.rollback(ids[0])
    for ident, state in zip(reversed(ids), reversed(states[:-1]), strict=True):
        importer.rollback(ident)
        assert lies(home.twin) == state


def test_a_kept_version_that_was_tampered_with_is_never_put_back(home: AHome) -> None:
    home.live_in(home.twin, MINE)
    importer = home.importer()
    receipt = _hatch(importer, overwrite=["agents"])
    kept = next((home.receipts / f"{receipt.id}.kept").iterdir())
    kept.write_bytes(b"evil = 1\n")
    before = lies(home.root)
    with pytest.raises(BadFileError, match="not as it was kept"):
        importer.rollback(receipt.id)
    assert lies(home.root) == before


def test_what_was_held_stays_held_should_it_come_back(home: AHome) -> None:
    importer = home.importer()
    receipt = _hatch(importer)
    importer.rollback(receipt.id)
    assert home.held.listing() == []
    home.live_in(home.twin, GARDENER)
    assert len(home.held.listing()) == 3


def test_a_folder_or_link_in_place_of_a_file_is_left(home: AHome) -> None:
    home.live_in(home.twin, MINE)
    importer = home.importer()
    receipt = _hatch(importer)
    (home.twin / "members.json").unlink()
    (home.twin / "members.json").symlink_to(home.root / "precious")
    with refused("changed_since"):
        importer.rollback(receipt.id)
    done = importer.rollback(receipt.id, even_if_changed=True)
    assert done.stayed == ["members.json"]
    assert (home.twin / "members.json").is_symlink()


def test_conversations_that_still_wait_go_with_it(home: AHome) -> None:
    said = frames.chained("s", [("2026-11-21T09:00:00Z", "user", {"text": "dry?"})])
    content = b"".join(frames.encoded(said))
    opened = egg(GARDENER, part(".brainstem_data/frames.json", content, Role.CONVERSATIONS))
    importer = home.importer()
    done = importer.hatch(opened)
    assert done.receipt is not None
    importer.rollback(done.receipt.id)
    assert importer.receipts.waiting() == []


def test_a_twin_that_is_not_there_any_more(home: AHome) -> None:
    importer = home.importer()
    receipt = _hatch(importer)
    archive = home.root / "twins/.archive"
    archive.mkdir()
    home.twin.rename(archive / KEY)
    with pytest.raises(TwinConflictError, match="is not at"):
        importer.rollback(receipt.id)


def test_data_and_rapplications_too(home: AHome) -> None:
    home.start_brainstem()
    before = lies(home.root, without=_no_receipts)
    importer = home.importer()
    data = importer.hatch(egg({"a/b": b"x", "c": b"y"}, destination=Destination.INERT))
    rapp = importer.hatch(egg({"agents/k_agent.py": b"x = 1\n"}, destination=Destination.HOST))
    for done in (data, rapp):
        assert done.receipt is not None
        importer.rollback(done.receipt.id)
    assert lies(home.root, without=lambda path: _no_receipts(path) or path == "swarms") == before


def test_receipts_are_listed_and_found_by_id_prefix(home: AHome) -> None:
    importer = home.importer()
    first = _hatch(importer)
    second = importer.hatch(egg({"x": b"x"}, destination=Destination.INERT), now=LATER).receipt
    assert second is not None
    assert [receipt.id for receipt in importer.receipts.listing()] == [second.id, first.id]
    assert importer.receipts.find(first.id[:8]).id == first.id
    assert importer.receipts.listing()[1].summary() == {
        "id": first.id,
        "name": "gardener",
        "kind": "twin",
        "hatched_at": "2026-11-21T09:40:00Z",
        "workspace": f"twins/{KEY}",
        "files": len(GARDENER) + 2,  # what rappd writes beside them counts, too
        "rolled_back_at": "",
    }
    with refused("no_such_hatching", match="Several"):
        importer.receipts.find("2026")
    for selector in ("", "nope", "../../held", "20261121T094000Z-zzzzzz"):
        with refused("no_such_hatching"):
            importer.rollback(selector)
    (home.receipts / f"{first.id}.json").write_bytes(b"{}")
    with pytest.raises(BadFileError, match="receipt is damaged"):
        importer.rollback(first.id)


def test_a_home_that_moved_can_still_be_rolled_back(home: AHome) -> None:
    home.live_in(home.twin, MINE)
    before = lies(home.twin)
    receipt = _hatch(home.importer(), overwrite=["soul", "memory"])
    moved = AHome(home.root.rename(home.root.with_name("elsewhere")))
    moved.importer().rollback(receipt.id)
    assert lies(moved.twin) == before
    assert not home.root.exists()


def test_replaced_files_end_with_the_purge(home: AHome) -> None:
    home.live_in(home.twin, MINE)
    replaced, other = [
        home.importer().hatch(one, overwrite=["soul"], now=NOW).receipt
        for one in (gardener(), egg({"rappid.json": json.dumps({"rappid": OTHER}).encode()}, rappid=OTHER))
    ]
    assert replaced is not None
    assert other is not None
    kept = home.receipts / f"{replaced.id}.kept"
    assert any(path.read_bytes() == b"mine\n" for path in kept.rglob("*") if path.is_file())
    for folder in (f"{replaced.id}.undone", f"{other.id}.kept"):
        (home.receipts / folder).mkdir(exist_ok=True)
        (home.receipts / folder / "0").write_bytes(b"private")
    (home.receipts / "20261122T000000Z-000000.json").write_bytes(b"damaged")

    lifecycle = Lifecycle(TwinLayout(home.root), Asleep())
    asyncio.run(lifecycle.archive(KEY, now=LATER))
    assert kept.is_dir(), "an archived twin may come back, and be rolled back"
    asyncio.run(lifecycle.purge(KEY, confirm=True, now=LATER))
    assert sorted(path.name for path in home.receipts.iterdir() if replaced.id in path.name) == [
        f"{replaced.id}.json"
    ]
    assert (home.receipts / f"{other.id}.kept" / "0").read_bytes() == b"private"


class Asleep:
    """A lifecycle in which no twin runs."""

    def presence(self, key: str) -> Presence:
        return Presence()

    async def stop(self, key: str) -> None:
        return None

    @asynccontextmanager
    async def apart(self, key: str) -> AsyncIterator[None]:
        yield
