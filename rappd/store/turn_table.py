"""Turns that their caller named, read from the record: what was asked, what came of it, and which there are."""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from rappd.store.store import Store

MOST = 10_000
"""Turns that a list looks at, the latest."""

# A thread is found by its id as the index has it.
_ANSWERED = """SELECT e.at, t.session, (SELECT q.body FROM events AS q
        WHERE q.thread = t.number AND q.id = e.id AND q.verb = 'HELP' ORDER BY q.n LIMIT 1), e.body
    FROM events AS e JOIN threads AS t ON t.number = e.thread
    WHERE e.answers = 1 AND e.recipient = ?1 AND e.id = ?2 AND t.workspace = ?3 ORDER BY e.seq DESC LIMIT 1"""
_BEGUN = """SELECT i.at, t.session, (SELECT q.body FROM events AS q
        WHERE q.thread = t.number AND q.id = i.id AND q.verb = 'HELP' ORDER BY q.n LIMIT 1), NULL
    FROM inbox AS i JOIN threads AS t ON (substr(t.id, 25), t.id) = (substr(i.thread, 25), i.thread)
    WHERE i.sender = ?1 AND i.id = ?2 AND i.verb = 'HELP' AND i.workspace = ?3"""
_LIST = """SELECT * FROM (
        SELECT e.at AS at, e.id AS id, e.verb AS verb,
            CASE e.verb WHEN 'ERROR' THEN json_extract(CAST(e.body AS TEXT), '$.data.code') ELSE 0 END AS code
        FROM events AS e WHERE e.answers = 1 AND e.recipient = ?1 AND e.thread IN (
            SELECT number FROM threads WHERE caller = ?1 AND workspace = ?2 AND session GLOB ?3)
        UNION ALL SELECT i.at, i.id, '', 0 FROM inbox AS i
            JOIN threads AS t ON (substr(t.id, 25), t.id) = (substr(i.thread, 25), i.thread)
        WHERE i.sender = ?1 AND i.workspace = ?2 AND i.verb = 'HELP' AND t.session GLOB ?3)
    ORDER BY at DESC, id DESC LIMIT ?4"""


class RecordedTurn(NamedTuple):
    """A turn in the record. ``at``: µs since 1970, of the answer, else of the beginning.

    ``session`` is its caller's; ``asked`` and ``answer`` are records as JSON, the latter None while there is none.
    """

    at: int
    session: Any
    asked: dict[str, Any]
    answer: dict[str, Any] | None


class TurnRow(NamedTuple):
    """A turn in a list: when it changed, its id, the verb of its answer ("" without one) and an ERROR's code."""

    at: int
    id: str
    verb: str
    code: int


async def recorded_turn(store: Store, sender: str, id: str, workspace: str) -> RecordedTurn | None:
    """The turn that ``sender`` gave this id in a workspace; None where it gave it to none."""
    for statement in (_ANSWERED, _BEGUN):
        for at, session, asked, answer in await store.rows(statement, (sender, id, workspace)):
            return RecordedTurn(
                at,
                orjson.loads(session) if session is not None else None,
                orjson.loads(asked) if asked is not None else {},
                orjson.loads(answer) if answer is not None else None,
            )
    return None


async def recorded_turns(
    store: Store, sender: str, workspace: str, session: str, *, begins: bool = False
) -> list[TurnRow]:
    """Named turns of ``sender`` in a session, the latest change first; with ``begins`` in all whose names begin so.

    Looks at all threads.
    """
    text = orjson.dumps(session).decode()
    literal = "".join(f"[{one}]" if one in "*?[" else one for one in (text[:-1] if begins else text))
    rows = await store.rows(_LIST, (sender, workspace, f"{literal}*" if begins else literal, MOST))
    return [TurnRow(*row) for row in rows]
