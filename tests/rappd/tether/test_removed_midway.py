"""A phone that is removed while something is under way: on its way in, with a frame unread, or while it reads an egg."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiortc.exceptions import InvalidStateError
from fixtures.running_daemon import RunningDaemon

from envelopes.envelope import new_id
from tests.rappd.tether.aiortc_client import AiortcClient
from tests.rappd.tether.phone_client import PhoneClient

pytestmark = pytest.mark.own_process

MakePhone = Callable[..., Awaitable[PhoneClient]]


async def owner(desk: RunningDaemon, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    answer = await asyncio.to_thread(desk.request, method, path, body, control=True)
    assert answer.status == 200, answer.body
    return answer.json()


async def connected(desk: RunningDaemon) -> list[str]:
    """Names of the phones that are registered and here."""
    return [one["name"] for one in (await owner(desk, "GET", "/devices"))["devices"] if one["connected"]]


@pytest.mark.parametrize("over", [PhoneClient, AiortcClient])
async def test_phone_removed_between_offer_and_proof_stays_out(
    desk: RunningDaemon, phone: MakePhone, over: type[PhoneClient]
) -> None:
    ben = await phone(name="Ben")
    anna = await phone(over, name="Anna")
    await anna.leave()
    opened = anna._open

    async def removed_meanwhile(asked: dict[str, str]) -> Any:
        found = await opened(asked)
        await owner(desk, "DELETE", "/devices/Anna")
        return found

    anna._open = removed_meanwhile  # type: ignore[method-assign]
    with pytest.raises((AssertionError, ConnectionError, InvalidStateError)):
        await anna.resume()
    assert ben.here == ["Ben"] and await connected(desk) == ["Ben"]


class Deaf(PhoneClient):
    """Reads nothing any more, once told so; what it is sent stays on the way."""

    async def stop_reading(self, desk: RunningDaemon) -> None:
        assert self._reading is not None and self._line._conn is not None
        self._reading.cancel()
        wire = self._line._conn.transport
        assert wire is not None
        self.wire = wire
        wire.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wire.pause_reading()  # type: ignore[attr-defined]  # a socket's transport has it
        before = 0
        for _ in range(28):  # until the sockets hold no more; the queue behind them has room for some more
            await self.send_text(json.dumps({"type": "hello"}))
            await asyncio.sleep(0.3)
            await owner(desk, "GET", "/devices")  # it has been heard: else many are answered at once
            held = held_for(wire.get_extra_info("sockname")[1])
            if held and held == before:
                break
            before = held

    async def says(self, text: str) -> str:
        id = new_id()
        await self.send_text(json.dumps({"type": "say", "event_id": id, "text": text, "to": ""}))
        return id


def held_for(port: int) -> int:
    """Bytes that wait in the other end's socket until ``port`` of 127.0.0.1 takes them."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(int(row[4].partition(":")[0], 16) for row in rows if row[2] == f"0100007F:{port:04X}")


async def test_removed_phone_that_reads_nothing_is_heard_no_more(
    desk: RunningDaemon, phone: MakePhone
) -> None:
    ben = await phone(name="Ben")
    for _ in range(9):
        await ben.is_answered(await ben.say("x" * 14_000))
    for name in ("Anna", "Berta", "Clara", "Dora"):
        deaf = await phone(Deaf, name=name)
        await deaf.stop_reading(desk)
        with contextlib.suppress(
            TimeoutError
        ):  # on a busy machine that took so long that the daemon gave it up
            async with asyncio.timeout(20):
                await ben.is_answered(await deaf.says("before"))
            break
    await owner(desk, "DELETE", f"/devices/{name}")
    async with asyncio.timeout(100):
        while not deaf.wire.is_closing():
            await deaf.says("after")
            await asyncio.sleep(0.1)
    await ben.is_answered(await ben.say("and then"))
    assert "before" in ben.texts() and "after" not in ben.texts()


@pytest.mark.parametrize("how", ["removed", "narrowed"])
async def test_fetch_by_a_phone_that_reads_nothing_ends_with_its_right(
    desk: RunningDaemon, phone: MakePhone, tmp_path: Path, how: str
) -> None:
    await phone(name="Ben")  # the listener stays open for him
    anna = await phone(AiortcClient, name="Anna")
    await owner(desk, "POST", "/devices/Anna", {"eggs": True})
    await asyncio.to_thread(desk.cli, "twins", "new", "Rose")
    (rose,) = (desk.home / "twins").glob("[0-9a-f]*")
    (rose / ".brainstem_data").mkdir(exist_ok=True)
    (rose / ".brainstem_data" / "large.bin").write_bytes(os.urandom(12 << 20))  # more than sockets hold
    egg = tmp_path / "rose.egg"
    await asyncio.to_thread(desk.cli, "egg", "pack", "Rose", "--output", str(egg))
    await asyncio.to_thread(desk.cli, "devices", "send", "Anna", str(egg))
    await anna.sees(lambda: anna.eggs["offers"])
    request = (
        f"GET /tether/v2/eggs/{anna.eggs['offers'][0]['id']} HTTP/1.1\r\nHost: {anna.address[0]}:{anna.address[1]}\r\n"
        f"Authorization: Bearer {await anna.egg_token()}\r\n\r\n"
    )
    with socket.create_connection(anna.address, 20) as deaf:
        deaf.sendall(request.encode())
        assert b" 200 " in await asyncio.to_thread(deaf.recv, 100)
        await asyncio.to_thread(
            desk.wait_for, lambda: "rose.egg" in open_files(desk), what="a fetch under way"
        )
        await asyncio.sleep(0.5)
        assert "rose.egg" in open_files(desk), "it waits for the phone"
        if how == "removed":
            await owner(desk, "DELETE", "/devices/Anna")
        else:
            await owner(desk, "POST", "/devices/Anna", {"eggs": False})
        await asyncio.to_thread(desk.wait_for, lambda: "rose.egg" not in open_files(desk))


def open_files(desk: RunningDaemon) -> set[str]:
    """Names of the files that the daemon holds open."""
    assert desk.process is not None
    found = set()
    for one in Path(f"/proc/{desk.process.pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found.add(one.readlink().name)
    return found
