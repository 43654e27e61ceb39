"""The outbox: envelopes that wait for peers (``neighborhoods.durable_tables.OutboxStorage``)."""

from __future__ import annotations

import orjson

from neighborhoods.durable_tables import EGG, OutboxState, OutgoingEnvelope
from rappd.store.reader import uuid_start
from rappd.store.store import Store
from rappd.store.write_operations import Row, SqlStatement

SHOWN = 1_000
"""Most rows that a prefix finds."""
FORGOTTEN_AT_ONCE = 1_000

_ROWS = """SELECT number, peer, id, verb, thread, what, body, state, tries, created_at, next_at,
    expires_at, answer, trouble FROM outbox"""

# What waits is told word for word as the indexes have it: else SQLite does not see that they serve.
_PUT = """INSERT INTO outbox(peer, id, verb, thread, what, body, state, tries, created_at, next_at,
    expires_at, answer, trouble) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)
    ON CONFLICT(peer, id, verb) DO UPDATE SET tries = tries RETURNING number"""
_MOVE = """UPDATE outbox SET state = ?, tries = coalesce(?, tries), next_at = coalesce(?, next_at),
    answer = ?, trouble = ? WHERE number IN (SELECT value FROM json_each(?))
    AND state IN ('queued', 'delivered', 'accepted')"""
_DUE = f"""{_ROWS} WHERE peer = ? AND state IN ('queued', 'delivered', 'accepted') AND state != 'accepted'
    AND next_at <= ? AND expires_at > ? AND (verb = '{EGG}') = ? ORDER BY number LIMIT ?"""
_EXPIRE = """UPDATE outbox SET state = 'expired'
    WHERE state IN ('queued', 'delivered', 'accepted') AND expires_at <= ?
    RETURNING number, peer, id, verb, thread, what, body, state, tries, created_at, next_at, expires_at,
    answer, trouble"""
# The inner parts need no more than an index, which is much smaller than the table.
_FOUND = "SELECT number FROM outbox WHERE (id >= ? AND id < ?) OR (id >= ? AND id < ?)"
_FIND = f"{_ROWS} WHERE number IN ({_FOUND}) ORDER BY number LIMIT {SHOWN}"
_KIND = f" AND (verb = '{EGG}') = ?"
_ALL = f"{_ROWS} WHERE ? IN ('', peer){{kind}} ORDER BY number LIMIT ?"
_OLDEST = """SELECT number FROM outbox WHERE ? IN ('', peer)
    AND state IN ('queued', 'delivered', 'accepted'){kind} ORDER BY +number LIMIT ?"""
_ALL_WAITING = f"{_ROWS} WHERE number IN ({_OLDEST}) ORDER BY number"
_BY_ID = f"{_ROWS} WHERE peer = ? AND id = ? ORDER BY number LIMIT 1"
_COUNT = """SELECT peer, count(*) FROM outbox
    WHERE state IN ('queued', 'delivered', 'accepted') GROUP BY peer"""
_SETTLED = """SELECT number FROM outbox
    WHERE state NOT IN ('queued', 'delivered', 'accepted') AND expires_at < ?"""
_FORGET = """DELETE FROM outbox WHERE number IN (SELECT value FROM json_each(?))
    AND state NOT IN ('queued', 'delivered', 'accepted')"""


