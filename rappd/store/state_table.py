"""The table of what listeners keep for threads (``rappd.tenants.listener_states``); rows come with records of answers."""

from __future__ import annotations

from rappd.store.store import Store
from rappd.store.write_operations import SqlStatement

_GET = "SELECT state FROM listener_states WHERE root = ? AND thread = ? AND workspace = ? AND listener = ? AND at >= ?"
_END = "DELETE FROM listener_states WHERE root = ?"
_END_UNLESS = """DELETE FROM listener_states WHERE root = ?
    AND NOT EXISTS(SELECT 1 FROM timers WHERE kind = ? AND json_extract(detail, '$.root') = ?)"""
DELAY = "delay"
"""The kind of timers that come back to a thread; ``root`` of their detail is its root."""
_END_IDLE = """DELETE FROM listener_states
    WHERE root IN (SELECT root FROM listener_states GROUP BY root HAVING max(at) < ?)"""
_COUNT = "SELECT count(*) FROM listener_states WHERE root = ?"


class StateTable:
    """All methods raise ``StoreError``. Moments are µs since 1970. A write does not wait for the disk."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def get(self, root: str, thread: str, workspace: str, listener: str, *, since: int) -> bytes | None:
        """The state that was written last; None where there is none, or none as young as ``since``."""
        await self._store.flush()
        rows = await self._store.rows(_GET, (root, thread, workspace, listener, since))
        return bytes(rows[0][0]) if rows else None

    async def count(self, root: str) -> int:
        """The number of states below a root thread."""
        await self._store.flush()
        return int((await self._store.rows(_COUNT, (root,)))[0][0])

    async def end(self, root: str) -> None:
        """Removes all states below a root thread, those of answers that were queued before included."""
        await self._store.flush()
        await self._store.change(SqlStatement(_END, (root,)), strict=False)

    async def end_unless_waited_for(self, root: str) -> None:
        """The same, unless a timer comes back to a thread below it."""
        await self._store.flush()  # a state is written behind the statements of its batch
        await self._store.change(SqlStatement(_END_UNLESS, (root, DELAY, root)), strict=False)

    async def end_idle(self, before: int) -> None:
        """Removes the states of roots of which none was written at ``before`` or later."""
        await self._store.change(SqlStatement(_END_IDLE, (before,)), strict=False)
