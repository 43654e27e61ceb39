"""Types of what is written to the store and read from it. Times (``at``, ``created``, …) are µs since the epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import msgspec


class ListenerState(NamedTuple):
    """State that a listener keeps for one thread, as JSON: written with the record of the answer that it came with.

    ``root`` is the thread at the root of ``thread``, on which the listener is called.
    """

    root: str
    thread: str
    workspace: str
    listener: str
    body: bytes
    at: int


class Record(msgspec.Struct, gc=False):
    """One envelope to append to a thread.

    ``body`` is the encoded envelope, kept verbatim; ``verb``, ``sender``, ``recipient`` and ``id``
    repeat its ``verb``, ``from``, ``to`` and ``id`` and exist to be searched (``verify`` compares
    them). ``answers`` marks a reply that ``answer_to`` shall find: set it only when the caller
    supplied the turn's id. ``parent`` is the id of the HELP on whose behalf this one was sent; the ``body`` has it, too.
    ``state`` is written in the same transaction.
    """

    thread: str
    verb: str
    sender: str
    recipient: str
    id: str
    body: bytes
    at: int
    answers: bool = False
    parent: str | None = None
    state: ListenerState | None = None


class ThreadInfo(msgspec.Struct, gc=False):
    """A thread: its caller, workspace and title. ``session`` is the client's own session id as JSON text.

    On a thread that exists, ``workspace``, ``caller`` and a title stay as they were first told; the
    latest ``session`` is kept. ``fresh``: it is known not to exist yet. ``parent`` is the thread that began this one,
    ``path`` the JSON array of names from its root to it; both None for a root.
    """

    id: str
    workspace: str
    caller: str
    session: str | None
    title: str
    at: int
    fresh: bool = False
    parent: str | None = None
    path: str | None = None


@dataclass(slots=True, frozen=True)
class ThreadRow:
    """A thread as stored. ``head`` is the hash of its last event, ``count`` how many it has."""

    id: str
    workspace: str
    caller: str
    session: str | None
    title: str
    created: int
    updated: int
    count: int
    head: bytes
    parent: str | None = None
    path: str | None = None

    @property
    def names(self) -> list[str]:
        """The thread's path: the names from its root, which is named by its id, to it."""
        found: list[str] = msgspec.json.decode(self.path, type=list[str]) if self.path else [self.id]
        return found

    @property
    def cursor(self) -> tuple[int, str]:
        """Hand the last row's to ``threads(before=…)`` to read on."""
        return self.updated, self.id


class ThreadBelow(NamedTuple):
    """A thread below one of a caller's; ``session`` is the JSON text by which the caller knows its root."""

    id: str
    workspace: str
    session: str
    path: str

    @property
    def names(self) -> tuple[str, ...]:
        """Names from its root on, which is named by its id."""
        return tuple(msgspec.json.decode(self.path, type=list[str]))

    @property
    def rendered(self) -> str:
        """The path as its caller reads it: a text that is compared as a whole, and never split."""
        root = msgspec.json.decode(self.session)
        return ".".join([str(root), *self.names[1:]])


class Event(NamedTuple):
    """A recorded envelope: ``seq`` counts through the whole store, ``n`` through its thread, both from 1."""

    seq: int
    thread: str
    n: int
    at: int
    verb: str
    sender: str
    recipient: str
    id: str
    body: bytes
    prev: bytes
    hash: bytes
    parent: str | None = None
    """The id of the HELP on whose behalf it was sent."""


class Counts(NamedTuple):
    """Numbers of threads and events."""

    threads: int
    events: int
