"""From the intake into the tables: all that is behind at once, and what to do where that fails."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path

from rappd.errors import StoreError
from rappd.store import connections
from rappd.store.backlog import Backlog
from rappd.store.keeper import Keeper
from rappd.store.tables import Entry, Tables, Written

log = logging.getLogger(__name__)


class Carrying:
    """For the writer's thread. ``lost(entries, error)`` is told what was acknowledged and cannot be written."""

    def __init__(
        self,
        path: Path,
        tables: Tables,
        backlog: Backlog,
        keeper: Keeper,
        lost: Callable[[list[Entry], StoreError], None],
    ) -> None:
        self._path = path
        self._tables = tables
        self._backlog = backlog
        self._keeper = keeper
        self._lost = lost

    def catch_up(self) -> None:
        """The tables get all that is behind. Raises ``StoreError`` when they cannot take it now: it is not lost."""
        if not self._backlog.is_behind:
            return
        try:
            self._carry(*self._backlog.entries())
        except sqlite3.OperationalError as error:
            if not connections.is_full(error) or not self._backlog.give_room():
                raise self._stuck(error) from error
            self.catch_up()
            return
        except Exception:
            log.exception("what waits is written frame by frame")  # another process wrote, perhaps
            for number, entries in self._backlog.frames():
                self._carry_one(number, entries)
        self._backlog.carried()

    def with_it(self, batch: list[Entry], *, strict: bool) -> Written | None:
        """One transaction for all that is behind and a batch. None, and nothing done, where each should be tried
        alone. Raises ``StoreError`` when the tables can take neither now."""
        number, behind = self._backlog.entries()
        try:
            written = self._tables.write([*behind, *batch], strict=strict, carried=number)
        except sqlite3.OperationalError as error:
            self._tables.take_back()
            if connections.is_full(error):
                return None
            raise self._stuck(error) from error
        except Exception:
            self._tables.take_back()
            log.exception("what waits and %d entries more are tried apart", len(batch))
            return None
        self._backlog.carried()
        return written

    def _carry(self, number: int, entries: list[Entry]) -> None:
        try:
            written = self._tables.write(entries, strict=False, carried=number)
        except BaseException:
            self._tables.take_back()
            raise
        self._keeper.wrote(written.pages)

    def _carry_one(self, number: int, entries: list[Entry]) -> None:
        try:
            self._carry(number, entries)
        except sqlite3.OperationalError as error:
            raise self._stuck(error) from error
        except Exception:
            log.exception("what waits is written one by one")
            for entry in entries:
                self._carry_entry(entry)
            try:
                self._carry(number, [])
            except Exception as error:
                raise self._stuck(error) from error

    def _carry_entry(self, entry: Entry) -> None:
        """It is written, whatever is lost before it; who next waits on its thread is told."""
        try:
            self._tables.write([entry], strict=False)
        except Exception as error:
            self._tables.take_back()
            log.exception("acknowledged, and cannot be written: %s", type(entry[0]).__name__)
            self._lost([entry], connections.explain(error, self._path))

    def _stuck(self, error: Exception) -> StoreError:
        self._backlog.stuck()
        log.error("what was acknowledged waits to be written: %s", error)
        return connections.explain(error, self._path)
