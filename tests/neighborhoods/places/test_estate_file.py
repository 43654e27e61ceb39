"""``estate.json`` and the doors that rappids stand for."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neighborhoods.errors import BadEstateError, NotInEstateError
from neighborhoods.places import estate_file
from neighborhoods.places.doors import door
from neighborhoods.places.estate_file import Estate
from rappd.listeners.loopback.well_known import beacon
from twins.workspace.rappid import Rappid

AT = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
ROSE = f"rappid:@ada/rose:{'0d51' + 'a' * 60}"
CLUB = f"rappid:@bob/club:{'b' * 64}"
OLD = f"rappid:v2:twin:@kody-w/heimdall:{'c' * 32}@github.com/kody-w/heimdall"

words = st.from_regex(r"[a-z0-9]{1,12}", fullmatch=True)
rappids = st.builds(
    lambda owner, slug, tail: f"rappid:@{owner}/{slug}:{tail}",
    words,
    words,
    st.text("0123456789abcdef", min_size=64, max_size=64),
)


@given(st.lists(rappids, max_size=8), st.lists(rappids, max_size=8))
def test_estate_survives_its_file_with_only_three_keys_for_each_entry(
    created: list[str], member: list[str]
) -> None:
    estate = Estate(owner=ROSE, github="ada").with_entries("created", created, via="scan", at=AT)
    estate = estate.with_entries("member", member, via="egg", at=AT)
    assert Estate.decode(estate.encode()) == estate
    said = json.loads(estate.encode())
    assert said["schema"] == "rapp-estate/1.1"
    assert all(set(row) == {"rappid", "added_at", "via"} for row in [*said["created"], *said["member"]])


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "rapp-estate/2.0"},
        {"created": [{"via": "scan"}]},
        {"created": [{"rappid": "../../etc", "via": "scan"}]},
        {"member": "everything"},
        {"owner": {"rappid": ["x"]}},
        {"owner": {"github": "a\nb"}},
    ],
)
def test_damaged_estate_is_refused_and_stays_as_it_is(tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "estate.json"
    path.write_text(json.dumps({**Estate().as_json(), **change}))
    before = path.read_bytes()
    with pytest.raises(BadEstateError, match=r"estate\.json"):
        Estate.read(tmp_path)
    assert path.read_bytes() == before


def test_link_in_the_place_of_the_estate_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere.json").write_bytes(Estate().encode())
    (tmp_path / "estate.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(BadEstateError):
        Estate.read(tmp_path)


def test_saved_estate_is_the_owners_alone(tmp_path: Path) -> None:
    estate_file.save(tmp_path, Estate(owner=ROSE))
    assert (tmp_path / "estate.json").stat().st_mode & 0o777 == 0o600
    assert Estate.read(tmp_path) == Estate(owner=ROSE)


def test_one_thing_in_two_spellings_is_one_entry() -> None:
    tail = "123e4567e89b42d3a456426614174000"
    dashed = "123e4567-e89b-42d3-a456-426614174000"
    estate = Estate().with_entries("created", [tail, dashed], via="manual", at=AT)
    assert len(estate.created) == 1
    assert estate.without(dashed, at=AT).created == ()


def test_unknown_entry_is_told() -> None:
    with pytest.raises(NotInEstateError, match="not in the estate"):
        Estate().find(ROSE)


def test_merged_estate_keeps_what_is_there() -> None:
    own = Estate(owner=ROSE).with_entries("created", [ROSE], via="created", at=AT)
    other = Estate(owner=ROSE).with_entries("created", [ROSE, CLUB], via="import", at=AT)
    merged = own.merged(other, at=AT)
    assert [(one.rappid, one.via) for one in merged.created] == [(ROSE, "created"), (CLUB, "import")]
    assert merged.merged(other, at=AT) is merged


def test_doors_are_read_from_the_rappid_alone() -> None:
    found = door(Rappid.parse(OLD))
    assert (found["type"], found["repo"]) == ("front_door", "https://github.com/kody-w/heimdall")
    assert found["front"] == "https://kody-w.github.io/heimdall/"
    assert "members.json" not in found["files"]
    gate = door(Rappid.parse(CLUB), kind="neighborhood")
    assert gate["type"] == "gate"
    assert gate["files"]["members.json"] == "https://raw.githubusercontent.com/bob/club/main/members.json"


def test_owner_that_is_no_account_of_github_has_no_address_there() -> None:
    desk = Rappid.mint("desk", "gardener", b"x" * 32)
    assert "repo" not in door(desk, has_account=False)
    assert door(desk)["repo"] == "https://github.com/desk/gardener"
    said = Rappid.parse(OLD)
    assert door(said, has_account=False)["repo"] == door(said)["repo"], "its text names the place itself"


def test_rappid_without_a_place_has_no_address() -> None:
    assert "repo" not in door(Rappid.parse("123e4567-e89b-42d3-a456-426614174000"))


def test_beacon_holds_the_private_pointer_and_asks_not_to_be_indexed() -> None:
    found = beacon(
        Estate(owner=ROSE, github="ada"), base_url="http://127.0.0.1:7071", private_pointer="ada/bones"
    )
    assert found["schema"] == "rapp-network-beacon/1.1"
    assert found["discovery"]["indexable"] is False
    assert (found["operator_rappid"], found["private_estate_pointer"]) == (ROSE, "ada/bones")
