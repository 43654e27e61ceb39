"""Checks of the home folder: data, settings, links, port, key and event log."""

from __future__ import annotations

import shlex
import shutil
import sqlite3
import sys
import time
from collections.abc import Iterator, Set
from contextlib import closing
from pathlib import Path
from typing import Literal

from envelopes.errors import ReportableError
from envelopes.identity.anchor import read_anchor
from rappd.cli.formatting import count, tilde
from rappd.daemon.ports import another, holder, is_free
from rappd.diagnostics.finding import CheckContext, Finding
from rappd.errors import StoreError
from rappd.notices.command import arguments_of, obstacle_to
from rappd.settings.load import unknown_names
from rappd.settings.validation import doubts
from rappd.settings.write import nearest
from rappd.store.anchor_file import NAME, AnchorFile
from rappd.store.anchor_signing import LOST
from rappd.store.anchor_signing import check as check_anchor
from rappd.store.connections import open_reading
from rappd.store.former_journal import check_journal
from rappd.store.schema import VERSION, version_of
from twins.byte_sizes import format_bytes
from twins.fs.refused_links import refused_links_of_home
from twins.workspace.workspace import Workspace

_ENOUGH_BYTES = 500_000_000
_FROM_BACKUP = (
    "rappd stop, move the home away, rappd restore BACKUP; without one, move rappd.db away: what was said is lost, all"
    " else stays"
)


def check_data(visit: CheckContext) -> Iterator[Finding]:
    home = visit.home
    if not home.root.exists():
        yield Finding("Data", "note", f"{tilde(home.root)} does not exist yet", "rappd start")
        return
    free = shutil.disk_usage(home.root).free
    private = (home.root, home.keys, *sorted(home.keys.glob("*")), home.env_file, home.config, home.database)
    loose = [path for path in private if _others_may(path)]
    for path in loose:
        yield Finding(
            "Data", "bad", f"other accounts can read {tilde(path)}", f"chmod go= {shlex.quote(str(path))}"
        )
    if free < _ENOUGH_BYTES:
        yield Finding(
            "Data", "bad", f"{tilde(home.root)} is nearly full, {format_bytes(free)} left", "free some space"
        )
    elif not loose:
        yield Finding("Data", "good", f"{tilde(home.root)}, private, {format_bytes(free)} free")


def check_settings(visit: CheckContext) -> Iterator[Finding]:
    home = visit.home
    if visit.trouble is not None:
        raise visit.trouble
    fits = True
    for name in unknown_names(home):
        fits = False
        near = nearest(name)
        do = f"did you mean `{near}`?" if near else "rappd config show"
        yield Finding("Settings", "note", f"{home.config.name} sets {name}, which nobody reads", do)
    for doubt in doubts(visit.settings):
        fits = False
        yield Finding("Settings", "bad", f"{doubt.what} ({doubt.value.source})", doubt.do)
    if fits:
        yield Finding("Settings", "good", tilde(home.config) if home.config.exists() else "defaults")


def check_links(visit: CheckContext) -> Iterator[Finding]:
    """Links that an earlier version followed."""
    settings = visit.settings
    soul, agents = settings.text("soul_path"), settings.text("agents_path")
    host = Workspace.at(visit.home.brainstem, soul=soul, agents=agents)
    for link in refused_links_of_home(visit.home.root, host):
        yield Finding("Links", "note", link.text, link.do)


def check_port(visit: CheckContext) -> Iterator[Finding]:
    port = visit.settings.number("port")
    if visit.of_record:
        yield Finding("Daemon", "note", "running, and cannot use its record: see Record")
    elif visit.silence:
        yield Finding("Daemon", "bad", visit.silence, "`rappd stop`, then `rappd start`")
    elif visit.running:
        yield Finding("Daemon", "good", f"running on port {visit.status['port']}")
    elif is_free(port):
        yield Finding("Port", "good", f"{port} is free; rappd is not running")
    else:
        yield Finding(f"Port {port}", "bad", f"held by {holder(port)}", f"PORT={another(port)} rappd start")


def check_key(visit: CheckContext) -> Iterator[Finding]:
    if not visit.home.has_identity():
        return
    try:
        yield Finding("Key", "good", f"this machine is {visit.home.identity().fingerprint[:4]}")
    except (ValueError, ReportableError):
        yield Finding("Key", "bad", "keys/identity.pem is damaged", "put it back from a backup")


