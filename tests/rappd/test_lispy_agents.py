"""An agent written in LisPy lives beside those in Python: dropped in, used, edited, approved, exported."""

from __future__ import annotations

from collections.abc import Callable

from daemon_under_test import RunningDaemon

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


def test_a_broken_one_says_where_and_the_earlier_version_works_on(
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
    assert daemon.get("/agents/export/tally.lispy").body.decode() == COUNTER
