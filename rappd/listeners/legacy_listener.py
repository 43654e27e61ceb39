"""The legacy listener: ``/chat`` and ``/health`` in the clear, for published brainstems on listed addresses.

Closed unless the operator opens it. It listens at this machine's own network addresses, port 7071, where
published brainstems look for one. A caller from a listed address has the listener's scopes, no more.
"""

from __future__ import annotations

import errno
import ipaddress
import logging
import socket
from collections.abc import Iterable

import orjson
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler

from envelopes.codecs.chat import decode_request, reply_body, request_envelope
from envelopes.envelope import ERROR, new_id
from envelopes.errors import ReportableError
from envelopes.ip_addresses import counts_as, is_this_machine
from neighborhoods.discovery.address_text import join
from rappd.daemon.app import Daemon
from rappd.daemon.rate_limit import AddressLimit
from rappd.dispatch.rights import Caller
from rappd.errors import ConflictError, RefusedError
from rappd.listeners.app_keys import DAEMON
from rappd.listeners.bodies import JSON, check_depth, ok, plain, refusal, refused
from rappd.listeners.connection_admission import AdmittedRunner, ConnectionAdmission, mark_authenticated
from rappd.listeners.listening_sockets import listening_socket
from rappd.version import __version__

log = logging.getLogger(__name__)

