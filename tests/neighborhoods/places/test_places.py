"""A neighborhood's folder, its egg, its invite, and who may call what is published in it."""

from __future__ import annotations

import json
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fixtures.refusals import refused
from hypothesis import given, settings
from hypothesis import strategies as st

from envelopes.errors import BadCapabilityError
from envelopes.identity.capabilities import covers
from envelopes.identity.keys import IdentityKey
from neighborhoods.errors import BadInviteError, BadNeighborhoodError
from neighborhoods.places.invite import read_invite, write_invite
from neighborhoods.places.memberships import Membership, Memberships, Scope
from neighborhoods.places.place import Place, PlaceMember, place_files, places
from neighborhoods.places.place_egg import pack_place
from twins.eggs.readers.detect import open_egg
from twins.eggs.writers.formats import EggMaker
from twins.installer.installer import Installer
from twins.trust.quarantine import QuarantineList
from twins.trust.signers import Signers
from twins.workspace.rappid import Rappid

AT = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
CLUB = Rappid.parse(f"rappid:@ada/club:{'0d51' + 'a' * 60}")
PI, SHED, STRANGER = "1" * 64, "2" * 64, "3" * 64
KEY = IdentityKey.generate()
MAKER = EggMaker(version="0", host="desk")


def make_place(home: Path, *members: PlaceMember, name: str = "Club") -> Place:
    folder = home / "neighborhoods" / CLUB.key
    for path, content in place_files(CLUB, name, "We read.", members, AT).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return Place.read(folder)


def installer(home: Path) -> Installer:
    home.mkdir(exist_ok=True)
    held = QuarantineList(home / "held.json", home)
    return Installer(
        home,
        quarantine=held,
        signers=Signers(home / "signers.json"),
        fingerprint=IdentityKey.generate().fingerprint,
    )


names = st.from_regex(r"[a-z][a-z0-9_]{0,10}", fullmatch=True)
shared = st.dictionaries(
    st.one_of(
        st.builds("agents/{}_agent.py".format, names),
        st.builds("rapplications/{0}/{0}.json".format, names),
        st.builds("ses/{}.json".format, names),
    ),
    st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "Zs")), max_size=60).map(str.encode),
    max_size=6,
)


