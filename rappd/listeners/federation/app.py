"""The federation listener as one web application: TLS 1.3, its guard, its routes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import MutableMapping, Sequence
from functools import partial
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler

from envelopes.errors import ReportableError
from envelopes.identity.certificates import pin_of
from neighborhoods.auth.allowed_networks import LocalNetworks
from neighborhoods.snapshot.served_home import SharedHome
from rappd.daemon.app import Daemon
from rappd.daemon.rate_limit import AddressLimit
from rappd.errors import RefusedError
from rappd.federation.connected_peers import LineRequests
from rappd.listeners import later_routes
from rappd.listeners.app_keys import DAEMON
from rappd.listeners.bodies import SHAPES, HttpRefusalError, in_shape, refused
from rappd.listeners.connection_admission import ENTRANCE, PROTOCOL, ConnectionAdmission
from rappd.listeners.federation import envelopes, pairing, xml_messages
from rappd.listeners.federation.callers import FEDERATION, HELLO_LIMIT, NODE_ID, SIGNED_LIMIT, CallerLookup
from rappd.listeners.federation.envelopes import FOR_BATCHES
from rappd.listeners.federation.operation_routes import routes_of
from rappd.listeners.later_routes import PROGRAMS, shapes_of
from rappd.listeners.request_end import end_at_stop
from rappd.transcript.frames import RecordedConversations
from twins.trust.trust import Trust

log = logging.getLogger(__name__)


class FederationRunner(web.AppRunner):
    """The application behind its entrance."""

    def __init__(self, app: web.Application, entrance: ConnectionAdmission) -> None:
        # Bodies are not unpacked: what is small on the way must not be large in memory.
        super().__init__(
            app,
            access_log=None,
            handle_signals=False,
            shutdown_timeout=2.0,
            keepalive_timeout=75.0,
            auto_decompress=False,
            logger=PROTOCOL,
        )
        self._entrance = entrance

    def open(self, listeners: Sequence[socket.socket]) -> None:
        """After ``setup``: serves at sockets that listen already."""
        assert self.server is not None
        self._entrance.open(listeners, self.server)

    async def cleanup(self) -> None:
        """Ends the listener."""
        await self._entrance.close()
        await super().cleanup()


async def serve(daemon: Daemon, listeners: Sequence[socket.socket]) -> web.AppRunner:
    """Serves at sockets that listen already."""
    app = build(daemon)
    runner = FederationRunner(app, app[ENTRANCE])
    await runner.setup()
    runner.open(listeners)
    return runner


def build(daemon: Daemon) -> web.Application:
    """Every route of the listener, those of foreign programs among them."""
    machines = daemon.machines
    node, peers, tenants = machines.node, machines.peer_store, machines.tenants
    credentials, receiver = machines.credentials.now(), machines.receiver.now()
    app = web.Application(middlewares=[guard], client_max_size=FOR_BATCHES)
    app[DAEMON], app[NODE_ID] = daemon, node.id
    app[FEDERATION] = CallerLookup(peers, credentials, machines.peer_events)
    app[envelopes.RECEIVER], app[envelopes.CATALOGUE] = receiver, machines.catalogue
    app[envelopes.PEER_CLIENT] = machines.peer_client.now()
    app[envelopes.LINE_REQUESTS] = LineRequests(
        peers, machines.callers, credentials, receiver, machines.peer_events
    )
    app[xml_messages.HANDLING] = xml_messages.MessageHandling(
        node.id, receiver, machines.dispatcher, tenants.host
    )
    app[ENTRANCE] = ConnectionAdmission(
        machines.trust.now().context,
        lambda shown: peers.by_pin(pin_of(shown)) is not None,
        admits=LocalNetworks(node.settings.items("listen.networks")).admits,
    )
    set_limits(app)
    app[pairing.PAIRING] = machines.pairings.now()
    home = node.home
    shared = SharedHome(
        home.root,
        node.name,
        is_held=Trust(home.root).is_held,
        is_answering=tenants.is_answering,
        conversations=partial(RecordedConversations, home.database),
    )
    app.on_shutdown.append(_hang_up)
    app[SHAPES] = shapes_of(PROGRAMS)
    end_at_stop(app)
    app.add_routes([*envelopes.routes, *pairing.routes])
    app.add_routes(later_routes.routes_of([*PROGRAMS, "federation.xml_messages"]))
    app.add_routes(routes_of(daemon.egg_transfer, shared))
    return app


def set_limits(app: MutableMapping[Any, Any]) -> None:
    """Sets the numbers of requests that unauthenticated callers of one address may make in a minute."""
    app[HELLO_LIMIT] = AddressLimit(60, 60)
    app[SIGNED_LIMIT] = AddressLimit(600, 60)
    app[pairing.PAIRING_LIMIT] = AddressLimit(20, 60)


async def _hang_up(app: web.Application) -> None:
    """Lines end first: the listener would wait for them. Their peers ask again, and find the answers recorded."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(1.0):
            await app[envelopes.PEER_CLIENT].hang_up()


@web.middleware
async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turns every error into the one JSON shape. Who calls is found out by the routes."""
    try:
        if request.method == "OPTIONS" and "Origin" in request.headers:
            raise RefusedError("Pages of other sites may not use this listener.", do="rappd open")
        return await handler(request)
    except ReportableError as found:
        return await refused(request, found, listener="for other machines")
    except web.HTTPException as found:
        if found.status < 400:
            return found
        code = {404: "not_found", 405: "method", 413: "too_large"}.get(found.status, "refused")
        return in_shape(request, HttpRefusalError(found.status, found.reason, code))
    except (HttpProcessingError, web.RequestPayloadError):
        return in_shape(request, HttpRefusalError(400, "The request's body cannot be read.", "bad_body"))
    except Exception:
        if request.writer.output_size:
            raise
        log.exception("%s %s failed", request.method, request.path[:200])
        return in_shape(request, HttpRefusalError(500, "Something went wrong inside.", "failed"))
