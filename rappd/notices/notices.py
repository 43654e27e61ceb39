"""The news that wait for the owner: added from anywhere in the daemon, told once in the terminal, listed until dismissed.

They have a place of their own on each screen, and are never a part of an answer.
"""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from envelopes.errors import ReportableError
from neighborhoods.discovery.announcement import tame
from rappd.errors import NotFoundError, StoreError
from rappd.store.notice_table import Notice, NoticeTable
from twins.background_tasks import BackgroundTasks

log = logging.getLogger(__name__)

_MOST = 100
_LONGEST = 300


class Notices:
    """In memory without a table. Calls come from the event loop; texts may hold the words of strangers."""

    def __init__(
        self,
        table: NoticeTable | None = None,
        listeners: Iterable[Callable[[Notice], None]] = (),
        gone: Callable[[str], None] = lambda key: None,
    ) -> None:
        """Each of ``listeners`` gets every new notice, ``gone`` the key of each that is settled or was dismissed."""
        self._table, self._listeners, self._gone = table, tuple(listeners), gone
        self._waiting: dict[str, Notice] = {}
        self._writes = BackgroundTasks("a notice was not written down")
        self._unwritten: set[str] = set()
        """Keys whose change could not be written down; each later write tries them again."""
        self.watchers: set[Callable[[], None]] = set()
        """Called whenever a notice came or went."""
        self._holds: dict[str, Callable[[str], bool]] = {}

    def __contains__(self, key: str) -> bool:
        """True for the key of a notice that waits."""
        return key in self._waiting

    def keep_while(self, kind: str, holds: Callable[[str], bool]) -> None:
        """Settles notices of ``kind`` once ``holds`` is False for their subject: they are of no use any more."""
        self._holds[kind] = holds

    async def load(self) -> None:
        """Reads what waited at the last stop."""
        if self._table is not None:
            self._waiting = {one.key: one for one in await self._table.all()} | self._waiting

    def add(
        self,
        what: str,
        do: str,
        *,
        kind: str = "failed",
        key: str = "",
        subject: str = "",
        quiet: bool = False,
    ) -> None:
        """Adds a notice, in place of one with the same key. A ``quiet`` one is in the list, and told to no listener."""
        key = key or uuid.uuid4().hex
        notice = Notice(key, kind, time.time(), one_line(what), one_line(do), subject)
        self._waiting.pop(key, None)
        self._waiting[key] = notice
        self._write(key)
        while len(self._waiting) > _MOST:
            self.settle(next(iter(self._waiting)))
        for listener in () if quiet else self._listeners:
            listener(notice)
        self._changed()

    def settle(self, key: str) -> None:
        """Removes a notice whose matter is over; nothing when there is none."""
        if self._waiting.pop(key, None) is not None:
            self._write(key)
            self._went(key)

    async def dismiss(self, key: str) -> Notice:
        """Removes a notice that the owner has seen, by its key or the beginning of it.

        Raises ``NotFoundError``, and ``StoreError``: then it still waits.
        """
        found = [one for one in self._waiting.values() if one.key.startswith(key)] if len(key) >= 4 else []
        if len(found) != 1:
            raise NotFoundError(f"No notice “{tame(key)}” waits.", do="rappd notices list")
        await self._dismiss(found[0])
        return found[0]

    async def dismiss_all(self) -> int:
        """Removes all; returns how many there were. Raises ``StoreError``: then the rest still waits."""
        all = list(self._waiting.values())
        for notice in all:
            await self._dismiss(notice)
        return len(all)

    def waiting(self) -> list[Notice]:
        """The notices that still apply, the latest first."""
        for one in list(self._waiting.values()):
            holds = self._holds.get(one.kind)
            if holds is not None and one.subject and not holds(one.subject):
                self.settle(one.key)
        return sorted(self._waiting.values(), key=lambda one: -one.at)

    def take(self) -> list[str]:
        """The notices that the terminal has not told yet, a line each in plain words, the oldest first."""
        new = [one for one in reversed(self.waiting()) if not one.told]
        for one in new:
            marked = replace(one, told=True)
            self._waiting[one.key] = marked
            self._write(one.key)
        for one in new:
            if one.kind == "failed":  # said, and nothing is left to do
                self.settle(one.key)
        return [without_paths(one.what) for one in new]

    async def close(self) -> None:
        """Waits until all is written."""
        for key in self._unwritten:
            self._write(key)
        await self._writes.settle()

    async def _dismiss(self, notice: Notice) -> None:
        if self._table is not None:
            await self._table.remove(notice.key)
        now = self._waiting.get(notice.key)
        if now is not None and now.at == notice.at:
            del self._waiting[notice.key]
            self._went(notice.key)
        if now is not notice:  # it was told, or is another one, and was written meanwhile
            self._write(notice.key)

    def _went(self, key: str) -> None:
        self._gone(key)
        self._changed()

    def _changed(self) -> None:
        for watcher in list(self.watchers):
            watcher()

    def _write(self, key: str) -> None:
        """Writes down that the notice of this key waits, or does not wait any more."""
        if self._table is not None:
            self._writes.spawn(self._written(self._table, key))

    async def _written(self, table: NoticeTable, key: str) -> None:
        for one in [key, *(self._unwritten - {key})]:
            notice = self._waiting.get(one)
            self._unwritten.add(one)
            try:
                await (table.remove(one) if notice is None else table.set(notice))
            except StoreError as error:
                log.warning("a notice could not be written down: %s", error)
                return
            if self._waiting.get(one) is notice:
                self._unwritten.discard(one)


def failed_later(what: str, name: str, error: Exception) -> tuple[str, str]:
    """(what happened, what to do) when a twin's ``what``, put off until it had answered, failed."""
    sentence = f"{what[:1].upper()}{what[1:]} was not done after {name} had answered"
    if isinstance(error, ReportableError):
        return f"{sentence}: {error}", error.do
    return f"{sentence}; the log says why.", "rappd logs"


_PATH = re.compile(r"(?<![\w/:])(?:~|\.)?(?:/[\w.@+~-]+)+/([\w.@+~-]+)")


def without_paths(text: str) -> str:
    """``text`` with the names of files in place of their paths."""
    return _PATH.sub(r"\1", text)


def one_line(text: str) -> str:
    """``text`` made fit for a screen: one line of printable characters, at most 300."""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text[: 4 * _LONGEST]).split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
