"""A relay between a phone and the computer that ends the encryption on both sides. Prints one JSON line.

relay_attack.py LINK            hands the frames on unchanged
relay_attack.py LINK --knows    knows the code, too, and proves itself to both sides
relay_attack.py LINK --claims   tells each side that it has the certificate of the other
relay_attack.py LINK --forms    hides its certificate in the fields for the computer, nine times
relay_attack.py LINK --page     knows the code; the phone is a browser, whose offer it reads, and whose answer it prints
"""

from __future__ import annotations

import asyncio
import json
import sys
import urllib.error
import urllib.request
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription

from rappd.tether import proofs
from rappd.tether.proofs import Parts
from rappd.tether.rtc_worker import own_parameters
from rappd.tether.webrtc_parameters import TransportParameters, checked, description
from tests.rappd.tether.hostile_fields import hostile

NONCE = bytes(range(16))
FORMS = [
    "ufrag line 0", "pwd line 1", "fingerprint line 2", "setup line 3", "address line 5", "zone line 6", "name line 7",
    "also sdp", "fingerprint '\\u2028' line",
]  # fmt: skip


class End:
    """A WebRTC connection."""

    def __init__(self) -> None:
        self.peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self.frames: asyncio.Queue[str] = asyncio.Queue()
        self.opened = asyncio.Event()
        self.failed = asyncio.Event()
        self.channel: Any = None
        self.peer.on("connectionstatechange", self._look)

    def use(self, channel: Any) -> None:
        self.channel = channel
        channel.on("message", self.frames.put_nowait)
        channel.on("open", self.opened.set)
        if channel.readyState == "open":
            self.opened.set()

    async def offer(self) -> TransportParameters:
        self.use(self.peer.createDataChannel("rapp"))
        await self.peer.setLocalDescription(await self.peer.createOffer())
        return own_parameters(self.peer, "actpass")

    async def answer(self, offer: TransportParameters) -> TransportParameters:
        self.peer.on("datachannel", self.use)
        await self.peer.setRemoteDescription(RTCSessionDescription(description(offer), "offer"))
        await self.peer.setLocalDescription(await self.peer.createAnswer())
        return own_parameters(self.peer, "active")

    async def take(self, answer: TransportParameters) -> None:
        await self.peer.setRemoteDescription(RTCSessionDescription(description(answer), "answer"))

    def _look(self) -> None:
        if self.peer.connectionState in ("failed", "closed"):
            self.failed.set()


