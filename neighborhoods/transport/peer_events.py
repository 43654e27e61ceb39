"""Events of a connection to a peer that tell whether it is there, as the transport reports them."""

from __future__ import annotations

from typing import Protocol

from envelopes.errors import ReportableError


class PeerEvents(Protocol):
    """Takes what a connection tells about its peer, by fingerprint."""

    def on_sign_of_life(self, fingerprint: str, address: str) -> None:
        """It was reached, or called."""
        ...

    def on_doubt(self, fingerprint: str) -> None:
        """It says nothing; somebody should ``probe`` it."""
        ...

    def on_loss(self, fingerprint: str) -> None:
        """A connection to it ended without a goodbye."""
        ...

    def on_goodbye(self, fingerprint: str) -> None:
        """It said that it stops."""
        ...

    def on_failed_call(self, fingerprint: str, problem: ReportableError) -> None:
        """It was called, and is away, has another key, or does not trust this machine."""
        ...
