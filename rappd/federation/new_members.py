"""A paired machine tells in its HELLO which neighborhoods it is a member of: rosters learn of it, and the owner."""

from __future__ import annotations

import asyncio
import logging
import shlex
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


class NewMembers:
    """Each member is reported once. A machine's own words admit nobody: the owner's invite does."""

    def __init__(self, home: Path, memberships: Memberships, notices: Notices) -> None:
        self._home, self._memberships, self._notices = home, memberships, notices

    def unheard(self, peer: Peer, data: dict[str, Any]) -> list[str]:
        """The keys of this owner's neighborhoods that a peer says it joined, and had not said before."""
        said = data.get("neighborhoods")
        told = {one for one in said[:_MOST] if isinstance(one, str)} if isinstance(said, list) else set()
        return [
            key
            for key, one in self._memberships.all().items()
            if one.rappid in told and peer.fingerprint not in one.joined
        ]

    async def enter(self, peer: Peer, keys: list[str]) -> None:
        """Writes the peer into the rosters and tells the owner."""
        for key in keys:
            try:
                place = await asyncio.to_thread(self._entered, peer, key)
            except (ReportableError, OSError) as problem:
                log.warning("%s joined a neighborhood, which could not be noted: %s", peer.name, problem)
            else:
                self._tell(peer, place)

    def _entered(self, peer: Peer, key: str) -> Place | None:
        """The neighborhood with its new member; None when that was noted before. Blocks on the disk."""
        if not self._memberships.note_joined(key, peer.fingerprint):
            return None
        place = Place.read(self._home / FOLDER / key)
        if any(one.fingerprint == peer.fingerprint for one in place.members):
            return place
        return place.with_member(
            PlaceMember("", peer.name, "member", utc(datetime.now(UTC)), peer.fingerprint)
        )

    def _tell(self, peer: Peer, place: Place | None) -> None:
        membership = self._memberships.get(place.key) if place is not None else None
        if place is None or membership is None:
            return
        name = shlex.quote(place.name)
        if peer.fingerprint in membership.admitted:
            text, do = f"{peer.name} joined {place.name}.", f"rappd neighborhood show {name}"
        else:
            text = f"{peer.name} joined {place.name} by an invite without a name; it may call nothing of yours in it."
            do = f"rappd neighborhood invite {name} --peer {peer.name}"
        self._notices.add(text, do, kind="member", key=f"member:{place.key}:{peer.fingerprint}")
