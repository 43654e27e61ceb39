"""Lost and damaged records are noticed: at the start, by ``threads verify`` and by ``doctor``."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fixtures.running_daemon import RunningDaemon


def _delete(home: Path) -> None:
    for name in ("rappd.db", "rappd.db-wal", "rappd.db-shm"):
        (home / name).unlink(missing_ok=True)


def _delete_log(home: Path) -> None:
    (home / "rappd.db-wal").unlink()
    (home / "rappd.db-shm").unlink(missing_ok=True)


def _truncate(home: Path) -> None:
    with (home / "rappd.db").open("r+b") as file:
        file.truncate((home / "rappd.db").stat().st_size // 2 // 4096 * 4096)


def _overwrite_page(home: Path) -> None:
    """Makes a page in the middle of the events unreadable."""
    db = sqlite3.connect(home / "rappd.db")
    (page,) = db.execute(
        "SELECT pageno FROM dbstat WHERE name = 'events' AND pagetype = 'leaf' ORDER BY path LIMIT 1 OFFSET 2"
    ).fetchone()
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    with (home / "rappd.db").open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)


@pytest.mark.parametrize(
    ("damage", "kill", "verified", "examined"),
    [
        (
            _delete,
            False,
            "24 of 24 events that were signed are gone",
            "0 of 24 events are there, 24 are gone",
        ),
        (_delete, True, "rappd.db is another file", "rappd.db is another file"),
        (_delete_log, True, "rappd.db is another file", "rappd.db is another file"),
        (_truncate, False, "rappd.db cannot be opened", "24 events were signed"),
        (_overwrite_page, False, "of the log cannot be read", "24 events were signed"),
    ],
    ids=["deleted", "deleted at once", "log deleted", "truncated", "damaged page"],
)
@pytest.mark.own_process
def test_lost_records_are_reported(
    tmp_path: Path, damage: Callable[[Path], None], kill: bool, verified: str, examined: str
) -> None:
    daemon = RunningDaemon(tmp_path / "home", LLM_FAKE="1").start()
    for number in range(6):
        daemon.chat(f"message {number} " + "x" * 900)
    daemon.kill() if kill else daemon.stop()
    damage(daemon.home)

    doctor, verify = daemon.cli("doctor"), daemon.cli("threads", "verify")
    assert doctor.returncode == 1 and examined in doctor.stdout, doctor.stdout
    assert verify.returncode == 1 and verified in verify.stdout + verify.stderr, verify.stdout
    assert "none changed" not in verify.stdout

    start = daemon.cli("start", "--detach")
    said = start.stdout + start.stderr
    try:
        if damage is _truncate:
            assert start.returncode == 1 and "rappd.db is damaged" in said
        elif damage is _overwrite_page:
            assert "Not ready: rappd.db is damaged" in said, said
        else:
            assert "does not match its anchor" in said, said
            status = daemon.cli("status")
            assert "does not match its anchor" in status.stdout, status.stdout
            assert "does not match its anchor" in daemon.cli("notices", "list").stdout
            unready = daemon.get("/readyz")
            assert unready.status == 503
            assert "anchor" in unready.json()["problems"][0]["what"]
            daemon.cli("stop")
            assert daemon.cli("threads", "accept", "--yes").returncode == 0
            daemon.cli("start", "--detach")
            assert daemon.get("/readyz").status == 200
            assert daemon.cli("notices", "list").stdout == "Nothing waits for you.\n"
    finally:
        daemon.cli("stop")


def test_record_and_anchors_deleted_together_are_noticed(tmp_path: Path) -> None:
    daemon = RunningDaemon(tmp_path / "home", LLM_FAKE="1").start()
    daemon.chat("hello")
    daemon.stop()
    for pattern in ("rappd.db*", "anchors.db*"):
        for path in daemon.home.glob(pattern):
            path.unlink()
    gone = "rappd.db and anchors.db are gone together"
    doctor = daemon.cli("doctor")
    assert doctor.returncode == 1 and gone in doctor.stdout, doctor.stdout
    for _ in range(2):  # and still after another start
        start = daemon.cli("start", "--detach")
        assert gone in start.stdout, start.stdout
        daemon.cli("stop")
        assert daemon.cli("threads", "verify").returncode == 1
    assert daemon.cli("threads", "accept", "--yes").returncode == 0
    start = daemon.cli("start", "--detach")
    daemon.cli("stop")
    assert gone not in start.stdout
    assert daemon.cli("doctor").stdout.count(gone) == 0


def test_first_start_misses_nothing(tmp_path: Path) -> None:
    daemon = RunningDaemon(tmp_path / "home", LLM_FAKE="1").start()
    status = daemon.cli("status").stdout
    daemon.stop()
    assert "anchor" not in status, status


def test_doctor_names_the_program_that_locks_the_record(tmp_path: Path) -> None:
    daemon = RunningDaemon(tmp_path / "home", LLM_FAKE="1").start()
    daemon.chat("hello")
    assert "locked" not in daemon.cli("doctor").stdout
    script = (
        "import sqlite3, sys; db = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "db.execute('BEGIN IMMEDIATE'); print('locked', flush=True); sys.stdin.read()"
    )
    words = [sys.executable, "-c", script, str(daemon.home / "rappd.db")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        doctor = daemon.cli("doctor")
        other.kill()
    assert doctor.returncode == 1
    assert f"({other.pid}) keeps rappd.db locked" in " ".join(doctor.stdout.split()), doctor.stdout
    daemon.stop()


def test_damaged_anchors_are_told_and_put_aside_without_loss(tmp_path: Path) -> None:
    daemon = RunningDaemon(tmp_path / "home", LLM_FAKE="1").start()
    daemon.chat("hello")
    daemon.stop()
    anchors = daemon.home / "anchors.db"
    anchors.write_bytes(b"\xff" * 8192)
    verify = daemon.cli("threads", "verify")
    assert (verify.returncode, verify.stderr.splitlines()[0]) == (1, "✗ anchors.db is damaged")
    assert "the conversations stay" in verify.stderr and "are lost" not in verify.stderr
    start = daemon.cli("start", "--detach")
    daemon.cli("stop")
    assert "anchors cannot be written: anchors.db is damaged. " in start.stdout, start.stdout
    for path in daemon.home.glob("anchors.db*"):
        path.unlink()
    assert daemon.cli("threads", "accept", "--yes").returncode == 0
    assert "none changed" in daemon.cli("threads", "verify").stdout


def test_verify_names_the_unreadable_events_and_checks_the_rest(tmp_path: Path) -> None:
    daemon = RunningDaemon(tmp_path / "home", LLM_FAKE="1").start()
    for number in range(40):
        daemon.chat(f"message {number} " + "x" * 900)
    daemon.stop()
    total = daemon.cli("threads", "verify").stdout.split()[1]
    _overwrite_page(daemon.home)
    verify = daemon.cli("threads", "verify")
    (line,) = [line for line in verify.stdout.splitlines() if "of the log cannot be read" in line]
    first, last = (int(word) for word in line.split("events ")[1].split(" of ")[0].split(" to "))
    assert 1 < first <= last < int(total)
    assert f"in {int(total) - (last - first + 1)} events" in verify.stdout


def started_with_damaged_page(home: Path) -> RunningDaemon:
    """A daemon that runs in the background; ``rappd stop`` ends it."""
    daemon = RunningDaemon(home, LLM_FAKE="1").start()
    for number in range(40):
        daemon.chat(f"message {number} " + "x" * 900)
    daemon.stop()
    _overwrite_page(daemon.home)
    daemon.cli("start", "--detach")
    return daemon


def test_damaged_page_makes_no_route_hang(tmp_path: Path) -> None:
    daemon = started_with_damaged_page(tmp_path / "home")
    try:
        doctor = daemon.cli("doctor").stdout
        assert "cannot use its record: see Record" in doctor, "a start mends no page"
        assert "rappd restore BACKUP" in doctor, doctor
        for path in ("/peers", "/outbox", "/tokens", "/threads", "/operator/status", "/readyz"):
            daemon.request("GET", path, control=True)
    finally:
        daemon.cli("stop")


def test_full_disk_is_not_ready_until_there_is_room(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", disk], check=True)
    try:
        daemon = RunningDaemon(disk / "home", LLM_FAKE="1").start()
        try:
            assert daemon.get("/readyz").status == 200
            assert daemon.request("GET", "/peers", control=True).status == 200  # nothing starts any more
            filler = disk / "filler"
            with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
                while True:  # without a buffer: closing the file would write what is left in it
                    file.write(b"x" * 65_536)

            def turn_fails() -> bool:
                return daemon.post("/chat", {"user_input": "x" * 100_000}).status == 503

            daemon.wait_for(turn_fails, what="a turn that cannot be recorded")
            answer = daemon.get("/readyz")
            assert (answer.status, answer.json()["status"]) == (503, "not ready")
            assert "disk is full" in answer.json()["problems"][0]["what"]
            status = daemon.cli("status")
            assert "Not ready" in status.stdout and "disk is full" in status.stdout
            filler.unlink()
            daemon.wait_for(lambda: daemon.get("/readyz").status == 200, what="readiness")
            assert daemon.post("/chat", {"user_input": "again"}).status == 200
        finally:
            daemon.stop()
    finally:
        subprocess.run(["umount", disk], check=True)


def test_damaged_peers_table_leaves_the_brainstem_working(tmp_path: Path) -> None:
    daemon = RunningDaemon(tmp_path / "home", LLM_FAKE="1").start()
    daemon.chat("hello")
    daemon.stop()
    db = sqlite3.connect(daemon.home / "rappd.db")
    (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'peers'").fetchone()
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    with (daemon.home / "rappd.db").open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)
    started_up = daemon.cli("start", "--detach")
    try:
        assert "Not ready: rappd.db is damaged" in started_up.stdout, started_up.stdout
        assert daemon.chat("hello again")["response"]
        answer = daemon.get("/readyz")
        assert (answer.status, answer.json()["problems"][0]["what"]) == (503, "rappd.db is damaged")
        assert daemon.request("GET", "/peers", control=True).status == 503
        assert "Not ready: rappd.db is damaged" in daemon.cli("status").stdout
    finally:
        daemon.cli("stop")
