"""Memories as their owner sees them: listed, searched, added, corrected and deleted in the files that agents write."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple, TypedDict

import orjson

from agents.errors import AgentError
from agents.storage import json_store
from agents.storage.memory import USER_FOLDER, Partition, partition
from agents.storage.paths import Parts
from agents.storage.safe_fs import SafeTree

LONGEST_TEXT = 20_000
_VERSION_LENGTH = 16
_EDITABLE = ("message", "theme", "tags")


class MemoryRow(TypedDict):
    """A memory as screens get it; ``version`` is what a change of it has to name."""

    key: str
    message: str
    theme: str
    tags: list[str]
    date: str
    time: str
    importance: int | None
    version: str


class MemoryChangedError(AgentError):
    """A memory that was changed since it was read; nothing was written. ``memory`` is how it is now."""

    code = "memory_changed"
    status = 409
    exit_code = 9

    def __init__(self, memory: MemoryRow) -> None:
        super().__init__("This memory has changed meanwhile.", do="Look at it again, then decide.")
        self.memory = memory

    def as_json(self) -> dict[str, Any]:
        return {**super().as_json(), "memory": self.memory}


class MemoriesUnreadableError(AgentError):
    """A memory file that the disk does not give, or that holds no memories."""

    code = "memories_unreadable"


class MemoriesPage(NamedTuple):
    """``total`` memories of a person, ``found`` of them with the words searched for, and a part of these."""

    memories: list[MemoryRow]
    found: int
    total: int


class MemoryStore:
    """The memories of one workspace. Every change happens under the lock that agents write under.

    ``folder`` is the data directory, beneath the root of ``files``. Methods block on the disk. They raise
    ``MemoriesUnreadableError``, and for a ``guid`` that is none ``ValueError``.
    """

    def __init__(self, files: SafeTree, folder: Parts) -> None:
        self._files = files
        self._folder = folder

    def people(self) -> list[tuple[str, int]]:
        """(GUID, number of memories) of everybody who has a memory file; "" is the shared one, always first."""
        return [(guid, self._count(guid)) for guid in ("", *self.guids())]

    def guids(self) -> list[str]:
        """GUIDs of those who have a memory file of their own."""
        names = self._files.names((*self._folder, *USER_FOLDER.split("/")))
        return [name for name in names if partition(name).guid and self._exists(partition(name))]

    def search(self, guid: str = "", query: str = "", offset: int = 0, limit: int = 200) -> MemoriesPage:
        """Memories with every word of ``query``, newest first."""
        memories = [_shown(key, value) for key, value in self._read(_whose(guid)).items()]
        memories.reverse()  # of two in the same second, the one stored later
        memories.sort(key=lambda one: (one["date"], one["time"]), reverse=True)
        words = query.casefold().split()
        found = [one for one in memories if _mentions(one, words)]
        return MemoriesPage(found[offset : offset + limit], len(found), len(memories))

    def add(self, guid: str, fields: Mapping[str, Any], at: datetime) -> MemoryRow:
        """Stores a new memory, as the agent that remembers does. ``message`` is among ``fields``."""
        value = {
            "conversation_id": guid or "current",
            "session_id": "current",
            "message": fields["message"],
            "mood": "neutral",
            "theme": fields.get("theme", "fact"),
            "date": at.strftime("%Y-%m-%d"),
            "time": at.strftime("%H:%M:%S"),
            "tags": list(fields.get("tags", [])),
        }
        key = str(uuid.uuid4())

        def put(memories: dict[str, Any]) -> None:
            memories[key] = value

        self._locked(_whose(guid), put)
        return _shown(key, value)

    def change(self, guid: str, key: str, version: str, fields: Mapping[str, Any]) -> MemoryRow:
        """Sets ``message``, ``theme`` or ``tags`` of the memory that still is ``version``.

        Raises ``no_such_memory``, ``MemoryChangedError``.
        """

        def correct(value: Any) -> Any:
            present = value if isinstance(value, dict) else {"message": str(value)}
            return {**present, **{name: fields[name] for name in _EDITABLE if name in fields}}

        return _shown(key, self._update(guid, key, version, correct))

    def remove(self, guid: str, key: str, version: str) -> Any:
        """Deletes the memory that still is ``version``; returns it as it was stored, for ``put_back``.

        Raises ``no_such_memory``, ``MemoryChangedError``.
        """
        return self._update(guid, key, version, None)

    def put_back(self, guid: str, key: str, value: Any) -> MemoryRow:
        """Stores a deleted memory again. Raises ``MemoryChangedError`` when its place is taken."""
        where = _whose(guid)
        if not self._exists(where):
            raise _gone()

        def put(memories: dict[str, Any]) -> None:
            if key in memories:
                raise MemoryChangedError(_shown(key, memories[key]))
            memories[key] = value

        self._locked(where, put)
        return _shown(key, value)

    def _update(self, guid: str, key: str, version: str, correct: Any) -> Any:
        """The memory as it was stored: the new one, or the deleted one where nothing corrects it."""
        where = _whose(guid)
        if not self._exists(where):  # locking a file that is not there would make its folder
            raise _gone()
        result: list[Any] = []

        def apply(memories: dict[str, Any]) -> None:
            if key not in memories:
                raise _gone()
            value = memories[key]
            if _version(value) != version:
                raise MemoryChangedError(_shown(key, value))
            if correct is None:
                result.append(memories.pop(key))
            else:
                memories[key] = correct(value)
                result.append(memories[key])

        self._locked(where, apply)
        return result[0]

    def _locked(self, where: Partition, change: Any) -> None:
        try:
            json_store.update(self._files, self._parts(where), change, objects_only=True)
        except OSError as error:
            raise _unreadable(where, error.strerror or str(error)) from error

    def _read(self, where: Partition) -> dict[str, Any]:
        try:
            content = self._files.read(self._parts(where), max_bytes=None)
            value = json_store.decode(content) if content.strip() else {}
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise _unreadable(where, error.strerror or str(error)) from error
        except ValueError as error:
            raise _unreadable(where, "it is damaged") from error
        if not isinstance(value, dict):
            raise _unreadable(where, "it holds no list of memories")
        return value

    def _count(self, guid: str) -> int:
        try:
            return len(self._read(_whose(guid)))
        except MemoriesUnreadableError:
            return 0  # reading that person's memories says why

    def _exists(self, where: Partition) -> bool:
        return self._files.is_file(self._parts(where))

    def _parts(self, where: Partition) -> Parts:
        return (*self._folder, *where.parts)


def checked_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of ``change`` in ``fields``, checked. Raises ``ValueError`` with a sentence for people."""
    found: dict[str, Any] = {}
    for name in ("message", "theme"):
        if name in fields:
            text = fields[name]
            if not isinstance(text, str) or not text.strip():
                raise ValueError(f"{name} must be a text that is not empty")
            if len(text) > LONGEST_TEXT:
                raise ValueError(f"{name} has {len(text)} characters; {LONGEST_TEXT} are allowed")
            found[name] = text.strip()
    if "tags" in fields:
        tags = fields["tags"]
        if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
            raise ValueError("tags must be a list of texts")
        found["tags"] = [tag.strip() for tag in tags if tag.strip()]
    return found


