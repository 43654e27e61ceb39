"""The roster: each machine once, whatever it is known by, and the way to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from neighborhoods.discovery.peers_file import PeersFile
from neighborhoods.errors import BadMemberError, BadPeersFileError, NoSuchMemberError
from neighborhoods.snapshot.member_coordinates import read_coordinates
from neighborhoods.snapshot.roster import Member, find_member, members

PI, SHED, OWN = "a1" * 32, "b2" * 32, "c3" * 32


def row(name: str, fingerprint: str = "", address: str = "", **more: Any) -> dict[str, Any]:
    return {"name": name, "fingerprint": fingerprint, "address": address, "paired": False, **more}


def roster(tmp_path: Path, rows: list[dict[str, Any]], *entries: Any) -> dict[str, Member]:
    path = tmp_path / "peers.json"
    path.write_text(json.dumps({"peers": list(entries)}))
    found = members(rows, read_coordinates(path), own_fingerprint=OWN, own_names=("desk",))
    return {one.name: one for one in found}


@pytest.mark.parametrize(
    "entry",
    [
        {"name": "x", "url": "https://10.0.0.2:7443", "fingerprint": PI, "ssh_host": "pi"},
        {"name": "x", "url": "https://10.0.0.2", "ssh_host": "pi"},
        {"name": "PI", "ssh_host": "raspberry"},
        {"ssh_host": "10.0.0.2"},
    ],
)
def test_members_paired_and_written_down_is_one_row(tmp_path: Path, entry: dict[str, Any]) -> None:
    paired = row("pi", PI, "10.0.0.2:7443", paired=True, whose="mine")
    found = roster(tmp_path, [paired, row("pi-nearby", PI, "10.0.0.2:7443")], entry)
    assert list(found) == ["pi"]
    assert found["pi"].way == "ssh"


def test_entries_of_one_name_and_two_hosts_are_two_machines(tmp_path: Path) -> None:
    found = roster(
        tmp_path, [], {"name": "pi", "ssh_host": "attic.local"}, {"name": "Pi", "ssh_host": "shed.local"}
    )
    ways = {name: one.coordinates.ssh_host for name, one in found.items() if one.coordinates}
    assert ways == {"pi": "attic.local", "Pi_2": "shed.local"}


def test_second_entry_with_an_address_alone_keeps_the_ssh_host_of_the_first(tmp_path: Path) -> None:
    found = roster(
        tmp_path, [], {"name": "pi", "ssh_host": "pi.local"}, {"name": "pi", "url": "https://10.0.0.2"}
    )
    assert {name: one.way for name, one in found.items()} == {"pi": "ssh"}


def test_members_same_name_with_two_keys_are_two(tmp_path: Path) -> None:
    found = roster(
        tmp_path,
        [row("pi", PI, "10.0.0.2:7443", paired=True, whose="mine")],
        {"name": "pi", "url": "https://10.0.0.3", "fingerprint": SHED},
    )
    assert list(found) == ["pi", "pi_b2b2"]


@pytest.mark.parametrize(
    ("entry", "way"),
    [
        ({"name": "x", "ssh_host": "x", "ssh_user": "me"}, "ssh"),
        ({"name": "x", "folder": "/media/stick/.rapp", "ssh_host": "x"}, "folder"),
        ({"name": "x", "github_neighborhood": "me/garden"}, "github"),
        ({"name": "x", "url": "http://10.0.0.9:7071"}, ""),
        ({"name": "x", "ssh_host": "-oProxyCommand=x"}, ""),
        ({"name": "x", "folder": "stick"}, ""),
        ({"name": "x", "github_neighborhood": "--upload-pack=x"}, ""),
        ({"name": "x", "github_neighborhood": "me/x", "auth_token_env": "a b"}, ""),
    ],
)
def test_member_way_follows_from_its_coordinates(tmp_path: Path, entry: dict[str, Any], way: str) -> None:
    found = roster(tmp_path, [], entry)["x"]
    assert found.way == way
    assert bool(found.as_json()["trouble"]) == (way == "" and "url" not in entry)


@pytest.mark.parametrize(
    "entry",
    [
        {"name": "me", "ssh_host": "localhost"},
        {"name": "me", "ssh_host": "127.0.0.1", "ssh_user": "me"},
        {"name": "me", "ssh_host": "Desk"},
        {"name": "me", "url": "https://10.0.0.1", "fingerprint": OWN, "ssh_host": "elsewhere"},
    ],
)
def test_member_that_is_this_machine_is_told(tmp_path: Path, entry: dict[str, Any]) -> None:
    assert roster(tmp_path, [], entry)["me"].is_self


async def test_entry_without_url_troubles_nobody_else(tmp_path: Path) -> None:
    path = tmp_path / "peers.json"
    path.write_text(json.dumps({"peers": [{"name": "pi", "ssh_host": "pi"}, "http://10.0.0.9:7071"]}))
    written = PeersFile(path)
    assert [entry.host for entry in await written.entries()] == ["10.0.0.9"]
    assert written.trouble == ""
    await written.check()


@pytest.mark.parametrize("whose", ["mine", "friend"])
def test_member_paired_is_read_by_its_rappd_and_a_friends_only_by_name(tmp_path: Path, whose: str) -> None:
    paired = row("pi", PI, "10.0.0.2:7443", paired=True, whose=whose)
    for entries in ([], [{"name": "pi", "url": "https://10.0.0.2:7443", "fingerprint": PI}]):
        found = roster(tmp_path, [paired], *entries)["pi"]
        assert (found.way, found.is_mine) == ("rappd", whose == "mine")
    assert roster(tmp_path, [row("pi", PI, "10.0.0.2:7443")])["pi"].way == ""


def test_find_member_by_name_or_key(tmp_path: Path) -> None:
    found = list(roster(tmp_path, [row("pi", PI), row("shed", SHED)]).values())
    assert find_member(found, "Pi").name == "pi"
    assert find_member(found, "b2b2").name == "shed"
    with pytest.raises(NoSuchMemberError):
        find_member(found, "attic")
    with pytest.raises(BadMemberError):
        find_member([*found, Member("PI")], "pi")


@pytest.mark.parametrize("content", ['{"peers":[', "[]", '{"peers": {}}'])
def test_damaged_list_says_that_none_of_its_entries_counts(tmp_path: Path, content: str) -> None:
    path = tmp_path / "peers.json"
    path.write_text(content)
    with pytest.raises(BadPeersFileError) as refused:
        read_coordinates(path)
    assert "none of its entries counts" in refused.value.do