PORT = 7071
MOST_BYTES = 1 << 20
MOST_A_MINUTE = 120
_MAPPED = 96
"""The bits in front of the IPv4 address in a mapped one."""
_WIDEST = {4: 16, 6: 48}
"""The shortest prefix that is listed: an office, a home, but not half the world."""
_ALLOWED = web.AppKey("allowed", tuple)
_CAPS = web.AppKey("caps", tuple)
_LIMIT = web.AppKey("limit", AddressLimit)

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class LegacyListener:
    """Opens and closes with its settings: ``legacy.addresses``, ``legacy.scopes``."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._runner: web.AppRunner | None = None
        self.listening: list[str] = []

    def check(self, allowed: Iterable[str]) -> None:
        """Raises ``RefusedError`` for what is no address of another machine."""
        for text in allowed:
            network(text)

    async def open(self, allowed: Iterable[str], caps: Iterable[str], *, own: Iterable[str]) -> None:
        """Listens at ``own`` addresses for callers from ``allowed`` ones; what was open is closed first.

        A family of addresses that no allowed one is of is not listened on. Raises ``ConflictError`` where it cannot
        listen, ``RefusedError`` for a bad address; then what was open stays.
        """
        networks = tuple(network(text) for text in allowed)
        await self.close()
        families = {one.version for one in networks}
        sockets = _listeners([one for one in own if ipaddress.ip_address(one).version in families])
        app = _build(self._daemon, networks, tuple(caps))
        runner = AdmittedRunner(app, ConnectionAdmission(None), shutdown_timeout=2.0)
        await runner.setup()
        runner.open(*sockets)
        self._runner = runner
        self.listening = [join(listener.getsockname()[0], PORT) for listener in sockets]
        log.warning("security: the legacy listener is open at %s", ", ".join(self.listening))

    async def close(self) -> None:
        """Listens no more."""
        runner, self._runner = self._runner, None
        self.listening = []
        if runner is not None:
            await runner.cleanup()


def network(text: str) -> Network:
    """An address, or a network as ``192.168.1.0/24``. Raises ``RefusedError`` for none, and for half the world."""
    try:
        found = ipaddress.ip_network(text.strip(), strict=False)
    except ValueError as error:
        raise RefusedError(
            f'"{text[:60]}" is no address.', do="rappd peers legacy open 192.168.1.20"
        ) from error
    meant = counts_as(found.network_address)
    if is_this_machine(str(meant)) or meant.is_multicast:
        raise RefusedError(f"{text} is not the address of another machine.", do="List single machines.")
    if found.version == 6 and found.network_address.ipv4_mapped and found.prefixlen >= _MAPPED:
        # Callers count as IPv4, so a list that names them mapped means the same.
        found = ipaddress.ip_network((found.network_address.ipv4_mapped, found.prefixlen - _MAPPED))
    if found.prefixlen < _WIDEST[found.version]:
        raise RefusedError(f"{text} is too many machines at once.", do="List single machines.")
    return found


def _build(daemon: Daemon, allowed: tuple[Network, ...], caps: tuple[str, ...]) -> web.Application:
    app = web.Application(middlewares=[_guard], client_max_size=MOST_BYTES)
    app[DAEMON] = daemon
    app[_ALLOWED], app[_CAPS] = allowed, caps
    app[_LIMIT] = AddressLimit(MOST_A_MINUTE, 60)
    app.router.add_post("/chat", _chat)
    app.router.add_get("/health", _health)
    app.on_response_prepare.append(_say_less)
    return app


@web.middleware
async def _guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        _admit(request)
        return await handler(request)
    except ReportableError as found:
        return await refused(request, found, listener="for published brainstems")
    except web.HTTPException as found:
        return plain(found.status, found.reason, "refused")
    except (HttpProcessingError, web.RequestPayloadError):
        return plain(400, "The request's body cannot be read.", "bad_body", "Send it whole, as it is.")
    except Exception:
        log.exception("%s %s failed at the legacy listener", request.method, ascii(request.path[:100]))
        return plain(500, "Something went wrong inside.", "failed")


async def _say_less(request: web.Request, response: web.StreamResponse) -> None:
    """Removes the header that names the server."""
    response.headers["Server"] = "rappd"


def _admit(request: web.Request) -> None:
    remote = _remote(request)
    if remote is None or not any(remote in one for one in request.app[_ALLOWED]):
        raise RefusedError("Not allowed.")
    if request.headers.get("Origin") is not None or request.headers.get("Sec-Fetch-Site") is not None:
        raise RefusedError("Web pages may not use this listener.")
    request.app[_LIMIT].take(str(remote))
    mark_authenticated(request)  # a turn takes its time


def _remote(request: web.Request) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        # A caller that is let in by an address has it: a tunnel's address that carries it is somebody else's.
        return counts_as(request.remote or "", translated=False)
    except ValueError:
        return None


async def _chat(request: web.Request) -> web.Response:
    daemon = request.app[DAEMON]
    asked = decode_request(await request.read())
    if asked.pictures or any("pictures" in message for message in asked.history):
        raise RefusedError("Pictures are not taken from other machines.", do="Send the sentence alone.")
    asked.model = ""  # the owner's to choose
    asked.turn_id = None  # ids are for those who prove who they are
    check_depth([asked.session_id, asked.history])
    session = asked.session_id if asked.session_id is not None else new_id()
    claimed, asked.user_guid = asked.user_guid, f"legacy {_remote(request)}"  # whom they speak for is a claim
    who = Caller("legacy", caps=request.app[_CAPS])
    if not who.may(f"HELP.{daemon.host.name}"):
        raise RefusedError("Not allowed.", do="Ask the owner of this machine.")
    envelope = request_envelope(asked, recipient=daemon.host.id)
    reply = await daemon.dispatcher.submit(envelope, who, session=session).reply()
    if reply.verb == ERROR:
        return refusal(reply)
    modes = daemon.host.settings
    body = reply_body(reply, session_id=session, voice_mode=modes.voice, twin_mode=modes.twin)
    return web.Response(body=orjson.dumps(body | {"user_guid": claimed}), content_type=JSON)


async def _health(request: web.Request) -> web.Response:
    """As published servers answer, and no word of what is here."""
    return ok({"status": "ok", "version": __version__, "agents": []})


def _listeners(own: Iterable[str]) -> list[socket.socket]:
    """A socket at each address, or none. Raises ``ConflictError``."""
    sockets: list[socket.socket] = []
    try:
        for address in own:
            sockets.append(_listen(address))  # noqa: PERF401 - those before one that fails are closed
    except ConflictError:
        for listener in sockets:
            listener.close()
        raise
    if not sockets:
        raise ConflictError(
            "This machine has no address of that kind to listen at.",
            do="name the other machine by an address of a kind that this one has, too",
        )
    return sockets


def _listen(address: str) -> socket.socket:
    try:
        return listening_socket(address, PORT)
    except OSError as error:
        in_use = error.errno == errno.EADDRINUSE
        raise ConflictError(
            f"Port {PORT} at {address} {'is taken' if in_use else 'cannot be used'}.", do="rappd doctor"
        ) from error
