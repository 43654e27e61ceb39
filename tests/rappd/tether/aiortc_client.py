"""A phone without a browser, over a WebRTC data channel."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

import msgspec
from aiortc import RTCCertificate, RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.exceptions import InvalidStateError
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from rappd.tether.rtc_worker import own_parameters
from rappd.tether.webrtc_parameters import TransportParameters, checked, description
from tests.rappd.tether.phone_client import Computer, PhoneClient


def peer_with(certificate: RTCCertificate) -> RTCPeerConnection:
    """A connection with that certificate, for which aiortc has no public way."""
    peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    vars(peer)["_RTCPeerConnection__certificates"] = [certificate]
    return peer


class AiortcClient(PhoneClient):
    """Keeps its certificate, as a browser does."""

    def __init__(self, daemon: Computer) -> None:
        super().__init__(daemon)
        self.certificate = RTCCertificate.generateCertificate()

    def kept(self) -> str:
        """Implements ``PhoneClient``."""
        key = self.certificate._key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        shown = self.certificate._cert.public_bytes(serialization.Encoding.PEM)
        return json.dumps([super().kept(), key.decode(), shown.decode()])

    def remember(self, kept: str) -> None:
        """Implements ``PhoneClient``."""
        rest, key, shown = json.loads(kept)
        super().remember(rest)
        self.certificate = RTCCertificate(
            serialization.load_pem_private_key(key.encode(), None),  # type: ignore[arg-type]
            x509.load_pem_x509_certificate(shown.encode()),
        )

    async def _open(self, asked: dict[str, str]) -> tuple[dict[str, Any], bytes, bytes]:
        self._peer = peer_with(self.certificate)
        self._channel = self._peer.createDataChannel("rapp", ordered=True)
        self._frames: asyncio.Queue[str | None] = asyncio.Queue()
        is_open = asyncio.Event()
        self._channel.on("open", is_open.set)
        self._channel.on("message", self._frames.put_nowait)
        self._channel.on("close", lambda: self._frames.put_nowait(None))
        await self._peer.setLocalDescription(await self._peer.createOffer())
        own = self._offered(own_parameters(self._peer, "actpass"))
        address = f"{self._scheme}://{self._address}/tether/v2/offer"
        asked_by = {**asked, "transport": msgspec.to_builtins(own)}
        async with self._http.post(address, json=asked_by) as response:
            opened = await response.json()
            assert response.status == 200, opened
        theirs = checked(opened["transport"])
        await self._peer.setRemoteDescription(RTCSessionDescription(description(theirs), "answer"))
        async with asyncio.timeout(100):
            await is_open.wait()
        return opened, theirs.print, own.print

    def _offered(self, own: TransportParameters) -> TransportParameters:
        """The parameters that it says are its own."""
        return own

    async def send_text(self, text: str) -> None:
        """Implements ``PhoneClient``."""
        with contextlib.suppress(InvalidStateError):
            self._channel.send(text)

    async def _send(self, frame: dict[str, Any]) -> None:
        self._channel.send(json.dumps(frame))

    async def _receive(self) -> str | None:
        return await self._frames.get()

    async def _shut(self) -> None:
        await self._peer.close()
