"""Models that were chosen for conversations and for twins. Names alone: never an address or a key."""

from __future__ import annotations

from rappd.store.write_operations import Row, SqlStatement

_OF_CONVERSATIONS = "SELECT thread, model FROM conversations WHERE model != ''"
_OF_TWINS = "SELECT twin, model FROM twin_models"
_FOR_CONVERSATION = """INSERT INTO conversations(thread, title, removed, model) VALUES(?, '', 0, ?)
    ON CONFLICT(thread) DO UPDATE SET model = excluded.model"""
_FOR_TWIN = """INSERT INTO twin_models(twin, model) VALUES(?, ?)
    ON CONFLICT(twin) DO UPDATE SET model = excluded.model"""
_TWIN_HAS_NONE = "DELETE FROM twin_models WHERE twin = ?"

Query = tuple[str, Row]


def conversations_query() -> Query:
    """Models by thread, where one was chosen."""
    return _OF_CONVERSATIONS, ()


def twins_query() -> Query:
    """Models by twin, where one was chosen."""
    return _OF_TWINS, ()


def choose_for_conversation(thread: str, model: str) -> SqlStatement:
    """Writes a conversation's model down; "" for none of its own."""
    return SqlStatement(_FOR_CONVERSATION, (thread, model))


def choose_for_twin(twin: str, model: str) -> SqlStatement:
    """Writes a twin's model down; "" for none of its own."""
    return SqlStatement(_FOR_TWIN, (twin, model)) if model else SqlStatement(_TWIN_HAS_NONE, (twin,))
