"""Who reads beside the writer, or after it was killed, sees all that it had acknowledged."""

from __future__ import annotations

import logging
import sqlite3
import time
from pathlib import Path

from rappd.errors import StoreError
from rappd.store import intake

log = logging.getLogger(__name__)

PATIENCE_SECONDS = 2.0
_LOOK_SECONDS = 0.005


def catch_up(path: Path, db: sqlite3.Connection) -> None:
    """Returns once the tables that ``db`` reads have what stands in the intake now. Blocks.

    A living writer does that by itself, within moments. What a dead one left is carried into the tables here. Where
    that cannot be done, the tables are read as they are.
    """
    if not intake.beside(path).exists():
        return
    mark, carried = db.execute("SELECT mark, carried FROM intake").fetchone()
    wanted = intake.last_number(path, mark, carried)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while carried < wanted and time.monotonic() < deadline:
        try:
            if intake.is_held(path):
                time.sleep(_LOOK_SECONDS)
            else:
                from rappd.store.writer import Writer  # takes its time to import, and is rarely needed

                left = Writer(path)
                left.stop_taking()
                left.finish()
        except FileNotFoundError:  # it has just ended, with all of it carried
            return
        except (StoreError, OSError) as error:
            log.warning("the last records are not shown yet: %s", error)
            return
        (carried,) = db.execute("SELECT carried FROM intake").fetchone()
