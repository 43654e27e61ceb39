"""Routes whose handler is imported by the first request: an idle daemon holds no protocol and no operation unused.

``route_paths.py`` lists those of modules; docs/make_reference.py writes it from them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from importlib import import_module
from typing import Any

from aiohttp import web

from envelopes.errors import ReportableError
from rappd.listeners.route_paths import ROUTE_PATHS, SHAPE_PATHS

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

PROGRAMS = ("a2a", "acp", "mcp", "ollama", "openai", "openai_responses", "webhooks")
"""Modules of foreign programs: the listeners for this machine and for others serve them alike."""


def routes_of(modules: Iterable[str]) -> list[web.RouteDef]:
    """The routes of modules, named from ``rappd.listeners`` on."""
    return [
        web.RouteDef(method, path, later(partial(_handler, module, method, path)), given)
        for module in modules
        for method, path, given in ROUTE_PATHS[module]
    ]


def shapes_of(modules: Iterable[str]) -> dict[str, Callable[[ReportableError], web.Response]]:
    """The shapes that refusals have below paths of modules."""
    return {path: partial(_shaped, one, path) for one in modules for path in SHAPE_PATHS.get(one, ())}


def handler_itself(handler: Any) -> Any:
    """The handler that a request would make, with its docstring; any other as it is."""
    found = getattr(handler, "itself", None)
    return handler if found is None else found()


def later(made: Callable[[], Handler]) -> Handler:
    """A handler that the first request makes."""
    handler: Handler | None = None

    def itself() -> Handler:
        nonlocal handler
        if handler is None:
            handler = made()
        return handler

    async def answer(request: web.Request) -> web.StreamResponse:
        return await itself()(request)

    answer.itself = itself  # type: ignore[attr-defined]
    return answer


def _handler(module: str, method: str, path: str) -> Handler:
    routes: web.RouteTableDef = import_module(f"rappd.listeners.{module}").routes
    found = (one for one in routes if isinstance(one, web.RouteDef))
    return next(one.handler for one in found if (one.method, one.path) == (method, path))


def _shaped(module: str, path: str, found: ReportableError) -> web.Response:
    answer: web.Response = import_module(f"rappd.listeners.{module}").SHAPES[path](found)
    return answer
