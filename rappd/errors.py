"""Errors of floor 5: what a person asked of the daemon and cannot have, and why."""

from __future__ import annotations

import errno

from envelopes.errors import ReportableError


class RappdError(ReportableError):
    """Root of this package's errors."""

    code = "rappd"


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


class HomeUnusableError(RappdError):
    """The home folder cannot be made, read or written."""

    code = "home_unusable"
    status = 500


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


class AgentFailedError(RappdError):
    """An agent ran and failed; the text is its own."""

    code = "agent"


class UnansweredError(RappdError):
    """A step of a workflow that got a text and no answer: its model or its agents failed, or none does it."""

    code = "unanswered"


class AgentInterruptedError(RappdError):
    """The worker of an agent ended in the middle of a call; it may have been done, or not."""

    code = "interrupted"


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
