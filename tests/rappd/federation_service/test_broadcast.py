"""A question to several machines: the first that is done wins, or all within a time; and hello to everybody."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from fixtures.machines import Machine, pair
from fixtures.running_daemon import agent_source

SLEEPY = agent_source(
    "Sleepy",
    "import os, time\n"
    "        time.sleep(float(os.environ['NAP']))\n"
    "        return os.environ['RAPPD_NAME'] + ' is running'",
    "Sleeps.",
)
GRUMPY = agent_source("Grumpy", 'raise ValueError("no mood for it")', "Never does it.")


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Machine, Machine, Machine, Machine]]:
    """desk, which asks; quick; slow; and gone, which is switched off."""
    folder = tmp_path_factory.mktemp("many")
    desk = Machine(folder / "desk", "desk", LLM_FAKE="1")
    quick, slow, gone = (Machine(folder / name, name, LLM_FAKE="1") for name in ("quick", "slow", "gone"))
    quick.drop("sleepy_agent.py", SLEEPY.replace("float(os.environ['NAP'])", "0.3"))
    slow.drop("sleepy_agent.py", SLEEPY.replace("float(os.environ['NAP'])", "600"))
    for one in (quick, slow):
        source = one.agents / "sleepy_agent.py"
        source.write_text(source.read_text().replace("os.environ['RAPPD_NAME']", f"'{one.name}'"))
    slow.drop("grumpy_agent.py", GRUMPY)
    every = (desk, quick, slow, gone)
    try:
        for one in every:
            one.start()
        for one in every[1:]:
            pair(desk, one)
        desk.knows("quick", "slow", "gone")
        gone.stop()
        yield every
    finally:
        for one in every:
            one.stop()


def ends(machine: Machine, thread: str) -> list[tuple[str, str]]:
    return [(e["verb"], e["data"].get("reason", "")) for e in machine.events(thread) if e["verb"] != "HELP"]


def test_the_first_that_is_done_wins_and_the_others_are_stopped(
    network: tuple[Machine, Machine, Machine, Machine],
) -> None:
    desk, _, slow, _ = network
    done = desk.cli("call", "--first", "slow,quick:Sleepy", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["winner"] == "quick"
    assert [(row["peer"], row["state"]) for row in found["calls"]] == [("slow", "stopped"), ("quick", "done")]
    assert found["calls"][1]["result"] == "quick is running"
    assert ends(desk, found["calls"][0]["thread"]) == [("ERROR", "stopped")]
    assert ends(desk, found["calls"][1]["thread"]) == [("DONE", "")]

    def stopped_there() -> bool:
        theirs = [t for t in slow.threads() if t[0]["from"].endswith(desk.fingerprint[:16])]
        return any(e["verb"] == "ERROR" and e["data"]["reason"] == "stopped" for t in theirs for e in t)

    slow.wait_for(stopped_there, what="the slow one's record to say that it was stopped")


def test_everybody_within_a_time(network: tuple[Machine, Machine, Machine, Machine]) -> None:
    desk, *_ = network
    body = {"which": "all", "peers": "all", "agent": "Sleepy", "wait": 15}
    found = desk.owner("POST", "/call/broadcast", body)
    states = {row["peer"]: row["state"] for row in found["calls"]}
    assert states == {"quick": "done", "slow": "late", "gone": "away"}
    assert found["winner"] is None
    reasons = {row["peer"]: ends(desk, row["thread"]) for row in found["calls"]}
    assert reasons == {"quick": [("DONE", "")], "slow": [("ERROR", "late")], "gone": [("ERROR", "away")]}
    assert desk.owner("GET", "/outbox?waiting=1")["outbox"] == []  # nothing of it comes later


def test_a_screen_for_everybody(network: tuple[Machine, Machine, Machine, Machine]) -> None:
    desk, *_ = network
    partly = desk.cli("call", "--all", "quick,slow:Grumpy")
    assert partly.returncode == 1
    assert "slow: " in partly.stdout
    both = desk.cli("call", "--all", "quick,gone:Sleepy", "--wait", "100")
    assert both.returncode == 7
    assert "quick is running" in both.stdout
    assert "gone is away" in both.stdout
    everybody = desk.cli("call", "--first", "how are you?")
    assert everybody.returncode == 0, everybody.stderr
    assert "fake-llm: how are you?" in everybody.stdout
    nobody = desk.cli("call", "--first", "gone", "hi", "--wait", "5")
    assert nobody.returncode == 8
    assert "gone: gone is away" in nobody.stdout


def test_a_refusal_does_not_win(network: tuple[Machine, Machine, Machine, Machine]) -> None:
    desk, *_ = network
    found = desk.owner(
        "POST", "/call/broadcast", {"which": "first", "peers": ["slow", "quick"], "agent": "Grumpy"}
    )
    assert found["winner"] is None
    assert [row["state"] for row in found["calls"]] == ["failed", "failed"]
    assert "no mood for it" in found["calls"][0]["error"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"which": "some", "peers": "all", "text": "x"}, 422),
        ({"which": "first", "peers": [], "text": "x"}, 422),
        ({"which": "first", "peers": "pi", "text": "x"}, 422),
        ({"which": "first", "peers": ["nobody"], "text": "x"}, 404),
        ({"which": "all", "peers": "all"}, 400),
    ],
)
def test_what_cannot_be_asked_is_refused_and_asks_nobody(
    network: tuple[Machine, Machine, Machine, Machine], body: dict[str, object], status: int
) -> None:
    desk, *_ = network
    before = len(desk.threads())
    assert desk.request("POST", "/call/broadcast", body, control=True).status == status
    assert len(desk.threads()) == before


def test_only_the_owner_may(network: tuple[Machine, Machine, Machine, Machine]) -> None:
    desk, *_ = network
    for path in ("/call/broadcast", "/peers/hello"):
        assert desk.post(path, {"peers": "all", "text": "x"}).status == 403


def test_hello_to_everybody(network: tuple[Machine, Machine, Machine, Machine]) -> None:
    desk, *_ = network
    done = desk.cli("peers", "hello", "--json")
    assert done.returncode == 7
    rows = {row["name"]: row for row in json.loads(done.stdout)["hello"]}
    assert set(rows) == {"quick", "slow", "gone"}
    assert rows["quick"]["answered"]
    assert rows["quick"]["ms"] > 0
    assert rows["slow"]["agents"] > 0
    assert not rows["gone"]["answered"]
    assert rows["gone"]["trouble"]
    shown = desk.cli("peers", "hello")
    assert [line.split()[1] for line in shown.stdout.splitlines()[1:]] == ["gone", "quick", "slow"]
