"""Calls to other machines in the record that were cut off: asked, and neither answered nor in the outbox."""

from __future__ import annotations

from rappd.store.store import Store

# Nothing but the question stands on the thread of such a call.
_UNANSWERED = """SELECT events.body FROM threads JOIN events ON events.thread = threads.number
    WHERE threads.caller = ? AND threads.count = 1 AND threads.session LIKE '"call %' AND threads.created > ?
    AND events.verb = 'HELP' AND NOT EXISTS (SELECT 1 FROM outbox WHERE outbox.thread = threads.id)
    ORDER BY events.seq"""


class CallTable:
    """Calls that were in flight when the daemon stopped. Raises ``StoreError``."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def unanswered(self, caller: str, since: int) -> list[bytes]:
        """The recorded HELPs of ``caller`` that were begun after a moment, the oldest first."""
        return [row[0] for row in await self._store.rows(_UNANSWERED, (caller, since))]
