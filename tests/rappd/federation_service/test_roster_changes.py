"""Rosters of neighborhoods follow what paired machines say of themselves, also where the disk was full at first."""

from __future__ import annotations

import asyncio
import errno
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from envelopes.identity.keys import IdentityKey
from neighborhoods.peer import FRIEND, Peer
from neighborhoods.places import place as places
from neighborhoods.places.memberships import Membership, Memberships
from neighborhoods.places.place import FOLDER, Place, place_files
from rappd.federation.roster_changes import RosterChanges
from rappd.notices.notices import Notices
from twins.workspace.rappid import Rappid, mint_rappid

PI = IdentityKey.generate()
PEER = Peer(PI.fingerprint, "pi", "friend", public_key=PI.public, certificate=b"", sealing_key="", scopes=FRIEND, paired_at=1)  # fmt: skip


@pytest.fixture
def club(tmp_path: Path) -> Rappid:
    """The rappid of a neighborhood in ``tmp_path`` that its owner joined."""
    rappid = mint_rappid("desk", "Club")
    folder = tmp_path / FOLDER / rappid.key
    for name, content in place_files(rappid, "Club", "", (), datetime.now(UTC)).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    Memberships(tmp_path).join(rappid.key, Membership(rappid.text, "Club", ""))
    return rappid


async def test_roster_that_had_no_room_follows_at_the_next_hello(
    tmp_path: Path, club: Rappid, monkeypatch: pytest.MonkeyPatch
) -> None:
    memberships, notices = Memberships(tmp_path), Notices()
    changes = RosterChanges(tmp_path, memberships, notices)

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    async def says(**data: list[str]) -> None:
        """Says HELLO once while the roster cannot be written, and twice afterwards."""
        with monkeypatch.context() as patch:
            patch.setattr(places, "write_atomically", full)
            await heard(data)
        assert notices.waiting() == [], "what is not written down is not told"
        for _ in range(2):
            await heard(data)

    async def heard(data: dict[str, list[str]]) -> None:
        if (work := changes.heard(PEER, data)) is not None:
            await work

    def members() -> list[str]:
        return [one.name for one in Place.read(tmp_path / FOLDER / club.key).members]

    await says(neighborhoods=[club.text])
    assert members() == ["pi"]
    assert [one.kind for one in notices.waiting()] == ["member"]
    await notices.dismiss_all()
    await says(left=[club.text])
    assert members() == []
    assert [one.kind for one in notices.waiting()] == ["left"]


async def test_damaged_roster_keeps_no_right_of_a_machine_that_left(tmp_path: Path, club: Rappid) -> None:
    memberships = Memberships(tmp_path)
    memberships.admit(club.key, PEER.fingerprint)
    (tmp_path / FOLDER / club.key / "members.json").write_text("{")
    work = RosterChanges(tmp_path, memberships, Notices()).heard(PEER, {"left": [club.text]})
    assert work is not None
    await work
    assert memberships.shared_with(PEER.fingerprint) == []


async def test_machine_that_leaves_before_its_joining_is_written_is_no_member(
    tmp_path: Path, club: Rappid
) -> None:
    memberships = Memberships(tmp_path)
    changes = RosterChanges(tmp_path, memberships, Notices())
    said: tuple[dict[str, list[str]], ...] = ({"neighborhoods": [club.text]}, {"left": [club.text]})
    async with asyncio.TaskGroup() as group:
        for work in [changes.heard(PEER, data) for data in said]:
            assert work is not None
            group.create_task(work)
    assert Place.read(tmp_path / FOLDER / club.key).members == ()
    assert memberships.all()[club.key].joined == ()
