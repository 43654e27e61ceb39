from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from twins.errors import NoSuchTwinError, TwinConflictError
from twins.workspace.listing import MemoryCounter, Presence, find, list_twins, scan
from twins.workspace.rappid import widened
from twins.workspace.twin import Twin, mint
from twins.workspace.workspace import TwinLayout

OLD = f"rappid:v2:organism:@kody-w/Rose:{'0d51' * 8}@github.com/kody-w/Rose"
UUID = "123e4567-e89b-42d3-a456-426614174000"


@pytest.fixture
def places(tmp_path: Path) -> TwinLayout:
    return TwinLayout(tmp_path)


def _born(places: TwinLayout, name: str, **fields: Any) -> Twin:
    return mint(places, name, owner="rose", **fields)


def _lay(places: TwinLayout, folder: str, **fields: Any) -> Path:
    path = places.twins / folder
    path.mkdir(parents=True)
    (path / "rappid.json").write_text(json.dumps(fields))
    return path


def _remember(twin: Twin, where: str, count: int) -> Path:
    path = twin.workspace.data / where
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({f"id-{number}": {"message": "m"} for number in range(count)}))
    return path


def _set_aside(places: TwinLayout, twin: Twin) -> None:
    places.archive.mkdir(exist_ok=True)
    twin.workspace.root.rename(places.archived(twin.key))


# The list


def test_a_home_without_twins_has_an_empty_list(places: TwinLayout) -> None:
    assert list_twins(places).rows == []
    assert list_twins(places, archived=True).rows == []


def test_the_list_says_who_is_there(places: TwinLayout) -> None:
    rose, iris = _born(places, "rose"), _born(places, "Iris", kind="memorial")
    _remember(iris, "shared_memories/memory.json", 3)
    _remember(iris, f"memory/{UUID}/user_memory.json", 2)
    presences = {rose.key: Presence(running=True, port=7081, last_talk=1_700_000_000.0)}
    first, second = list_twins(places, presences=presences).rows
    assert msgspec.to_builtins(first) == {
        "key": iris.key,
        "rappid": iris.rappid.text,
        "name": "Iris",
        "kind": "memorial",
        "state": "asleep",
        "port": None,
        "memories": 5,
        "last_talk": None,
        "born_at": iris.born_at,
        "parent_rappid": "",
    }
    assert (second.name, second.state, second.port, second.memories) == ("rose", "awake", 7081, 0)
    assert second.last_talk == 1_700_000_000.0


def test_only_folders_with_identity_are_twins(places: TwinLayout, tmp_path: Path) -> None:
    iris, old = _born(places, "Iris"), _born(places, "Old")
    _set_aside(places, old)
    for phantom in (".trash", ".cache"):
        _lay(places, phantom, rappid=OLD)
    (places.twins / "no-identity").mkdir()
    (places.twins / "a-file").write_text("x")
    (places.twins / "dangling").symlink_to(tmp_path / "nowhere")
    assert [twin.key for twin in scan(places).twins] == [iris.key]
    assert scan(places).unreadable == []
    (row,) = list_twins(places, archived=True).rows
    assert (row.key, row.state) == (old.key, "archived")


def test_unreadable_entry_is_reported_and_hides_none(places: TwinLayout, tmp_path: Path) -> None:
    iris = _born(places, "Iris")
    broken = places.twins / "broken"
    broken.mkdir()
    (broken / "rappid.json").write_text("{")
    (places.twins / "linked").symlink_to(iris.workspace.root)
    found = list_twins(places)
    assert [row.name for row in found.rows] == ["Iris"]
    assert sorted(one.folder.name for one in found.unreadable) == ["broken", "linked"]
    assert all(one.problem for one in found.unreadable)


def test_listing_opens_nothing_but_identities(places: TwinLayout) -> None:
    iris = _born(places, "Iris")
    for path in (iris.workspace.soul, iris.workspace.agents / "x_agent.py", iris.workspace.env_file):
        path.unlink(missing_ok=True)
        os.mkfifo(path)  # opening one waits for ever
    assert [row.name for row in list_twins(places).rows] == ["Iris"]


def test_memories_are_counted_again_only_when_they_changed(places: TwinLayout) -> None:
    iris = _born(places, "Iris")
    path = _remember(iris, "shared_memories/memory.json", 2)
    counter = MemoryCounter()
    assert counter.count(iris.workspace) == 2
    stamp = path.stat()
    path.write_text(" " * stamp.st_size)
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert counter.count(iris.workspace) == 2
    _remember(iris, "shared_memories/memory.json", 7)
    assert counter.count(iris.workspace) == 7
    path.unlink()
    assert counter.count(iris.workspace) == 0


@pytest.mark.parametrize("content", [b"{", b"[1]", b"\xff", b"[" * 100_000, None])
def test_memories_that_cannot_be_counted_are_not_called_none(
    places: TwinLayout, content: bytes | None
) -> None:
    iris = _born(places, "Iris")
    path = _remember(iris, "shared_memories/memory.json", 1)
    path.unlink()
    if content is None:
        os.mkfifo(path)
    else:
        path.write_bytes(content)
    assert list_twins(places).rows[0].memories is None


