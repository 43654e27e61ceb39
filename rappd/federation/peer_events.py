"""Applies the events of connections to peers: to presence, to what waits for them, and to what their owner is told."""

from __future__ import annotations

from collections.abc import Callable

from envelopes.errors import ReportableError
from neighborhoods.discovery.presence import Presence
from neighborhoods.errors import PeerOfflineError


class PeerEventHandler:
    """Fulfils ``neighborhoods.transport.peer_events.PeerEvents``. All calls come from the event loop.

    ``presence`` gives it once it is built; ``troubles``: why a reachable peer is not used, by fingerprint.
    """

    def __init__(
        self,
        on_sign_of_life: Callable[[str, str], None],
        presence: Callable[[], Presence],
        troubles: dict[str, str],
    ) -> None:
        self._on_sign_of_life, self._presence, self._troubles = on_sign_of_life, presence, troubles

    def on_sign_of_life(self, fingerprint: str, address: str) -> None:
        """It was reached, or called."""
        self._on_sign_of_life(fingerprint, address)

    def on_doubt(self, fingerprint: str) -> None:
        """It is asked, and may take as long as any peer."""
        self._presence().hurry(fingerprint)

    def on_loss(self, fingerprint: str) -> None:
        """Its program ended, or it trusts this machine no more: asking tells."""
        self._presence().suspect(fingerprint)

    def on_goodbye(self, fingerprint: str) -> None:
        """It is away from now on."""
        self._presence().left(fingerprint)

    def on_failed_call(self, fingerprint: str, problem: ReportableError) -> None:
        """It is away; what is more than that is kept for its owner."""
        if isinstance(problem, PeerOfflineError):
            if problem.maybe_sent:  # it may work on the call still
                self._presence().suspect(fingerprint)
                return
        else:
            self._troubles[fingerprint] = str(problem)
        self._presence().left(fingerprint)
