"""Payloads of rappd itself, for handlers: what they ask of it, and what it tells them.

    def watch(payload: Watch, state: dict):
        ...
        return Delay(seconds=3600)

This file needs nothing but the standard library.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents.listener import listener


@listener(category="core", root="spawn-thread")
@dataclass
class SpawnThread:
    """Begins a thread below the present one, and sends a payload on it."""

    name: str
    payload: Any = None


@listener(category="core", root="todo-until")
@dataclass
class TodoUntil:
    """Says what is waited for on this thread, and is reminded until it came or was given up."""

    wait_for: str
    from_listener: str | None = None
    description: str | None = None


@listener(category="core", root="todo-complete")
@dataclass
class TodoComplete:
    """Gives up, or ends, what is waited for."""

    id: str


@listener(category="core", root="timer")
@dataclass
class Timer:
    """Sets and changes timers of the person, in words, as the agent Timer does."""

    text: str | None = None
    action: str | None = None
    what: str | None = None
    when: str | None = None
    kind: str | None = None
    which: str | None = None


@listener(category="core", root="delay")
@dataclass
class Delay:
    """Goes on after a time, on the same thread; nothing runs meanwhile.

    ``payload`` is sent then; without it, the one that the handler was called with.
    """

    seconds: float
    payload: Any = None


@listener(category="core", root="thread-spawned")
@dataclass
class ThreadSpawned:
    """A thread was begun."""

    name: str
    assigned_id: str
    parent_id: str


@listener(category="core", root="todo-registered")
@dataclass
class TodoRegistered:
    """A todo was put on the plan."""

    id: str


@listener(category="core", root="delayed")
@dataclass
class Delayed:
    """A delay began."""

    until: datetime


@listener(category="core", root="timer-answer")
@dataclass
class TimerAnswer:
    """A timer was set, changed or listed."""

    text: str


@listener(category="core")
@dataclass
class Boot:
    """rappd started."""

    organism: str
    timestamp: datetime
    listeners: int


@listener(category="core")
@dataclass
class Shutdown:
    """rappd stops."""

    timestamp: datetime


@listener(category="core")
@dataclass
class Heartbeat:
    """rappd runs."""

    timestamp: datetime
    uptime_seconds: int


@listener(category="core", root="listener-joined")
@dataclass
class ListenerJoined:
    """A listener serves from now on."""

    name: str
    timestamp: datetime


@listener(category="core", root="listener-left")
@dataclass
class ListenerLeft:
    """A listener serves no more."""

    name: str
    timestamp: datetime


@listener(category="core", root="context-cleared")
@dataclass
class ContextCleared:
    """Listeners' states of a conversation are gone."""

    kept_messages: int
    timestamp: datetime
