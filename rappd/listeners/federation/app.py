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
from neighborhoods.auth.ipv6_admission import LocalNetworks
from neighborhoods.auth.tls import pin_of
from neighborhoods.snapshot.shared_home import SharedHome
from rappd.daemon.app import Daemon
from rappd.daemon.rate_limit import AddressLimit
from rappd.errors import RefusedError
from rappd.listeners import a2a, acp, mcp, ollama, openai, openai_responses, program_requests, webhooks
from rappd.listeners.admission import ENTRANCE, PROTOCOL, ConnectionAdmission
from rappd.listeners.app_keys import DAEMON
from rappd.listeners.bodies import plain, problem
from rappd.listeners.federation import envelopes, pairing, xml_messages
from rappd.listeners.federation.callers import FEDERATION, HELLO_LIMIT, SIGNED_LIMIT
from rappd.listeners.federation.envelopes import FOR_BATCHES
from rappd.listeners.federation.operation_routes import routes_of
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
    machines = daemon.federation
    app = web.Application(middlewares=[guard], client_max_size=FOR_BATCHES)
    app[DAEMON], app[FEDERATION] = daemon, machines
    app[ENTRANCE] = ConnectionAdmission(
        machines.parts.trust.context,
        lambda shown: machines.peer_store.by_pin(pin_of(shown)) is not None,
        admits=LocalNetworks(machines.node.settings.items("listen.networks")).admits,
    )
    set_limits(app)
    app[pairing.PAIRING] = machines.parts.pairings
    home, tenants = machines.node.home, machines.tenants
    shared = SharedHome(
        home.root,
        machines.node.name,
        is_held=Trust(home.root).is_held,
        is_answering=tenants.is_answering,
        conversations=partial(RecordedConversations, home.database),
    )
    app.on_shutdown.append(_hang_up)
    program_requests.end_at_stop(app)
    for module in (
        envelopes,
        pairing,
        a2a,
        acp,
        mcp,
        ollama,
        openai,
        openai_responses,
        xml_messages,
        webhooks,
    ):
        app.add_routes(module.routes)
    app.add_routes(routes_of(machines.eggs, shared))
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
            await app[FEDERATION].parts.carrier.hang_up()


@web.middleware
async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turns every error into the one JSON shape. Who calls is found out by the routes."""
    try:
        if request.method == "OPTIONS" and "Origin" in request.headers:
            raise RefusedError("Pages of other sites may not use this listener.", do="rappd open")
        return await handler(request)
    except ReportableError as found:
        return problem(found)
    except web.HTTPException as found:
        if found.status < 400:
            return found
        code = {404: "not_found", 405: "method", 413: "too_large"}.get(found.status, "refused")
        return plain(found.status, found.reason, code)
    except (HttpProcessingError, web.RequestPayloadError):
        return plain(400, "The request's body cannot be read.", "bad_body")
    except Exception:
        if request.writer.output_size:
            raise
        log.exception("%s %s failed", request.method, request.path[:200])
        return plain(500, "Something went wrong inside.", "failed")
