"""Conversations of one caller: listed, searched, renamed, and taken off the list. Works on threads and on a small table.

The event log keeps everything: a title stands beside the one that a thread began with, and removing only hides.
"""

from __future__ import annotations

from typing import NamedTuple

from rappd.store.write_operations import Row, SqlStatement

SEARCH_EVENTS = 20_000
"""Events that one statement of a search looks at."""
PROGRAM_SESSION = "program:"
"""Sessions of foreign programs begin so, and then with the protocol: no session of a page or a phone does."""

_OF_PROGRAM = f"""t.session LIKE '"{PROGRAM_SESSION}%'"""
_COLUMNS = """SELECT t.id, t.workspace, t.session, coalesce(nullif(c.title, ''), t.title), t.created, t.updated, t.count,
    coalesce(c.removed, 0), CASE WHEN e.verb = 'HELP' THEN 'open'
        WHEN e.verb != 'ERROR' OR NOT json_valid(CAST(e.body AS TEXT)) THEN ''
        WHEN json_extract(CAST(e.body AS TEXT), '$.data.reason') = 'stopped' THEN 'stopped'
        WHEN e.recipient = t.caller THEN 'failed' ELSE '' END, t.caller
    FROM threads AS t LEFT JOIN conversations AS c ON c.thread = t.id
    LEFT JOIN events AS e ON e.thread = t.number AND e.n = t.count"""
# The rows are found first and completed after: sorting them with their last events would read all of those.
_FOUND = """SELECT t.number FROM threads AS t LEFT JOIN conversations AS c ON c.thread = t.id
    WHERE {whose} AND t.session IS NOT NULL AND t.title != ''
    AND (coalesce(c.removed, 0) > 0) = ? AND (t.updated, t.id) < (?, ?) ORDER BY t.updated DESC, t.id DESC LIMIT ?"""
_LIST = f"{_COLUMNS} WHERE t.number IN ({_FOUND}) ORDER BY t.updated DESC, t.id DESC"
_LIST_OF_CALLER = _LIST.format(whose=f"t.caller = ? AND NOT {_OF_PROGRAM}")
_LIST_OF_EVERYTHING = _LIST.format(whose="t.caller = ?")
_LIST_OF_PROGRAMS = _LIST.format(whose="t.session LIKE ? ESCAPE '~'")
_WHOSE = f"(t.caller = ? OR {_OF_PROGRAM})"
_OF_CALLER = f"{_WHOSE} AND t.session IS NOT NULL AND t.title != ''"
_ONE = f"{_COLUMNS} WHERE (substr(t.id, 25), t.id) = (substr(?, 25), ?) AND {_OF_CALLER}"
_TITLED = (
    f"{_COLUMNS} WHERE c.title != '' AND c.removed = 0 AND {_OF_CALLER} ORDER BY t.updated DESC LIMIT 1000"
)
_SAID = """SELECT e.seq, t.id, e.n, e.id, e.at, e.verb, e.body
    FROM events AS e JOIN threads AS t ON t.number = e.thread LEFT JOIN conversations AS c ON c.thread = t.id
    WHERE e.seq <= ? AND e.seq > ? AND (t.caller = ? OR t.session LIKE '"program:%')
    AND (e.verb = 'HELP' AND e.sender = t.caller OR e.verb = 'DONE' AND e.recipient = t.caller)
    AND coalesce(c.removed, 0) = 0"""
_LIKE = " AND CAST(e.body AS TEXT) LIKE ? ESCAPE '~'"
# Only the beginnings of turns: their ids, and which turn they follow where they say so.
_TURNS = """SELECT n, id, body -> '$.data.follows' FROM (
        SELECT e.n, e.id, CAST(e.body AS TEXT) AS body FROM threads AS t JOIN events AS e ON e.thread = t.number
        WHERE (substr(t.id, 25), t.id) = (substr(?1, 25), ?1) AND e.verb = 'HELP' AND e.sender = t.caller)
    WHERE json_valid(body) AND json_type(body, '$.data.user_input') = 'text' ORDER BY n"""
