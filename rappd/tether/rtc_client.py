"""The daemon's end of the WebRTC process: started when phones may come, ended with the listener."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import socket
from typing import Any, Protocol

import msgspec

from agents.programs import programs
from rappd.tether.errors import BadOfferError, TetherUnavailableError
from rappd.tether.rtc_worker import LINE_BYTES
from rappd.tether.webrtc import webrtc_installed
from rappd.tether.webrtc_parameters import TransportParameters, checked

log = logging.getLogger(__name__)

START_SECONDS = 20.0
ANSWER_SECONDS = 20.0


class Channel(Protocol):
    """One connection to a phone, whatever carries it."""

    @property
    def secure(self) -> bool:
        """True when nobody in between can read it."""
        ...

    def send(self, frame: str) -> None:
        """Sends a frame, if the connection is still there. At most 16 KiB of JSON."""
        ...

    def close(self) -> None:
        """Ends the connection. Idempotent."""
        ...


class ChannelOwner(Protocol):
    """Is told of a channel's life. ``on_open`` comes first, ``on_closed`` once.

    ``verified`` is the SHA-256 fingerprint of the certificate that DTLS verified; empty over a WebSocket.
    """

    def on_open(self, verified: bytes) -> None: ...

    def on_text(self, text: str) -> None: ...

    def on_closed(self) -> None: ...


class WorkerProcess(Protocol):
    """The process that speaks WebRTC, seen from the daemon."""

    def wait(self, seconds: float | None = None) -> int | None: ...

    def kill(self) -> None: ...


class RtcClient:
    """Starts the process with the first offer. One that ended is started anew with the next."""

    def __init__(self) -> None:
        self._process: WorkerProcess | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._owners: dict[str, ChannelOwner] = {}
        self._answers: dict[str, asyncio.Future[TransportParameters]] = {}
        self._starting = asyncio.Lock()

    async def start(self) -> None:
        """Starts the process. Raises ``TetherUnavailableError``."""
        async with self._starting:
            if self._writer is None:
                await self._start()

    async def offer(self, transport: TransportParameters) -> tuple[TransportParameters, RtcChannel]:
        """The answer to an offer, and its channel, which needs an owner before the phone gets the answer.

        Raises ``TetherUnavailableError``.
        """
        await self.start()
        id = secrets.token_hex(8)
        answer: asyncio.Future[TransportParameters] = asyncio.get_running_loop().create_future()
        self._answers[id] = answer
        self.tell(op="offer", id=id, transport=msgspec.to_builtins(transport))
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await answer, RtcChannel(self, id)
        except TimeoutError:
            self.tell(op="close", id=id)
            raise TetherUnavailableError("The connection could not be prepared.", do="Try again.") from None
        finally:
            self._answers.pop(id, None)

    def tell(self, **message: Any) -> None:
        """Sends one line to the process, if it runs."""
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(json.dumps(message).encode() + b"\n")

    def attach(self, id: str, owner: ChannelOwner) -> None:
        """Tells ``owner`` of what comes over a channel from now on."""
        self._owners[id] = owner

    async def close(self) -> None:
        """Ends the process and every channel."""
        if self._writer is not None:
            self._writer.close()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        if self._process is not None:
            await asyncio.to_thread(_end, self._process)
            self._process = None
        self._gone()

    async def _start(self) -> None:
        if not webrtc_installed():
            raise TetherUnavailableError("aiortc is not installed.", do="pip install 'rappd[tether]'")
        here, there = socket.socketpair()
        starting = asyncio.ensure_future(asyncio.to_thread(launch_worker, there.fileno()))
        # Not before: another file that came to its number would be handed on in its place.
        starting.add_done_callback(lambda _: there.close())
        try:
            self._process = await asyncio.shield(starting)
        except BaseException:
            here.close()  # a process that starts all the same ends with it
            raise
        reader, writer = await asyncio.open_connection(sock=here, limit=LINE_BYTES)
        try:
            async with asyncio.timeout(START_SECONDS):
                first = await reader.readline()
        except TimeoutError:
            first = b""
        if not first:
            writer.close()
            raise TetherUnavailableError("The WebRTC process does not start.", do="rappd logs")
        self._writer = writer
        self._reading = asyncio.create_task(self._read(reader))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await reader.readline():
                self._on_line(json.loads(line))
        finally:
            self._gone()

    def _on_line(self, message: dict[str, Any]) -> None:
        id, op = message["id"], message["op"]
        answer, owner = self._answers.get(id), self._owners.get(id)
        if op == "answer":
            if answer is None or answer.done():
                return
            if "transport" in message:
                self._answered(answer, message["transport"])
            else:
                log.info("an offer of a phone could not be answered: %s", message["error"])
                answer.set_exception(
                    TetherUnavailableError("This offer cannot be answered.", do="Open the page anew.")
                )
        elif op == "closed":
            self._ended(id)
        elif owner is not None:
            try:
                if op == "open":
                    owner.on_open(bytes.fromhex(message["fingerprint"]))
                else:
                    owner.on_text(message["text"])
            except Exception:
                log.exception("a frame of a phone failed")
                self.tell(op="close", id=id)

    def _answered(self, answer: asyncio.Future[TransportParameters], found: object) -> None:
        try:
            answer.set_result(checked(found))
        except BadOfferError as problem:
            answer.set_exception(problem)

    def _ended(self, id: str) -> None:
        owner = self._owners.pop(id, None)
        if owner is not None:
            owner.on_closed()

    def _gone(self) -> None:
        self._writer = None
        for id in list(self._owners):
            self._ended(id)
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(TetherUnavailableError("The WebRTC process ended.", do="Try again."))


class RtcChannel:
    """A WebRTC data channel in the process."""

    secure = True

    def __init__(self, client: RtcClient, id: str) -> None:
        self._client, self._id = client, id

    def attach(self, owner: ChannelOwner) -> None:
        """Hands what comes over the connection to ``owner``."""
        self._client.attach(self._id, owner)

    def send(self, frame: str) -> None:
        """Sends a frame, if the connection is still there."""
        self._client.tell(op="send", id=self._id, text=frame)

    def close(self) -> None:
        """Ends the connection. Idempotent."""
        self._client.tell(op="close", id=self._id)


def launch_worker(control: int) -> WorkerProcess:
    """Starts the process that speaks WebRTC, at the other end of the socket of this number."""
    command = programs.python("-m", "rappd.tether.rtc_worker", str(control))
    return programs.start(command, pass_fds=(control,))


def _end(process: WorkerProcess) -> None:
    """Waits for the process, which ends with its socket; kills one that does not."""
    if process.wait(3) is None:
        process.kill()
        process.wait()
