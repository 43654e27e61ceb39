"""HELP to DONE of one agent between two daemons over mutual TLS, durable on both sides; and the queue's return."""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from contextlib import AsyncExitStack
from itertools import chain
from pathlib import Path

from benchmarks import bare_line
from benchmarks.bare_line import OURS, THEIRS
from benchmarks.daemon import BenchDaemon, free_port, pin
from rappd.daemon.app import Daemon
from rappd.features.peers.pairing_operations import PairingOperations

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


ABREAST = (32, 128)
"""Numbers of calls at a time."""
TURNS, ONE_BY_ONE, CALLS = 8, 150, 2560
FIRST = 30
"""Of each turn, not counted: what was asked lately is not in the processor's caches."""
BOTH = f"{THEIRS},{OURS}"
BUDGETED = (0.29, 15_000)
"""Figures of a durable call on the machine that the budgets (1 ms, 4,000/s) are written for."""
BARE: tuple[tuple[bare_line.What, str], ...] = (
    ("line", "a line that only parses and answers"),
    ("kept", "start and answer committed by whom is asked, no sync"),
    ("durable", "the barest durable call"),
    ("ruled", "the barest that keeps the rules"),
)


def run() -> list[tuple[str, str]]:
    """A call between two daemons, by turns with barer servers and a2a-sdk's SendMessage.

    Latency at one call at a time, rate at 32 and 128; a core for each machine as where the budgets were
    written, then both machines on both cores; 1,000 queued calls delivered.
    """

    with tempfile.TemporaryDirectory() as folder:
        rows, mine = asyncio.run(_run(Path(folder)))
    return [*rows, *_a2a(mine)]


async def _run(folder: Path) -> tuple[list[tuple[str, str]], Figures]:
    from rappd.daemon.daemon_process import settle
    from rappd.daemon.home import Home
    from rappd.daemon.open_home import open_home
    from rappd.settings.load import Settings

    port = free_port()
    with BenchDaemon(folder / "worker", **_door(port), RAPPD_NAME="worker") as worker:
        worker.drop("echo_agent.py", _AGENT)
        worker.start()
        own, home = free_port(), Home(folder / "caller")
        os.environ.update(
            _door(own),
            RAPP_HOME=str(home.root),
            PORT=str(free_port()),
            RAPPD_NAME="caller",
            RAPPD_LOCAL_MODELS="off",
        )
        home.create()
        async with open_home(home, Settings.load(home)) as daemon:
            await daemon.machines.availability.ready.wait()
            await _pair(daemon, worker, port, own)
            settle()
            rows, mine = await _calls(daemon, worker)
            rows += await _queue(daemon, worker)
    return rows, mine


async def _pair(daemon: Daemon, worker: BenchDaemon, port: int, own: int) -> None:
    there = worker.control("GET", "/peers")["self"]["fingerprint"]
    m = daemon.machines
    pairing = PairingOperations(m.node, m.peer_store, m.addresses, m.pairings)
    await pairing.pair(f"127.0.0.1:{port}", fingerprint=there, whose="mine")
    own_key = daemon.identity.fingerprint
    asked = {"peer": f"127.0.0.1:{own}", "fingerprint": own_key, "whose": "mine"}
    await asyncio.to_thread(worker.control, "POST", "/pairings", asked)


class Figures:
    """One kind of call, turn by turn: milliseconds of those asked one by one, calls/s by how many are under way."""

    def __init__(self) -> None:
        self.took: list[list[float]] = []
        self.rates: dict[int, list[float]] = {abreast: [] for abreast in ABREAST}

    @property
    def p50(self) -> float:
        return statistics.median(chain.from_iterable(self.took))

    @property
    def p99(self) -> float:
        return statistics.quantiles(chain.from_iterable(self.took), n=100)[98]

    def rate(self, abreast: int) -> float:
        return statistics.median(self.rates[abreast])

    def times(self, other: Figures) -> float:
        """Returns the ratio of the times to the other's; the median of all turns."""
        turns = zip(self.took, other.took, strict=True)
        return statistics.median(statistics.median(mine) / statistics.median(its) for mine, its in turns)

    def part(self, other: Figures, abreast: int) -> float:
        """The rate as a part of the other's."""
        turns = zip(self.rates[abreast], other.rates[abreast], strict=True)
        return statistics.median(mine / its for mine, its in turns)


