"""A phone without a browser, over a WebRTC data channel."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription

from rappd.tether import sdp
from tests.rappd.tether.phone_client import PhoneClient


class AiortcClient(PhoneClient):
    """Has a new certificate at each visit, so that it resumes by its secret."""

    async def _open(self, asked: dict[str, str]) -> tuple[dict[str, Any], bytes, bytes]:
        self._peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self._channel = self._peer.createDataChannel("rapp", ordered=True)
        self._frames: asyncio.Queue[str | None] = asyncio.Queue()
        is_open = asyncio.Event()
        self._channel.on("open", is_open.set)
        self._channel.on("message", self._frames.put_nowait)
        self._channel.on("close", lambda: self._frames.put_nowait(None))
        await self._peer.setLocalDescription(await self._peer.createOffer())
        own = self._peer.localDescription.sdp
        address = f"http://{self._address}/tether/v2/offer"
        async with self._http.post(address, json={**asked, "sdp": own}) as response:
            opened = await response.json()
            assert response.status == 200, opened
        await self._peer.setRemoteDescription(RTCSessionDescription(opened["sdp"], "answer"))
        async with asyncio.timeout(20):
            await is_open.wait()
        return opened, sdp.fingerprint(opened["sdp"]), sdp.fingerprint(own)

    async def _send(self, frame: dict[str, Any]) -> None:
        self._channel.send(json.dumps(frame))

    async def _receive(self) -> str | None:
        return await self._frames.get()

    async def _shut(self) -> None:
        await self._peer.close()
