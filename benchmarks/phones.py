"""A phone by WebRTC: from the scan to the first answer, coming back, 1 KiB round trips, and memory while closed."""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from benchmarks.daemon import BenchDaemon, free_port
from rappd.tether.phone_session import FRAMES_A_SECOND

if TYPE_CHECKING:
    from tests.rappd.tether.aiortc_client import AiortcClient

PHONES, TRIPS, RESUMES = 3, 100, 7
"""Resumes stay below ten offers a minute, with the pairings."""
PAUSE = 0.01
TEXT = "x" * 1024
_SAID, _ANSWERED = "operator_input", "twin_response"
FIRST_SECONDS, RESUME_SECONDS, PART = 1.0, 0.5, 0.25
MOST_RATE = PHONES * FRAMES_A_SECOND
"""Sentences a second: more than that from three phones closes their connections."""


def missing() -> str:
    """The name of what it needs and lacks; aiortc uses no loopback address."""
    from rappd.tether.addresses import reachable_addresses
    from rappd.tether.webrtc import webrtc_installed

    if not webrtc_installed():
        return "aiortc"
    return "" if reachable_addresses(("0.0.0.0",), 1) else "a network"


def run() -> list[tuple[str, str]]:
    """One daemon with the scripted model; three phones; bare aiortc peers and their hub in the same run."""
    with tempfile.TemporaryDirectory() as folder:
        with phone_daemon(Path(folder) / "desk") as daemon:
            daemon.start()
            closed = _memory(daemon)
            rows, opened = asyncio.run(_phones(daemon))
        rows.append(
            (
                "memory of the daemon and its WebRTC process",
                f"closed {closed[0] / 1024:.1f} MiB and no process, "
                f"with {PHONES} phones {opened[0] / 1024:.1f} and {opened[1] / 1024:.1f} MiB",
            )
        )
    return rows


async def _phones(daemon: BenchDaemon) -> tuple[list[tuple[str, str]], tuple[int, int]]:
    first, phone = await _first_answer(daemon)
    resumed = await _resumes(phone)
    others = [await phone_client(daemon).pair(name=f"phone {n}") for n in range(2, PHONES + 1)]
    every = [phone, *others]
    bare, hub = await _Hub.open(1), await _Hub.open(PHONES)
    rates: dict[str, list[float]] = {_SAID: [], _ANSWERED: [], "bare": [], "hub": []}
    try:
        for _ in range(3):
            for kind in (_SAID, _ANSWERED):
                rates[kind].append(await _session_rate(every, kind))
            rates["bare"].append(await bare.rate())
            rates["hub"].append(await hub.rate())
        memory = _memory(daemon)
    finally:
        await bare.close()
        await hub.close()
        for one in every:
            await one.leave()
    rows = [
        ("scan to the first answer", f"{first * 1000:.0f} ms; {first / FIRST_SECONDS:.2f} of what it may take"),
        ("resume to the session", f"p50 {resumed * 1000:.0f} ms; {resumed / RESUME_SECONDS:.2f} of what it may take"),
        ("1 KiB round trips of a bare aiortc peer and a hub", f"{statistics.median(rates['bare']):,.0f}/s"),
        ("1 KiB from one to three by a bare aiortc hub", f"{statistics.median(rates['hub']):,.0f}/s"),
    ]  # fmt: skip
    for kind, called in (
        (_SAID, "recorded and seen by three phones"),
        (_ANSWERED, "answered and seen by three phones"),
    ):
        parts = {
            other: statistics.median(mine / its for mine, its in zip(rates[kind], rates[other], strict=True))
            for other in ("hub", "bare")
        }
        rate = statistics.median(rates[kind])
        told = f"{rate:,.0f}/s, {parts['hub']:.2f} of the fan-out, at least {PART}; {parts['bare']:.2f} of the round trip"
        rows.append((f"1 KiB {called}", f"{told}; {rate / MOST_RATE:.2f} of what the limit lets them send"))
    return rows, memory


async def _first_answer(daemon: BenchDaemon) -> tuple[float, AiortcClient]:
    """From the code that is shown to an answer, with both people as quick as they can be."""
    phone = phone_client(daemon)
    await asyncio.to_thread(daemon.chat, "hello")
    began = time.perf_counter()
    await phone.pair()
    await phone.is_answered(await phone.say("hello"))
    return time.perf_counter() - began, phone


