"""The federation door as one web application: TLS 1.3, its guard, its routes."""

from __future__ import annotations

import logging
import socket

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler

from envelopes.problem import Problem
from rappd.doors.answer import plain, problem
from rappd.doors.federation import envelopes, line, pairing
from rappd.doors.federation.keys import HELLO_LIMIT, MACHINES
from rappd.limits import RateLimit
from rappd.machines.machines import Machines

log = logging.getLogger(__name__)

MOST_BYTES = 5 << 20


async def serve(machines: Machines, listener: socket.socket) -> web.AppRunner:
    """Serves at a socket that listens already."""
    runner = web.AppRunner(build(machines), access_log=None, handle_signals=False, shutdown_timeout=2.0)
    await runner.setup()
    await web.SockSite(runner, listener, ssl_context=machines.trust.context, backlog=256).start()
    return runner


def build(machines: Machines) -> web.Application:
    """Every route of the door."""
    app = web.Application(middlewares=[guard], client_max_size=MOST_BYTES)
    app[MACHINES] = machines
    app[HELLO_LIMIT] = RateLimit(60, 60)
    app[pairing.PAIRING] = machines.pairings
    app[pairing.PAIRING_LIMIT] = RateLimit(20, 60)
    for table in (envelopes, line, pairing):
        app.add_routes(table.routes)
    return app


@web.middleware
async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turns every error into the one JSON shape. Who calls is found out by the routes."""
    try:
        return await handler(request)
    except Problem as found:
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
