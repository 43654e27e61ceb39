"""Strangers in the network while a code is shown: what they try costs them, not the phone that scans it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from fixtures.running_daemon import RunningDaemon

from rappd.tether import proofs
from tests.rappd.tether.phone_client import PhoneClient

MakePhone = Callable[..., Awaitable[PhoneClient]]
COMMIT = proofs.b64(proofs.commitment(bytes(proofs.NONCE_BYTES)))


async def opened(http: aiohttp.ClientSession, address: str) -> aiohttp.ClientWebSocketResponse:
    """A connection of somebody who says that he types the code."""
    line = await http.ws_connect(f"http://{address}/tether/v2/socket")
    await line.send_str(json.dumps({"window": "", "commit": COMMIT}))
    return line


@pytest.mark.parametrize("attack", ["wrong proofs", "silence"])
async def test_stranger_neither_voids_the_code_nor_keeps_phones_out(
    desk: RunningDaemon, phone: MakePhone, attack: str
) -> None:
    ben = await phone(name="Ben")
    await ben.leave()
    answer = await asyncio.to_thread(desk.request, "POST", "/devices/window", {"name": "Anna"}, control=True)
    window: dict[str, Any] = answer.json()
    address = re.findall(r"http://([^/]+)/t#", window["links"][0])[0]
    wrong = {"type": "auth", "nonce": proofs.b64(bytes(proofs.NONCE_BYTES)), "mac": proofs.b64(bytes(32))}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(local_addr=("127.0.0.9", 0))) as stranger:
        lines = [await opened(stranger, address) for _ in range(9)]
        for line in lines:
            first = await line.receive()
            if attack == "wrong proofs" and first.type is aiohttp.WSMsgType.TEXT:
                with contextlib.suppress(ConnectionError):
                    await line.send_str(json.dumps(wrong))
                await line.receive()
        await ben.resume()
        anna = PhoneClient(desk)
        await anna.proves(window)
        state = await asyncio.to_thread(desk.request, "GET", "/devices/window", control=True)
        assert state.json()["state"] == "compare"
        await anna.leave()