def post(address: str, body: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(
        f"http://{address}/tether/v2/offer", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=100) as response:
        found: dict[str, Any] = json.loads(response.read())
        return found


def fields(parameters: TransportParameters) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(parameters)
    return found


def parts_of(said: dict[str, Any], host: TransportParameters, guest: TransportParameters) -> Parts:
    nonce, key = proofs.unb64(said["nonce"]), proofs.unb64(said["host_key"])
    return Parts(said["subject"], host.print, guest.print, nonce, NONCE, key)


def auth(parts: Parts, token: bytes) -> str:
    mac = proofs.b64(proofs.proof(token, "guest", parts.digest()))
    return json.dumps({"type": "auth", "nonce": proofs.b64(NONCE), "mac": mac, "name": "Phone"})


async def attack(link: str, knows: bool) -> dict[str, Any]:
    found = urlsplit(link)
    wanted = parse_qs(found.fragment)
    token, window = proofs.unb64(wanted["t"][0]), wanted["s"][0]
    phone, left, right = End(), End(), End()
    phone_offer = await phone.offer()
    asked = {"window": window, "commit": proofs.b64(proofs.commitment(NONCE))}
    right_offer = await right.offer()
    said = await asyncio.to_thread(post, found.netloc, {**asked, "transport": fields(right_offer)})
    computer = checked(said["transport"])
    await right.take(computer)
    left_answer = await left.answer(phone_offer)
    await phone.take(left_answer)
    await asyncio.gather(*(one.opened.wait() for one in (phone, left, right)))
    seen_by_phone = parts_of(said, left_answer, phone_offer)
    seen_by_computer = parts_of(said, computer, right_offer)
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


async def claim(link: str) -> dict[str, Any]:
    """Both sides are told the certificate of the other: then both would show the same digits."""
    found = urlsplit(link)
    phone, left, right = End(), End(), End()
    phone_offer, right_offer = await phone.offer(), await right.offer()
    asked = {
        "window": parse_qs(found.fragment)["s"][0],
        "commit": proofs.b64(proofs.commitment(NONCE)),
        "transport": {**fields(right_offer), "fingerprint": phone_offer.fingerprint},
    }
    said = await asyncio.to_thread(post, found.netloc, asked)
    computer = checked(said["transport"])
    await right.take(computer)
    left_answer = await left.answer(phone_offer)
    await phone.take(msgspec.structs.replace(left_answer, fingerprint=computer.fingerprint))
    await phone.failed.wait()
    return {"opened": [name for name, one in (("phone", phone), ("computer", right)) if one.opened.is_set()]}


async def hide(link: str) -> dict[str, Any]:
    """The fields for the computer name the phone's certificate, and the relay's in another way."""
    found = urlsplit(link)
    phone_offer, right_offer = await End().offer(), await End().offer()
    claimed = {**fields(right_offer), "fingerprint": phone_offer.fingerprint}
    forms = hostile(claimed, right_offer.fingerprint)
    asked = {"window": parse_qs(found.fragment)["s"][0], "commit": proofs.b64(proofs.commitment(NONCE))}
    statuses = set()
    for form in FORMS:
        try:
            await asyncio.to_thread(post, found.netloc, {**asked, "transport": forms[form]})
            statuses.add(200)
        except urllib.error.HTTPError as problem:
            statuses.add(problem.code)
    return {"statuses": sorted(statuses)}


async def between(link: str) -> None:
    """The phone is a browser: its offer comes as a line, its answer goes as one; then the relay proves itself to both."""
    found = urlsplit(link)
    wanted = parse_qs(found.fragment)
    token = proofs.unb64(wanted["t"][0])
    left, right = End(), End()
    body = json.loads(await asyncio.to_thread(sys.stdin.readline))
    phone_offer = msgspec.structs.replace(checked(body["transport"]), candidates=())
    right_offer = await right.offer()
    own = proofs.b64(proofs.commitment(NONCE))
    asked = {"window": wanted["s"][0], "commit": own, "transport": fields(right_offer)}
    said = await asyncio.to_thread(post, found.netloc, asked)
    computer = checked(said["transport"])
    await right.take(computer)
    left_answer = await left.answer(phone_offer)
    answer = {**said, "transport": fields(left_answer), "computer": computer.fingerprint}
    print(json.dumps(answer), flush=True)
    await asyncio.gather(left.opened.wait(), right.opened.wait())
    nonce = proofs.unb64(json.loads(await left.frames.get())["nonce"])
    right.channel.send(auth(parts_of(said, computer, right_offer), token))
    reply = json.loads(await right.frames.get())
    digest = replace(parts_of(said, left_answer, phone_offer), guest_nonce=nonce).digest()
    left.channel.send(json.dumps({**reply, "mac": proofs.b64(proofs.proof(token, "host", digest))}))
    await asyncio.to_thread(sys.stdin.readline)  # both screens are looked at meanwhile


async def main() -> None:
    link, words = sys.argv[1], sys.argv[2:]
    async with asyncio.timeout(100):
        if "--page" in words:
            await between(link)
            return
        if "--claims" in words:
            result = await claim(link)
        elif "--forms" in words:
            result = await hide(link)
        else:
            result = await attack(link, "--knows" in words)
        print(json.dumps(result), flush=True)
    if "--knows" in words:
        await asyncio.to_thread(sys.stdin.readline)  # the computer's digits are looked at meanwhile


asyncio.run(main())