async def _calls(daemon: Daemon, worker: BenchDaemon) -> tuple[list[tuple[str, str]], Figures]:
    async def one() -> None:
        done = await (await daemon.calls.submit("worker", agent="Echo", args={"text": "7"})).row()
        if done.get("result") != "7":
            raise RuntimeError(str(done))

    async with AsyncExitStack() as stack:
        asked: dict[str, bare_line.Ask] = {"ours": one}
        for what, _ in BARE:
            asked[what] = await stack.enter_async_context(bare_line.opened(what))
        pin(os.getpid(), OURS)
        worker.pin(THEIRS)
        found = await _measured(asked)
        pin(os.getpid(), BOTH)
        worker.pin(BOTH)
        shared = (await _measured({"ours": one}))["ours"]
    return [*_told(found), *_rows_of(shared, "both machines on both cores: ")], found["ours"]


async def _measured(asked: dict[str, bare_line.Ask]) -> dict[str, Figures]:
    found = {name: Figures() for name in asked}
    for ask in asked.values():
        await bare_line.one_by_one(ask, ONE_BY_ONE)
    for _ in range(TURNS):
        for name, ask in asked.items():
            found[name].took.append((await bare_line.one_by_one(ask, ONE_BY_ONE))[FIRST:])
    for abreast in ABREAST:
        for _ in range(TURNS // 2):
            for name, ask in asked.items():
                found[name].rates[abreast].append(await bare_line.rate(ask, abreast, CALLS))
    return found


def _told(found: dict[str, Figures]) -> list[tuple[str, str]]:
    mine = found["ours"]
    rows = _rows_of(mine, "")
    for what, called in BARE:
        its = found[what]
        rates = ", ".join(f"{its.rate(abreast):,.0f}/s at {abreast}" for abreast in ABREAST)
        rows.append((called, f"p50 {its.p50:.2f} ms, {rates}"))
        parts = " and ".join(f"{mine.part(its, abreast):.2f}" for abreast in ABREAST)
        rows.append(
            ("ratio to it, by turns", f"{mine.times(its):.1f}x the time at one, {parts} of the calls")
        )
        if what == "kept":
            there = mine.times(its) * BUDGETED[0], mine.part(its, ABREAST[-1]) * BUDGETED[1]
            where = f"where that takes {BUDGETED[0]} ms and does {BUDGETED[1]:,}/s"
            rows.append((where, f"p50 {there[0]:.2f} ms, {there[1]:,.0f}/s"))
    return rows


def _rows_of(mine: Figures, where: str) -> list[tuple[str, str]]:
    rows = [(f"{where}one call at a time", f"p50 {mine.p50:.2f} ms, p99 {mine.p99:.2f} ms")]
    for abreast in ABREAST:
        best = max(mine.rates[abreast])
        rows.append((f"{where}{abreast} at a time", f"{mine.rate(abreast):,.0f}/s, best turn {best:,.0f}/s"))
    return rows


async def _queue(daemon: Daemon, worker: BenchDaemon) -> list[tuple[str, str]]:
    await asyncio.to_thread(worker.stop)
    peer = daemon.machines.peer_store.find("worker")
    from envelopes.envelope import HELP, Envelope, new_id

    started = time.perf_counter()
    for number in range(1000):
        asked = Envelope(
            new_id(),
            daemon.machines.node.id,
            f"brainstem_{peer.prefix}",
            HELP,
            {"agent": "Echo", "args": {"text": str(number)}},
        )
        await daemon.calls.keep(peer, daemon.dispatcher.open_thread(asked, "brainstem", session=asked.id))
    queued = time.perf_counter() - started
    await asyncio.to_thread(worker.start)
    started = time.perf_counter()
    delivered = None
    while True:
        rows = await daemon.machines.outbox.now().listing(waiting=True, most=2000)
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
        "RAPPD_PEERS_LISTEN": "on",
        "RAPPD_PEERS_PORT": str(port),
        "RAPPD_PEERS_ADDRESS": "127.0.0.1",
        "RAPPD_PEERS_LOOPBACK": "on",
        "RAPPD_NEARBY": "off",
    }


def _a2a(mine: Figures) -> list[tuple[str, str]]:
    from benchmarks import a2a_peer

    if lacking := a2a_peer.missing():
        return [("a2a-sdk SendMessage", f"skipped, needs {lacking}")]
    took, rate = a2a_peer.measure()
    return [
        ("a2a-sdk SendMessage, plain HTTP, nothing durable", f"p50 {took:.2f} ms, {rate:,.0f}/s at 8"),
        ("ratio to it", f"{took / mine.p50:.1f}x as fast at one, {mine.rate(32) / rate:.1f}x the calls"),
    ]