@settings(max_examples=25, deadline=None)
@given(shared)
def test_packed_place_hatches_to_the_same_files(files: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        there = Path(folder) / "there"
        place = make_place(Path(folder) / "here", PlaceMember(CLUB.text, "desk", fingerprint=PI))
        for path, content in files.items():
            (place.folder / path).parent.mkdir(exist_ok=True, parents=True)
            (place.folder / path).write_bytes(content)
        packed = pack_place(place, Path(folder) / "club.egg", key=KEY, maker=MAKER, at=AT)
        with open_egg(packed.path) as opened:
            assert opened.seal.whole
            installer(there).hatch(opened)
        found = Place.read(there / "neighborhoods" / CLUB.key)
        for path in [*files, "rappid.json", "members.json", "neighborhood.json"]:
            assert (found.folder / path).read_bytes() == (place.folder / path).read_bytes()
        assert found.members == place.members


def test_packed_place_leaves_secrets_behind(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    for name in ("private-estate-secret", "private-estate-map.json", ".env", "ses/mail.key"):
        (place.folder / name).parent.mkdir(exist_ok=True)
        (place.folder / name).write_text("s3cret")
    (place.folder / "agents").mkdir()
    (place.folder / "agents" / "linked_agent.py").symlink_to("/etc/passwd")
    packed = pack_place(place, tmp_path / "club.egg", key=KEY, maker=MAKER, at=AT)
    with open_egg(packed.path) as opened:
        travelled = {part.name for part in opened.parts}
    assert travelled.isdisjoint({"private-estate-secret", ".env", "ses/mail.key", "agents/linked_agent.py"})
    assert len(packed.left_out) == 5


def invite_of(place: Place, **changed: Any) -> dict[str, Any]:
    return {**json.loads(write_invite(place, at=AT, days=14, url="", metadata_url="")), **changed}


def test_invite_brings_the_roster(tmp_path: Path) -> None:
    place = make_place(tmp_path, PlaceMember(CLUB.text, "desk", "owner", fingerprint=PI))
    invite = read_invite(invite_of(place))
    invite.check_time(AT + timedelta(days=13))
    assert (invite.rappid, invite.name, invite.members) == (CLUB, "Club", place.members)


def test_expired_invite_is_refused(tmp_path: Path) -> None:
    invite = read_invite(invite_of(make_place(tmp_path)))
    with refused("invite_expired", match="expired on 2026-12-04"):
        invite.check_time(AT + timedelta(days=15))


@pytest.mark.parametrize(
    "changed",
    [
        {"type": "session"},
        {"type": None},
        {"schema": "brainstem-egg/2.3-estate"},
        {"rappid": "../../../etc/passwd"},
        {"rappid": 7},
        {"invite_expires_at": 7},
        {"_x_members": {"schema": "rapp-neighborhood-members/1.0", "members": [{"rappid": "../x"}]}},
        {"_x_members": {"schema": "rapp-neighborhood-members/1.0", "members": [{"fingerprint": "short"}]}},
        {"_x_members": {"schema": "other", "members": []}},
    ],
)
def test_bad_invite_is_refused(tmp_path: Path, changed: dict[str, Any]) -> None:
    with pytest.raises(BadInviteError):
        read_invite(invite_of(make_place(tmp_path), **changed))


def test_invite_whose_end_is_no_moment_is_refused(tmp_path: Path) -> None:
    invite = read_invite(invite_of(make_place(tmp_path), invite_expires_at="never"))
    with pytest.raises(BadInviteError, match="no moment"):
        invite.check_time(AT)


def test_hostile_names_in_an_invite_never_reach_the_screen(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    invite = read_invite(invite_of(place, display_name="\x1b[2Jclub\n", soul_summary="a\x07b"))
    assert (invite.name, invite.about) == ("club", "")  # the rappid's own label


def test_damaged_place_is_told_and_others_are_listed(tmp_path: Path) -> None:
    make_place(tmp_path)
    bad = tmp_path / "neighborhoods" / ("b" * 64)
    bad.mkdir()
    (bad / "rappid.json").write_text(json.dumps({"rappid": f"rappid:@a/b:{'b' * 64}"}))
    (bad / "neighborhood.json").write_text("{")
    (tmp_path / "neighborhoods" / "snapshot").mkdir()
    found, unreadable = places(tmp_path)
    assert [one.name for one in found] == ["Club"]
    assert [key for key, _ in unreadable] == ["b" * 64]


def may(memberships: Memberships, fingerprint: str, agent: str) -> bool:
    return covers(memberships.capabilities(fingerprint), f"HELP.brainstem.{agent}")


def test_scopes_allow_members_everybody_or_nobody(tmp_path: Path) -> None:
    memberships = Memberships(tmp_path)
    memberships.join(CLUB.key, Membership(CLUB.text, "Club", "", (PI,)))
    memberships.publish(CLUB.key, "Clock", Scope.NEIGHBORHOOD)
    memberships.publish(CLUB.key, "Weather", Scope.PUBLIC)
    assert [may(memberships, one, "Clock") for one in (PI, SHED)] == [True, False]
    assert [may(memberships, one, "Weather") for one in (PI, SHED)] == [True, True]
    assert not may(memberships, PI, "Mail")
    assert memberships.public() == ["Weather"]
    again = Memberships(tmp_path)
    assert again.capabilities(PI) == memberships.capabilities(PI)
    again.publish(CLUB.key, "Weather", Scope.PERSONAL)
    assert not may(again, SHED, "Weather")
    again.leave(CLUB.key)
    assert again.capabilities(PI) == ()


def test_member_that_comes_back_is_not_told_of_as_gone(tmp_path: Path) -> None:
    memberships = Memberships(tmp_path)
    joined = Membership(CLUB.text, "Club", "", (PI,))
    memberships.join(CLUB.key, joined)
    memberships.leave(CLUB.key)
    assert memberships.left_untold(PI) == [CLUB.text]
    memberships.join(CLUB.key, joined)
    assert memberships.left_untold(PI) == []
    assert Memberships(tmp_path).left_untold(PI) == []
    assert memberships.note_joined(CLUB.key, SHED)
    assert memberships.note_left(CLUB.key, SHED)
    assert not memberships.note_left(CLUB.key, SHED), "told once"
    assert memberships.note_joined(CLUB.key, SHED), "it came back"
    assert (memberships.note_left(CLUB.key, PI), memberships.shared_with(PI)) == (True, [])


def test_agent_name_is_never_a_pattern(tmp_path: Path) -> None:
    memberships = Memberships(tmp_path)
    memberships.join(CLUB.key, Membership(CLUB.text, "Club", "", (PI,)))
    for name in ("*", "Clock.*", "", "a/b"):
        with pytest.raises(BadCapabilityError):
            memberships.publish(CLUB.key, name, Scope.PUBLIC)
    assert memberships.capabilities(PI) == ()


def test_damaged_memberships_publish_nothing_and_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "memberships.json"
    path.write_text(
        '{"schema": "rappd-memberships/1.0", "memberships": {"x": {"published": {"Clock": "all"}}}}'
    )
    before = path.read_bytes()
    memberships = Memberships(tmp_path)
    assert memberships.capabilities(PI) == ()
    assert "damaged" in memberships.trouble
    with pytest.raises(BadNeighborhoodError, match="damaged"):
        memberships.join(CLUB.key, Membership(CLUB.text, "Club", ""))
    assert path.read_bytes() == before
