"""The guard of the loopback listener: Host and Origin checks, CORS, operator or not, and the tenant that a request means."""

from __future__ import annotations

import logging
import socket
import struct
from collections.abc import Awaitable, Callable

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler

from agents.runtimes.python.pools.started_processes import is_worker_process
from envelopes.errors import ReportableError
from rappd.dispatch.rights import Caller
from rappd.errors import RefusedError, disk_problem
from rappd.listeners.app_keys import DAEMON
from rappd.listeners.bodies import HttpRefusalError, in_shape, refused
from rappd.listeners.loopback.request_source import source_of
from rappd.listeners.loopback.signed_requests import (
    COOKIE,
    OPERATOR_KEY,
    SIGNATURE,
    check_signature,
)
from rappd.listeners.request_timeout import TimedRequestHandler
from rappd.tenants.tenant import Tenant

log = logging.getLogger(__name__)

TENANT = web.AppKey("tenant", Tenant)
_NAMED = web.RequestKey("tenant", Tenant)
_SAFE = frozenset({"GET", "HEAD"})
_OWN_SITES = frozenset({"same-origin", "none"})
"""Values of ``Sec-Fetch-Site``."""
_ALLOWED_HEADERS = (
    "Content-Type, Last-Event-ID, Authorization, A2A-Version, A2A-Extensions,"
    " MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id, Idempotency-Key, X-Session-Id, OpenAI-Beta,"
    # OpenAI's library for browsers sends these with each request.
    " X-Stainless-Arch, X-Stainless-Lang, X-Stainless-OS, X-Stainless-Package-Version, X-Stainless-Retry-Count,"
    " X-Stainless-Runtime, X-Stainless-Runtime-Version, X-Stainless-Timeout"
)


HOSTS = web.AppKey("hosts", set[str])
"""The Host headers that an application answers to, once it listens."""


class NotOperatorError(RefusedError):
    """A structural route was called without the operator's session."""

    code = "not_operator"

    def __init__(self) -> None:
        super().__init__("Only this machine's operator can do that.", do="rappd open")


@web.middleware
async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """The middleware of the listener: checks Host and Origin, and turns errors into JSON."""
    origin = request.headers.get("Origin")
    try:
        if not from_control(request):
            _check_host(request)
            _check_site(request, origin)
            if origin is not None or request.method == "OPTIONS":
                _check_origin(request, origin)
                if request.method == "OPTIONS":
                    return _with_cors(web.Response(status=204), origin)
            if SIGNATURE in request.headers and at_operator_origin(request):
                await check_signature(request)
        response = await handler(request)
        if (
            origin is not None
            and origin in request.app[DAEMON].live_settings.origins
            and not response.prepared
        ):
            _with_cors(response, origin)
        return response
    except ReportableError as found:
        return await refused(request, found, listener="loopback")
    except web.HTTPException as found:
        return _plain_http(request, found)
    except (HttpProcessingError, web.RequestPayloadError):
        problem = "The request's body cannot be read."
        return in_shape(request, HttpRefusalError(400, problem, "bad_body", do="Send it whole, as it is."))
    except Exception as error:
        if request.writer.output_size:
            raise  # an answer is under way; only breaking it off can tell
        if (of_disk := disk_problem(error)) is not None:
            log.error("%s %s: %s", request.method, request.path[:200], error)
            return in_shape(request, of_disk)
        log.exception("%s %s failed", request.method, request.path[:200])
        problem = "Something went wrong inside; the log has it."
        return in_shape(request, HttpRefusalError(500, problem, "failed", do="rappd logs"))


def caller(request: web.Request) -> Caller:
    """The caller as this listener knows it."""
    if from_control(request):
        return Caller("control", operator=True)
    if SIGNATURE in request.headers:
        return Caller("loopback", operator=is_operator(request), key=request.get(OPERATOR_KEY, ""))
    return Caller("loopback", operator=request.app[DAEMON].open_surface and is_operator(request))


def is_operator(request: web.Request) -> bool:
    """True for a request that the operator's session signed, over the control socket, or on an open surface.

    Never at a twin's own port: it has no page, so a session that is shown there came from elsewhere.
    """
    daemon = request.app[DAEMON]
    if request.app[TENANT] is not daemon.host:
        return False
    return daemon.open_surface or from_control(request) or OPERATOR_KEY in request


def at_operator_origin(request: web.Request) -> bool:
    """True when the browser asked for 127.0.0.1.

    Rapplications live at ``localhost``, which browsers keep apart from it; the operator's page and session
    exist at 127.0.0.1 alone.
    """
    return request.headers.get("Host", "").startswith("127.0.0.1:")


def operator_only(handler: Handler) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """Wraps a route that changes structure or shows what was said."""

    async def checked(request: web.Request) -> web.StreamResponse:
        if not is_operator(request):
            if COOKIE in request.cookies:
                request.app[DAEMON].failed_authentication.take(await source_of(request))
            raise NotOperatorError
        return await handler(request)

    checked.__doc__ = handler.__doc__
    checked.operator_only = True  # type: ignore[attr-defined]  # read by /openapi.json
    return checked


