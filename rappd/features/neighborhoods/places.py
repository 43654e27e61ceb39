"""Neighborhoods as places: created, joined, left, shown, published in and packed, for their owner."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace as dataclass_replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agents.storage.atomic_write import write_atomically
from envelopes.identity.keys import IdentityKey
from neighborhoods.errors import BadInviteError, NeighborhoodError, NoSuchNeighborhoodError
from neighborhoods.places.doors import Door, door
from neighborhoods.places.invite import LONGEST_DAYS, Invite, read_invite, write_invite
from neighborhoods.places.memberships import Membership, Memberships, Scope
from neighborhoods.places.place import (
    FOLDER,
    KIND,
    Place,
    PlaceMember,
    find_place,
    place_files,
    places,
    plain,
)
from rappd.daemon.home import Home
from rappd.errors import UsageProblemError
from rappd.features.eggs.home_eggs import HomeEggs
from rappd.features.eggs.uploaded_eggs import whole_path
from rappd.features.estate.operations import EstateOperations
from rappd.features.neighborhoods.answers import (
    Invited,
    Left,
    MemberRow,
    NeighborhoodChanged,
    NeighborhoodPacked,
    NeighborhoodRow,
    Neighborhoods,
    Published,
    WholeNeighborhood,
)
from rappd.features.operation import OWNER, Text, operation
from rappd.version import __version__
from twins.eggs.parsed_egg import Destination, ParsedEgg, Role
from twins.eggs.writers.formats import EggMaker
from twins.workspace.identity_file import utc
from twins.workspace.rappid import label, mint_rappid
from twins.workspace.workspace import Workspace

DAYS = 14
"""Days that an invite is good for, unless its writer says otherwise."""
LEFT = ".left"
"""The folder of neighborhoods that were left, beside the others."""
Peers = Mapping[str, Mapping[str, Any]]
"""The rows of paired machines, by fingerprint."""


class PlaceOperations:
    """The neighborhoods of a home. Answers are JSON objects; raises ``ReportableError``. Blocks on the disk."""

    def __init__(
        self,
        home: Home,
        host: Workspace,
        eggs: HomeEggs,
        estate: EstateOperations,
        memberships: Memberships,
        *,
        identity: Callable[[], IdentityKey],
        machine: str,
    ) -> None:
        self._home = home
        self._host = host
        self._eggs = eggs
        self._estate = estate
        self.memberships = memberships
        self._identity = identity
        self._machine = machine

    @operation("neighborhoods.list", "GET", "/neighborhoods", right=OWNER, agents="neighborhood.places")
    def listing(self) -> Neighborhoods:
        """Lists the neighborhoods that lie here, joined or not."""
        found, unreadable = places(self._home.root)
        return {
            "neighborhoods": [self._row(one) for one in found],
            "unreadable": [{"key": key, "trouble": why} for key, why in unreadable],
            "trouble": self.memberships.trouble,
        }

    def show(self, selector: str, peers: Peers) -> WholeNeighborhood:
        """One neighborhood: its roster with presence, what its members share, and what is published in it."""
        place = self._find(selector)
        membership = self.memberships.get(place.key)
        admitted = membership.admitted if membership else ()
        own = self._identity().fingerprint if membership else ""
        rows: list[MemberRow] = []
        for member in place.members:
            peer = peers.get(member.fingerprint, {}) if member.fingerprint else {}
            is_self = bool(own) and member.fingerprint == own
            rows.append(
                {
                    "rappid": member.rappid,
                    "name": member.name,
                    "role": member.role,
                    "joined_at": member.joined_at,
                    "fingerprint": member.fingerprint,
                    "capabilities": list(member.capabilities),
                    "github_login": member.github_login or None,
                    "self": is_self,
                    "peer": peer.get("name", ""),
                    "presence": "here" if is_self else peer.get("presence", ""),
                    "admitted": member.fingerprint in admitted,
                }
            )
        return {
            **self._row(place),
            "members": rows,
            "agents": place.shared_agents(),
            "published": dict(membership.published) if membership else {},
        }

    @operation("neighborhoods.create", "POST", "/neighborhoods", right=OWNER)
    def create(self, name: Text, about: str = "") -> NeighborhoodChanged:
        """Creates a neighborhood `name`, with a sentence `about` it."""
        name, about = plain(name), plain(about, 500)
        if not name or name.startswith("@"):
            raise UsageProblemError(
                "A neighborhood needs a name.", do="rappd neighborhood create 'Book club'"
            )
        known, _ = places(self._home.root)
        if any(one.name.casefold() == name.casefold() for one in known):
            raise NeighborhoodError(
                f"There is a neighborhood {name} already.",
                do="Choose another name.",
                code="neighborhood_conflict",
            )
        at = datetime.now(UTC)
        rappid = mint_rappid(self._machine, name)
        member = self._own_member("owner", at)
        folder = self._home.root / FOLDER / rappid.key
        staged = folder.with_name(f".new-{rappid.key}")
        try:
            for path, content in place_files(rappid, name, about, (member,), at).items():
                write_atomically(staged / path, content)
            (staged / "agents").mkdir(mode=0o700)
            staged.rename(folder)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
        try:
            self.memberships.join(rappid.key, Membership(rappid.text, name, utc(at)))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)  # else its name is taken when it is made again
            raise
        self._estate.note(rappid.text, "created", "created")
        return {
            "neighborhood": self._row(Place.read(folder)),
            "message": f"The neighborhood {name} is here; you are its first member.",
        }

    def invite(
        self, selector: str, *, into: str = "", days: int = DAYS, peer: Mapping[str, Any] | None = None
    ) -> Invited:
        """Writes an invite to a file. ``peer``: the row of a paired machine that is a member from now on."""
        place = self._joined(selector)
        at = datetime.now(UTC)
        if peer is not None:
            fingerprint = str(peer["fingerprint"])
            member = PlaceMember("", str(peer["name"]), "member", utc(at), fingerprint)
            known = next((one for one in place.members if one.fingerprint == fingerprint), None)
            if known is None:
                place = place.with_member(member)
            self.memberships.admit(place.key, fingerprint)
        gate = _gate(place) or Door(rappid="", type="gate")
        octets = write_invite(
            place,
            at=at,
            days=days,
            url=gate.get("repo", ""),
            metadata_url=gate.get("files", {}).get("neighborhood.json", ""),
            notes="Join with: rappd neighborhood join FILE",
        )
        target = Path(into) if into else self._target(place, at, "invite")
        if target.exists():
            raise NeighborhoodError(
                f"{target.name} exists already.", do="Name another file.", code="neighborhood_conflict"
            )
        write_atomically(target, octets)
        return {
            "invite": {"path": str(target), "neighborhood": place.name, "days": days,
                       "peer": str(peer["name"]) if peer is not None else ""},
            "message": f"The invite to {place.name} is good for {days} days: {target}",
        }  # fmt: skip

    def join(self, given: str) -> NeighborhoodChanged:
        """Joins by an invite, by a neighborhood's egg, or one that lies here already (by its name).

        Raises ``invite_expired``, ``BadInviteError``; then nothing was written.
        """
        path = Path(given)
        at = datetime.now(UTC)
        if path.is_absolute() and path.is_file():
            place, admitted = self._taken_in(path, at)
        elif path.is_absolute():
            raise NoSuchNeighborhoodError(f'No file "{path.name}".', do="rappd neighborhood list")
        else:
            place = self._find(given)
            admitted = _keys_of(place.members)
        member = self._own_member("member", at)
        known = next((one for one in place.members if one.fingerprint == member.fingerprint), None)
        if known is None:
            place = place.with_member(member)
        others = tuple(one for one in admitted if one != member.fingerprint)
        self.memberships.join(
            place.key, Membership(place.rappid.text, place.name, utc(at), others, joined=others)
        )
        self._estate.note(place.rappid.text, "member", "egg")
        members = "1 member is" if len(place.members) == 1 else f"{len(place.members)} members are"
        return {
            "neighborhood": self._row(place),
            "message": f"You are a member of {place.name}; {members} known.",
        }

    def leave(self, selector: str) -> Left:
        """Ends the membership and all that is published in it. Its files are set aside, not deleted."""
        place = self._joined(selector)
        self.memberships.leave(place.key)
        self._estate.forget(place.rappid.text)
        aside = self._home.root / FOLDER / LEFT / f"{place.key}-{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
        aside.parent.mkdir(mode=0o700, exist_ok=True)
        place.folder.rename(aside)
        return {
            "left": {"key": place.key, "name": place.name, "aside": str(aside)},
            "message": f"You left {place.name}. Nothing is published in it any more.",
        }

    def publish(self, selector: str, agent: str, scope: Scope) -> Published:
        """Publishes an agent by name: to the members, or to everybody paired, with its name for strangers."""
        place = self._joined(selector)
        self.memberships.publish(place.key, agent, scope)
        who = {
            Scope.PERSONAL: "only your own machines may call it",
            Scope.NEIGHBORHOOD: "paired members may call it",
            Scope.PUBLIC: "every paired machine may call it, and strangers read its name",
        }[scope]
        return {
            "published": {"neighborhood": place.name, "agent": agent, "scope": scope.value},
            "message": f"{agent}, in {place.name}: {who}.",
        }

    @operation("neighborhoods.pack", "POST", "/neighborhoods/{neighborhood}/pack", right=OWNER)
    def pack(
        self, neighborhood: str, into: str = "", allow: list[str] | None = None, overwrite: bool = False
    ) -> NeighborhoodPacked:
        """Packs a neighborhood's folder as an egg; `into`, `allow` and `overwrite` as of an egg."""
        from neighborhoods.places.place_egg import pack_place  # brings the archive writer along

        place = self._find(neighborhood)
        at = datetime.now(UTC)
        target = whole_path(into) if into else self._target(place, at, "neighborhood")
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        done = pack_place(
            place,
            target,
            key=self._identity(),
            maker=EggMaker(version=__version__, host=self._machine),
            at=at,
            secrets_of=self._host,
            allow=allow or (),
            overwrite=overwrite,
        )
        return {
            "packed": {
                "path": str(target),
                "kind": KIND,
                "name": place.name,
                "rappid": place.rappid.text,
                "files": done.files,
                "size": done.size,
                "sha256": done.sha256,
                "left_out": [{"path": path, "why": why} for path, why in done.left_out],
            },
            "message": f"{place.name} is packed: {target}, {done.files} files.",
        }

    def members_of(self, selector: str) -> list[str]:
        """The keys of the other machines that are members, for a call to all of them."""
        place = self._joined(selector)
        own = self._identity().fingerprint
        return [one for one in _keys_of(place.members) if one != own]

    def _taken_in(self, path: Path, at: datetime) -> tuple[Place, tuple[str, ...]]:
        """The place of an invite or egg, on the disk by the installer, and the keys that came with it."""
        from twins.eggs.readers.detect import open_egg

        with open_egg(path) as opened:
            if opened.family.kind != KIND or opened.family.tag != "brainstem-egg/2.3-neighborhood":
                raise BadInviteError(
                    f"{path.name} is {opened.family.kind} and invites to no neighborhood; nothing was joined.",
                    do=f"rappd egg inspect {path.name}",
                )
            if opened.destination is Destination.ANSWER:
                invite = read_invite(opened.manifest)
                invite.check_time(at)
                self._eggs.importer.hatch(_as_place(opened, invite, at), source=path.name)
                members = invite.members
                rappid = invite.rappid
            else:
                if opened.rappid is None:
                    raise BadInviteError(f"{path.name} names no neighborhood.", do="Get another egg.")
                self._eggs.importer.hatch(opened, source=path.name)
                rappid = opened.rappid
                members = Place.read(self._home.root / FOLDER / rappid.key).members
        return Place.read(self._home.root / FOLDER / rappid.key), _keys_of(members)

    def _row(self, place: Place) -> NeighborhoodRow:
        membership = self.memberships.get(place.key)
        return {
            "key": place.key,
            "rappid": place.rappid.text,
            "name": place.name,
            "about": place.about,
            "folder": str(place.folder),
            "joined": membership is not None,
            "joined_at": membership.joined_at if membership else "",
            "count": len(place.members),
        }

    def _find(self, selector: str) -> Place:
        return find_place(self._home.root, selector)

    def _joined(self, selector: str) -> Place:
        place = self._find(selector)
        if self.memberships.get(place.key) is None:
            raise NoSuchNeighborhoodError(
                f"You are no member of {place.name}.", do=f"rappd neighborhood join '{place.name}'"
            )
        return place

    def _own_member(self, role: str, at: datetime) -> PlaceMember:
        return PlaceMember(self._estate.owner(), self._machine, role, utc(at), self._identity().fingerprint)

    def _target(self, place: Place, at: datetime, what: str) -> Path:
        name = f"{at.strftime('%Y-%m-%dT%H-%M-%S.%fZ')}-{label(place.name, otherwise=KIND)}-{what}.egg"
        return self._home.root / "eggs" / FOLDER / name


def _as_place(opened: ParsedEgg, invite: Invite, at: datetime) -> ParsedEgg:
    """The invite as an egg of the place's own files, which the installer places like any other."""
    from twins.eggs.readers.detected_egg import part_of  # brings the archive reader along

    files = place_files(invite.rappid, invite.name, invite.about, invite.members, at)
    parts = [
        part_of(name, Role.ROSTER if name == "members.json" else Role.OTHER, name, content)
        for name, content in files.items()
    ]
    key = invite.rappid.key
    return dataclass_replace(
        opened,
        rappid=invite.rappid,
        name=invite.name,
        destination=Destination.INERT,
        key=key,
        parts=parts,
        folder=f"{FOLDER}/{key}",
        answer="",
        closing=None,
    )


def _gate(place: Place) -> Door | None:
    """The door of a place whose ``gate_repo`` says that it is published; None for another, whose name may be anybody's."""
    return door(place.rappid, kind=KIND) if place.fields.get("gate_repo") else None


def _keys_of(members: tuple[PlaceMember, ...]) -> tuple[str, ...]:
    return tuple(one.fingerprint for one in members if one.fingerprint)


__all__ = ["DAYS", "LONGEST_DAYS", "PlaceOperations"]
