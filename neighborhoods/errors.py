"""Errors of floor 4: another machine that is unknown, away, not trusted, or says no."""

from __future__ import annotations

from envelopes.errors import ReportableError


class NeighborhoodError(ReportableError):
    """Root of this package's errors."""

    code = "neighborhood"


class NoSuchPeerError(NeighborhoodError):
    """No peer, and nothing found, goes by that name."""

    code = "no_peer"
    status = 404
    exit_code = 4


class NotPairedError(NeighborhoodError):
    """The other machine is not trusted here, or does not trust this one."""

    code = "not_paired"
    status = 401
    exit_code = 5


class NotTrustedThereError(NotPairedError):
    """A peer trusts this machine no more. At its owner's own listener that is no missing sign-in."""

    status = 403


class PeerOfflineError(NeighborhoodError):
    """No way that is known leads to it now. ``maybe_sent``: it may have got what was sent all the same."""

    code = "away"
    status = 504
    exit_code = 8

    def __init__(self, message: str, *, do: str = "", maybe_sent: bool = False) -> None:
        super().__init__(message, do=do)
        self.maybe_sent = maybe_sent


class KeyChangedError(NeighborhoodError):
    """Another key answers where a trusted one was. Nothing was sent."""

    code = "key_changed"
    status = 403
    exit_code = 5


class PeerRefusedError(NeighborhoodError):
    """The other machine understood, and said no."""

    code = "peer_refused"
    status = 403
    exit_code = 5


class PeerFailedError(NeighborhoodError):
    """The other machine took the work and could not do it."""

    code = "peer_failed"
    status = 502
    exit_code = 1


class PairingStoppedError(NeighborhoodError):
    """A pairing ended without trust: the words differ, somebody said no, or time ran out."""

    code = "pairing_stopped"
    status = 409
    exit_code = 5


class PeerConflictError(NeighborhoodError):
    """A name is taken, or a peer is not in the state that the request takes for granted."""

    code = "peer_conflict"
    status = 409
    exit_code = 9


class BadPeersFileError(NeighborhoodError):
    """``peers.json`` or ``BRAINSTEM_PEERS`` holds something that is no address."""

    code = "bad_peers_file"
    status = 400
    exit_code = 5


class UsedUpError(NeighborhoodError):
    """A permission that may be used a number of times was used that often."""

    code = "used_up"
    status = 403
    exit_code = 5
