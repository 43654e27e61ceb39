"""Errors of floor 5: what a person asked of the daemon and cannot have, and why."""

from __future__ import annotations

import errno
from typing import ClassVar

from envelopes.errors import Refusal, ReportableError


class RappdError(ReportableError):
    """Root of this package's errors."""

    code = "rappd"
    refusals: ClassVar = {
        "agent": Refusal(500, 1, "An agent ran and failed; the text is its own."),
        "bad_organism": Refusal(
            400, 2, "An ``organism.yaml`` that cannot be taken over; the one before stays in force."
        ),
        "cancelled": Refusal(409, 9, "The owner cancelled the download."),
        "foreign_workflow": Refusal(403, 5, "A workflow that came in an egg and was not approved."),
        "home_unusable": Refusal(500, 1, "The home folder cannot be made, read or written."),
        "interrupted": Refusal(
            500, 1, "The worker of an agent ended in the middle of a call; it may have been done, or not."
        ),
        "loop": Refusal(508, 5, "The same question came round again."),
        "missing_result": Refusal(400, 2, "Results of some calls of a turn were sent, of others not."),
        "model_server": Refusal(
            500, 1, "The model server that was tried does not answer as it should; nothing was saved."
        ),
        "no_model_calls_left": Refusal(429, 8, "Timers made all the model calls that they may make today."),
        "no_such_device": Refusal(404, 4, "A name or an id that fits no device."),
        "no_such_workflow": Refusal(404, 4, "A name that no workflow has, or a session in which none runs."),
        "not_paired": Refusal(401, 5, "The caller is not paired and has no token that allows the request."),
        "protocol_off": Refusal(404, 4, "The owner switched the protocol off."),
        "stopped": Refusal(499, 9, "The caller cancelled the request."),
        "too_deep": Refusal(508, 5, "A question that went through too many machines."),
        "too_slow": Refusal(408, 1, "A body that does not come to its end."),
        "unanswered": Refusal(
            500,
            1,
            "A step of a workflow that got a text and no answer: its model or its agents failed, or none does it.",
        ),
        "unfit": Refusal(422, 2, "A field that is there but cannot be used."),
        "unknown_thread": Refusal(
            404, 4, "A thread that the caller does not have. Nothing is made by naming it."
        ),
        "unreachable": Refusal(502, 1, "The address of an egg does not answer, or answers something else."),
        "webhook_signature": Refusal(
            401, 5, "A body whose ``X-Hub-Signature-256`` is missing, or not made with the webhook's secret."
        ),
        "wrong_recipient": Refusal(404, 5, "An envelope for another machine."),
        "wrong_sender": Refusal(403, 5, "An envelope that says it is from somebody else."),
    }


class StoreError(RappdError):
    """The record could not be written or read. Nothing that was acknowledged is lost."""

    code = "store"
    status = 503

    def __init__(self, message: str, *, do: str = "", remedy: str = "") -> None:
        """``remedy`` removes the obstacle, without the "then try again" of ``do``."""
        super().__init__(message, do=do or (remedy and f"{remedy}, then try again."))
        self.remedy = remedy


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def disk_problem(error: BaseException) -> StoreError | None:
    """The outward error for a disk that takes no more; None for any other failure."""
    if not isinstance(error, OSError):
        return None
    if error.errno in _FULL:
        return StoreError(
            "The disk is full; this could not be written down.",
            remedy="Free some space where rappd's home lies",
        )
    if error.errno == errno.EROFS:
        return StoreError("The disk cannot be written to; nothing was changed.", do="rappd doctor")
    return None


class UsageProblemError(RappdError):
    """The request is not one: an unknown word, a missing or malformed value."""

    code = "mistyped"
    status = 400
    exit_code = 2


class TooManyCallsError(RappdError):
    """Calls inside one another, or payloads of one answer, beyond their number."""

    code = "too_many_calls"
    status = 508


class FailedAnswerError(ReportableError):
    """The agent answered that it failed; the text is its own, and ``rows`` are the call and its answer."""

    code = "agent"

    def __init__(self, what: str, *, do: str, **rows: dict[str, object]) -> None:
        super().__init__(what, do=do)
        self._rows = rows

    def as_json(self) -> dict[str, object]:
        return {**self._rows, **super().as_json()}


class AmbiguousError(UsageProblemError):
    """A shortened name or id that fits more than one thing."""

    code = "ambiguous"


class NotRunningError(RappdError):
    """No daemon answers at this home's control socket."""

    code = "not_running"
    status = 503
    exit_code = 3


class NotFoundError(RappdError):
    """No such thing."""

    code = "not_found"
    status = 404
    exit_code = 4


class RefusedError(RappdError):
    """Understood, and not allowed."""

    code = "refused"
    status = 403
    exit_code = 5


class ConfirmationNeededError(RappdError):
    """Needs a person's yes (``--yes`` where nobody can be asked)."""

    code = "needs_yes"
    status = 409
    exit_code = 6


class NotReadyError(RappdError):
    """Queued, timed out or expired: not done, and not failed for good."""

    code = "not_yet"
    status = 504
    exit_code = 8


class ConflictError(RappdError):
    """The thing is not in the state that the request takes for granted."""

    code = "conflict"
    status = 409
    exit_code = 9
