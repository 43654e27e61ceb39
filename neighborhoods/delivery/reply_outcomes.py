"""Applies replies to the rows that they answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from envelopes.codecs import emergence
from envelopes.envelope import ACK, DONE, ERROR, HELLO, Envelope
from neighborhoods.durable_tables import OutgoingEnvelope
from neighborhoods.errors import NotPairedError, RetriableError

NOT_NOW = (425, 429, 503)
"""Statuses of an ERROR by which a peer says that it did not take the envelope yet."""


class ReplyOutcomes(msgspec.Struct):
    """The consequences of a batch's replies for its rows, by row number.

    ``replies`` settle rows; ``later`` are rows to try again at a time (µs); ``trouble`` is the text shown for
    rows without a reply; ``unclear`` are rows refused by a 503 after an earlier try. ``distrusted`` is the
    peer's word when it does not know this machine; ``busy``: it left rows at the end of the batch.
    """

    replies: dict[int, Envelope] = {}
    later: dict[int, int] = {}
    trouble: dict[int, str] = {}
    unclear: set[int] = set()
    distrusted: str = ""
    busy: bool = False


def sort_replies(
    batch: list[OutgoingEnvelope], replies: Sequence[Envelope | None], now: int, pause: Callable[[int], float]
) -> ReplyOutcomes:
    """The replies, by their places. ``pause(tries)`` is how many seconds a row that was refused waits."""
    found = ReplyOutcomes()
    for row, reply in zip(batch, [*replies, *([None] * len(batch))], strict=False):
        number = row.number
        found.busy = False
        if reply is None or reply.id.lower() != row.id.lower() or reply.verb not in (ACK, DONE, HELLO, ERROR):
            found.later[number] = now + int(pause(row.tries + 1) * 1e6)
            found.trouble[number] = "The peer left it without a reply."
            found.busy = True
        elif reply.verb == ERROR and reply.data.get("reason") == NotPairedError.code:
            found.trouble[number] = found.distrusted = _words(reply, "The peer does not trust this machine.")
        elif reply.verb == ERROR and reply.data.get("code") in NOT_NOW:
            found.later[number] = now + int(pause(row.tries + 1) * 1e6)
            found.trouble[number] = _words(reply, "The peer is busy.")
            if row.tries and reply.data["code"] == 503:
                found.unclear.add(number)
            found.busy = True
        else:
            found.replies[number] = reply
    return found


def about_fetching(reply: Envelope) -> NotPairedError | RetriableError | None:
    """The refusal in a fetched ERROR that is about the fetching, not the recorded end of the work."""
    if reply.verb != ERROR:
        return None
    if reply.data.get("reason") == NotPairedError.code:
        return NotPairedError(_words(reply, "The peer does not trust this machine."))
    code = reply.data.get("code")
    if code in (425, 429):
        return RetriableError(_words(reply, "The peer is busy."), answered=int(code))
    return None


def refusal_for(row: OutgoingEnvelope, status: int, message: str, reason: str) -> Envelope:
    """An ERROR in the name of a peer that refused the request which carried only this row."""
    return emergence.decode(row.body, max_bytes=len(row.body)).refusal(status, message, reason)


def _words(reply: Envelope, otherwise: str) -> str:
    message = reply.data.get("msg")
    return message if isinstance(message, str) and message else otherwise
