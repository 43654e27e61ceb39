"""The anchored event log of a real daemon: what a thief of the account does to it is noticed; a kill is no alarm."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from fixtures.forged_log import FORGERIES, forge, rewrite_chain
from fixtures.running_daemon import RunningDaemon

Make = Callable[..., RunningDaemon]
SEED = 20_261_124


def verified(daemon: RunningDaemon, *more: str) -> tuple[int, dict]:
    done = daemon.cli("threads", "verify", "--json", *more)
    return done.returncode, json.loads(done.stdout)["verify"]


def problems(daemon: RunningDaemon) -> str:
    code, report = verified(daemon)
    assert code == (1 if report["found"] else 0)
    return "; ".join(f"{one['thread']} {one['what']}" for one in report["problems"])


def anchors(home: Path) -> list[dict]:
    with closing(sqlite3.connect(home / "anchors.db")) as db:
        return [json.loads(body) for (body,) in db.execute("SELECT body FROM anchors ORDER BY counter")]


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of a daemon that talked on three threads and was stopped."""
    daemon = RunningDaemon(tmp_path_factory.mktemp("stopped") / "home", LLM_FAKE="1").start()
    for text in ("first", "second", "third", "first again"):
        daemon.chat(text, session_id=text.split()[0])
    daemon.stop()
    return daemon.home


@pytest.fixture
def copied(stopped: Path, make_daemon: Make) -> RunningDaemon:
    """A daemon, not running, on a copy of that home."""
    daemon = make_daemon("copied", LLM_FAKE="1")
    shutil.copytree(stopped, daemon.home)
    return daemon


def test_clean_stop_anchors_every_event(copied: RunningDaemon) -> None:
    code, report = verified(copied)
    assert code == 0
    newest = report["anchor"]["newest"]
    assert (newest["events"], newest["threads"], newest["closed"]) == (report["events"], 3, True)
    assert report["anchor"]["unanchored"] == 0
    assert (copied.home / "anchors.db").stat().st_mode & 0o777 == 0o600
    text = copied.cli("threads", "verify").stdout
    assert f"✓ {report['events']} events in 3 threads, none changed; anchored up to event" in text.replace(
        "\n ", ""
    )
    assert "Anchored since" in text


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_log_is_noticed_and_named(copied: RunningDaemon, name: str) -> None:
    how, said = FORGERIES[name]
    with closing(sqlite3.connect(copied.home / "rappd.db")) as db:
        (thread,) = db.execute("SELECT id FROM threads WHERE number = 1").fetchone()
        (last,) = db.execute(
            "SELECT id FROM threads WHERE number = (SELECT thread FROM events ORDER BY seq DESC LIMIT 1)"
        ).fetchone()
    forge(copied.home / "rappd.db", how)
    found = problems(copied)
    assert said in found
    if name != "invent_event":
        assert (last if name == "cut_tail" else thread) in found


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_log_stays_noticed_after_the_daemon_went_on(copied: RunningDaemon, name: str) -> None:
    how, _ = FORGERIES[name]
    forge(copied.home / "rappd.db", how)
    copied.start()
    for _ in range(2):
        copied.chat("and on it goes", session_id="first")
        copied.chat("something else", session_id="other")
    assert problems(copied), "also while it runs"
    copied.stop()
    assert problems(copied)
    copied.start()
    copied.stop()
    assert problems(copied)


def test_daemon_behind_its_anchor_says_so(copied: RunningDaemon) -> None:
    forge(copied.home / "rappd.db", FORGERIES["cut_tail"][0])
    doctor = copied.cli("doctor").stdout
    assert "the database is behind its anchor" in " ".join(doctor.split())
    assert not list(copied.home.glob("anchors.db-*")), "doctor makes nothing"
    before = anchors(copied.home)
    copied.start()
    copied.wait_for_log(
        "security: the event log does not match its anchor: the database is behind its anchor"
    )
    status = copied.get("/operator/status", control=True).json()["anchor"]
    assert "behind its anchor" in status["problems"][0]
    assert "behind its anchor" in " ".join(copied.cli("doctor").stdout.split())
    copied.chat("it works all the same")
    copied.stop()
    assert anchors(copied.home) == before, "nothing is signed that contradicts what was signed"
    shown = copied.cli("start", "--detach").stdout
    copied.cli("stop")
    assert "does not match its anchor: the database is behind" in " ".join(shown.split())


