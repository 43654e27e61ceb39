"""Notices for the owner about other machines: answers that came late, and machines that ask to pair."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envelopes.envelope import DONE, Envelope
from neighborhoods.discovery.announcement import tame
from neighborhoods.peer_store import PeerStore
from rappd.federation.startup_state import Deferred
from rappd.notices.notices import Notices

if TYPE_CHECKING:
    from neighborhoods.durable_tables import OutgoingEnvelope
    from neighborhoods.pairing.pairing_states import PairingAttempt, PairingRow
    from neighborhoods.pairing.service import PairingService


class OwnerNotices:
    """Told once each; one of a pairing is gone when that waits for the owner no more."""

    def __init__(self, notices: Notices, peers: PeerStore, pairings: Deferred[PairingService]) -> None:
        self._notices, self._peers, self._pairings = notices, peers, pairings
        notices.keep_while("pairing", self._is_asking)

    def asking(self) -> list[PairingRow]:
        """The pairings that other machines began and that wait for this one's owner."""
        if not self._pairings.is_set:
            return []
        pairings = self._pairings.now()
        asked = [one for one in pairings.asking() if one.role == "answers" and not one.yes]
        return [one.row(pairings.now()) for one in asked if one.live]

    def late_answer(self, row: OutgoingEnvelope, reply: Envelope) -> None:
        """A call that its caller did not wait for has come to an end."""
        peer = self._peers.get(row.peer)
        end = "answered" if reply.verb == DONE else "did not answer"
        self._notices.add(
            f"{peer.name if peer else 'a machine'} {end}: {row.what}",
            f"rappd threads show {row.thread[:8]}",
            kind="answer",
            key=f"answer:{row.id}",
            subject=row.thread,
        )

    def asked_to_pair(self, session: PairingAttempt) -> None:
        """Another machine wants to pair, and the owner may not be looking."""
        name = tame(session.peer.name) if session.peer else "A machine"
        self._notices.add(
            f"{name} ({session.host}) wants to pair with this machine.",
            f"rappd peers pair {name}",
            kind="pairing",
            key=f"pairing:{session.id}",
            subject=session.id,
        )

    def _is_asking(self, session: str) -> bool:
        return self._pairings.is_set and session in {one.id for one in self._pairings.now().asking()}
