"""The routes of the table of operations: their arguments from path, query and body, their answers as JSON."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from rappd.features.operation import OWNER, Operation, OperationTable
from rappd.http.loopback.security import for_twin, operator_only, started
from rappd.http.request_body import json_object
from rappd.http.responses import ok

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def routes_of(table: OperationTable, *, below: str = "") -> list[web.RouteDef]:
    """A route for each operation whose path begins with ``below``, behind its right."""
    return [
        web.RouteDef(one.method, one.path, _route(one, perform), {})
        for one, perform in table
        if one.path.startswith(below)
    ]


def routes_of_twins(table: OperationTable) -> list[web.RouteDef]:
    """A route below ``/twins/{twin}`` for each operation that is of twins, too."""
    return [
        web.RouteDef(one.method, f"/twins/{{twin}}{one.path}", _of_twin(one, perform), {})
        for one, perform in table
        if one.of_tenant
    ]


def _route(one: Operation, perform: Callable[..., Awaitable[Any]]) -> Handler:
    has_body = one.method in ("POST", "PUT")

    async def answer(request: web.Request) -> web.StreamResponse:
        sent = await json_object(request) if has_body else {}
        given = one.read({**request.query, **sent, **request.match_info}, as_text=not has_body)
        whose = (await started(request),) if one.of_tenant else ()
        return ok(await perform(*whose, **given))

    answer.__doc__ = one.about
    handler = operator_only(answer) if one.right is OWNER else answer
    handler.operation = one  # type: ignore[attr-defined]  # read by /openapi.json
    return handler


def _of_twin(one: Operation, perform: Callable[..., Awaitable[Any]]) -> Handler:
    handler = for_twin(_route(one, perform))
    handler.operation = one  # type: ignore[attr-defined]
    return handler
