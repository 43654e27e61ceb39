"""What the demonstration shows, step by step: three machines meet, help, and survive a pulled plug."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rappd.demo.machine import DemoMachine

CALLS = 6
SLOW_SECONDS = 1.0
HEAL_SECONDS = 60.0

Say = Callable[[str, str], None]
"""(what happened, a detail)."""

_THERMOMETER = '''
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
'''
_GAUGE = '''
import pathlib
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
        time.sleep(%s)
        return f"{kwargs['day']}: 4 mm"
''' % SLOW_SECONDS


def tell(folder: Path, say: Say) -> dict[str, Any]:
    """Plays it in ``folder`` and returns what was counted. Raises ``RappdError``; nothing is left running."""
    desk, pi, shed = machines = [DemoMachine(folder, name) for name in ("desk", "pi", "shed")]
    pi.write_agent("thermometer_agent.py", _THERMOMETER)
    shed.write_agent("rain_gauge_agent.py", _GAUGE)
    try:
        started = time.monotonic()
        for machine in machines:
            machine.start()
        say("Three machines are awake", ", ".join(one.name for one in machines))
        desk.wait_for(lambda: _found(desk) >= {"pi", "shed"}, 30, "to find the others")
        say("They found each other", "found is not trusted yet")
        _pair(desk, pi)
        _pair(desk, shed)
        say("desk trusts pi and shed, and they trust desk", "each checked the other's fingerprint")
        warm = desk.daemon.post("/call", {"peer": "pi", "agent": "Thermometer"})["call"]
        say(f"pi answers desk: {warm['result']}", f"{warm['seconds']:.2f} s")
        return {"calls": _pull_the_plug(desk, shed, say), "seconds": round(time.monotonic() - started, 1)}
    finally:
        for machine in machines:
            machine.stop()


def _pull_the_plug(desk: DemoMachine, shed: DemoMachine, say: Say) -> dict[str, Any]:
    days = [f"day {number}" for number in range(1, CALLS + 1)]
    first = desk.daemon.post("/call", _gauge(days[0], wait=0.2))["call"]
    time.sleep(SLOW_SECONDS / 3)
    shed.kill()
    say("shed is killed while it works", "kill -9, as if the plug were pulled")
    rest = [desk.daemon.post("/call", _gauge(day, wait=0.5))["call"] for day in days[1:]]
    waiting = [one for one in desk.daemon.get("/outbox?waiting=1")["outbox"] if one["to"] == "shed"]
    say(f"{len(waiting)} calls wait in desk's outbox", "nothing is lost, nobody has to remember")
    shed.start()
    say("shed is back", "the queue goes by itself")
    ids = [one["id"] for one in (first, *rest)]
    ended = desk.wait_for(lambda: _ended(desk, ids), HEAL_SECONDS, "to get its answers")
    done = sum(one["state"] == "done" for one in ended.values())
    cut = sum(one["state"] == "failed" for one in ended.values())
    say(f"{done} calls are done, each once", f"{cut} was cut off by the plug and says so" if cut else "")
    return {"asked": len(ids), "done": done, "cut_off": cut, "waited": len(waiting)}


def _pair(one: DemoMachine, other: DemoMachine) -> None:
    for here, there in ((one, other), (other, one)):
        fingerprint = there.daemon.get("/peers")["self"]["fingerprint"]
        asked = {"peer": there.door, "fingerprint": fingerprint, "whose": "mine"}
        here.daemon.post("/pairings", asked)


def _found(machine: DemoMachine) -> set[str]:
    return {row["name"] for row in machine.daemon.get("/peers")["peers"] if not row["paired"]}


def _gauge(day: str, *, wait: float) -> dict[str, Any]:
    return {"peer": "shed", "agent": "RainGauge", "args": {"day": day}, "wait": wait}


def _ended(desk: DemoMachine, ids: list[str]) -> dict[str, dict[str, Any]] | None:
    rows = {row["id"]: row for row in desk.daemon.get("/outbox")["outbox"] if row["id"] in ids}
    over = {ident: row for ident, row in rows.items() if row["state"] in ("done", "failed", "expired")}
    return over if len(over) == len(ids) else None