def test_forged_anchor_without_the_key_is_noticed(copied: RunningDaemon) -> None:
    forge(copied.home / "rappd.db", rewrite_chain)
    with closing(sqlite3.connect(copied.home / "anchors.db")) as db:
        counter, body = db.execute(
            "SELECT counter, body FROM anchors ORDER BY counter DESC LIMIT 1"
        ).fetchone()
        forged = {**json.loads(body), "root": "ab" * 32, "events": 1}
        db.execute("UPDATE anchors SET body = ? WHERE counter = ?", (json.dumps(forged).encode(), counter))
        db.commit()
    assert "not signed by this machine's key" in problems(copied)
    copied.start()
    copied.wait_for_log("not signed by this machine's key")


def test_forged_list_of_threads_is_noticed(copied: RunningDaemon) -> None:
    with closing(sqlite3.connect(copied.home / "anchors.db")) as db:
        db.execute("UPDATE buckets SET entries = zeroblob(length(entries))")
        db.commit()
    assert problems(copied) == "", "the list only names what differs"
    copied.start()
    copied.wait_for_log("anchors.db was changed: its threads are not those that were signed")


@pytest.mark.parametrize("how", ["removed", "older"])
def test_removed_or_older_anchors_are_noticed(copied: RunningDaemon, tmp_path: Path, how: str) -> None:
    shutil.copy(copied.home / "anchors.db", tmp_path / "older.db")
    copied.start()
    copied.chat("more")
    copied.stop()
    (copied.home / "anchors.db").unlink()
    if how == "older":
        shutil.copy(tmp_path / "older.db", copied.home / "anchors.db")
    assert "and the database knows of anchor" in problems(copied)
    assert "and the database knows of anchor" in " ".join(copied.cli("doctor").stdout.split())
    copied.start()
    copied.wait_for_log("and the database knows of anchor")


def test_older_database_is_noticed(copied: RunningDaemon, tmp_path: Path) -> None:
    shutil.copy(copied.home / "rappd.db", tmp_path / "older.db")
    copied.start()
    copied.chat("more")
    copied.stop()
    shutil.copy(tmp_path / "older.db", copied.home / "rappd.db")
    assert "that were signed are gone from the end" in problems(copied)


def test_home_without_anchors_gets_its_first_at_start(make_daemon: Make) -> None:
    copied = make_daemon("copied").start()
    copied.chat("hello")  # without a call of an agent, whose parent those versions did not write down
    copied.stop()
    (copied.home / "anchors.db").unlink()
    with closing(
        sqlite3.connect(copied.home / "rappd.db", isolation_level=None)
    ) as db:  # as versions without anchors left it
        for table in (
            "database_id",
            "timers",
            "notices",
            "conversations",
            "twin_models",
            "programs",
            "listener_states",
        ):
            db.execute(f"DROP TABLE {table}")
        db.execute("DROP INDEX threads_of_parents")
        added = ("events DROP COLUMN parent", "threads DROP COLUMN parent", "threads DROP COLUMN path")
        for column in (*added, "peers DROP COLUMN note"):
            db.execute(f"ALTER TABLE {column}")
        db.execute("DROP TABLE anchored")
        db.execute("DROP TABLE late_titles")
        db.execute("CREATE TABLE intake(mark BLOB NOT NULL, carried INTEGER NOT NULL) STRICT")
        db.execute("INSERT INTO intake VALUES(randomblob(16), 0)")
        db.execute("PRAGMA user_version = 7")
    copied.start()
    code, report = verified(copied)
    assert code == 0
    assert report["anchor"]["since"]["note"] == "first"
    assert report["anchor"]["since"]["events"] == report["events"]


def test_accepted_log_is_anchored_again(copied: RunningDaemon) -> None:
    forge(copied.home / "rappd.db", FORGERIES["cut_tail"][0])
    refused = copied.cli("threads", "accept")
    assert (refused.returncode, refused.stderr.splitlines()[1]) == (6, "  → Add --yes, if you know why")
    assert problems(copied)
    assert copied.cli("threads", "accept", "--yes").returncode == 0
    code, report = verified(copied)
    assert code == 0
    assert report["anchor"]["since"]["note"] == "accepted"
    assert "It was accepted as it is" in copied.cli("threads", "verify").stdout
    copied.start()
    copied.chat("on it goes")
    assert copied.cli("threads", "accept", "--yes").returncode == 9, "a running daemon signs by itself"
    copied.stop()
    code, report = verified(copied)
    assert (code, report["anchor"]["unanchored"]) == (0, 0)


@pytest.mark.own_process
def test_killed_daemon_is_ahead_of_its_anchor_and_no_alarm(make_daemon: Make) -> None:
    daemon = make_daemon(LLM_FAKE="1").start()
    daemon.chat("before")
    daemon.kill()
    code, report = verified(daemon)
    assert code == 0
    assert report["anchor"]["unanchored"] == report["events"] > 0
    assert "not anchored yet" in " ".join(daemon.cli("threads", "verify").stdout.split())
    daemon.start()
    daemon.stop()
    code, report = verified(daemon)
    assert (code, report["anchor"]["unanchored"]) == (0, 0)


