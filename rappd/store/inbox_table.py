"""The table of claimed envelopes: each is handled once."""

from __future__ import annotations

from typing import NamedTuple

import orjson

from rappd.store.store import Store
from rappd.store.write_operations import CLAIM_STATE, ClaimState, InboxClaim, InboxState, Row, SqlStatement

DONE_KEPT_SECONDS = 8 * 86_400
"""Seconds for which a repeated request gets its recorded reply: longer than any outbox keeps it."""
FORGOTTEN_AT_ONCE = 1_000

# Without a body of its own, the envelope is what was recorded of it on its thread.
_UNFINISHED = """SELECT sender, id, verb, state, workspace, thread, length(body) > 0, CASE WHEN length(body) THEN body ELSE
    coalesce((SELECT body FROM events WHERE thread = (SELECT number FROM threads
            WHERE substr(threads.id, 25) = substr(inbox.thread, 25) AND threads.id = inbox.thread)
        AND id = inbox.id AND verb = inbox.verb ORDER BY n LIMIT 1), x'') END, at
    FROM inbox WHERE state != 'done' AND workspace != 'timer' ORDER BY at, id"""
_OLD = "SELECT sender, id, verb FROM inbox WHERE state = 'done' AND at < ?"
_FORGET = """DELETE FROM inbox WHERE (sender, id, verb) IN
    (SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?)) AND state = 'done' AND at < ?"""

_BEGINNING = """SELECT id FROM (SELECT id, at FROM inbox WHERE sender = ?1 AND id >= ?2 AND id < ?3 AND verb = 'HELP'
    UNION ALL SELECT id, at FROM events WHERE answers = 1 AND recipient = ?1 AND id >= ?2 AND id < ?3)
    WHERE at >= ?4 ORDER BY at DESC LIMIT 1"""


def latest_of_beginning(sender: str, beginning: str, since: int) -> tuple[str, Row]:
    """The query for the id of ``sender``'s latest HELP that begins so: claimed, or answered, since that moment (µs)."""
    return _BEGINNING, (sender, beginning, f"{beginning}~", since)


class Unfinished(NamedTuple):
    """A claimed envelope without a reply; ``body`` is the envelope, empty when it is not known.

    ``as_it_came``: else it is as the record has it, on a thread of this machine.
    """

    sender: str
    id: str
    verb: str
    state: InboxState
    workspace: str
    thread: str
    as_it_came: bool
    body: bytes
    at: int


class InboxTable:
    """Envelopes from other machines. ``Store.start_claimed`` and ``Store.commit_reply`` continue. Raises ``StoreError``."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def claim(self, item: InboxClaim) -> ClaimState | None:
        """Returns None when it is new and now on the disk with its records, else its state."""
        return await self._store.claim(item)

    async def find(self, sender: str, id: str, verb: str) -> ClaimState | None:
        """Returns the state of an envelope; None when it never came, or was deleted."""
        rows = await self._store.rows(CLAIM_STATE, (sender, id, verb))
        return ClaimState(*rows[0]) if rows else None

    async def unfinished(self) -> list[Unfinished]:
        """Returns accepted and started envelopes of other machines in the order of arrival."""
        return [Unfinished(*row) for row in await self._store.rows(_UNFINISHED)]

    async def forget_before(self, at: int) -> int:
        """Deletes what is done without an answer in the record, and came before that moment; how many.

        A repeat of it is new again.

        Looks for them beside the writer, which is held up for no more than a few at once.
        """
        keys = await self._store.rows(_OLD, (at,))
        for start in range(0, len(keys), FORGOTTEN_AT_ONCE):
            some = orjson.dumps(keys[start : start + FORGOTTEN_AT_ONCE]).decode()
            await self._store.change(SqlStatement(_FORGET, (some, at)), strict=False)
        return len(keys)
