"""Files that an earlier version laid as data, and that are code by the rules of today, wait from the upgrade on."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.twins.installer.a_home import BY_SELF, GARDENER, KEY, AHome, egg
from twins.eggs.parsed_egg import Destination, ParsedEgg
from twins.installer.former_data import WHY
from twins.workspace.workspace import Workspace

SUMS = "agents/sums_listener.py"
FILES = {**GARDENER, SUMS: b"# a listener", "organism.yaml": b"listeners: []\n", "notes.txt": b"plain"}
NEW_CODE = {f"twins/{KEY}/{SUMS}", f"twins/{KEY}/organism.yaml"}


def as_earlier(home: AHome, laid: ParsedEgg, *data: str) -> None:
    """Hatches an egg as a version did for which ``data`` were plain files."""
    home.importer().hatch(laid)
    [receipt] = home.receipts.glob("*.json")
    told = json.loads(receipt.read_bytes())
    for row in told["files"]:
        if row["path"] in data:
            home.held.withdraw([(row["held"], row["sha256"])])
            row |= {"held": "", "role": "other"}
    receipt.write_text(json.dumps(told))
    (home.receipts / "code-rules").unlink(missing_ok=True)


def held(home: AHome) -> dict[str, str]:
    return {one.path: one.why for one in home.held.listing()}


@pytest.fixture
def earlier(home: AHome) -> AHome:
    as_earlier(home, egg(FILES), SUMS, "organism.yaml", "notes.txt")
    assert not NEW_CODE & held(home).keys()
    return home


def test_data_of_an_earlier_egg_that_is_code_now_is_held_until_approved(earlier: AHome) -> None:
    before = held(earlier)
    assert set(earlier.importer().hold_former_data()) == NEW_CODE
    assert held(earlier) == before | dict.fromkeys(NEW_CODE, WHY), "plain files stay as they are"
    assert earlier.importer().hold_former_data() == []
    earlier.held.release(earlier.twin / SUMS)
    (earlier.receipts / "code-rules").unlink()
    assert earlier.importer().hold_former_data() == [], "an approval outlives the next change of the rules"
    assert f"twins/{KEY}/{SUMS}" not in held(earlier)


def test_changed_content_is_held_and_what_is_gone_is_not(earlier: AHome) -> None:
    (earlier.twin / SUMS).write_bytes(b"# by an agent")
    (earlier.twin / "organism.yaml").unlink()
    assert earlier.importer().hold_former_data() == [f"twins/{KEY}/{SUMS}"]


def test_same_file_of_a_fork_and_of_an_archived_twin_is_held_too(earlier: AHome) -> None:
    fork, other = (earlier.root / "twins" / (digit * 64) for digit in "cd")
    for twin in (fork, other):
        shutil.copytree(earlier.twin, twin)
    (other / SUMS).write_bytes(b"# their own")
    archive = earlier.root / "twins/.archive"
    archive.mkdir()
    earlier.twin.rename(archive / KEY)
    found = earlier.importer().hold_former_data()
    assert set(found) == NEW_CODE | {
        f"twins/{fork.name}/{SUMS}", f"twins/{fork.name}/organism.yaml", f"twins/{other.name}/organism.yaml",
    }  # fmt: skip


def test_trusted_eggs_and_those_that_nothing_runs_of_are_left_alone(home: AHome) -> None:
    as_earlier(home, egg(FILES, seal=BY_SELF), SUMS, "organism.yaml")
    assert home.importer().hold_former_data() == []


def test_eggs_kept_as_data_stay_data(home: AHome) -> None:
    as_earlier(home, egg(FILES, destination=Destination.INERT), SUMS)
    assert home.importer().hold_former_data() == []


def test_damaged_receipt_keeps_no_other_from_being_read(earlier: AHome) -> None:
    (earlier.receipts / "20261121T094000Z-abcdef.json").write_text('{"receipt": "rappd-hatching/1.0"}')
    assert set(earlier.importer().hold_former_data()) == NEW_CODE
    assert Workspace.at(earlier.twin).root.is_dir()