class OutboxTable:
    """Fulfils ``neighborhoods.durable_tables.OutboxStorage``. All methods raise ``StoreError``."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def put(self, item: OutgoingEnvelope) -> int:
        """Adds one and returns its number; one with the same peer, id and verb is kept as it is."""
        values = (
            item.peer, item.id, item.verb, item.thread, item.what, item.body, item.state, item.tries,
            item.created_at, item.next_at, item.expires_at, item.answer, item.trouble,
        )  # fmt: skip
        rows = await self._store.change(SqlStatement(_PUT, values))
        number: int = rows[0][0]
        return number

    async def move(
        self,
        numbers: list[int],
        state: OutboxState,
        *,
        tries: int | None = None,
        next_at: int | None = None,
        answer: bytes = b"",
        trouble: str = "",
    ) -> None:
        """Changes rows that wait, in one statement; ``answer`` and ``trouble`` replace what was there."""
        if numbers:
            listed = orjson.dumps(numbers).decode()
            await self._store.change(SqlStatement(_MOVE, (state, tries, next_at, answer, trouble, listed)))

    async def due(self, peer: str, at: int, most: int, *, eggs: bool = False) -> list[OutgoingEnvelope]:
        """Returns what may be sent to a peer now, in order: queued or delivered, due and not expired."""
        return _outgoing(await self._store.rows(_DUE, (peer, at, at, eggs, most)))

    async def outgoing(
        self, *, waiting: bool = False, peer: str = "", most: int = 1000, eggs: bool | None = None
    ) -> list[OutgoingEnvelope]:
        """Rows of one peer or of all, all or those that wait, the oldest first; ``eggs``: these or the others."""
        kind = () if eggs is None else (eggs,)
        statement = (_ALL_WAITING if waiting else _ALL).format(kind=_KIND if kind else "")
        return _outgoing(await self._store.rows(statement, (peer, *kind, most)))

    async def find_outgoing(self, prefix: str) -> list[OutgoingEnvelope]:
        """The oldest ``SHOWN`` rows whose envelope's id begins so, as typed or as a UUID is written."""
        ends = [(start, f"{start}\U0010ffff") for start in (prefix, uuid_start(prefix))]
        return _outgoing(await self._store.rows(_FIND, (*ends[0], *ends[1])))

    async def by_id(self, peer: str, id: str) -> OutgoingEnvelope | None:
        """The row of an envelope: the first, when several verbs went out under one id."""
        rows = await self._store.rows(_BY_ID, (peer, id))
        return OutgoingEnvelope(*rows[0]) if rows else None

    async def expire(self, at: int) -> list[OutgoingEnvelope]:
        """Marks what waits and ran out of time as expired and returns those rows, the oldest first."""
        rows = await self._store.change(SqlStatement(_EXPIRE, (at,)))
        return _outgoing(sorted(rows))  # by number; a statement returns what it changed in any order

    async def peers_waiting(self) -> dict[str, int]:
        """Counts waiting rows by peer."""
        return dict(await self._store.rows(_COUNT))

    async def forget_before(self, at: int) -> int:
        """Deletes rows that nobody waits for and whose time was over then; how many.

        Looks for them beside the writer, which is held up for no more than a few at once.
        """
        numbers = [row[0] for row in await self._store.rows(_SETTLED, (at,))]
        for start in range(0, len(numbers), FORGOTTEN_AT_ONCE):
            some = orjson.dumps(numbers[start : start + FORGOTTEN_AT_ONCE]).decode()
            await self._store.change(SqlStatement(_FORGET, (some,)), strict=False)
        return len(numbers)


def _outgoing(rows: list[Row]) -> list[OutgoingEnvelope]:
    return [OutgoingEnvelope(*row) for row in rows]


# Nothing but the question stands on the thread of such a call.
_UNANSWERED = """SELECT events.body FROM threads JOIN events ON events.thread = threads.number
    WHERE threads.caller = ? AND threads.count = 1 AND threads.session LIKE '"call %' AND threads.created > ?
    AND events.verb = 'HELP' AND NOT EXISTS (SELECT 1 FROM outbox WHERE outbox.thread = threads.id)
    ORDER BY events.seq"""


_RESTORED = """SELECT events.body, events.at FROM threads JOIN events ON events.thread = threads.number
    WHERE threads.workspace = 'brainstem' AND threads.caller != ? AND threads.count = 1
    AND threads.session LIKE '"call %' AND threads.created > ? AND events.verb = 'HELP'
    AND NOT EXISTS (SELECT 1 FROM outbox WHERE outbox.thread = threads.id) ORDER BY events.seq"""


class CallTable:
    """Calls that stand unanswered in the record. Raises ``StoreError``."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def unanswered(self, caller: str, since: int) -> list[bytes]:
        """The recorded HELPs of ``caller`` that were begun after a moment, the oldest first."""
        return [row[0] for row in await self._store.rows(_UNANSWERED, (caller, since))]

    async def restored(self, caller: str, since: int) -> list[tuple[bytes, int]]:
        """Unanswered HELPs of the brainstem that another than ``caller`` made (they came with a snapshot), and when."""
        return [(row[0], row[1]) for row in await self._store.rows(_RESTORED, (caller, since))]
