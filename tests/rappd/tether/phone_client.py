"""A phone without a browser: pairs and talks over the listener's WebSocket, as the phone's page does."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import secrets
from collections.abc import Callable
from typing import Any, Protocol, Self

import aiohttp
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from envelopes.envelope import new_id
from rappd.tether import proofs
from rappd.tether.framing import Assembler, frames_of
from rappd.tether.proofs import Parts

_SECONDS = 100.0 + float(os.environ.get("ANSWER_SECONDS", "0"))


_PAUSE = 0.03
"""Seconds between the parts of a stream."""


class Reply(Protocol):
    """An answer of the control socket."""

    status: int
    body: bytes

    def json(self) -> Any: ...


class Computer(Protocol):
    """A daemon, as its owner reaches it."""

    def request(self, method: str, path: str, body: dict[str, Any] | None, *, control: bool) -> Reply: ...


class PhoneClient:
    """A phone of a running daemon: what its page would hold."""

    def __init__(self, daemon: Computer) -> None:
        self.daemon = daemon
        self.events: list[dict[str, Any]] = []
        self.pages: list[int] = []
        self.here: list[str] = []
        self.refused: dict[str, str] = {}
        self.eggs: dict[str, Any] = {}
        self.workflows: list[dict[str, Any]] = []
        self.waiting: dict[str, Any] = {}
        self.tokens: list[str] = []
        self.standing: dict[str, Any] = {}
        self.answers_to: dict[int, dict[str, Any]] = {}
        self.parts: dict[int, list[str]] = {}
        self._asked = 0
        self.welcome: dict[str, Any] = {}
        self.name = ""
        self.last_seq = 0
        self._scheme, self._address = "http", ""
        self.key: ec.EllipticCurvePrivateKey | None = None
        """The phone's own key, as a browser makes one on https."""
        self.matters: list[dict[str, Any]] = []
        self.answered: list[dict[str, Any]] = []
        self._device: dict[str, Any] = {}
        self._assembler = Assembler()
        self._reading: asyncio.Task[None] | None = None
        self._soon: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Condition()

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of the listener for phones."""
        host, _, port = self._address.rpartition(":")
        return host, int(port)

    @property
    def session(self) -> str:
        """The session that it is in."""
        return str(self.welcome.get("session", ""))

    @property
    def id(self) -> str:
        """The phone's id, once it joined."""
        return str(self._device["device"])

    async def pair(self, kind: str = "guest", session: bool = True, **asked: Any) -> Self:
        """Joins, and the session of the phones, too: a code is shown, it proves the code, both sides say yes."""
        window = await self._owner("POST", "/devices/window", {**asked, "session": session})
        await self.proves(window)
        await self._send({"type": "confirm", "same": True})
        verdict = {"id": window["id"], "same": True, "kind": kind}
        await self._owner("POST", "/devices/window/answer", verdict)
        return await self._greet()

    async def proves(self, window: dict[str, Any]) -> None:
        """Connects and proves the code; nobody has said yes."""
        self._scheme, self._address, token = re.findall(
            r"(https?)://([^/]+)/t#.*&t=([^&]+)", window["links"][0]
        )[0]
        await self._connect({"window": window["id"]}, window["id"], proofs.unb64(token))

    async def send_text(self, text: str) -> None:
        """Sends a frame as it is. What the computer closes meanwhile takes no more."""
        with contextlib.suppress(ConnectionError):
            await self._line.send_str(text)

    async def is_closed(self) -> bool:
        """Waits until the computer closes the connection."""
        async with asyncio.timeout(_SECONDS):
            while not self._line.closed:
                await self._line.receive()
        await self._http.close()
        return True

    async def resume(self) -> Self:
        """Comes back."""
        device = self._device
        await self._connect({"device": device["device"]}, device["device"], proofs.unb64(device["secret"]))
        return await self._greet()

    def kept(self) -> str:
        """Text by which another process resumes as this phone."""
        return json.dumps([self._address, self._device])

    def remember(self, kept: str) -> None:
        """Implements ``kept``."""
        self._address, self._device = json.loads(kept)

    async def leave(self) -> None:
        """Disconnects."""
        for soon in self._soon:
            soon.cancel()  # nothing of this connection goes over the next one
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        await self._shut()
        await self._http.close()

    async def say(self, text: str, *, to: str = "", id: str = "") -> str:
        """Sends a sentence and returns its id."""
        id = id or new_id()
        await self._send({"type": "say", "event_id": id, "text": text, "to": to})
        return id

    async def egg_token(self) -> str:
        """A token for one request for an egg; "" when it is refused."""
        had = len(self.tokens)
        self.refused.pop("egg_token", None)
        await self._send({"type": "egg_token"})
        await self.sees(lambda: len(self.tokens) > had or "egg_token" in self.refused)
        return self.tokens[-1] if len(self.tokens) > had else ""

    async def fetch(self, id: str, token: str) -> tuple[int, bytes]:
        """Status and body of a request for an egg."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with self._http.get(
            f"{self._scheme}://{self._address}/tether/v2/eggs/{id}", headers=headers
        ) as answer:
            return answer.status, await answer.read()

    async def send_egg(self, token: str, body: Any, name: str = "it.egg") -> tuple[int, Any]:
        """Status and answer of sending an egg."""
        headers = {"Authorization": f"Bearer {token}", "X-Rappd-Name": name}
        url = f"{self._scheme}://{self._address}/tether/v2/eggs"
        async with self._http.post(url, data=body, headers=headers) as answer:
            return answer.status, await answer.json()

    async def clear(self) -> None:
        """Empties all screens."""
        await self._send({"type": "clear"})

    async def sees(self, condition: Callable[[], Any]) -> None:
        """Waits until a message made the condition true."""
        async with asyncio.timeout(_SECONDS), self._changed:
            await self._changed.wait_for(condition)

    async def is_answered(self, id: str) -> dict[str, Any]:
        """Waits for the answer to a sentence."""
        await self.sees(lambda: self.answers(id))
        return self.answers(id)[0]

    def answers(self, id: str) -> list[dict[str, Any]]:
        """Answers to a sentence that it has seen."""
        return [one for one in self.events if one["kind"] == "twin_response" and one["event_id"] == id]

    def has(self, id: str, kind: str) -> bool:
        """True once it has seen that event among the latest."""
        return any(one["event_id"] == id and one["kind"] == kind for one in self.events[-8:])

    def texts(self) -> list[str]:
        """Texts of the sentences and answers."""
        kinds = ("operator_input", "twin_response")
        return [one["text"] for one in self.events if one["kind"] in kinds]

    async def _owner(self, method: str, path: str, body: dict[str, Any]) -> Any:
        answer = await asyncio.to_thread(self.daemon.request, method, path, body, control=True)
        assert answer.status == 200, answer.body
        return answer.json()

    async def _connect(self, named: dict[str, str], subject: str, key: bytes) -> None:
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=False)
        )  # a certificate of its own
        try:
            await self._shake_hands(named, subject, key)
        except BaseException:
            await self._http.close()  # else it ends in the midst of another test
            raise

    async def _shake_hands(self, named: dict[str, str], subject: str, key: bytes) -> None:
        nonce = secrets.token_bytes(proofs.NONCE_BYTES)
        asked = {**named, "commit": proofs.b64(proofs.commitment(nonce))}
        opened, host_print, guest_print = await self._open(asked)
        parts = Parts(
            subject,
            host_print,
            guest_print,
            proofs.unb64(opened["nonce"]),
            nonce,
            proofs.unb64(opened["host_key"]),
        )
        mac = proofs.proof(key, "guest", parts.digest())
        auth = {"type": "auth", "nonce": proofs.b64(nonce), "mac": proofs.b64(mac), "name": "Android"}
        await self._send(auth | (signed_with(self.key, parts.digest()) if self.key is not None else {}))
        await self._take("auth_ok")

    async def _open(self, asked: dict[str, str]) -> tuple[dict[str, Any], bytes, bytes]:
        """Opens the line: the computer's answer, and the fingerprints of both sides."""
        self._line = await self._reach(f"{self._scheme}://{self._address}/tether/v2/socket")
        await self._send(asked)
        return await self._take("opened"), b"", b""

    async def _shut(self) -> None:
        await self._line.close()

    async def _receive(self) -> str | None:
        """The next frame; None when the line is closed."""
        frame = await self._line.receive()
        return frame.data if frame.type is aiohttp.WSMsgType.TEXT else None

    async def _reach(self, address: str) -> aiohttp.ClientWebSocketResponse:
        """Tries again, as the page does: the listener opens after the daemon is ready."""
        async with asyncio.timeout(_SECONDS):
            while True:
                try:
                    return await self._http.ws_connect(address)
                except aiohttp.ClientConnectorError:
                    await asyncio.sleep(0.02)

    async def _greet(self) -> Self:
        self._device |= await self._take("paired")
        self.name = self._device["name"]
        self.here, self.standing = [], {}
        self._reading = asyncio.create_task(self._read())
        await self._send({"type": "hello", "last_seq": self.last_seq, "session": self.session})
        await self.sees(lambda: self.standing and (self.here or not self.session))
        return self

    async def ask(self, method: str, path: str, body: Any = None, last: str = "") -> tuple[int, Any]:
        """Status and answer of a request over the connection; events as a list of `[number, event]`."""
        self._asked += 1
        id = self._asked
        self.answers_to[id] = {"text": "", "more": True}
        text = "" if body is None else json.dumps(body)
        parts = [text[at : at + 200_000] for at in range(0, len(text), 200_000)] or [""]
        self.parts[id] = parts[1:]
        first = {"id": id, "method": method, "path": path, "text": parts[0], "last": last}
        await self.send({"type": "ask", **first, "more": len(parts) > 1})
        answer = self.answers_to[id]
        await self.sees(lambda: not answer["more"])
        if not answer["events"]:
            return answer["status"], json.loads(answer["text"])
        return answer["status"], told_events(answer["text"])

    async def send(self, message: dict[str, Any]) -> None:
        """Sends a message, in as many frames as it takes."""
        for frame in frames_of(message):
            await self.send_text(frame)

    async def _send(self, frame: dict[str, Any]) -> None:
        await self._line.send_str(json.dumps(frame))

    async def _take(self, kind: str) -> dict[str, Any]:
        async with asyncio.timeout(_SECONDS):
            while True:
                frame = await self._receive()
                assert frame is not None, f"closed before {kind}"
                message = self._assembler.feed(frame)
                if message is not None and message["type"] != "ping":
                    break
        assert message["type"] == kind, message
        return message

    async def _read(self) -> None:
        while (frame := await self._receive()) is not None:
            message = self._assembler.feed(frame)
            if message is not None:
                await self._on_message(message)

    async def _on_message(self, message: dict[str, Any]) -> None:
        async with self._changed:
            kind = message["type"]
            if kind == "ping":
                await self._send({"type": "pong"})
            elif kind == "welcome":
                if message["session"] != self.session or message["from_seq"] == 0:
                    self.events, self.last_seq = [], 0
                self.welcome = message
            elif kind == "events":
                self.events += message["events"]
                self.pages.append(len(message["events"]))
                self.last_seq = message["last_seq"]
                if message["more"]:
                    await self._send({"type": "more"})
            elif kind == "participants":
                self.welcome = {**self.welcome, "participants": message["participants"]}
            elif kind == "eggs":
                self.eggs = message
            elif kind == "workflows":
                self.workflows = message["workflows"]
            elif kind == "waiting":
                self.waiting = message
            elif kind == "matter":
                self.matters.append(message)
            elif kind == "answered":
                self.answered.append(message)
            elif kind == "egg_token":
                self.tokens.append(message["token"])
            elif kind == "presence":
                self.here = message["here"]
            elif kind == "standing":
                self.standing = message
            elif kind == "next":
                part = self.parts[message["id"]].pop(0)
                more = bool(self.parts[message["id"]])
                await self.send({"type": "part", "id": message["id"], "text": part, "more": more})
            elif kind == "reply":
                answer = self.answers_to[message["id"]]
                answer.update({**message, "text": answer["text"] + message["text"]})
                if message["more"] and answer["events"] and message["text"]:
                    soon = asyncio.create_task(self._next(message["id"]))
                    self._soon.add(soon)
                    soon.add_done_callback(self._soon.discard)
                elif message["more"]:
                    await self._send({"type": "next", "id": message["id"]})
            elif kind == "refused":
                self.refused[message["event_id"]] = message["error"]
            self._changed.notify_all()

    async def _next(self, id: int) -> None:
        """Takes the next part of a stream, after a pause as the page makes one: 50 frames a second are too many."""
        await asyncio.sleep(_PAUSE)
        await self.send_text(json.dumps({"type": "next", "id": id}))


def signed_with(key: ec.EllipticCurvePrivateKey, digest: bytes) -> dict[str, str]:
    """The fields of ``auth`` that prove a key."""
    r, s = decode_dss_signature(key.sign(proofs.key_text(digest), ec.ECDSA(SHA256())))
    point = key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    signature = r.to_bytes(32, "big") + s.to_bytes(32, "big")
    return {"key": proofs.b64(point), "key_signature": proofs.b64(signature)}


def told_events(text: str) -> list[tuple[int, dict[str, Any]]]:
    """The events of a stream, with their numbers."""
    found = re.findall(r"id: (\d+)\ndata: (.+)\n\n", text)
    return [(int(number), json.loads(event)) for number, event in found]
