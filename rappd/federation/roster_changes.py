"""A paired machine tells in its HELLO which neighborhoods it joined or left: rosters learn of it, and the owner."""

from __future__ import annotations

import asyncio
import logging
import shlex
from collections.abc import Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from envelopes.errors import ReportableError
from neighborhoods.peer import Peer
from neighborhoods.places.memberships import Memberships
from neighborhoods.places.place import FOLDER, Place, PlaceMember
from rappd.notices.notices import Notices
from twins.workspace.identity_file import utc

log = logging.getLogger(__name__)

_MOST = 100


class RosterChanges:
    """Each change is reported once. A machine's own words admit nobody: the owner's invite does."""

    def __init__(self, home: Path, memberships: Memberships, notices: Notices) -> None:
        self._home, self._memberships, self._notices = home, memberships, notices
        notices.keep_while("member", self._still_uninvited)
        self._lock = asyncio.Lock()  # in the order in which they were said

    def offer(self, peer: Peer) -> dict[str, Any]:
        """The part of a HELLO that tells a member what the owner left; empty when it knows."""
        left = self._memberships.left_untold(peer.fingerprint)
        return {"left": left} if left else {}

    async def offered(self, peer: Peer, offer: dict[str, Any]) -> None:
        """Notes that the peer answered a HELLO with this part."""
        if offer:
            await asyncio.to_thread(self._memberships.told_left, peer.fingerprint, offer["left"])

    def heard(self, peer: Peer, data: dict[str, Any]) -> Coroutine[Any, Any, None] | None:
        """The work that a HELLO of a peer makes; None when it says nothing new of this owner's neighborhoods."""
        joined, left = _texts(data.get("neighborhoods")), _texts(data.get("left"))
        entered, gone = [], []
        for key, one in self._memberships.all().items():
            if one.rappid in left:
                gone.append(key)  # what it said before may not be written yet: asked in its turn
            elif one.rappid in joined and peer.fingerprint not in one.joined:
                entered.append(key)
        return self._write(peer, entered, gone) if entered or gone else None

    async def _write(self, peer: Peer, entered: list[str], gone: list[str]) -> None:
        changes = [(key, self._entered, self._tell_joined) for key in entered]
        changes += [(key, self._gone, self._tell_left) for key in gone]
        async with self._lock:
            for key, write, tell in changes:
                try:
                    place = await asyncio.to_thread(write, peer, key)
                except (ReportableError, OSError) as problem:
                    log.warning("the roster of a neighborhood does not follow %s: %s", peer.name, problem)
                else:
                    if place is not None:
                        tell(peer, place)

    def _entered(self, peer: Peer, key: str) -> Place | None:
        """The neighborhood with its new member; None when that was noted before. Blocks on the disk.

        That the machine said so is noted last: where the roster cannot be written, its next HELLO is new again.
        """
        place = Place.read(self._home / FOLDER / key)
        if not any(one.fingerprint == peer.fingerprint for one in place.members):
            member = PlaceMember("", peer.name, "member", utc(datetime.now(UTC)), peer.fingerprint)
            place = place.with_member(member)
        return place if self._memberships.note_joined(key, peer.fingerprint) else None

    def _gone(self, peer: Peer, key: str) -> Place | None:
        """The neighborhood without a member; None when it was none before. Blocks on the disk.

        A roster that is damaged keeps no right alive; one that cannot be written now is tried again.
        """
        try:
            place = Place.read(self._home / FOLDER / key).without_machine(peer.fingerprint)
        except ReportableError:
            self._memberships.note_left(key, peer.fingerprint)
            raise
        return place if self._memberships.note_left(key, peer.fingerprint) else None

    def _tell_joined(self, peer: Peer, place: Place) -> None:
        membership = self._memberships.get(place.key)
        if membership is None:
            return
        name = shlex.quote(place.name)
        if peer.fingerprint in membership.admitted:
            text, do, subject = f"{peer.name} joined {place.name}.", f"rappd neighborhood show {name}", ""
        else:
            text = f"{peer.name} joined {place.name} by an invite without a name; it may call nothing of yours in it."
            do = f"rappd neighborhood invite {name} --peer {peer.name}"
            subject = f"{place.key}:{peer.fingerprint}"
        self._notices.add(text, do, kind="member", key=_key(peer, place), subject=subject)

    def _still_uninvited(self, subject: str) -> bool:
        """False once the machine was admitted or went, or the owner left: nothing is to be decided any more."""
        key, _, fingerprint = subject.rpartition(":")
        membership = self._memberships.get(key)
        return (
            membership is not None
            and fingerprint in membership.joined
            and fingerprint not in membership.admitted
        )

    def _tell_left(self, peer: Peer, place: Place) -> None:
        text = f"{peer.name} left {place.name}; it may call nothing of yours in it any more."
        do = f"rappd neighborhood show {shlex.quote(place.name)}"
        self._notices.add(text, do, kind="left", key=_key(peer, place))


def _key(peer: Peer, place: Place) -> str:
    """The key of a notice: for each machine and neighborhood the latest one stays."""
    return f"member:{place.key}:{peer.fingerprint}"


def _texts(value: object) -> set[str]:
    """The texts of a list from elsewhere, as many as are read."""
    return {one for one in value[:_MOST] if isinstance(one, str)} if isinstance(value, list) else set()
