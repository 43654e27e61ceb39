"""Doctor: each thing that can go wrong is found, judged and comes with its fix; nothing is started."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from fixtures.running_daemon import RunningDaemon, agent_source
from fixtures.terminal import on_terminal

from agents.runtimes.python.pools.started_processes import descendants
from rappd.daemon.home import Home
from rappd.diagnostics import examine
from rappd.diagnostics.finding import CheckContext, Finding


def _about(daemon: RunningDaemon, about: str) -> list[dict[str, Any]]:
    rows = json.loads(daemon.cli("doctor", "--json").stdout)["doctor"]
    return [row for row in rows if row["about"] == about]


def _findings(daemon: RunningDaemon) -> dict[str, dict[str, Any]]:
    done = daemon.cli("doctor", "--json")
    rows = json.loads(done.stdout)["doctor"]
    assert all(set(row) == {"about", "verdict", "what", "do"} for row in rows)
    assert all(row["do"] for row in rows if row["verdict"] != "good"), "whatever is not good has a fix"
    assert done.returncode == (1 if any(row["verdict"] == "bad" for row in rows) else 0)
    return {row["about"]: row for row in rows}


def test_on_a_machine_without_a_home_it_looks_and_makes_nothing(idle: RunningDaemon) -> None:
    found = _findings(idle)
    assert found["Data"]["verdict"] == "note"
    assert found["Data"]["do"] == "rappd start"
    assert found["Port"]["verdict"] == "good"
    assert not idle.home.exists()


def test_it_starts_nothing_and_changes_nothing(talked: RunningDaemon) -> None:
    talked.drop(
        "watched_agent.py", f"open({str(talked.home.parent / 'ran')!r}, 'w')\n" + agent_source("Watched")
    )

    def everything() -> list[tuple[str, int]]:
        return sorted((str(path), path.stat().st_mtime_ns) for path in talked.home.rglob("*"))

    before = everything()
    below = descendants(os.getpid())
    talked.cli("doctor")
    assert everything() == before
    assert descendants(os.getpid()) == below
    assert not (talked.home.parent / "ran").exists(), "no agent was run"


def test_all_is_well_but_the_model(talked: RunningDaemon) -> None:
    del talked.environment["LLM_FAKE"]
    talked.environment["RAPPD_TETHER_ADDRESS"] = "127.0.0.1"  # whatever network the tests run on
    seen = on_terminal(talked, "doctor")
    assert seen.code == 0
    assert seen.lines[0].startswith("✓ Data       ~/idle, private, ")
    assert seen.lines[0].endswith(" free")
    at = seen.lines.index("! Model      no model answers; your words are matched to agents")
    assert seen.lines[at + 1] == "             → start Ollama, or rappd models connect"
    as_root = os.geteuid() == 0
    assert ("! Workers    rappd runs as root, and agents have root's files" in seen.lines) == as_root
    assert seen.lines[-1] == ("2 notes." if as_root else "1 note.")


def test_address_of_a_server_that_is_not_asked_is_said(talked: RunningDaemon) -> None:
    del talked.environment["LLM_FAKE"]
    talked.environment |= {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "RAPPD_MODEL_USE": "copilot"}
    note, offline = _about(talked, "Model")
    assert note["what"] == (
        "provider.url is set and has no effect: it counts with provider.use auto or server, not copilot"
    )
    assert note["do"] == "rappd config set provider.use server"
    assert offline["what"] == "no model answers; your words are matched to agents", (
        "nobody knocked at that address"
    )
    talked.environment["RAPPD_MODEL_USE"] = "auto"
    assert [row["what"] for row in _about(talked, "Model")] == ["nothing answers at http://127.0.0.1:9/v1"]


def test_with_the_daemon_up_it_asks_it(busy: RunningDaemon) -> None:
    found = _findings(busy)
    assert found["Daemon"]["what"] == f"running on port {busy.port}"
    assert found["Model"]["what"] == "fake model, fake-llm"
    assert found["Agents"]["verdict"] == "note"
    assert found["Agents"]["what"].startswith("broken_agent.py line 2: ")
    assert found["Agents"]["do"] == "rappd agents list"


@pytest.mark.parametrize("name", [".", "keys", "keys/identity.pem", ".env", "rappd.db"])
def test_files_that_others_can_read_are_problems(talked: RunningDaemon, name: str) -> None:
    path = talked.home / name
    path.touch()
    path.chmod(0o755)
    found = _findings(talked)["Data"]
    assert found["verdict"] == "bad"
    assert found["what"].startswith("other accounts can read ~/idle")
    assert os.system(f"cd / && {found['do']}") == 0, "the fix is a command that works"
    assert _findings(talked)["Data"]["verdict"] == "good"


def test_a_damaged_record_is_found(talked: RunningDaemon) -> None:
    database = talked.home / "rappd.db"
    whole = database.read_bytes()
    page = len(whole) // 4096 - 1
    database.write_bytes(whole[: page * 4096] + os.urandom(4096))
    found = _findings(talked)["Record"]
    assert found["verdict"] == "bad"
    database.write_bytes(b"not a database at all" * 300)
    found = _findings(talked)["Record"]
    assert found["verdict"] == "bad"
    assert "cannot be read" in found["what"]
    assert "BACKUP" in found["do"]


@pytest.mark.own_process
def test_a_log_of_unfinished_writes_is_read_too(talked: RunningDaemon) -> None:
    database = talked.home / "rappd.db"
    before = _findings(talked)["Record"]["what"]
    other = sqlite3.connect(database)  # keeps the log from being folded in
    other.execute("SELECT count(*) FROM events").fetchone()
    talked.start()
    talked.chat("more")
    talked.kill()
    assert _findings(talked)["Record"]["what"] != before
    other.close()


def test_broken_settings_file_is_one_doctor_problem(talked: RunningDaemon) -> None:
    (talked.home / "rappd.toml").write_text("port = = 3\n")
    done = talked.cli("doctor")
    assert done.returncode == 1
    assert done.stdout.count("rappd.toml cannot be read") == 1
    found = _findings(talked)
    assert found["Settings"]["do"] == "mend the file, or move it away"
    assert {"Port", "Record", "Agents", "Model", "Workers", "Python"} <= set(found)


def test_a_mistyped_setting_is_a_note_with_the_nearest(talked: RunningDaemon) -> None:
    (talked.home / "rappd.toml").write_text("voicemode = true\n")
    found = _findings(talked)["Settings"]
    assert found["verdict"] == "note"
    assert "voicemode" in found["what"]
    assert "voice_mode" in found["do"]


def test_a_broken_agent_file_is_named_with_its_line(talked: RunningDaemon) -> None:
    talked.drop("one_agent.py", "x = 1\n\nclass A(:\n")
    talked.drop("two_agent.py", "\0")
    done = talked.cli("doctor")
    assert done.returncode == 0
    assert "one_agent.py line 3: " in done.stdout
    assert "two_agent.py" in done.stdout
    assert done.stdout.count("→ fix and save") == 2


def test_a_damaged_key_is_found(talked: RunningDaemon) -> None:
    (talked.home / "keys" / "identity.pem").write_text("nothing like a key")
    found = _findings(talked)["Key"]
    assert found["verdict"] == "bad"


def test_silent_model_server_is_a_doctor_problem(talked: RunningDaemon) -> None:
    del talked.environment["LLM_FAKE"]
    talked.environment["OPENAI_BASE_URL"] = "http://127.0.0.1:9/v1"
    found = _findings(talked)["Model"]
    assert (found["verdict"], found["what"]) == ("bad", "nothing answers at http://127.0.0.1:9/v1")
    server = HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    talked.environment["OPENAI_BASE_URL"] = f"http://127.0.0.1:{server.server_port}/v1"
    assert _findings(talked)["Model"]["verdict"] == "good"
    server.shutdown()
    server.server_close()
    talked.environment["OPENAI_BASE_URL"] = "http://[half"
    assert _findings(talked)["Model"]["verdict"] == "bad"


@pytest.mark.own_process
def test_a_daemon_that_hangs_is_found(talked: RunningDaemon) -> None:
    import signal

    talked.start()
    assert talked.process is not None
    talked.process.send_signal(signal.SIGSTOP)
    try:
        found = _findings(talked)["Daemon"]
    finally:
        talked.process.send_signal(signal.SIGCONT)
    assert found["verdict"] == "bad"
    assert found["what"].startswith("rappd did not answer within")


def test_the_home_may_lie_behind_an_odd_name(make_daemon: Any) -> None:
    daemon = make_daemon("odd name $x 'q'", LLM_FAKE="1").start()
    daemon.stop()
    (daemon.home / "keys").chmod(0o755)
    found = _findings(daemon)["Data"]
    assert Path(daemon.home).exists()
    assert os.system(found["do"]) == 0
    assert _findings(daemon)["Data"]["verdict"] == "good"


def test_check_that_a_full_disk_stops_says_to_free_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(visit: CheckContext) -> Iterator[Finding]:
        yield from ()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(examine, "_CHECKS", (("Record", fails),))
    (found,) = examine.examine(Home(tmp_path))
    assert (found.verdict, found.do) == ("bad", "free some space")
