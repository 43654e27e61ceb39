"""Messages in XML at the listener for other machines: ``POST /envelopes`` of peers, and ``GET /messages`` for programs."""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

from aiohttp import WSCloseCode, WSMsgType, web
from msgspec.structs import replace

from envelopes.codecs import emergence, wire
from envelopes.codecs.privileged import refuse_privileged_text
from envelopes.envelope import DONE, HELP, THREAD, Envelope, as_uuid
from envelopes.errors import MalformedError, ReportableError
from envelopes.payloads.core import CORE_NS
from envelopes.payloads.form import typed_of
from neighborhoods.errors import NotPairedError
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.endpoints import Call, Endpoint
from rappd.dispatch.rights import Caller
from rappd.errors import NotFoundError, RefusedError
from rappd.features.organism.payload_operations import META_NS, introspection
from rappd.federation.inbound import InboundHandler
from rappd.listeners.bodies import UnsupportedMediaTypeError, read_body, refused
from rappd.listeners.connection_admission import mark_authenticated
from rappd.listeners.federation.callers import FEDERATION, RequestSender, caller, is_still
from rappd.tenants.tenant import HOST, Tenant

if TYPE_CHECKING:
    from envelopes.codecs.xml_message import XmlMessage

log = logging.getLogger(__name__)
routes = web.RouteTableDef()

CORE = "core"
SIGN_IN_SECONDS = 15.0
AT_ONCE = 16
"""Messages of one connection that are worked on at once."""
_LARGE = 1 << 16
_FOR_STRANGERS = 4096
_WHOLE_ID = re.compile("_[0-9a-f]{16}$")


@dataclass(frozen=True, slots=True)
class MessageHandling:
    """The parts that messages go to: those for all envelopes, and those that answer for the organism itself."""

    node_id: str
    receiver: InboundHandler
    dispatcher: Dispatcher
    host: Tenant


HANDLING = web.AppKey("message_handling", MessageHandling)


def is_xml(request: web.Request) -> bool:
    """True for a body of XML."""
    return request.content_type in ("application/xml", "text/xml")


async def posted(request: web.Request) -> web.Response:
    """One message of a paired machine, and its reply."""
    handling, id = request.app[HANDLING], None
    try:
        by = RequestSender(request, *caller(request))
        if not by.who.peer:
            raise UnsupportedMediaTypeError(
                "XML is taken of paired machines here.", do="GET /messages with an authenticator's code."
            )
        raw = await read_body(request, emergence.MAX_BYTES)
        found = await _read(handling, raw)
        id = found.envelope.id
        envelope = await _placed(handling, found, by.who, "")
    except ReportableError as problem:
        await refused(request, problem, listener="for messages in XML")
        return await _response(handling, _refusal(handling, problem, id))
    try:
        envelope, armed = await by.armed(envelope)
    except ReportableError as problem:
        return await _response(handling, handling.receiver.refuse(envelope, problem))
    reply = await _received(handling, envelope, armed)
    if not is_still(request, armed):
        ended = NotPairedError("This machine is not trusted here any more.", do="Pair anew.")
        reply = handling.receiver.refuse(envelope, ended)
    return await _response(handling, reply) if reply is not None else web.Response(status=204)


@routes.get("/messages")
async def messages(request: web.Request) -> web.StreamResponse:
    """A WebSocket of messages in XML. A program says `<authenticate user="…" totp="…"/>` first, and gets a `<catalog/>`."""
    who, _ = caller(request)
    if not who.peer and not await request.app[FEDERATION].credentials.has_codes():
        raise NotFoundError("Nothing is here.", do="rappd token issue NAME --totp")
    socket = web.WebSocketResponse(heartbeat=20.0, max_msg_size=emergence.MAX_BYTES + 1024, compress=False)
    await socket.prepare(request)
    access = ""
    if who.peer:
        name = f"brainstem_{who.peer[:16]}"
    else:
        try:
            who, name, access = await _signed_in(request, socket)
        except ReportableError as problem:
            await socket.close(code=WSCloseCode.POLICY_VIOLATION, message=str(problem).encode()[:120])
            return socket
        mark_authenticated(request)
    await _Conversation(request, socket, who, name, access).run()
    return socket