_ASKED = """SELECT e.body FROM threads AS t JOIN events AS e ON e.thread = t.number
    WHERE (substr(t.id, 25), t.id) = (substr(?1, 25), ?1) AND e.id = ?2 AND e.verb = 'HELP' ORDER BY e.n DESC LIMIT 1"""
_RENAME = """INSERT INTO conversations(thread, title, removed) VALUES(?, ?, 0)
    ON CONFLICT(thread) DO UPDATE SET title = excluded.title"""
_REMOVE = """INSERT INTO conversations(thread, title, removed) VALUES(?, '', ?)
    ON CONFLICT(thread) DO UPDATE SET removed = excluded.removed"""
_TITLES = "SELECT thread, title FROM conversations WHERE title != ''"

Query = tuple[str, Row]


class ConversationRow(NamedTuple):
    """A conversation as lists show it. Moments are µs since 1970; ``session`` is JSON text, ``caller`` whose it is.

    ``removed`` is when it was taken off the list, 0 while it is there. ``state`` is how it ended: "", "open" (without
    an answer), "stopped" or "failed".
    """

    id: str
    workspace: str
    session: str
    title: str
    created: int
    updated: int
    records: int
    removed: int
    state: str
    caller: str


class TurnStart(NamedTuple):
    """The beginning of a turn: its place in the thread, its id, and the JSON of the id of the turn that it follows."""

    n: int
    id: str
    follows: str | None


class Said(NamedTuple):
    """A recorded sentence or answer that a search looks at."""

    seq: int
    thread: str
    n: int
    id: str
    at: int
    verb: str
    body: bytes


def list_query(
    caller: str,
    *,
    removed: bool,
    limit: int,
    before: tuple[int, str] | None,
    of_programs: str = "",
    everything: bool = False,
) -> Query:
    """Conversations of a caller, the latest used first; ``before`` is (updated, id) of the last one already seen.

    ``of_programs``: those of all programs whose sessions begin so, in place of the caller's own. ``everything``: the
    caller's own, and those that programs have in its name.
    """
    moment, id = before if before is not None else (1 << 62, "")
    if of_programs:
        beginning = f'"{"".join(map(_in_pattern, of_programs))}%'
        return _LIST_OF_PROGRAMS, (beginning, int(removed), moment, id, limit)
    return _LIST_OF_EVERYTHING if everything else _LIST_OF_CALLER, (caller, int(removed), moment, id, limit)


def one_query(caller: str, thread: str) -> Query:
    """One conversation of a caller, or of a program, by its whole id; no row for those of others."""
    return _ONE, (thread, thread, caller)


def titled_query(caller: str) -> Query:
    """Conversations with a title that somebody gave them."""
    return _TITLED, (caller,)


def turns_query(thread: str) -> Query:
    """The beginnings of a thread's turns, in order."""
    return _TURNS, (thread,)


def asked_query(thread: str, turn: str) -> Query:
    """The record by which a turn of a thread began."""
    return _ASKED, (thread, turn)


def titles_query() -> Query:
    """Given titles by thread."""
    return _TITLES, ()


def said_query(caller: str, words: list[str], below: int) -> Query:
    """Rows that may hold all ``words``, among ``SEARCH_EVENTS`` events up to ``below``; the newest first.

    It finds too much rather than too little: SQLite tells upper from lower case beyond ASCII, and bodies are JSON.
    """
    patterns = [f"%{''.join(map(_in_pattern, word))}%" for word in words]
    statement = f"{_SAID}{_LIKE * len(patterns)} ORDER BY e.seq DESC"
    return statement, (below, below - SEARCH_EVENTS, caller, *patterns)


def rename(thread: str, title: str) -> SqlStatement:
    """Writes a title down; "" gives the one back that the thread began with."""
    return SqlStatement(_RENAME, (thread, title))


def remove(thread: str, at: int) -> SqlStatement:
    """Takes a conversation off the list, or puts it back with 0."""
    return SqlStatement(_REMOVE, (thread, at))


def _in_pattern(character: str) -> str:
    if character in "%_~":
        return f"~{character}"
    if character in '"\\' or character < " ":
        return "%"  # JSON writes it in more than one character
    return character if character.isascii() else "_"
