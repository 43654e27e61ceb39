"""Twins through stops and kills of their daemon, and many of them at once."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from fixtures.loopback_server import FakeModel, says
from fixtures.running_daemon import RunningDaemon, agent_source, on
from fixtures.terminal import lives
from fixtures.twin_farm import Farm, closed, taken

from rappd.daemon.ports import TWIN_PORTS
from rappd.tenants.tenants import MOST_OPEN
from twins.workspace.identity_file import Identity
from twins.workspace.rappid import Rappid


def wakes_where_it_was(farm: Farm, key: str) -> int:
    """Starts the daemon, with a port far up for its twin, and returns the port.

    Other daemons on this machine take ports, too: when the port is another's by then, the start says nothing.
    """
    for _ in range(5):
        port = random.choice([one for one in TWIN_PORTS[70:] if not taken(one)])
        (farm.daemon.home / "ports" / f"{key}.port").write_text(f"{port}\n")
        farm.daemon.start()
        farm.daemon.wait_for(lambda: farm.rows()[key]["state"] == "awake")
        if farm.rows()[key]["port"] == port:
            return port
        assert taken(port), "the port was free, and the twin woke on another"
        farm.daemon.stop()
    raise AssertionError("every port that was free was another's at once")


@pytest.mark.own_process(zygote=True)
def test_running_twins_restart_on_their_ports(lone: Farm) -> None:
    lone.daemon.start()
    running, stopped, asleep = (lone.new(name) for name in ("awake", "stopped", "asleep"))
    lone.boot(running)
    lone.boot(stopped)
    lone.post(f"/twins/{stopped}/stop")
    lone.daemon.stop()
    marks = lone.daemon.home / "ports"
    assert [mark.name for mark in marks.iterdir()] == [f"{running}.port"]
    for end in (lone.daemon.kill, lone.daemon.stop):
        (marks / "0000.port").write_text("7151\n")  # of one that is gone
        port = wakes_where_it_was(lone, running)
        assert on(port, "GET", "/health").json()["name"] == "awake"
        assert {lone.rows()[key]["state"] for key in (stopped, asleep)} == {"asleep"}
        lone.daemon.wait_for(
            lambda: [mark.name for mark in marks.iterdir()] == [f"{running}.port"], what="one mark"
        )
        end()
        assert closed(lone, port)


@pytest.mark.own_process(zygote=True)
def test_a_killed_daemon_loses_nothing_that_a_twin_answered(lone: Farm) -> None:
    lone.daemon.start()
    key = lone.new("steady")
    port = lone.boot(key)
    lone.remember(key, "The dispatcher squeaks.")
    processes = lone.processes()
    turn = str(uuid.uuid4())
    lone.model.will(says("once"))
    first = lone.says_to(key, "only once", turn_id=turn, session_id="s")
    lone.daemon.kill()
    lone.daemon.wait_for(lambda: not any(map(lives, processes)), what="workers to follow their daemon")
    somebody = FakeModel()
    somebody.port = port
    try:
        somebody.start()
    except OSError:  # a twin of another daemon was quicker, and may go when it likes
        somebody.stop()
        somebody, port = FakeModel(), random.choice([one for one in TWIN_PORTS[70:] if not taken(one)])
        somebody.port = port
        somebody.start()
        (lone.daemon.home / "ports" / f"{key}.port").write_text(f"{port}\n")
    try:
        lone.daemon.start()
        lone.daemon.wait_for(lambda: lone.rows()[key]["state"] == "awake")
    finally:
        somebody.stop()
    assert lone.rows()[key]["port"] in set(TWIN_PORTS) - {port}, "its own was taken meanwhile"
    assert lone.rows()[key]["memories"] == 1
    assert time.time() - lone.rows()[key]["last_talk"] < 120
    lone.model.will(says("twice"))
    again = lone.says_to(key, "only once", turn_id=turn, session_id="s")
    assert (again["response"], again["thread"]) == ("once", first["thread"])
    assert lone.model.asked == []
    assert "The dispatcher squeaks." in lone.recall(key)
    verified = lone.daemon.cli("threads", "verify", "--json")
    assert verified.returncode == 0, verified.stdout


def test_more_twins_than_are_kept_open_all_answer_at_once(lone: Farm) -> None:
    del lone.daemon.environment["OPENAI_BASE_URL"]
    lone.daemon.environment["LLM_FAKE"] = "1"
    rappids = [Rappid.parse(f"rappid:@desk/many:{2**255 + number:064x}") for number in range(MOST_OPEN + 4)]
    for number, rappid in enumerate(rappids):
        lone.folder(rappid.key).mkdir(parents=True)
        identity = Identity.new(rappid, name=f"one of many {number}", kind="many", born_at=datetime.now(UTC))
        (lone.folder(rappid.key) / "rappid.json").write_bytes(identity.encode())
    keys = [rappid.key for rappid in rappids]
    lone.daemon.start()

    def talk(key: str) -> str:
        answer = lone.daemon.post(f"/twins/{key}/chat", {"user_input": f"I am {key[-4:]}"})
        assert answer.status == 200, answer.body
        assert answer.json()["agent_logs"].startswith("[ContextMemory] "), "its workers are its own"
        assert "stopped" not in answer.json()["agent_logs"]
        return str(answer.json()["response"])

    # Round and round, so that the twin that was closed last is wanted next.
    with ThreadPoolExecutor(12) as pool:
        said = list(pool.map(talk, keys * 3))
    assert said == [f"fake-llm: I am {key[-4:]}" for key in keys * 3]


def test_offline_unknown_name_is_not_a_failed_twin(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon().start()

    def says(text: str) -> str:
        answer = daemon.post("/chat", {"user_input": text}, control=True)
        assert answer.status == 200, answer.body
        return str(answer.json()["response"])

    nobody = says("show me Paris")
    assert nobody.startswith(
        '(no model) No twin is called "Paris", and none of my agents does that. I can: '
    ), nobody
    assert says("show me the twin Paris") == '(no model) Twin failed: No twin "Paris".', "it was meant"
    city = agent_source("Map", 'return "A map of " + kwargs["city"]', "Shows a city on a map.",
                        '{"city": {"type": "string", "description": "The city"}}')  # fmt: skip
    daemon.post("/twins", {"name": "Paris"}, control=True)
    assert says("show me Paris").startswith("(no model) Paris (personal, stopped)")
    daemon.drop("map_agent.py", city)
    daemon.wait_for(lambda: "Map" in daemon.agent_names())
    assert says("show me the city Paris on a map") == "(no model) A map of Paris"
    assert says("show me Paris").startswith("(no model) Paris (personal, stopped)")