def check_store(visit: CheckContext) -> Iterator[Finding]:
    path = visit.home.database
    if visit.home.lost_its_record():
        yield Finding("Record", "bad", LOST, _FROM_BACKUP)
        return
    if not path.exists() and not path.with_name(NAME).exists():
        return
    if holder := lock_holder(path, _own(visit)):
        what = f"{holder} keeps rappd.db locked: nothing can be written down"
        yield Finding("Record", "bad", what, "end that program; what waits is then written by itself")
    try:
        with closing(open_database(path)) as connection:
            check_journal(path, connection)
            anchor = _anchor_problems(visit, connection)
            verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            records = connection.execute("SELECT coalesce(max(seq), 0) FROM events").fetchone()[0]
    except StoreError as error:
        yield Finding("Record", "bad", str(error).rstrip("."), error.do)
        return
    except sqlite3.DatabaseError as error:
        yield Finding("Record", "bad", f"rappd.db cannot be read: {error}{_signed(visit)}", _FROM_BACKUP)
        return
    if verdict == "ok":
        yield Finding("Record", "good", f"{count(records, 'record')}; to check each: rappd threads verify")
        for what in anchor:
            yield Finding("Record", "bad", what, "rappd threads verify")
    else:
        what = verdict.partition("***")[2].partition("***")[2] or verdict
        yield Finding(
            "Record", "bad", f"rappd.db is damaged: {' '.join(what.split())}{_signed(visit)}", _FROM_BACKUP
        )


def _own(visit: CheckContext) -> set[int]:
    """The process of the daemon, which may write for as long as it likes."""
    try:
        return {int(visit.home.process_file.read_text().split()[0])}
    except (OSError, ValueError, IndexError):
        return set()


def open_database(path: Path) -> sqlite3.Connection:
    """The database for reading; an empty one for a file that is missing or empty."""
    if not path.exists():
        return open_reading(path)
    # Without a log of unfinished writes nothing else is needed, and nothing is made beside the file.
    waiting = path.with_name(f"{path.name}-wal").exists()
    where = f"{path.absolute().as_uri()}?mode=ro{'' if waiting else '&immutable=1'}"
    db = sqlite3.connect(where, uri=True, timeout=2)
    if version_of(db):
        return db
    db.close()
    return open_reading(path.with_name("missing"))


def _signed(visit: CheckContext) -> str:
    """The number of events that the newest anchor covers, for a database that cannot be read."""
    try:
        with AnchorFile(visit.home.database.with_name(NAME), traceless=True) as file:
            newest = read_anchor(file.newest() or {}, visit.home.identity().public)
    except (ReportableError, ValueError):
        return ""
    return (
        f"; {count(newest.events, 'event')} were signed, and `rappd threads verify` says which cannot be read"
    )


def _anchor_problems(visit: CheckContext, db: sqlite3.Connection) -> list[str]:
    """Contradictions between the event log and its newest anchor; a daemon that is running knows more."""
    if visit.status:
        return list(visit.status["anchor"]["problems"])
    if not visit.home.has_identity() or version_of(db) < VERSION:
        return []
    try:
        with AnchorFile(visit.home.database.with_name(NAME), traceless=True) as file:
            return check_anchor(db, file, visit.home.identity().public).problems
    except ReportableError as problem:
        return [str(problem).rstrip(".")]


def check_python(visit: CheckContext) -> Iterator[Finding]:
    yield Finding("Python", "good", ".".join(map(str, sys.version_info[:3])))


def _others_may(path: Path) -> bool:
    return path.exists() and bool(path.stat().st_mode & 0o077)


def check_notify_command(visit: CheckContext) -> Iterator[Finding]:
    """Nothing, where no command is set."""
    command = visit.settings.text("notify.command")
    if not command:
        return
    if (found := obstacle_to(command)) is not None:
        verdict: Literal["note", "bad"] = "note" if found.missing else "bad"
        yield Finding("Notices", verdict, f"notify.command cannot be run: {found.what}", found.do)
    else:
        yield Finding("Notices", "good", f"notify.command runs {arguments_of(command)[0]}")


_LOCKS = Path("/proc/locks")
_WRITE_BYTE = 120
"""WAL_WRITE_LOCK in the index of the log (SQLite, walformat.html, "WAL Locks")."""
_PAUSE_SECONDS = 0.3
"""A write that takes longer is none of a program that shares the file."""


def lock_holder(path: Path, own: Set[int] = frozenset()) -> str:
    """``NAME (PID)`` of a program that holds the write lock of the database for a while; "" for none.

    ``own`` are the processes that may. Blocks a third of a second where another one holds it.
    """
    if not (found := _writers(path) - own):
        return ""
    time.sleep(_PAUSE_SECONDS)
    stays = found & _writers(path)
    return next((f"{_name(pid)} ({pid})" for pid in sorted(stays)), "")


def _writers(path: Path) -> set[int]:
    try:
        inode = path.with_name(f"{path.name}-shm").stat().st_ino
        lines = _LOCKS.read_text().splitlines()
    except OSError:  # another system, or no log: nobody writes
        return set()
    # "1: POSIX  ADVISORY  WRITE 4121 fd:01:131 120 120"
    rows = [line.split() for line in lines if "->" not in line]
    return {
        int(row[4])
        for row in rows
        if len(row) == 8
        and row[3] == "WRITE"
        and row[5].rpartition(":")[2] == str(inode)
        and int(row[6]) <= _WRITE_BYTE
        and (row[7] == "EOF" or int(row[7]) >= _WRITE_BYTE)
    }


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() or "a program"
    except OSError:
        return "a program"
