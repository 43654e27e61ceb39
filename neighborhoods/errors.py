"""Errors of this layer: another machine that is unknown, away or not trusted, a pairing or a delivery that fails."""

from __future__ import annotations

from typing import ClassVar

from envelopes.errors import Refusal, ReportableError


class NeighborhoodError(ReportableError):
    """Root of this package's errors."""

    code = "neighborhood"
    refusals: ClassVar = {
        "bad_snapshot_name": Refusal(
            400,
            2,
            "A name that no snapshot can have: its file is called like it. Nothing was read or written.",
        ),
        "drill_failed": Refusal(500, 1, "A scheduled snapshot was taken and cannot be restored."),
        "invite_expired": Refusal(
            410, 8, "An invite after its last moment, or before its first. Nothing was joined."
        ),
        "neighborhood_conflict": Refusal(409, 9, "The name is taken, or means more than one."),
        "no_such_snapshot": Refusal(404, 4, "No snapshot of that name, and no file of that path."),
        "not_a_snapshot": Refusal(400, 5, "An egg that holds no neighborhood."),
        "not_in_outbox": Refusal(404, 4, "Nothing in the outbox goes by that id."),
        "not_paired": Refusal(
            403,
            5,
            "A peer trusts this machine no more. At its owner's own listener that is no missing sign-in.",
        ),
        "pairing_busy": Refusal(429, 8, "As many are asking as this machine keeps at a time."),
        "partial_snapshot": Refusal(502, 7, "A scheduled snapshot was taken and lacks a machine or a twin."),
        "used_up": Refusal(403, 5, "A permission that may be used a number of times was used that often."),
    }


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


class BadStepError(NeighborhoodError):
    """A body that is no step of a pairing, or comes out of turn."""

    code = "bad_pairing"
    status = 400
    exit_code = 5


class NoSuchPairingError(NeighborhoodError):
    """No attempt of that id is known here, or no code is shown."""

    code = "no_pairing"
    status = 404
    exit_code = 4


class RetriableError(NeighborhoodError):
    """The peer, or something before it, said "not now".

    ``answered`` is the HTTP status, ``retry_after`` the seconds it asked for, if any.
    """

    code = "not_now"
    status = 503
    exit_code = 8

    def __init__(self, message: str, *, answered: int, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.answered = answered
        self.retry_after = retry_after


class DeclinedError(PeerRefusedError):
    """The peer said no to the request as a whole. ``answered`` is the HTTP status, ``reason`` its slug."""

    def __init__(self, message: str, *, answered: int, reason: str = "", do: str = "") -> None:
        super().__init__(message, do=do)
        self.answered = answered
        self.reason = reason


class OutboxConflictError(PeerConflictError):
    """An id that means more than one, or something that is over already."""

    code = "outbox_conflict"


class MemberError(NeighborhoodError):
    """A member of the neighborhood could not be read or written. The text names it and the cause."""

    code = "member"
    status = 502
    exit_code = 1


class UnstableMemberError(MemberError):
    """Files changed there each time while they were read."""

    code = "unstable_member"
    status = 409
    exit_code = 9


class BadMemberStreamError(MemberError):
    """A stream from a member that holds no files, is damaged, or was cut off; nothing of it is kept."""

    code = "bad_member_stream"
    exit_code = 5


class MemberTooLargeError(MemberError):
    """More bytes, files or seconds than one stream may have; nothing of it is kept."""

    code = "member_too_large"
    status = 413
    exit_code = 5


class MemberUnreachableError(MemberError):
    """A member does not answer now, or the connection to it broke."""

    code = "member_unreachable"
    status = 504
    exit_code = 8


class MemberRefusedError(MemberError):
    """A member does not let this machine in, another key answers there, or it takes nothing from here."""

    code = "member_refused"
    status = 403
    exit_code = 5


class MemberDiskFullError(MemberError):
    """No room there for what was to be written; the twin there is as it was."""

    code = "member_disk_full"
    status = 507


class MemberBusyError(MemberError):
    """A member is being read by this machine as often as it allows at the same time."""

    code = "member_busy"
    status = 429
    exit_code = 8


class NoSuchMemberError(MemberError):
    """No member goes by that name, or it has no twin of that hash."""

    code = "no_such_member"
    status = 404
    exit_code = 4


class BadMemberError(MemberError):
    """A name, an address or a path of a member that cannot be used."""

    code = "bad_member"
    status = 400
    exit_code = 2


class BadEstateError(NeighborhoodError):
    """An ``estate.json`` that is damaged, or an entry that cannot be in one."""

    code = "bad_estate"
    status = 400
    exit_code = 5


class NotInEstateError(NeighborhoodError):
    """The estate has no such entry."""

    code = "not_in_estate"
    status = 404
    exit_code = 4


class BadNeighborhoodError(NeighborhoodError):
    """A neighborhood's file that is damaged, or a value that cannot be in one."""

    code = "bad_neighborhood"
    status = 400
    exit_code = 5


class NoSuchNeighborhoodError(NeighborhoodError):
    """No neighborhood goes by that name here."""

    code = "no_neighborhood"
    status = 404
    exit_code = 4


class BadInviteError(NeighborhoodError):
    """A file that invites to no neighborhood."""

    code = "bad_invite"
    status = 400
    exit_code = 5


class SnapshotRunningError(NeighborhoodError):
    """Another snapshot, or restore, of this home is under way; nothing was touched."""

    code = "snapshot_running"
    status = 409
    exit_code = 9


class DrillUntriedError(NeighborhoodError):
    """A snapshot that was not tried, because this machine's disk has no room for it. Nothing is known of it."""

    code = "drill_untried"
    status = 507
    exit_code = 1
