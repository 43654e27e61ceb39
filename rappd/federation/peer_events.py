"""Applies the events of connections to peers: to presence, to what waits for them, and to what their owner is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envelopes.problem import ReportableError
from neighborhoods.errors import PeerOfflineError

if TYPE_CHECKING:
    from rappd.federation.components import FederationComponents


class PeerEventHandler:
    """Fulfils ``neighborhoods.transport.peer_events.PeerEvents``. All calls come from the event loop."""

    def __init__(self, m: FederationComponents) -> None:
        self._m = m

    def on_sign_of_life(self, fingerprint: str, address: str) -> None:
        """It was reached, or called."""
        self._m.on_sign_of_life(fingerprint, address)

    def on_doubt(self, fingerprint: str) -> None:
        """It is asked, and may take as long as any peer."""
        self._m.presence.hurry(fingerprint)

    def on_loss(self, fingerprint: str) -> None:
        """Its program ended, or it trusts this machine no more: asking tells."""
        self._m.presence.suspect(fingerprint)

    def on_goodbye(self, fingerprint: str) -> None:
        """It is away from now on."""
        self._m.presence.left(fingerprint)

    def on_failed_call(self, fingerprint: str, problem: ReportableError) -> None:
        """It is away; what is more than that is kept for its owner."""
        if isinstance(problem, PeerOfflineError):
            if problem.maybe_sent:  # it may work on the call still
                self._m.presence.suspect(fingerprint)
                return
        else:
            self._m.troubles[fingerprint] = str(problem)
        self._m.presence.left(fingerprint)