@pytest.mark.own_process
def test_kill_at_any_moment_is_no_alarm(make_daemon: Make) -> None:
    chance = random.Random(SEED)
    daemon = make_daemon(LLM_FAKE="1")
    for round_ in range(6):
        daemon.start()
        ended = threading.Event()

        def talk(name: str, ended: threading.Event = ended) -> None:
            number = 0
            while not ended.is_set():
                number += 1
                try:
                    daemon.chat(f"{name} {number}", session_id=f"{name}{number % 7}")
                except (OSError, AssertionError, ValueError):
                    return

        talkers = [threading.Thread(target=talk, args=(f"round {round_} {one}",)) for one in range(3)]
        for one in talkers:
            one.start()
        time.sleep(chance.uniform(0.05, 2.5))
        daemon.kill()
        ended.set()
        for one in talkers:
            one.join()
        assert problems(daemon) == "", f"round {round_}"
    daemon.start()
    assert not daemon.get("/operator/status", control=True).json()["anchor"]["problems"]
    daemon.stop()
    code, report = verified(daemon)
    assert (code, report["anchor"]["unanchored"]) == (0, 0)
    assert "does not match its anchor" not in daemon.log


def test_verify_beside_a_writing_daemon_is_no_alarm(make_daemon: Make) -> None:
    daemon = make_daemon(LLM_FAKE="1").start()
    ended = threading.Event()

    def talk(name: str) -> None:
        number = 0
        while not ended.is_set():
            number += 1
            daemon.chat(f"{name} {number}", session_id=f"{name}{number % 50}")

    talkers = [threading.Thread(target=talk, args=(f"talker {one}",)) for one in range(3)]
    for one in talkers:
        one.start()
    try:
        began = time.monotonic()
        while time.monotonic() < began + 8 or anchors(daemon.home)[-1]["counter"] < 3:
            assert problems(daemon) == ""
            assert time.monotonic() < began + 60, "anchors are signed meanwhile"
    finally:
        ended.set()
        for one in talkers:
            one.join()


def test_anchor_follows_soon_after_the_last_event(make_daemon: Make) -> None:
    daemon = make_daemon(LLM_FAKE="1").start()
    daemon.chat("hello")

    def anchored() -> bool:
        return verified(daemon)[1]["anchor"]["unanchored"] == 0

    daemon.wait_for(anchored, what="an anchor")
    found = anchors(daemon.home)
    assert not found[-1]["closed"]
    time.sleep(3)
    assert anchors(daemon.home) == found, "nothing is signed while nothing happens"


def test_restored_home_says_so_and_goes_on(copied: RunningDaemon, make_daemon: Make, tmp_path: Path) -> None:
    copied.start()
    backup = tmp_path / "home.backup"
    secret = tmp_path / "passphrase"
    secret.write_text("four quiet brown owls\n")
    copied.chat("in the backup", session_id="first")
    done = copied.cli("backup", backup, "--passphrase-file", secret)
    assert done.returncode == 0, done.stderr
    copied.chat("after the backup", session_id="first")
    copied.stop()
    again = make_daemon("again", LLM_FAKE="1")
    done = again.cli("restore", backup, "--passphrase-file", secret)
    assert done.returncode == 0, done.stderr
    assert problems(again) == "", "before the first start"
    again.start()
    again.chat("on it goes", session_id="first")
    assert problems(again) == ""
    again.stop()
    code, report = verified(again)
    assert code == 0
    assert report["anchor"]["since"]["note"] == "restored"
    assert report["anchor"]["since"]["counter"] > anchors(copied.home)[1]["counter"]
    assert report["anchor"]["unanchored"] == 0
    assert "restored from a backup" in " ".join(again.cli("threads", "verify").stdout.split())


def test_home_restored_without_keys_is_anchored_by_its_new_key(
    copied: RunningDaemon, make_daemon: Make, tmp_path: Path
) -> None:
    backup = tmp_path / "home.backup"
    assert copied.cli("backup", backup, "--without-keys").returncode == 0
    again = make_daemon("again", LLM_FAKE="1")
    assert again.cli("restore", backup).returncode == 0
    again.start()
    again.chat("hello")
    again.stop()
    code, report = verified(again)
    assert (code, report["anchor"]["since"]["note"]) == (0, "restored")
    assert report["anchor"]["newest"]["node"] != anchors(copied.home)[-1]["node"]
