"""Eggs of a phone that stalls, loses its right, or asks for too much while they are on their way."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from fixtures.running_daemon import RunningDaemon

from rappd.features.operation import Upload
from rappd.listeners import request_timeout
from rappd.listeners.connection_admission import AdmittedRunner, ConnectionAdmission, mark_authenticated
from rappd.tether import egg_transfers, phone_eggs
from rappd.tether.egg_transfers import MOST_AT_ONCE, EggTransfers
from rappd.tether.errors import BadEggTokenError, EggTooLargeError
from rappd.tether.phone_eggs import PhoneEggs
from tests.rappd.tether.phone_client import PhoneClient
from tests.rappd.tether.test_phone_eggs import carrier, device, owner

MakePhone = Callable[..., Awaitable[PhoneClient]]
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture(autouse=True)
def any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that stands still is not ended by the limit that each has: these tests are of other ends."""
    monkeypatch.setattr(request_timeout, "ARRIVAL_SECONDS", 600.0)


async def asks(phone: PhoneClient, line: str, *more: str) -> Streams:
    """A request for an egg by hand: what follows its head is the caller's."""
    host, port = phone.address
    reader, writer = await asyncio.open_connection(host, port)
    token = await phone.egg_token()
    head = (f"{line} HTTP/1.1", f"Host: {host}:{port}", f"Authorization: Bearer {token}", *more, "", "")
    writer.write("\r\n".join(head).encode())
    await writer.drain()
    return reader, writer


async def sends(phone: PhoneClient, content: bytes) -> Streams:
    """Sends all of an egg but the sign that it is the end."""
    reader, writer = await asks(phone, "POST /tether/v2/eggs", "Transfer-Encoding: chunked")
    writer.write(b"%x\r\n%b\r\n" % (len(content), content))
    await writer.drain()
    return reader, writer


def staged(desk: RunningDaemon) -> list[Path]:
    return list((desk.home / "eggs" / ".arrived").glob("*.part"))


async def until(desk: RunningDaemon, condition: Callable[[], Any]) -> None:
    await asyncio.to_thread(desk.wait_for, condition)


@pytest.mark.parametrize("lost", ["the right", "the device"])
async def test_phone_that_stalls_loses_its_bytes_with_its_right(
    desk: RunningDaemon, phone: MakePhone, lost: str
) -> None:
    anna = await carrier(desk, phone)
    await phone(name="Ben")  # the listener stays open for him
    _, egg = await anna.fetch("session", await anna.egg_token())

    reader, writer = await sends(anna, egg)
    writer.write(b"0\r\n\r\n")
    assert b" 200 " in await asyncio.wait_for(reader.readline(), 100), "positive control"
    writer.close()
    (arrived,) = (await owner(desk, "GET", "/eggs/arrived"))["arrived"]
    await owner(desk, "DELETE", f"/eggs/arrived/{arrived['id']}")

    reader, writer = await sends(anna, egg)
    await until(desk, lambda: staged(desk))
    if lost == "the right":
        await owner(desk, "POST", "/devices/Anna", {"eggs": False})
    else:
        await owner(desk, "DELETE", "/devices/Anna")
    await until(desk, lambda: not staged(desk))
    assert b" 401 " in await asyncio.wait_for(reader.readline(), 100)
    writer.write(b"0\r\n\r\n")
    assert (await owner(desk, "GET", "/eggs/arrived"))["arrived"] == []
    writer.close()


async def test_phone_carries_few_at_once_and_stalled_ones_end_with_its_right(
    desk: RunningDaemon, phone: MakePhone
) -> None:
    anna = await carrier(desk, phone)
    large = desk.home / "brainstem" / ".brainstem_data" / "photos.bin"
    large.parent.mkdir(parents=True, exist_ok=True)
    large.write_bytes(os.urandom(24 << 20))  # more than the buffers between the two hold
    egg = str(desk.home / "photos.egg")
    assert (await asyncio.to_thread(desk.cli, "egg", "pack", "-o", egg)).returncode == 0
    await asyncio.to_thread(desk.cli, "devices", "send", "Anna", egg)
    await anna.sees(lambda: anna.eggs["offers"])
    id = anna.eggs["offers"][0]["id"]
    fetch = f"GET /tether/v2/eggs/{id}"

    stalled = [await asks(anna, fetch) for _ in range(MOST_AT_ONCE)]
    for reader, _ in stalled:
        assert b" 200 " in await asyncio.wait_for(reader.readline(), 100), "positive control"
    reader, writer = await asks(anna, fetch)
    assert b" 429 " in await asyncio.wait_for(reader.readline(), 100)
    await asyncio.sleep(0.5)  # the buffers are full by now
    await owner(desk, "POST", "/devices/Anna", {"eggs": False})
    await owner(desk, "POST", "/devices/Anna", {"eggs": True})
    assert len((await anna.fetch(id, await anna.egg_token()))[1]) > 24 << 20
    for _, one in [*stalled, (reader, writer)]:
        one.close()


