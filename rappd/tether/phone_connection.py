"""One phone's connection: first the handshake, then its part in the session; performs what both tables say."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Coroutine
from typing import Any, Protocol

from envelopes.errors import ReportableError
from neighborhoods.discovery.address_text import network_of
from rappd.dispatch.rights import Right
from rappd.errors import StoreError
from rappd.sessions.participants import caller_of
from rappd.sessions.sentence_routing import Say
from rappd.sessions.sessions import Asking, Session, Sessions
from rappd.tether import handshake as host_side
from rappd.tether import phone_session as phone_side
from rappd.tether.devices import Device, by_key, by_secret_alone, may_talk, over_plain_http
from rappd.tether.framing import Assembler, FrameError, frames_of
from rappd.tether.handshake import Handshake
from rappd.tether.phone_requests import PhoneRequests, RequestTable
from rappd.tether.phone_session import PhoneSession
from rappd.tether.rtc_client import Channel

log = logging.getLogger(__name__)

HANDSHAKE_SECONDS = 30.0


class ConnectionOwner(Protocol):
    """The service, as its connections see it."""

    sessions: Sessions
    requests: RequestTable

    def ask(self, connection: PhoneConnection, digits: str, name: str) -> None:
        """The operator must compare the digits; ``connection.answer`` takes the answer."""
        ...

    def accept(self, connection: PhoneConnection, name: str) -> Device | None:
        """Both sides agree: returns the device, registered now or long ago; None for one removed meanwhile."""
        ...

    def ended(self, connection: PhoneConnection, reason: str) -> None:
        """The connection is over; called once."""
        ...

    def run_workflow(self, connection: PhoneConnection, asked: phone_side.RunWorkflow) -> None:
        """Starts, pauses, resumes or aborts a workflow for it, or tells it why not."""
        ...

    def eggs_for(self, device: Device) -> dict[str, Any]:
        """The frame that tells a phone what it may do with eggs."""
        ...

    def send_egg_token(self, connection: PhoneConnection) -> None:
        """Sends it a token for one request for an egg, or tells it why not."""
        ...

    def show_waiting(self, connection: PhoneConnection) -> None:
        """Shows it what waits for the owner, if it may see that and it changed."""
        ...

    def dismiss(self, connection: PhoneConnection, key: str) -> None:
        """Removes one of the news for it, or tells it why not."""
        ...

    def look(self, connection: PhoneConnection, key: str) -> None:
        """Shows it a matter that waits for the owner, or tells it why not."""
        ...

    def answer(self, connection: PhoneConnection, answer: phone_side.Answer) -> None:
        """Answers such a matter for it, or tells it why not."""
        ...

    async def workflows_for(self, device: Device) -> dict[str, Any]:
        """The frame that tells a phone which workflows it may run."""
        ...

    async def current_session(self) -> Session:
        """The session that phones join."""
        ...


class PhoneConnection:
    """Told by its channel of frames; owns the timers."""

    last_seq = 0
    behind = False

    def __init__(
        self,
        channel: Channel,
        handshake: Handshake,
        owner: ConnectionOwner,
        address: str,
        resumes: Device | None,
        *,
        over_tls: bool = False,
    ) -> None:
        """``over_tls``: its page and its offer came over https."""
        self.over_tls = over_tls
        self.device: Device | None = None
        self.guest_print = b""
        self.session: Session | None = None
        self.address, self.resumes = address, resumes
        self.source, self.since = network_of(address), time.monotonic()
        self.secure = channel.secure
        self._channel = channel
        self._handshake = handshake
        self._owner = owner
        self._sessions = owner.sessions
        self._assembler = Assembler()
        self._phone: PhoneSession | None = None
        self._requests = PhoneRequests(owner.requests, self._asking, self.show)
        self._greeted = False
        self._timer: asyncio.TimerHandle | None = None
        self._joining: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._over = False

    @property
    def name(self) -> str:
        """The device's name."""
        return "" if self.device is None else self.device.name

    @property
    def unproven(self) -> bool:
        """True while it has not proven the code, or that it is its device."""
        return self._handshake.state in ("opening", "proof")

    @property
    def key(self) -> str:
        """The public key that the phone proved to have; "" without one."""
        return self._handshake.key

    def proves(self, device: Device) -> bool:
        """True where the phone proved the device's own key, over a line that nobody else reads."""
        return self.secure and device.key != "" and device.key == self.key

    @property
    def speaker(self) -> Device | None:
        """The device with the rights that it has over this connection.

        They are fewer where DTLS proved no certificate, and where the page's script came over plain http.
        """
        if self.device is None:
            return None
        if not self.guest_print:
            return by_key(self.device) if self.proves(self.device) else by_secret_alone(self.device)
        return self.device if self.over_tls else over_plain_http(self.device)

    def on_open(self, verified: bytes) -> None:
        """The channel is open: the handshake must be through soon, unless a person is asked.

        ``verified`` is the fingerprint of the certificate that DTLS verified.
        """
        if self._over:
            return
        self._timer = asyncio.get_running_loop().call_later(HANDSHAKE_SECONDS, self._late)
        self.guest_print = verified
        self._perform_handshake(self._handshake.on_open(verified))

    def on_text(self, text: str) -> None:
        """Takes a frame from the phone. Those on their way when the connection ended count no more."""
        if self._over:
            return
        try:
            message = self._assembler.feed(text)
        except FrameError as problem:
            self.end(str(problem))
            return
        if message is None:
            return
        if self._phone is None:
            with contextlib.suppress(StoreError):  # it was told, and is over
                self._perform_handshake(self._handshake.on_frame(message))
        else:
            asked_for = message.get("type") in ("part", "next") and self._requests.awaits(message)
            self._perform(self._phone.on_frame(message, time.monotonic(), asked_for=asked_for))

    def on_closed(self) -> None:
        """The channel is gone."""
        self.end("closed")

    def answer(self, same: bool) -> None:
        """The operator compared the digits. Raises ``StoreError`` where the device cannot be registered."""
        self._perform_handshake(self._handshake.on_operator(same))

    def expire(self) -> None:
        """The window closed before both sides agreed."""
        self._perform_handshake(self._handshake.on_timeout())

    def show(self, message: dict[str, Any]) -> None:
        """Sends a message, in as many frames as it takes."""
        for frame in frames_of(message):
            self._channel.send(frame)

    def withholds(self, right: Right, event_id: str = "") -> bool:
        """True for a right of the device that this connection does not give it; the phone is told so."""
        speaker = self.speaker
        if self.device is None or speaker is None or not right.admits(caller_of(self.device)):
            return False
        if right.admits(caller_of(speaker)):
            return False
        text = "This phone may do that over its private line, not over a WebSocket."
        if self.guest_print:
            text = "Only on the computer: this page came over plain http, where it could have been changed on the way."
        self.show({"type": "refused", "event_id": event_id, "error": text})
        return True

    def allow(self) -> None:
        """The device's scope was changed. A phone that has not said hello is told with its welcome."""
        if self._phone is not None and self.speaker is not None:
            self._phone.allow(may_talk=may_talk(self.speaker))
        if not self._greeted or self.speaker is None:
            return
        if self.speaker.in_session != (self.session is not None):
            self._start_joining(phone_side.Sync(0, ""))
        else:
            self._spawn(self._show_rights())

    def move(self) -> None:
        """Takes the phone into the session that phones join now, once it has said hello."""
        if self.session is not None:
            self._start_joining(phone_side.Sync(0, ""))

    def end(self, reason: str) -> None:
        """Closes the connection. Idempotent."""
        if self._over:
            return
        self._over = True
        if self._timer is not None:
            self._timer.cancel()
        for task in list(self._tasks):
            task.cancel()
        self._requests.close()
        if self.session is not None:
            self._sessions.leave(self.session, self)
        self._channel.close()
        self._owner.ended(self, reason)

    def _late(self) -> None:
        if self._handshake.state == "proof":
            self.end("no proof")

    def _perform_handshake(self, actions: list[host_side.Action]) -> None:
        for action in actions:
            if isinstance(action, host_side.Send):
                self.show(action.frame)
            elif isinstance(action, host_side.Ask):
                self._owner.ask(self, action.digits, action.name)
            elif isinstance(action, host_side.End):
                self.end(action.reason)
            else:
                self._accepted(action.name)

    def _accepted(self, name: str) -> None:
        try:
            device = self.device = self._owner.accept(self, name)
        except StoreError as problem:
            log.error("the phone %s cannot be registered: %s", name, problem)
            self.show({"type": "stopped", "reason": "late"})  # the code is used up
            self.end("not registered")
            raise
        if device is None:
            self.show({"type": "revoked"})
            self.end("removed")
            return
        self._phone = PhoneSession(time.monotonic(), may_talk=may_talk(device))
        frame = {"type": "paired", "device": device.id, "name": device.name}
        if self.resumes is None:  # once: what resumes has it, or is not what it says
            frame["secret"] = device.secret
        self.show(frame)
        self._tick()

    def _tick(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._phone is None:
            return
        now = time.monotonic()
        self._timer = asyncio.get_running_loop().call_later(self._phone.next_tick(now), self._tick)
        self._perform(self._phone.on_tick(now))
        if self._greeted:
            self._owner.show_waiting(self)

    def _perform(self, actions: list[phone_side.Action]) -> None:
        speaker = self.speaker
        assert speaker is not None
        for action in actions:
            if isinstance(action, phone_side.Reply):
                self.show(action.frame)
            elif isinstance(action, phone_side.Sync):
                self._start_joining(action)
            elif isinstance(action, phone_side.Hang):
                self.end(action.reason)
            elif not self._greeted:
                continue  # it spoke before it was told who is there
            elif isinstance(action, phone_side.Request):
                self._requests.on_frame(action.frame)
            elif isinstance(action, phone_side.RunWorkflow):
                self._owner.run_workflow(self, action)
            elif isinstance(action, phone_side.EggToken):
                self._owner.send_egg_token(self)
            elif isinstance(action, phone_side.Dismiss):
                self._owner.dismiss(self, action.key)
            elif isinstance(action, phone_side.Look):
                self._owner.look(self, action.key)
            elif isinstance(action, phone_side.Answer):
                self._owner.answer(self, action)
            elif self.session is None:
                continue  # it is in no session
            elif isinstance(action, Say):
                self._spawn(self._say(self.session, speaker, action))
            elif isinstance(action, phone_side.More):
                if self.behind:
                    self._spawn(self._sessions.more(self.session, self))
            elif isinstance(action, phone_side.Clear):
                if not self.session.closed:
                    self._spawn(self._clear(self.session, speaker.name))
            else:
                self._show_typing()

    def _say(self, session: Session, device: Device, sentence: Say) -> Coroutine[Any, Any, None]:
        """Asks at once, and returns what tells the phone where it was not recorded or its answer could not be."""
        try:
            asking = self._sessions.say(session, device, sentence)
        except ReportableError as problem:
            self._refuse(sentence.event_id, problem)
            asking = None
        return self._hear(asking, sentence.event_id)

    async def _hear(self, asking: Asking | None, event_id: str) -> None:
        try:
            if asking is not None:
                await asyncio.shield(asking.answered)
        except ReportableError as problem:
            self._refuse(event_id, problem)

    async def _clear(self, session: Session, by: str) -> None:
        try:
            await self._sessions.clear(session, by)
        except ReportableError as problem:
            self._refuse("", problem)

    def _refuse(self, event_id: str, problem: ReportableError) -> None:
        self.show({"type": "refused", "event_id": event_id, "error": str(problem)})

    def _start_joining(self, wanted: phone_side.Sync) -> None:
        if self._joining is not None:
            self._joining.cancel()
        self._joining = self._spawn(self._join(wanted))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Runs it beside the frames, until the connection ends."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._spawned)
        return task

    def _spawned(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("work for a phone failed", exc_info=error)

    async def _join(self, wanted: phone_side.Sync) -> None:
        speaker = self.speaker
        assert speaker is not None
        if not speaker.in_session:
            self._leave_session()
            self._greeted = True
            nowhere = {"session": "", "from_seq": 0, "participants": [], "closed": False}
            self.show({"type": "welcome", **nowhere, **self._standing(speaker)})
            await self._show_rights()
            return
        try:
            session = await self._owner.current_session()
        except ReportableError as problem:  # it comes back, and tries again
            self._refuse("", problem)
            self.end(f"no session: {problem}")
            return
        participants = await self._sessions.participants.listing(session.guests)
        self._leave_session()
        self.session, self._greeted = session, True
        known = await self._sessions.record.events(session.thread, last=1)
        seen = wanted.last_seq if wanted.session == session.id else 0
        self.last_seq = seen if known and seen <= known[-1].n else 0  # beyond the record: all of it again
        self.show(
            {
                "type": "welcome",
                "session": session.id,
                "from_seq": self.last_seq,
                "participants": participants,
                "closed": session.closed,
                **self._standing(speaker),
            }
        )
        await self._sessions.join(session, self)
        await self._show_rights()

    def _standing(self, speaker: Device) -> dict[str, Any]:
        """The kind of the phone over this connection, and what that lets it do."""
        return {"kind": speaker.kind, "may_talk": may_talk(speaker), "secure": self.secure}

    def _leave_session(self) -> None:
        if self.session is not None:
            self._sessions.leave(self.session, self)
        self.session = None

    def _asking(self) -> Device:
        """The device as its requests count now."""
        assert self.speaker is not None
        return self.speaker

    async def _show_rights(self) -> None:
        speaker = self.speaker
        assert speaker is not None
        self.show({"type": "standing", **self._standing(speaker)})
        self.show(await self._owner.workflows_for(speaker))
        self.show(self._owner.eggs_for(speaker))
        self._owner.show_waiting(self)

    def _show_typing(self) -> None:
        assert self.session is not None and self.device is not None
        for other in self.session.listeners:
            if other is not self:
                other.show({"type": "typing", "by": self.device.name})
