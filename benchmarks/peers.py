"""HELP to DONE of one agent between two daemons over mutual TLS, durable on both sides; and the queue's return."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import bare_line
from benchmarks.daemon import BenchDaemon, free_port

_AGENT = """
from agents.basic_agent import BasicAgent


class EchoAgent(BasicAgent):
    def __init__(self):
        self.name = "Echo"
        self.metadata = {"name": "Echo", "description": "Gives back what it gets.",
                         "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": []}}
        super().__init__(self.name, self.metadata)

    def perform(self, **kwargs):
        return kwargs.get("text", "")
"""


Figures = tuple[float, dict[int, float]]
"""Milliseconds of one call at a time (p50), and calls/s by how many are under way."""


BUDGETED = (0.29, 15_000)
"""What a call that is kept does on the machine that the budgets (1 ms, 4,000/s) are written for."""
_BARE: tuple[tuple[bare_line.What, str], ...] = (
    ("line", "a line that only parses and answers"),
    ("kept", "start and answer committed by whom is asked, no sync"),
    ("durable", "the barest durable call"),
)


def run() -> list[tuple[str, str]]:
    """Latency at one call at a time, rate at 32, against a2a-sdk's SendMessage; 1,000 queued calls delivered."""
    import uvloop

    with tempfile.TemporaryDirectory() as folder:
        rows, mine = uvloop.run(_run(Path(folder)))
    return [*rows, *_bare(mine), *_a2a(mine)]


async def _run(folder: Path) -> tuple[list[tuple[str, str]], Figures]:
    from rappd.home import Home
    from rappd.house import House
    from rappd.settings.load import Settings

    door = free_port()
    with BenchDaemon(folder / "worker", **_door(door), RAPPD_NAME="worker") as worker:
        worker.drop("echo_agent.py", _AGENT)
        worker.start()
        os.environ.update(
            RAPP_HOME=str(folder / "caller"), RAPPD_PEERS_LOOPBACK="on", RAPPD_NEARBY="off", RAPPD_NAME="caller",
            RAPPD_LOCAL_MODELS="off",
        )  # fmt: skip
        home = Home(folder / "caller")
        home.create()
        house = await House.open(home, Settings.load(home))
        house.listen_on(1)
        from rappd.doors.federation.app import serve
        from rappd.doors.peers_door import listen

        own = free_port()
        listener = listen("127.0.0.1", own)
        assert listener is not None
        await house.start()
        await house.machines.start(own)
        runner = await serve(house.machines, listener)
        try:
            await _pair(house, worker, door, own)
            rows, mine = await _calls(house)
            rows += await _queue(house, worker)
        finally:
            await runner.cleanup()
            await house.close()
    return rows, mine


async def _pair(house: Any, worker: BenchDaemon, door: int, own: int) -> None:
    there = worker.control("GET", "/peers")["self"]["fingerprint"]
    await house.peers.pair(f"127.0.0.1:{door}", fingerprint=there, whose="mine")
    own_key = house.identity.fingerprint
    asked = {"peer": f"127.0.0.1:{own}", "fingerprint": own_key, "whose": "mine"}
    await asyncio.to_thread(worker.control, "POST", "/pairings", asked)


async def _calls(house: Any) -> tuple[list[tuple[str, str]], Figures]:
    async def one(text: str) -> None:
        done = await house.calls.call("worker", agent="Echo", args={"text": text})
        if done["call"].get("result") != text:
            raise RuntimeError(str(done))

    for number in range(50):
        await one(str(number))
    took = []
    for number in range(400):
        started = time.perf_counter()
        await one(str(number))
        took.append((time.perf_counter() - started) * 1000)
    took.sort()
    rows = [("one call at a time", f"p50 {took[200]:.2f} ms, p99 {took[396]:.2f} ms")]

    async def several(count: int) -> None:
        for number in range(count):
            await one(str(number))

    rates = {count: await bare_line.rate(several, count) for count in bare_line.ABREAST}
    for count, rate in rates.items():
        rows.append((f"{count} calls at a time", f"{rate:,.0f}/s (both daemons on this machine)"))
    return rows, (took[200], rates)


async def _queue(house: Any, worker: BenchDaemon) -> list[tuple[str, str]]:
    await asyncio.to_thread(worker.stop)
    peer = house.machines.book.find("worker")
    from envelopes.record import HELP, Envelope, new_id

    started = time.perf_counter()
    for number in range(1000):
        asked = Envelope(
            new_id(),
            house.machines.id,
            f"brainstem_{peer.prefix}",
            HELP,
            {"agent": "Echo", "args": {"text": str(number)}},
        )
        await house.calls.keep(peer, house.gate.begin(asked, "brainstem", session=asked.id))
    queued = time.perf_counter() - started
    await asyncio.to_thread(worker.start)
    started = time.perf_counter()
    delivered = None
    while True:
        rows = await house.machines.outbox.listing(waiting=True, most=2000)
        if delivered is None and not any(row.state in ("queued", "delivered") for row in rows):
            delivered = time.perf_counter() - started
        if not rows:
            break
        if time.perf_counter() - started > 120:
            raise RuntimeError(f"{len(rows)} still wait")
        await asyncio.sleep(0.02)
    answered = time.perf_counter() - started
    return [
        ("1,000 calls put into the outbox", f"{queued:.2f} s, one by one"),
        (
            "1,000 queued calls delivered after the peer is ready",
            f"{delivered:.2f} s, all answered after {answered:.2f} s",
        ),
    ]


def _door(port: int) -> dict[str, str]:
    return {
        "RAPPD_PEERS_DOOR": "on",
        "RAPPD_PEERS_PORT": str(port),
        "RAPPD_PEERS_ADDRESS": "127.0.0.1",
        "RAPPD_PEERS_LOOPBACK": "on",
        "RAPPD_NEARBY": "off",
    }


def _bare(mine: Figures) -> list[tuple[str, str]]:
    """What the line alone costs on this machine, and with it the steps that make a call durable."""
    rows = []
    for what, called in _BARE:
        took, rates = bare_line.measure(what)
        told = ", ".join(f"{rate:,.0f}/s at {count}" for count, rate in rates.items())
        rows.append((called, f"p50 {took:.2f} ms, {told}"))
        told = " and ".join(f"{mine[1][count] / rate:.2f}" for count, rate in rates.items())
        rows.append(("ratio to it", f"{mine[0] / took:.1f}x the time at one, {told} of the calls"))
        if what == "kept":
            there = (mine[0] / took * BUDGETED[0], mine[1][128] / rates[128] * BUDGETED[1])
            rows.append(
                (
                    f"where that takes {BUDGETED[0]} ms and does {BUDGETED[1]:,}/s",
                    f"p50 {there[0]:.2f} ms, {there[1]:,.0f}/s",
                )
            )
    return rows


def _a2a(mine: Figures) -> list[tuple[str, str]]:
    from benchmarks import a2a_peer

    if lacking := a2a_peer.missing():
        return [("a2a-sdk SendMessage", f"skipped, needs {lacking}")]
    took, rate = a2a_peer.measure()
    return [
        ("a2a-sdk SendMessage, plain HTTP, nothing durable", f"p50 {took:.2f} ms, {rate:,.0f}/s at 8"),
        ("ratio to it", f"{took / mine[0]:.1f}x as fast at one, {mine[1][32] / rate:.1f}x the calls"),
    ]