# Whom somebody means


def test_a_twin_is_found_by_whatever_names_it(places: TwinLayout) -> None:
    iris = _born(places, "Iris Murdoch")
    _born(places, "Rose")
    tail = iris.rappid.tail
    for selector in (
        iris.rappid.text,
        tail,
        tail.upper(),
        tail[:8],
        tail[:4].upper(),
        "Iris Murdoch",
        "iris MURDOCH",
        "iris-murdoch",
        f"  {tail[:12]}\n",
    ):
        assert find(places, selector).key == iris.key, selector


def test_older_homes_with_other_folder_names_are_searched_too(places: TwinLayout) -> None:
    folder = _lay(places, "rappid:grandma-rose", rappid=OLD, name="rose", display_name="Grandma Rose")
    for selector in ("rappid:grandma-rose", OLD, "0d51" * 8, "0d510d51", "rose", "Grandma Rose", "Rose"):
        assert find(places, selector).workspace.root == folder, selector


def test_a_uuid_is_found_with_and_without_dashes_and_widened(places: TwinLayout) -> None:
    folder = _lay(places, UUID, rappid=UUID)
    twin = find(places, UUID)
    assert twin.workspace.root == folder
    wide = widened(twin.rappid, owner="rose", slug="iris")
    for selector in (UUID.upper(), UUID.replace("-", ""), UUID[:11], wide.text):
        assert find(places, selector).key == UUID


def test_new_rappid_still_answers_to_the_old(places: TwinLayout) -> None:
    short = "rappid:twin:@source/iris:0123456789abcdef"
    twin = _born(places, "Iris")
    twin.identity.changed(_migrated_from=short).write(twin.workspace.root)
    assert find(places, short).key == twin.key


def test_several_of_one_name_are_named_and_none_is_taken(places: TwinLayout) -> None:
    twins = [_born(places, "Iris") for _ in range(7)]
    with pytest.raises(TwinConflictError) as refused:
        find(places, "Iris")
    text = str(refused.value)
    assert "7 twins" in text
    assert "and 2 more" in text
    assert sum(twin.key[:12] in text for twin in twins) == 5
    assert refused.value.do


def test_a_name_that_pretends_to_be_anothers_tail_is_ambiguous(places: TwinLayout) -> None:
    iris = _born(places, "Iris")
    _born(places, iris.rappid.tail)
    with pytest.raises(TwinConflictError):
        find(places, iris.rappid.tail)


def test_exact_capitals_win_over_other_matches(places: TwinLayout) -> None:
    tail = _born(places, "Iris").rappid.tail
    small, large, shadow = _born(places, "rose"), _born(places, "ROSE"), _born(places, tail[:6])
    assert find(places, "ROSE").key == large.key
    assert small.key != large.key
    assert find(places, tail[:6]).key == shadow.key


def test_three_digits_are_too_few(places: TwinLayout) -> None:
    iris = _born(places, "Iris", entropy=bytes(16))
    with pytest.raises(NoSuchTwinError):
        find(places, iris.rappid.tail[:3])


def test_archived_ones_are_found_only_when_asked_for(places: TwinLayout) -> None:
    iris = _born(places, "Iris")
    _set_aside(places, iris)
    with pytest.raises(NoSuchTwinError):
        find(places, "Iris")
    assert find(places, "Iris", archived=True).archived
    assert find(places, "Iris", archived=None).key == iris.key
    _born(places, "Iris")
    with pytest.raises(TwinConflictError):
        find(places, "Iris", archived=None)


def test_who_mistypes_is_told_a_near_name(places: TwinLayout) -> None:
    _born(places, "gardener")
    with pytest.raises(NoSuchTwinError, match='No twin "gardner"') as refused:
        find(places, "gardner")
    assert refused.value.do == "Did you mean gardener?"
    for selector in ("", "   ", "../gardener", "x" * 1000, "\0", "🌱"):
        with pytest.raises(NoSuchTwinError):
            find(places, selector)


def test_a_thousand_twins_are_listed_at_twice_the_cost_of_each_of_a_hundred(tmp_path: Path) -> None:
    def seconds_each(count: int) -> float:
        places = TwinLayout(tmp_path / str(count))
        for number in range(count):
            folder = places.twins / f"{number:064x}"
            folder.mkdir(parents=True)
            rappid = f"rappid:@rose/twin{number}:{number:064x}"
            body = {"rappid": rappid, "name": f"twin{number}", "kind": "project"}
            (folder / "rappid.json").write_text(json.dumps(body))
        began = []
        for _ in range(3):
            start = time.process_time()
            assert len(list_twins(places).rows) == count
            began.append(time.process_time() - start)
        return min(began) / count

    assert seconds_each(1000) < 2 * seconds_each(100)