async def test_same_file_sent_several_times_at_once_is_refused_alike(
    desk: RunningDaemon, phone: MakePhone
) -> None:
    anna = await carrier(desk, phone)
    content = b"no egg" * 1000
    for _ in range(5):
        tokens = [await anna.egg_token() for _ in range(4)]
        answers = await asyncio.gather(*(anna.send_egg(token, content) for token in tokens))
        assert {status for status, _ in answers} == {400}
        assert len({body["error"] for _, body in answers}) == 1
        assert not any(str(desk.home) in body["error"] for _, body in answers)
    assert not [one for one in (desk.home / "eggs" / ".arrived").iterdir() if one.is_dir()]


async def test_full_disk_is_told_to_the_phone_and_leaves_nothing(
    desk: RunningDaemon, phone: MakePhone
) -> None:
    """A limit for the size of a file stands for the disk: the daemon is told the same way."""
    anna = await carrier(desk, phone)
    _, egg = await anna.fetch("session", await anna.egg_token())
    pid = desk.process.pid if desk.process is not None else 0
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    assert signal.getsignal(signal.SIGXFSZ) is signal.SIG_IGN
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (4 << 20, before[1]))
    try:
        status, answer = await anna.send_egg(await anna.egg_token(), egg + bytes(8 << 20))
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
    assert (status, answer["code"]) == (507, "disk_full")
    assert list((desk.home / "eggs" / ".arrived").iterdir()) == []
    assert (await anna.send_egg(await anna.egg_token(), egg))[0] == 200


async def test_connection_of_a_phone_that_asks_nothing_more_is_closed() -> None:
    async def answer(request: web.Request) -> web.Response:
        mark_authenticated(request)
        return web.Response(text="egg")

    app = web.Application()
    app.add_routes([web.get("/", answer)])
    runner = AdmittedRunner(app, ConnectionAdmission(None), shutdown_timeout=1.0, idle_seconds=0.5)
    await runner.setup()
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    runner.open(listener)
    try:
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        for _ in range(2):
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"egg" in await asyncio.wait_for(reader.readuntil(b"egg"), 100), "positive control"
        assert await asyncio.wait_for(reader.read(), 100) == b""
        writer.close()
    finally:
        await runner.cleanup()


class Store:
    """Takes all that comes."""

    async def take_in(self, sender: Any, name: str, body: AsyncIterator[bytes], id: str = "") -> Any:
        return [piece async for piece in body]


async def taken(eggs: PhoneEggs, pieces: list[bytes]) -> Any:
    async def body() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    return await eggs.take_in(device(), "x.egg", Upload(body(), 0))


async def test_egg_that_announces_nothing_and_is_too_large_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(phone_eggs, "MOST_BYTES", 10)
    eggs = PhoneEggs(Store())  # type: ignore[arg-type]
    assert await taken(eggs, [b"12345", b"67890"]) == [b"12345", b"67890"]
    with pytest.raises(EggTooLargeError):
        await taken(eggs, [b"12345", b"67890", b"1"])


async def test_transfer_that_stands_still_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = [True]
    with EggTransfers().begun(device(), lambda _: allowed[0]) as transfer:
        assert await transfer.received(asyncio.sleep(0, "moves")) == "moves"
        with monkeypatch.context() as soon, pytest.raises(TimeoutError):
            soon.setattr(egg_transfers, "STILL_SECONDS", 0.05)
            await transfer.received(asyncio.sleep(3600))
        allowed[0] = False
        with pytest.raises(BadEggTokenError):
            await transfer.received(asyncio.sleep(0))
