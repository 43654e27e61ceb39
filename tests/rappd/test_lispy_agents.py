"""An agent written in LisPy lives beside those in Python: dropped in, used, edited, approved, exported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fixtures.running_daemon import RunningDaemon

COUNTER = """
; counts what it is asked
(define agent-name "TallyKeeper")
(define agent-description "Keeps a tally and adds to it.")
(define agent-parameters '(("by" "integer" "How many to add")))
(define total 0)
(define (tallykeeper-run context kwargs)
  (set! total (+ total (get kwargs "by" 1)))
  (string-append "tally " (number->string total)))
"""


def result(daemon: RunningDaemon, **arguments: object) -> object:
    body = {"agent": "TallyKeeper", "args": arguments}
    return daemon.post("/agents/run", body, control=True).json()["result"]


def test_a_lispy_file_is_an_agent_a_moment_after_it_is_dropped(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon(LLM_FAKE="1").start()
    daemon.drop("tally.lispy", COUNTER)
    daemon.wait_for(lambda: "TallyKeeper" in daemon.agent_names())
    assert result(daemon, by=4) == "tally 4"
    daemon.drop("tally.lispy", COUNTER.replace('"tally "', '"so many: "'))
    daemon.wait_for(lambda: str(result(daemon)).startswith("so many: "))


def test_broken_agent_is_reported_while_former_version_works(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    daemon.drop("tally.lispy", COUNTER)
    daemon.start()
    daemon.drop("tally.lispy", COUNTER + "\n(define (oh no")
    faults = daemon.wait_for(lambda: daemon.get("/health").json()["quarantined"])
    assert faults[0]["file"] == "tally.lispy"
    assert faults[0]["last_good"] is True
    assert result(daemon, by=2) == "tally 2"


def test_a_program_without_end_costs_one_answer(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    endless = COUNTER.replace('(string-append "tally "', '(define (f) (f)) (f) (string-append "tally "')
    daemon.drop("tally.lispy", endless)
    daemon.start()
    found = daemon.post("/agents/run", {"agent": "TallyKeeper"}, control=True).json()
    assert found["ok"] is False
    assert "limit" in found["result"]


def test_it_is_imported_and_exported_like_any_other(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(LLM_FAKE="1").start()
    done = daemon.upload("tally.lispy", COUNTER.encode(), control=True).json()
    assert done["agents"] == ["TallyKeeper"]
    assert daemon.get("/agents/export/tally.lispy", control=True).body.decode() == COUNTER


def cartridge(daemon: RunningDaemon, name: str, source: str, *run: str) -> str:
    """A cartridge of a program in the agents folder; it ran once if there are arguments for that."""
    daemon.agents.mkdir(parents=True, exist_ok=True)
    program = daemon.home.parent / f"{name}.lispy"
    program.write_text(source)
    path = str(daemon.agents / f"{name}.lispy.json")
    made = daemon.cli("cartridge", "new", name, "--program", str(program), "-o", path)
    assert made.returncode == 0, made.stderr
    if run:
        done = daemon.cli("cartridge", "run", path, "--save", *run)
        assert done.returncode == 0, done.stdout + done.stderr
    return path


def test_a_cartridge_that_defines_an_agent_serves_as_one(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    kept = COUNTER.replace("(define total 0)", "(define total (if (= echo-frame 1) 0 total))")
    path = cartridge(daemon, "tally", COUNTER)
    before = Path(path).read_bytes()
    daemon.start()
    assert "TallyKeeper" in daemon.agent_names()
    assert [result(daemon, by=4), result(daemon, by=1)] == ["tally 4", "tally 5"]
    assert Path(path).read_bytes() == before, "serving a cartridge does not change its file"
    Path(path).unlink()
    daemon.wait_for(lambda: "TallyKeeper" not in daemon.agent_names())
    cartridge(daemon, "tally", kept.replace("TallyKeeper", "tallykeeper"), "--frames", "1")
    daemon.wait_for(lambda: "tallykeeper" in daemon.agent_names())


def test_one_that_gives_no_agent_says_why_in_the_list(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    cartridge(daemon, "sum", "(display (+ 1 2))")
    cartridge(daemon, "asks", "(define x (next-input))")
    (daemon.agents / "torn.lispy.json").write_text('{"_meta"')
    daemon.start()
    faults = {row["file"]: row["reason"] for row in daemon.get("/health").json()["quarantined"]}
    assert faults["sum.lispy.json"] == (
        "it is a cartridge that gives no agent: it does not define agent-name as text"
    )
    assert "waits for input" in faults["asks.lispy.json"]
    assert faults["torn.lispy.json"].startswith("it is not JSON")
    rows = {
        file["filename"]: file["cards"][0] for file in daemon.get("/agents", control=True).json()["files"]
    }
    assert rows["sum.lispy.json"]["cartridge"] and rows["asks.lispy.json"]["cartridge"]
    assert not rows["torn.lispy.json"]["cartridge"], "that one has to be mended"
    shown = " ".join(daemon.cli("agents", "list").stdout.split())
    assert "! sum.lispy.json: it is a cartridge that gives no agent" in shown
    assert "→ to run it:" in shown and "cartridge list" in shown
    assert "✗ torn.lispy.json: it is not JSON" in shown and "fix and save" in shown