async def _resumes(phone: AiortcClient) -> float:
    took = []
    for _ in range(RESUMES):
        await phone.leave()
        began = time.perf_counter()
        await phone.resume()
        took.append(time.perf_counter() - began)
    return statistics.median(took)


async def _session_rate(phones: list[AiortcClient], kind: str) -> float:
    """Round trips a second, one after the other: from a sentence until every phone has its event of that kind.

    The phones speak by turns, with pauses that do not count: each may send fifty frames a second. The hub is timed with
    the same pauses: a process that slept answers later than one that never does.
    """
    took = 0.0
    for number in range(TRIPS):
        began = time.perf_counter()
        id = await phones[number % len(phones)].say(TEXT)
        for one in phones:
            await one.sees(lambda one=one, id=id: one.has(id, kind))  # type: ignore[misc]
        took += time.perf_counter() - began
        if kind == _SAID:
            await phones[0].is_answered(id)
        await asyncio.sleep(PAUSE)
    return TRIPS / took


class _Hub:
    """Bare aiortc peers of a hub in another process, as phones are; a text of one goes to all of them."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._peers: list[Any] = []
        self._channels: list[Any] = []
        self._heard: list[asyncio.Queue[str]] = []

    @classmethod
    async def open(cls, count: int) -> _Hub:
        """Connects that many to a new hub."""
        program = [sys.executable, "-m", "benchmarks.bare_hub"]
        pipe = asyncio.subprocess.PIPE
        hub = cls(await asyncio.create_subprocess_exec(*program, stdin=pipe, stdout=pipe))
        for _ in range(count):
            await hub._connect()
        return hub

    async def rate(self) -> float:
        """Texts of 1 KiB a second, one after the other, that all get; with pauses that do not count."""
        took = 0.0
        for number in range(TRIPS):
            began = time.perf_counter()
            self._channels[number % len(self._channels)].send(TEXT)
            for heard in self._heard:
                await heard.get()
            took += time.perf_counter() - began
            await asyncio.sleep(PAUSE)
        return TRIPS / took

    async def close(self) -> None:
        for peer in self._peers:
            await peer.close()
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()

    async def _connect(self) -> None:
        from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription

        assert self._process.stdin is not None and self._process.stdout is not None
        peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        channel = peer.createDataChannel("rapp")
        heard: asyncio.Queue[str] = asyncio.Queue()
        is_open = asyncio.Event()
        channel.on("message", heard.put_nowait)
        channel.on("open", is_open.set)
        await peer.setLocalDescription(await peer.createOffer())
        self._process.stdin.write(json.dumps(peer.localDescription.sdp).encode() + b"\n")
        answer = json.loads(await self._process.stdout.readline())
        await peer.setRemoteDescription(RTCSessionDescription(answer, "answer"))
        await is_open.wait()
        self._peers.append(peer)
        self._channels.append(channel)
        self._heard.append(heard)


class _Computer:
    """The daemon, as the tests' phones reach its owner."""

    status, body = 200, b""

    def __init__(self, daemon: BenchDaemon) -> None:
        self._daemon = daemon
        self._found: Any = None

    def request(self, method: str, path: str, body: dict[str, Any] | None, *, control: bool) -> Self:
        self._found = self._daemon.control(method, path, body)
        return self

    def json(self) -> Any:
        return self._found


def phone_client(daemon: BenchDaemon) -> AiortcClient:
    """A phone that is not paired yet."""
    from tests.rappd.tether.aiortc_client import AiortcClient

    return AiortcClient(_Computer(daemon))


def phone_daemon(home: Path) -> BenchDaemon:
    """A daemon with the scripted model and a free port for phones."""
    return BenchDaemon(home, LLM_FAKE="1", RAPPD_TETHER_PORT=str(free_port()))


def _memory(daemon: BenchDaemon) -> tuple[int, int]:
    """KiB of the daemon, and of its WebRTC process (0 without one)."""
    assert daemon.process is not None
    found = {"daemon": _kib(daemon.process.pid), "worker": 0}
    children = Path(f"/proc/{daemon.process.pid}/task").glob("*/children")
    for pid in (int(word) for child in children for word in child.read_text().split()):
        if b"rtc_worker" in Path(f"/proc/{pid}/cmdline").read_bytes():
            found["worker"] = _kib(pid)
    return found["daemon"], found["worker"]


def _kib(pid: int) -> int:
    return int(Path(f"/proc/{pid}/status").read_text().partition("VmRSS:")[2].split()[0])
