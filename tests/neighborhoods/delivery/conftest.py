"""A far machine on loopback that receives once, a way to it, a table in memory, and an outbox to drive."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import aiohttp
import msgspec
import orjson
import pytest
from aiohttp import web
from fixtures.free_ports import free_port

from envelopes.codecs import emergence
from envelopes.envelope import ACK, DONE, ERROR, HELP, Envelope, new_id
from neighborhoods.delivery.delivery_route import RETRIABLE
from neighborhoods.delivery.outbox import Outbox, OutboxOwner, OutboxTiming
from neighborhoods.delivery.retry import RetryPolicy
from neighborhoods.durable_tables import EGG, WAITING, OutgoingEnvelope
from neighborhoods.errors import (
    DeclinedError,
    NeighborhoodError,
    NotPairedError,
    PeerOfflineError,
    RetriableError,
)
from neighborhoods.peer import Peer

QUICK = RetryPolicy(
    first_pause=0.02, longest_pause=0.2, ask_every=0.2, ask_gap=0.02, try_gap=0.01, sweep_every=0.2
)


def peer_called(name: str, digit: str) -> Peer:
    return Peer(digit * 64, name, "mine", b"", name.encode(), "", ("*",), 1)


def question(does: str = "now", **more: Any) -> Envelope:
    """A HELP that tells the far machine how to behave."""
    return Envelope(new_id(), "ask_" + "a" * 16, "brainstem", HELP, {"does": does, **more})


class Clock:
    """Microseconds since 1970, set forward and back at will."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> int:
        return int((time.time() + self.ahead) * 1_000_000)


class RowsInMemory:
    """Keeps what ``OutboxStorage`` promises; outlives the outboxes that use it, as a disk does."""

    def __init__(self) -> None:
        self.rows: dict[int, OutgoingEnvelope] = {}

    async def put(self, item: OutgoingEnvelope) -> int:
        await asyncio.sleep(0)
        for row in self.rows.values():
            if (row.peer, row.id, row.verb) == (item.peer, item.id, item.verb):
                return row.number
        number = len(self.rows) + 1
        self.rows[number] = msgspec.structs.replace(item, number=number)
        return number

    async def move(
        self,
        numbers: list[int],
        state: str,
        *,
        tries: int | None = None,
        next_at: int | None = None,
        answer: bytes = b"",
        trouble: str = "",
    ) -> None:
        await asyncio.sleep(0)
        changed: dict[str, Any] = {"state": state, "answer": answer, "trouble": trouble}
        changed |= {} if tries is None else {"tries": tries}
        changed |= {} if next_at is None else {"next_at": next_at}
        for number in numbers:
            if self.rows[number].state in WAITING:
                self.rows[number] = msgspec.structs.replace(self.rows[number], **changed)
        await asyncio.sleep(0)

    async def due(self, peer: str, at: int, most: int, *, eggs: bool = False) -> list[OutgoingEnvelope]:
        await asyncio.sleep(0)
        found = (
            row
            for row in self.rows.values()
            if row.peer == peer and row.state in ("queued", "delivered") and (row.verb == EGG) == eggs
        )
        return [row for row in found if row.next_at <= at < row.expires_at][:most]

    async def outgoing(
        self, *, waiting: bool = False, peer: str = "", most: int = 1000, eggs: bool | None = None
    ) -> list[OutgoingEnvelope]:
        await asyncio.sleep(0)
        rows = (row for row in self.rows.values() if eggs is None or (row.verb == EGG) == eggs)
        found = (row for row in rows if peer in ("", row.peer))
        return [row for row in found if row.state in WAITING or not waiting][:most]

    async def find_outgoing(self, prefix: str) -> list[OutgoingEnvelope]:
        await asyncio.sleep(0)
        return [row for row in self.rows.values() if row.id.startswith(prefix)]

    async def by_id(self, peer: str, id: str) -> OutgoingEnvelope | None:
        return next((row for row in await self.find_outgoing(id) if row.peer == peer), None)

    async def expire(self, at: int) -> list[OutgoingEnvelope]:
        await asyncio.sleep(0)
        late = [row for row in self.rows.values() if row.state in WAITING and row.expires_at <= at]
        ended = [msgspec.structs.replace(row, state="expired") for row in late]
        self.rows |= {row.number: row for row in ended}
        return ended

    async def peers_waiting(self) -> dict[str, int]:
        await asyncio.sleep(0)
        found: dict[str, int] = {}
        for row in self.rows.values():
            if row.state in WAITING:
                found[row.peer] = found.get(row.peer, 0) + 1
        return found

    def states(self) -> list[str]:
        return [row.state for row in self.rows.values()]


