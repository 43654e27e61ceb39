"""Finds the tenant of a request: by the port it came to, or by the twin in its path."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from rappd.http.app_keys import DAEMON
from rappd.tenants.tenant import Tenant

TENANT = web.AppKey("tenant", Tenant)


class AllowedHosts(msgspec.Struct, frozen=True):
    """Gives the Host headers that an application answers to, once it listens."""

    names: Callable[[], frozenset[str]]


HOSTS = web.AppKey("hosts", AllowedHosts)

_NAMED = web.RequestKey("tenant", Tenant)


def tenant_of(request: web.Request) -> Tenant:
    """The tenant that a route works on."""
    if "twin" not in request.match_info:
        return request.app[TENANT]
    return request[_NAMED]


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