async def _signed_in(request: web.Request, socket: web.WebSocketResponse) -> tuple[Caller, str, str]:
    from envelopes.codecs.xml_message import element_of

    try:
        async with asyncio.timeout(SIGN_IN_SECONDS):
            frame = await socket.receive()
    except TimeoutError:
        raise MalformedError("Nobody said who they are.") from None
    if frame.type not in (WSMsgType.TEXT, WSMsgType.BINARY) or len(frame.data) > _FOR_STRANGERS:
        raise MalformedError("The first frame is no <authenticate/>.")
    text = frame.data if isinstance(frame.data, str) else frame.data.decode(errors="replace")
    refuse_privileged_text(text.encode(errors="replace"), listener="for messages in XML")
    element = element_of(text)
    user, code = element.get("user"), element.get("totp")
    if element.tag.rpartition("}")[2] != "authenticate" or not user or not code:
        raise MalformedError("The first frame is no <authenticate user totp/>.")
    credentials = request.app[FEDERATION].credentials
    return await credentials.by_code(user, code, request.remote or "")


class _Conversation:
    """One signed-in connection: each message is a turn of its own, answered when it is over."""

    def __init__(
        self, request: web.Request, socket: web.WebSocketResponse, who: Caller, name: str, access: str
    ) -> None:
        """``access`` is the id of the token that the code stands for; "" for a paired machine."""
        self._request, self._socket, self._who, self._name, self._access = request, socket, who, name, access
        self._handling, self._credentials = request.app[HANDLING], request.app[FEDERATION].credentials
        self._room = asyncio.Semaphore(AT_ONCE)
        self._answering: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until either side ends it, and until the trust ends."""
        await self._socket.send_str(self._catalog())
        try:
            async for frame in self._socket:
                if frame.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                    break
                if not self._is_trusted():
                    await self._socket.close(code=WSCloseCode.POLICY_VIOLATION)
                    break
                raw = frame.data.encode() if isinstance(frame.data, str) else frame.data
                await self._room.acquire()
                task = asyncio.ensure_future(self._answer(raw, as_text=frame.type is WSMsgType.TEXT))
                self._answering.add(task)
                task.add_done_callback(self._answered)
        finally:
            for task in self._answering:
                task.cancel()

    async def _answer(self, raw: bytes, *, as_text: bool) -> None:
        from envelopes.codecs.xml_message import encode

        reply = await self._reply(raw)
        if reply is not None and not self._socket.closed and self._is_trusted():
            thread = await _rendered(self._handling, reply)
            answer = await asyncio.to_thread(encode, reply, thread=thread)
            await (self._socket.send_str(answer.decode()) if as_text else self._socket.send_bytes(answer))

    async def _reply(self, raw: bytes) -> Envelope | None:
        receiver, id = self._handling.receiver, None
        try:
            found = await _read(self._handling, raw)
            id = found.envelope.id
            envelope = await _placed(self._handling, found, self._who, self._name)
        except ReportableError as problem:
            return _refusal(self._handling, problem, id, self._name)
        if self._who.peer:
            try:
                armed = await self._credentials.armed(envelope, self._who)
            except ReportableError as problem:
                return receiver.refuse(envelope, problem)
            return await _received(self._handling, envelope, armed)
        return await _received(self._handling, envelope, self._who)

    def _catalog(self) -> str:
        """The ``<catalog>`` of this caller, with its own ``from``."""
        offered = _offered(self._handling, self._who)
        rows = "".join(
            f"<capability name={quoteattr(row['name'])} namespace={quoteattr(row['namespace'])} "
            f"root={quoteattr(row['root'])}>{_escaped(row['description'])}</capability>"
            for row in introspection(self._handling.host, self._who).rows(offered)
        )
        return f'<catalog xmlns="{META_NS}" from={quoteattr(self._name)}>{rows}</catalog>'

    def _is_trusted(self) -> bool:
        if self._access:
            return self._credentials.is_valid(self._access)
        return is_still(self._request, self._who)

    def _answered(self, task: asyncio.Task[None]) -> None:
        self._room.release()
        self._answering.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, ConnectionError):
            log.error("a message in XML could not be answered", exc_info=error)


def _refusal(
    handling: MessageHandling, problem: ReportableError, id: str | None, recipient: str | None = None
) -> Envelope:
    """The ERROR for a message that is not taken; ``id`` is its own, None where only the problem may know that."""
    shaped: Any = problem
    return wire.refusal_of(shaped, sender=handling.node_id, id=id, recipient=recipient)


async def _received(handling: MessageHandling, envelope: Envelope, who: Caller) -> Envelope | None:
    """The reply to a message; ``core`` answers what is asked of the organism itself."""
    node = handling.node_id.rpartition("_")[2]
    if envelope.recipient not in (wire.BROADCAST, "") and not _WHOLE_ID.search(envelope.recipient):
        # A name as the catalog says it. Only now: what was signed was checked as it came.
        envelope = replace(envelope, recipient=f"{envelope.recipient}_{node}")
    typed = typed_of(envelope.data) if envelope.verb == HELP else None
    if typed is None or typed.ns != META_NS:
        reply = await handling.receiver.receive(envelope, who, stream=False)
        of_core = typed is not None and typed.ns == CORE_NS and reply is not None and reply.verb == DONE
        return replace(reply, sender=CORE) if reply is not None and of_core else reply
    try:
        answer = introspection(handling.host, who).answer(_offered(handling, who), typed)
    except ReportableError as problem:
        return handling.receiver.refuse(envelope, problem)
    return Envelope(envelope.id, CORE, envelope.sender, DONE, answer, {THREAD: envelope.thread})


def _offered(handling: MessageHandling, who: Caller) -> list[Endpoint[Call]]:
    return handling.dispatcher.endpoints.agents(HOST, who)


async def _read(handling: MessageHandling, raw: bytes) -> XmlMessage:
    from envelopes.codecs.xml_message import decode

    own = handling.node_id
    if len(raw) > _LARGE:
        return await asyncio.to_thread(decode, raw, recipient=own)
    return decode(raw, recipient=own)


async def _placed(handling: MessageHandling, found: XmlMessage, who: Caller, name: str) -> Envelope:
    """The message as an envelope on a thread that its caller has, or on a new one. Raises ``ReportableError``.

    ``name`` is what a program's envelopes are from; a machine's are from any agent of its own.
    """
    envelope, thread = found.envelope, found.thread.strip()
    if envelope.sender.rpartition("_")[2] != who.peer[:16] if who.peer else envelope.sender != name:
        own_name = name or f"brainstem_{who.peer[:16]}"
        raise RefusedError(
            "'from' is not who sends this.", do=f"Send <from>{own_name}</from>.", code="wrong_sender"
        )
    if envelope.verb == HELP:
        named = str(envelope.extensions.get(THREAD, "")) or thread
        known = (
            await handling.dispatcher.thread_named(envelope.sender, named) if named else _new_thread(envelope)
        )
        if known is None:
            raise NotFoundError(
                "No such thread of yours.", do="Send <thread/> to begin one.", code="unknown_thread"
            )
        envelope = envelope.extended(**{THREAD: known})
    wire.check(envelope)
    return envelope


def _new_thread(envelope: Envelope) -> str:
    """The thread that a message begins: of the same sender's same id it is the same, for a repeat is no new question."""
    digest = sha256(f"{envelope.sender}\0{envelope.id.lower()}".encode())
    return as_uuid(digest.hexdigest()[:32], "8")


async def _rendered(handling: MessageHandling, reply: Envelope) -> str:
    """The path of a reply's thread, as its caller reads it."""
    thread = str(reply.extensions.get(THREAD, ""))
    return await handling.dispatcher.rendered(reply.recipient, thread) if thread else ""


async def _response(handling: MessageHandling, reply: Envelope) -> web.Response:
    from envelopes.codecs.xml_message import CONTENT_TYPE, encode

    thread = await _rendered(handling, reply)
    body = await asyncio.to_thread(encode, reply, thread=thread)
    return web.Response(body=body, status=wire.http_status(reply), headers={"Content-Type": CONTENT_TYPE})


def _escaped(text: str) -> str:
    from envelopes.codecs.xml_repair import IMPOSSIBLE

    plain = IMPOSSIBLE.sub("\ufffd", text)
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
