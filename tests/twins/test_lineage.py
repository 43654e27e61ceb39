from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twins.workspace.lineage import Families, Relative
from twins.workspace.rappid import Rappid, widened
from twins.workspace.workspace import TwinLayout

ELSEWHERE = f"rappid:@far/away:{'e' * 64}"


@pytest.fixture
def places(tmp_path: Path) -> TwinLayout:
    return TwinLayout(tmp_path)


def _rappid(number: int) -> Rappid:
    return Rappid.parse(f"rappid:@rose/t{number}:{number:064x}")


def _lay(
    places: TwinLayout, number: int, parent: object, *, archived: bool = False, **more: object
) -> Rappid:
    rappid = _rappid(number)
    folder = (places.archived if archived else places.active)(rappid.key)
    folder.mkdir(parents=True)
    fields = {
        "rappid": rappid.text,
        "name": f"t{number}",
        "born_at": f"2026-01-01T00:00:{number % 60:02}Z",
        "parent_rappid": parent.text if isinstance(parent, Rappid) else parent,
        **more,
    }
    (folder / "rappid.json").write_text(json.dumps(fields))
    return rappid


def _drawn(rows: list[Relative]) -> list[str]:
    return [f"{'  ' * row.depth}{row.name}{' ↺' if row.looped else ''}" for row in rows]


def test_a_family_is_told_from_its_founder_down(places: TwinLayout) -> None:
    founder = _lay(places, 1, None)
    child = _lay(places, 2, founder)
    _lay(places, 3, founder)
    grandchild = _lay(places, 4, child)
    _lay(places, 5, None)
    families = Families(places)
    assert _drawn(families.tree()) == ["t1", "  t2", "    t4", "  t3", "t5"]
    assert _drawn(families.tree(grandchild)) == ["t1", "  t2", "    t4", "  t3"]
    assert [kin.name for kin in families.ancestors(grandchild)] == ["t2", "t1"]
    assert [kin.name for kin in families.children(founder)] == ["t2", "t3"]
    assert families.ancestors(founder) == []
    assert families.children(grandchild) == []


def test_parents_that_are_not_here_are_shown_as_such(places: TwinLayout) -> None:
    child = _lay(places, 1, ELSEWHERE)
    _lay(places, 2, ELSEWHERE.upper().replace("RAPPID", "rappid").replace("FAR/AWAY", "far/away"))
    odd = _lay(places, 3, "my\x1b grandmother")
    families = Families(places)
    (far,) = families.ancestors(child)
    assert (far.rappid, far.name, far.state, far.key) == (ELSEWHERE, "away", "elsewhere", "e" * 64)
    assert [kin.name for kin in families.children(Rappid.parse(ELSEWHERE))] == ["t1", "t2"]
    (unclear,) = families.ancestors(odd)
    assert (unclear.name, unclear.state, unclear.key) == ("my grandmother", "elsewhere", "")
    assert _drawn(families.tree()) == ["away", "  t1", "  t2", "my grandmother", "  t3"]


def test_archived_and_purged_parents_keep_their_place(places: TwinLayout) -> None:
    archived = _lay(places, 1, None, archived=True)
    purged = _rappid(2)
    places.purged.mkdir(parents=True)
    stone = {"schema": "rapp-twin-purged/1.0", "rappid": purged.text, "name": "gone", "kind": "project"}
    places.tombstone(purged.key).write_text(json.dumps(stone))
    (places.purged / "damaged.json").write_text("{")
    (places.purged / "other.json").write_text('{"rappid": 7}')
    _lay(places, 3, archived)
    _lay(places, 4, purged)
    rows = {row.name: row for row in Families(places).tree()}
    assert {name: row.state for name, row in rows.items()} == {
        "t1": "archived",
        "t3": "active",
        "gone": "purged",
        "t4": "active",
    }
    assert rows["gone"].kind == "project"
    assert rows["t4"].depth == 1


def test_one_that_came_back_after_a_purge_is_alive(places: TwinLayout) -> None:
    rappid = _lay(places, 1, None)
    places.purged.mkdir()
    places.tombstone(rappid.key).write_text(json.dumps({"rappid": rappid.text, "name": "t1"}))
    assert [(row.name, row.state) for row in Families(places).tree()] == [("t1", "active")]