def from_control(request: web.Request) -> bool:
    """Tests whether the request came through the control socket, by the operator's own account.

    Raises ``RefusedError`` for a worker, or anything a worker started: it shares the account, not the right. Found out
    once for a connection: who connected stays the same, and so does whence that process came.
    """
    connection = request.protocol
    known = connection.is_owners if isinstance(connection, TimedRequestHandler) else None
    return _came_from_control(request) if known is None else known


def _came_from_control(request: web.Request) -> bool:
    transport = request.transport
    if transport is None:
        return False
    known = request.protocol if isinstance(request.protocol, TimedRequestHandler) else None
    if isinstance(transport.get_extra_info("sockname"), tuple):
        if known is not None:
            known.is_owners = False
        return False
    pid = _peer_pid(transport.get_extra_info("socket"))
    zygote = request.app[DAEMON].supervisor.zygote_pid
    if pid is not None and zygote and is_worker_process(pid, zygote):
        log.warning("security: worker process %s tried the control socket", pid)
        raise RefusedError("Workers may not use the control socket.", do="Ask through utils.host.")
    if known is not None and zygote:
        known.is_owners = True
    return True


def _peer_pid(connection: socket.socket | None) -> int | None:
    option = getattr(socket, "SO_PEERCRED", None)
    if connection is None or option is None:
        return None
    packed = connection.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i"))
    pid: int = struct.unpack("3i", packed)[0]
    return pid


def _check_host(request: web.Request) -> None:
    host = request.headers.get("Host", "")
    if host not in request.app[HOSTS]:
        raise RefusedError("This listener answers to 127.0.0.1 and localhost only.", do="rappd open")


def _check_site(request: web.Request, origin: str | None) -> None:
    """Services may change things on a GET, which carries no ``Origin``: browsers say what site asks for it.

    Programs that are no browsers send nothing, people who type an address ``none``. Another port of this
    machine is another site's page here, though browsers call it the same site.
    """
    if not request.path.startswith("/api/") or origin in request.app[DAEMON].live_settings.origins:
        return
    if request.headers.get("Sec-Fetch-Site", "none").strip().lower() not in _OWN_SITES:
        raise RefusedError("Pages of other sites may not use services.", do="Add the site to http.origins.")


def _check_origin(request: web.Request, origin: str | None) -> None:
    if origin is None or _own_origin(request, origin) or origin in request.app[DAEMON].live_settings.origins:
        return
    if request.method not in _SAFE:
        raise RefusedError(
            "Pages of other sites may not use this listener.", do="Add the site to http.origins."
        )


def _own_origin(request: web.Request, origin: str) -> bool:
    return origin == f"http://{request.headers.get('Host', '')}"


def _with_cors(response: web.StreamResponse, origin: str | None) -> web.StreamResponse:
    if origin is not None:
        response.headers["Access-Control-Allow-Origin"] = origin
        response.headers["Vary"] = "Origin"
        response.headers["Access-Control-Allow-Methods"] = "GET, POST, PUT, DELETE, OPTIONS"
        response.headers["Access-Control-Allow-Headers"] = _ALLOWED_HEADERS
        response.headers["Access-Control-Expose-Headers"] = "Mcp-Session-Id"
        response.headers["Access-Control-Max-Age"] = "600"
    return response


def _plain_http(request: web.Request, found: web.HTTPException) -> web.StreamResponse:
    if found.status < 400:
        return found
    path, do = request.path[:200], "See /openapi.json"
    problem, code, do = {
        404: (f"No such path: {path}", "not_found", do),
        405: (f"{request.method} is not for {path}", "method", do),
        413: ("The request is too large.", "too_large", "Send less, or raise http.body_mb."),
    }.get(found.status, (found.reason, "refused", ""))
    return in_shape(request, HttpRefusalError(found.status, problem, code, do=do))


def tenant_of(request: web.Request) -> Tenant:
    """The tenant that a route works on."""
    if "twin" not in request.match_info:
        return request.app[TENANT]
    return request[_NAMED]


async def started(request: web.Request) -> Tenant:
    """The tenant that a route works on, once its agents are described: a command without a daemon begins with it here."""
    tenant = tenant_of(request)
    if not request.app[DAEMON].serves:
        await tenant.described()
    return tenant


def for_twin(handler: Handler) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """The same route under ``/twins/{twin}``: that twin is woken if it sleeps. Raises ``NoSuchTwinError``."""

    async def named(request: web.Request) -> web.StreamResponse:
        tenant = await request.app[DAEMON].tenants.twin(request.match_info["twin"])
        request[_NAMED] = tenant
        tenant.active_requests += 1  # from here on, so that it is not closed to make room for others
        try:
            return await handler(request)
        finally:
            tenant.active_requests -= 1

    named.__doc__ = f"For a twin: {handler.__doc__}"
    named.operator_only = getattr(handler, "operator_only", False)  # type: ignore[attr-defined]
    return named


def under_twins(*tables: web.RouteTableDef) -> list[web.RouteDef]:
    """The routes of ``tables`` once more, under ``/twins/{twin}``."""
    return [
        web.RouteDef(route.method, f"/twins/{{twin}}{route.path}", for_twin(route.handler), {})
        for table in tables
        for route in table
        if isinstance(route, web.RouteDef)
    ]
