"""Why an envelope of another machine is refused, beside what its agents and tenants say."""

from __future__ import annotations

from rappd.errors import Conflict, Refused


def not_allowed() -> Refused:
    """In the same words whether it exists or not."""
    return Refused("Not allowed.", do="Ask this machine's owner to share it.")


class WrongSender(Refused):
    """An envelope that says it is from somebody else."""

    code = "wrong_sender"


class Misdirected(Refused):
    """An envelope for another machine."""

    code = "wrong_recipient"
    status = 404


class Stranger(Refused):
    """Whoever asks is not paired, and shows nothing that allows it."""

    code = "not_paired"
    status = 401


class Looped(Refused):
    """The same question came round again."""

    code = "loop"
    status = 508


class TooDeep(Refused):
    """A question that went through too many machines."""

    code = "too_deep"
    status = 508


class Stopped(Conflict):
    """Whoever asked wants no answer any more."""

    code = "stopped"
    status = 499


class Closing(Conflict):
    """This machine stops, or starts anew."""

    code = "stopping"
    status = 503