def test_a_parent_is_known_by_any_form_of_its_rappid(places: TwinLayout) -> None:
    uuid = "123e4567-e89b-42d3-a456-426614174000"
    parent = Rappid.parse(uuid)
    folder = places.active(uuid)
    folder.mkdir(parents=True)
    (folder / "rappid.json").write_text(json.dumps({"rappid": uuid, "name": "mother"}))
    _lay(places, 1, uuid.replace("-", "").upper())
    _lay(places, 2, widened(parent, owner="rose", slug="mother"))
    _lay(places, 3, None, _migrated_from="rappid:twin:@source/old:0123456789abcdef")
    _lay(places, 4, "rappid:twin:@source/old:0123456789abcdef")
    assert sorted(_drawn(Families(places).tree())) == ["  t1", "  t2", "  t4", "mother", "t3"]


def test_loops_end(places: TwinLayout) -> None:
    a, b, c = (_rappid(number) for number in (1, 2, 3))
    _lay(places, 1, c)
    _lay(places, 2, a)
    _lay(places, 3, b)
    own = _lay(places, 4, _rappid(4))
    _lay(places, 5, a)
    families = Families(places)
    assert [(kin.name, kin.looped) for kin in families.ancestors(a)] == [("t3", False), ("t2", True)]
    assert families.ancestors(own) == []
    assert _drawn(families.tree(own)) == ["t4 ↺"]
    rows = families.tree()
    assert sorted(row.name for row in rows) == ["t1", "t2", "t3", "t4", "t5"]
    assert sum(row.looped for row in rows) == 2


def test_second_claimant_of_rappid_inherits_nothing(places: TwinLayout) -> None:
    real = _lay(places, 1, None)
    _lay(places, 2, real)
    false = places.twins / "0000"
    false.mkdir()
    (false / "rappid.json").write_text(json.dumps({"rappid": real.text, "name": "a false one"}))
    assert _drawn(Families(places).tree()) == ["a false one", "t1", "  t2"]


def test_a_long_line_is_no_burden(places: TwinLayout) -> None:
    parent: object = None
    for number in range(1, 1501):
        parent = _lay(places, number, parent)
    assert isinstance(parent, Rappid)
    families = Families(places)
    assert len(families.ancestors(parent)) == 1499
    assert families.tree()[-1].depth == 1499


def test_what_the_page_gets(places: TwinLayout) -> None:
    founder = _lay(places, 1, None)
    _lay(places, 2, founder, kind="memorial")
    assert json.loads(json.dumps([row.as_json() for row in Families(places).tree()]))[1] == {
        "rappid": _rappid(2).text,
        "name": "t2",
        "kind": "memorial",
        "key": f"{2:064x}",
        "state": "active",
        "born_at": "2026-01-01T00:00:02Z",
        "parent": founder.text,
        "depth": 1,
        "looped": False,
    }


@given(parents=st.lists(st.integers(-1, 14), min_size=1, max_size=12))
def test_everyone_appears_once_below_whom_it_names(
    tmp_path_factory: pytest.TempPathFactory, parents: list[int]
) -> None:
    places = TwinLayout(tmp_path_factory.mktemp("home"))
    for number, parent in enumerate(parents):
        _lay(places, number, _rappid(parent) if parent >= 0 else None)
    families = Families(places)
    rows = families.tree()
    missing = {parent for parent in parents if parent >= len(parents)}
    assert sorted(row.rappid for row in rows) == sorted(
        [_rappid(number).text for number in [*range(len(parents)), *missing]]
    )
    above: list[str] = []
    for row in rows:
        del above[row.depth :]
        if row.depth:
            assert row.parent == above[-1]
        else:
            assert row.looped == bool(row.parent)
        above.append(row.rappid)
    for row in rows:
        line = families.ancestors(Rappid.parse(row.rappid))
        assert len({kin.rappid for kin in line} | {row.rappid}) == len(line) + 1
