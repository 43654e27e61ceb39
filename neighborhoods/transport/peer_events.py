"""Events of a connection to a peer that tell whether it is there, as the transport reports them."""

from __future__ import annotations

from typing import Protocol

from envelopes.errors import ReportableError


class PeerEvents(Protocol):
    """Takes what a connection tells about its peer, by fingerprint."""

    def on_sign_of_life(self, fingerprint: str, address: str) -> None:
        """The peer was reached, or called."""
        ...

    def on_doubt(self, fingerprint: str) -> None:
        """The peer says nothing; it should be probed."""
        ...

    def on_loss(self, fingerprint: str) -> None:
        """A connection to it ended without a goodbye."""
        ...

    def on_goodbye(self, fingerprint: str) -> None:
        """The peer said that it stops."""
        ...

    def on_failed_call(self, fingerprint: str, problem: ReportableError) -> None:
        """The peer was called, and is offline, has another key, or does not trust this machine."""
        ...
