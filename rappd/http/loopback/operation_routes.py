"""The routes of the table of operations: their arguments from path, query and body, their answers as JSON."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from rappd.features.operation import OWNER, Operation, OperationTable
from rappd.http.loopback.security import operator_only
from rappd.http.request_body import json_object
from rappd.http.responses import ok


def routes_of(table: OperationTable, below: str = "") -> list[web.RouteDef]:
    """A route for each operation whose path begins with ``below``, behind its right."""
    return [
        web.RouteDef(one.method, one.path, _route(one, perform), {})
        for one, perform in table
        if one.path.startswith(below)
    ]


def _route(one: Operation, perform: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    has_body = one.method in ("POST", "PUT")

    async def answer(request: web.Request) -> web.StreamResponse:
        sent = await json_object(request) if has_body else {}
        given = one.read({**request.query, **sent, **request.match_info}, as_text=not has_body)
        return ok(await perform(**given))

    answer.__doc__ = one.about
    handler = operator_only(answer) if one.right is OWNER else answer
    handler.operation = one  # type: ignore[attr-defined]  # read by /openapi.json
    return handler