def _whose(guid: str) -> Partition:
    where = partition(guid)
    if not where.accepted:
        raise ValueError(f"{guid[:60]!r} is no user's id")
    return where


def _shown(key: str, value: Any) -> MemoryRow:
    """A memory for people. What is no object, some other program's, is shown as its text."""
    one = value if isinstance(value, dict) else {"message": _text(value)}
    tags = one.get("tags")
    return {
        "key": key,
        "version": _version(value),
        "message": _text(one.get("message")),
        "theme": _text(one.get("theme")),
        "date": _text(one.get("date")),
        "time": _text(one.get("time")),
        "importance": importance if isinstance(importance := one.get("importance"), int) else None,
        "tags": [_text(tag) for tag in tags] if isinstance(tags, list) else [],
    }


def _mentions(memory: Mapping[str, Any], words: Iterable[str]) -> bool:
    text = " ".join((memory["message"], memory["theme"], memory["date"], *memory["tags"])).casefold()
    return all(word in text for word in words)


def _text(value: Any) -> str:
    if value is None:
        return ""
    found = value if isinstance(value, str) else json_store.encode(value).decode()
    return re.sub(r"[\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", found)


def _version(value: Any) -> str:
    try:
        content = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # lone surrogates, great integers
        content = json_store.encode(value)
    return hashlib.sha256(content).hexdigest()[:_VERSION_LENGTH]


def _gone() -> AgentError:
    return AgentError(
        "This memory is not there any more.", do="Look at the list again.", code="no_such_memory"
    )


def _unreadable(where: Partition, reason: str) -> MemoriesUnreadableError:
    return MemoriesUnreadableError(
        f"{where.folder}/{where.file} cannot be used: {reason}. Nothing was changed.", do="rappd doctor"
    )