class FarMachine:
    """Commits before it replies, and answers repeats from its record.

    ``data.does`` of what it is sent:

    ``now`` DONE in the reply; ``later`` ACK, until ``finish``; ``fail`` and ``fail503`` a recorded ERROR;
    ``busy`` 429 for the first ``times``; ``stranger`` not_paired while ``distrusts``. ``mood``: ``cut before``
    and ``cut after`` break the connection before and after the commit, ``cut once`` after the next one alone; a
    number answers the whole request with that status.
    """

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.port = free_port()
        """The same each time it comes."""
        self.mood: str | int = ""
        self.retry_after = ""
        self.distrusts = False
        self.too_many_octets = 1 << 30
        self.hold: asyncio.Event | None = None
        self.taken = asyncio.Event()
        self.record: dict[tuple[str, str, str], Envelope | None] = {}
        self.accepted: list[str] = []  # in the order of first acceptance
        self.cancelled: list[str] = []
        self.fetched = 0
        self.on_fetch: tuple[int, str] | None = None
        self.sizes: list[int] = []
        self.octets: list[int] = []
        self.at_once = self.most_at_once = 0
        self._refused: dict[str, int] = {}
        self._runner: web.AppRunner | None = None

    async def come(self) -> None:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_post("/envelopes", self._one)
        app.router.add_post("/envelopes/batch", self._batch)
        app.router.add_get("/envelopes/{id}", self._recorded)
        self._runner = web.AppRunner(app, shutdown_timeout=0.2)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True).start()

    async def leave(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @property
    def is_here(self) -> bool:
        return self._runner is not None

    def finish(self, id: str) -> Envelope:
        """Work that was accepted is done; the reply that is pushed."""
        sender, _, verb = key = next(key for key in self.record if key[1:] == (id, HELP))
        self.record[key] = self.record[key] or Envelope(id, "brainstem", sender, DONE, {"result": verb})
        return self.record[key]

    def forget(self) -> None:
        self.record.clear()

    def _receive(self, envelope: Envelope) -> Envelope:
        key = (envelope.sender, envelope.id, envelope.verb)
        if key in self.record:
            return self.record[key] or envelope.reply(ACK, {})
        does = envelope.data.get("does", "")
        if envelope.verb == "CANCEL":
            self.cancelled.append(envelope.id)
        if self.distrusts and does == "stranger":
            return envelope.refusal(401, "Who are you?", "not_paired")
        if does == "busy":
            count = self._refused[envelope.id] = self._refused.get(envelope.id, 0) + 1
            if count <= envelope.data["times"]:
                return envelope.refusal(429, "Too much at once.", "busy")
        self.accepted.append(envelope.id)
        if does == "later":
            self.record[key] = None
            return envelope.reply(ACK, {})
        if does in ("fail", "fail503"):
            self.record[key] = envelope.refusal(
                503 if does == "fail503" else 500, "It broke.", "agent_failed"
            )
        else:
            self.record[key] = envelope.reply(
                ACK if envelope.verb in (DONE, ERROR) else DONE, {"result": "ok"}
            )
        return self.record[key]

    async def _answer(self, request: web.Request, many: bool) -> web.Response:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            raw = await request.read()
            found = orjson.loads(raw)
            given = [emergence.from_object(one) for one in (found if many else [found])]
            if many:
                self.sizes.append(len(given))
                self.octets.append(len(raw))
            self.taken.set()
            if self.mood == "cut before":
                request.transport.abort()
                return web.Response()
            if isinstance(self.mood, int) and self.mood:
                headers = {"Retry-After": self.retry_after} if self.retry_after else {}
                return web.Response(status=self.mood, headers=headers)
            if len(raw) > self.too_many_octets:
                return web.Response(status=413)
            replies = [emergence.as_object(self._receive(one)) for one in given]
            if self.hold is not None and many:
                await self.hold.wait()
            if self.mood in ("cut after", "cut once"):
                self.mood = "" if self.mood == "cut once" else self.mood
                request.transport.abort()
                return web.Response()
            return web.Response(body=orjson.dumps(replies if many else replies[0]))
        finally:
            self.at_once -= 1

    async def _one(self, request: web.Request) -> web.Response:
        return await self._answer(request, False)

    async def _batch(self, request: web.Request) -> web.Response:
        return await self._answer(request, True)

    async def _recorded(self, request: web.Request) -> web.Response:
        self.fetched += 1
        if self.mood:
            request.transport.abort()
            return web.Response()
        if self.on_fetch is not None:
            asked = Envelope(request.match_info["id"], "me", "you", HELP, {})
            return web.Response(
                body=emergence.encode(asked.refusal(self.on_fetch[0], "No.", self.on_fetch[1]))
            )
        for (sender, id, verb), reply in self.record.items():
            if (id, verb) == (request.match_info["id"], HELP):
                found = reply or Envelope(id, "brainstem", sender, ACK, {})
                return web.Response(body=emergence.encode(found))
        return web.Response(status=404)


class LoopbackWay:
    """A carrier over plain HTTP on loopback; ``raises`` stands for what a TLS way finds out by itself."""

    def __init__(self, *far: FarMachine) -> None:
        self._far = {machine.peer.fingerprint: machine for machine in far}
        self._session: aiohttp.ClientSession | None = None
        self.raises: NeighborhoodError | None = None
        self.sent: list[bytes] = []

    async def send(self, peer: Peer, envelope: bytes, *, wait: float) -> Envelope:
        self.sent.append(envelope)
        _, raw = await self._ask(peer, "POST", "/envelopes", envelope, wait)
        return emergence.decode(raw)

    async def send_batch(self, peer: Peer, envelopes: list[bytes]) -> list[Envelope]:
        _, raw = await self._ask(peer, "POST", "/envelopes/batch", b"[" + b",".join(envelopes) + b"]", 30)
        return [emergence.from_object(one) for one in orjson.loads(raw)]

    async def fetch(self, peer: Peer, id: str, envelope: bytes = b"") -> Envelope | None:
        status, raw = await self._ask(peer, "GET", f"/envelopes/{id}", None, 30)
        return None if status == 404 else emergence.decode(raw)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def _ask(
        self, peer: Peer, method: str, path: str, body: bytes | None, wait: float
    ) -> tuple[int, bytes]:
        if self.raises is not None:
            raise self.raises
        self._session = self._session or aiohttp.ClientSession()
        url = f"http://127.0.0.1:{self._far[peer.fingerprint].port}{path}"
        limit = aiohttp.ClientTimeout(total=wait)
        try:
            async with self._session.request(method, url, data=body, timeout=limit) as response:
                raw = await response.read()
        except aiohttp.ClientConnectorError as error:
            raise PeerOfflineError(f"{peer.name} is away.", maybe_sent=False) from error
        except (aiohttp.ClientError, TimeoutError) as error:
            raise PeerOfflineError(f"{peer.name} fell silent.", maybe_sent=True) from error
        if response.status in RETRIABLE:
            after = response.headers.get("Retry-After")
            raise RetriableError(
                f"{peer.name} is busy.", answered=response.status, retry_after=float(after) if after else None
            )
        if response.status == 401:
            raise NotPairedError(f"{peer.name} does not know this machine.")
        if response.status >= 400 and response.status != 404:
            raise DeclinedError(f"{peer.name} said no.", answered=response.status)
        return response.status, raw


class Home:
    """An outbox on a table that outlives it. ``told`` is what its owner wrote down, by id, each time."""

    def __init__(self, far: FarMachine, pace: RetryPolicy = QUICK) -> None:
        self.far = far
        self.pace = pace
        self.rows = RowsInMemory()
        self.clock = Clock()
        self.told: list[tuple[str, str]] = []
        self.book = {far.peer.fingerprint: far.peer}
        self.verbs: tuple[str, ...] = ()
        self.disk_full = 0
        self.crashes = 0
        self.way = LoopbackWay(far)
        self.outbox = self._opened()

    def _opened(self) -> Outbox:
        return Outbox(
            self.rows,
            self.way,
            OutboxOwner(self.book.get, self._write_down, verbs=lambda _: self.verbs),
            OutboxTiming(self.clock, self.pace),
        )

    async def _write_down(self, row: OutgoingEnvelope, reply: Envelope | None) -> None:
        await asyncio.sleep(0)
        if self.disk_full:
            self.disk_full -= 1
            raise OSError(28, "No space left on device")
        assert reply is None or reply.id == row.id
        self.told.append((row.id, row.state))

    async def put(self, envelope: Envelope, ttl: float = 86_400.0) -> str:
        await self.outbox.put(self.far.peer.fingerprint, envelope, "a question", ttl)
        return envelope.id

    def heard(self) -> None:
        self.outbox.heard_from(self.far.peer.fingerprint)

    async def restart(self, *, crash: bool = False) -> None:
        """With ``crash`` everything is cut off wherever it is; either way only the table is left."""
        if crash:
            self.crashes += 1
            ended = [task for task in asyncio.all_tasks() if task.get_name().startswith("outbox")]
            for task in ended:
                task.cancel()
            await asyncio.gather(*ended, return_exceptions=True)
        else:
            await self.outbox.stop()
        await self.way.close()
        self.way = LoopbackWay(self.far)
        self.outbox = self._opened()
        await self.outbox.resume()

    async def close(self) -> None:
        await self.outbox.stop()
        await self.way.close()


async def until(holds: Callable[[], bool]) -> None:
    """Returns once it holds."""
    async with asyncio.timeout(100):
        while not holds():
            await asyncio.sleep(0.003)


@pytest.fixture
async def far() -> AsyncIterator[FarMachine]:
    machine = FarMachine(peer_called("kitchen", "b"))
    await machine.come()
    yield machine
    await machine.leave()


@pytest.fixture
async def home(far: FarMachine) -> AsyncIterator[Home]:
    place = Home(far)
    yield place
    await place.close()


@pytest.fixture
def kit() -> SimpleNamespace:
    """The classes themselves, for tests that build their own machines."""
    return SimpleNamespace(
        FarMachine=FarMachine, Home=Home, peer_called=peer_called, question=question, until=until, QUICK=QUICK
    )
