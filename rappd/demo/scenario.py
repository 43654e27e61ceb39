"""The demonstration, step by step: three machines meet, help, and survive a pulled plug."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rappd.demo.interrupts import Interrupts
from rappd.demo.node import DemoNode, running
from rappd.errors import RappdError

CALLS = 6
SLOW_SECONDS = 1.0
FIND_SECONDS = 20.0
HEAL_SECONDS = 60.0

Say = Callable[[str, str], None]
"""(what happened, a detail)."""

_THERMOMETER = """
from agents.basic_agent import BasicAgent


class ThermometerAgent(BasicAgent):
    def __init__(self):
        self.name = "Thermometer"
        self.metadata = {
            "name": self.name,
            "description": "Measures how warm it is in the room.",
            "parameters": {"type": "object", "properties": {}, "required": []},
        }
        super().__init__(self.name, self.metadata)

    def perform(self, **kwargs):
        return "18.4 °C"
"""
_GAUGE = """
import time

from agents.basic_agent import BasicAgent


class RainGaugeAgent(BasicAgent):
    def __init__(self):
        self.name = "RainGauge"
        self.metadata = {
            "name": self.name,
            "description": "Reads the rain gauge of a day.",
            "parameters": {"type": "object", "properties": {"day": {"type": "string"}}, "required": ["day"]},
        }
        super().__init__(self.name, self.metadata)

    def perform(self, **kwargs):
        time.sleep(SECONDS)
        return f"{kwargs['day']}: 4 mm"
""".replace("SECONDS", str(SLOW_SECONDS))


def tell(folder: Path, say: Say, interrupts: Interrupts) -> dict[str, Any]:
    """Plays it in ``folder`` and returns what was counted. Raises ``RappdError``; nothing is left running."""
    desk, pi, shed = machines = [DemoNode(folder, name) for name in ("desk", "pi", "shed")]
    pi.write_agent("thermometer_agent.py", _THERMOMETER)
    shed.write_agent("rain_gauge_agent.py", _GAUGE)
    started = time.monotonic()
    with running(machines, interrupts):
        say("Three machines are running", ", ".join(one.name for one in machines))
        found = _find_each_other(desk, say)
        _pair(desk, pi)
        _pair(desk, shed)
        say("desk trusts pi and shed, and they trust desk", "each checked the other's fingerprint")
        warm = desk.daemon.do("calls.ask", peer="pi", agent="Thermometer")["call"]
        say(f"pi answers desk: {warm['result']}", f"{warm['seconds']:.2f} s")
        calls = _pull_the_plug(desk, shed, say, interrupts)
    return {"found": found, "calls": calls, "seconds": round(time.monotonic() - started, 1)}


def _find_each_other(desk: DemoNode, say: Say) -> bool:
    """True when the machines discovered each other; where nothing can be announced, the demonstration goes on."""
    try:
        desk.wait_for(lambda: _found(desk) >= {"pi", "shed"}, FIND_SECONDS, "to find the others")
    except RappdError:
        say("They cannot hear each other here", "so desk is told where the others are")
        return False
    say("They found each other", "found is not trusted yet")
    return True


def _pull_the_plug(desk: DemoNode, shed: DemoNode, say: Say, interrupts: Interrupts) -> dict[str, Any]:
    days = [f"day {number}" for number in range(1, CALLS + 1)]
    first = _ask_gauge(desk, days[0])
    shed.kill()
    say("shed is killed while it works", "kill -9, as if the plug were pulled")
    with ThreadPoolExecutor(CALLS) as at_once:
        rest = list(at_once.map(lambda day: _ask_gauge(desk, day), days[1:]))
    waiting = [one for one in desk.daemon.do("outbox.list", waiting=True)["outbox"] if one["to"] == "shed"]
    say(f"{len(waiting)} calls wait in desk's outbox", "nothing is lost, nobody has to remember")
    with interrupts.held():
        shed.start()
    shed.wait_running()
    say("shed is back", "the queue goes by itself")
    ids = [one["id"] for one in (first, *rest)]
    ended = desk.wait_for(lambda: _ended(desk, ids), HEAL_SECONDS, "to get its answers")
    done = sum(one["state"] == "done" for one in ended.values())
    cut = sum(one["state"] == "failed" for one in ended.values())
    say(f"{done} calls are done, each once", f"{cut} was cut off by the plug and says so" if cut else "")
    return {"asked": len(ids), "done": done, "cut_off": cut, "waited": len(waiting)}


def _pair(one: DemoNode, other: DemoNode) -> None:
    for here, there in ((one, other), (other, one)):
        fingerprint = there.daemon.do("peers.list")["self"]["fingerprint"]
        asked = {"peer": there.peer_address, "fingerprint": fingerprint, "whose": "mine"}
        here.daemon.do("pairings.begin", **asked)


def _found(machine: DemoNode) -> set[str]:
    return {row["name"] for row in machine.daemon.do("peers.list")["peers"] if not row["paired"]}


def _ask_gauge(desk: DemoNode, day: str) -> dict[str, Any]:
    """One call that waits so briefly that it is accepted, or queued, and not done."""
    asked = {"peer": "shed", "agent": "RainGauge", "args": {"day": day}, "wait": 0.2}
    call: dict[str, Any] = desk.daemon.do("calls.ask", **asked)["call"]
    return call


def _ended(desk: DemoNode, ids: list[str]) -> dict[str, dict[str, Any]] | None:
    rows = {row["id"]: row for row in desk.daemon.do("outbox.list")["outbox"] if row["id"] in ids}
    over = {ident: row for ident, row in rows.items() if row["state"] in ("done", "failed", "expired")}
    return over if len(over) == len(ids) else None
