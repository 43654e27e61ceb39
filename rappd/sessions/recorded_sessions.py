"""Sessions among the threads of the event log, and the one that somebody means. Works with the daemon down."""

from __future__ import annotations

from typing import TypedDict

import msgspec
import orjson

from envelopes.envelope import thread_id
from rappd.errors import AmbiguousError, NotFoundError
from rappd.store.records import ThreadRow

SESSION_CALLER = "session"
OPENED = "opened"
"""The NOTE of a session that the owner opened again."""
_WORKSPACE = "brainstem"


class SessionView(TypedDict):
    """A session of the record; moments are µs since 1970."""

    id: str
    thread: str
    created: int
    opened: int
    updated: int
    count: int


class SessionRow(msgspec.Struct, frozen=True):
    """A session as recorded. Moments are µs since 1970; ``opened`` is when it began, or was opened again."""

    id: str
    thread: str
    created: int
    opened: int
    updated: int
    count: int

    def shown(self) -> SessionView:
        """As lists show it."""
        return {
            "id": self.id,
            "thread": self.thread,
            "created": self.created,
            "opened": self.opened,
            "updated": self.updated,
            "count": self.count,
        }


def thread_of(id: str) -> str:
    """The thread of a session."""
    return thread_id(_WORKSPACE, SESSION_CALLER, f'"{id}"')


def session_rows(threads: list[ThreadRow], opened: dict[str, int]) -> list[SessionRow]:
    """The sessions among the threads of ``SESSION_CALLER``, the one that was opened last first.

    ``opened``: moments when some were opened again, by thread.
    """
    rows = [
        SessionRow(
            str(orjson.loads(one.session)), one.id, one.created,
            max(one.created, opened.get(one.id, 0)), one.updated, one.count,
        )
        for one in threads
        if one.session
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (-row.opened, row.id))


def find_session(rows: list[SessionRow], prefix: str) -> SessionRow:
    """The session whose id, or thread, begins so; the one opened last for "". Raises ``NotFoundError``, ``AmbiguousError``."""
    if not rows:
        raise NotFoundError("There is no session yet.", do="rappd sessions open")
    if not prefix:
        return rows[0]
    wanted = prefix.strip().lower()
    found = [one for one in rows if wanted and (one.id.startswith(wanted) or one.thread.startswith(wanted))]
    if not found:
        raise NotFoundError(f'No session "{prefix[:40]}".', do="rappd sessions list")
    if len(found) > 1:
        raise AmbiguousError(f'"{prefix[:40]}" fits several sessions.', do="Type more of it.")
    return found[0]
