"""The loopback listener as one web application; TCP and the control socket share it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from aiohttp import web
from aiohttp.abc import AbstractMatchInfo
from aiohttp.web_urldispatcher import AbstractResource, AbstractRoute, UrlDispatcher, UrlMappingMatchInfo
from yarl import URL

from rappd.daemon.app import Daemon
from rappd.features.operation import OperationTable
from rappd.listeners import later_routes
from rappd.listeners.app_keys import DAEMON
from rappd.listeners.bodies import SHAPES
from rappd.listeners.later_routes import PROGRAMS, shapes_of
from rappd.listeners.loopback import chat, health
from rappd.listeners.loopback.operation_routes import routes_of, routes_of_twins
from rappd.listeners.loopback.request_guard import HOSTS, TENANT, guard, under_twins
from rappd.listeners.request_end import end_at_stop
from rappd.tenants.tenant import Tenant

_OF_TWINS = ("loopback.github_login_routes", "loopback.voice_settings_routes", "loopback.service_routes")
_OF_THE_PAGE = (
    "loopback.rapps",
    "loopback.operator_session_routes",
    "loopback.static_files",
    "loopback.openapi",
)
_FOR_OTHERS = ("loopback.eggs", "loopback.replay_page_routes", "loopback.well_known")
_OPERATIONS_OF_TWINS = ("/models", "/agents", "/chat", "/voice")
"""Beginnings of the paths of operations that a booted twin answers at its own port."""


def build(daemon: Daemon, table: Callable[[], OperationTable]) -> web.Application:
    """Every route of the listener, those of the ``table`` among them, behind its guard; a twin's own once more under its name."""
    app = _empty(daemon, daemon.host, daemon.hosts)
    app[SHAPES] = shapes_of(PROGRAMS)
    end_at_stop(app)
    later = [*_OF_TWINS, *_OF_THE_PAGE, *_FOR_OTHERS, *PROGRAMS]
    if daemon.settings.on("http.tools"):
        later.append("loopback.http_tools")
    of_modules = [*chat.routes, *health.routes, *later_routes.routes_of(later)]
    add_grouped(app, [*of_modules, *routes_of(table), *routes_of_twins(table), *under_twins(chat.routes)])
    return app


def build_for_twin(
    daemon: Daemon, tenant: Tenant, port: int, table: Callable[[], OperationTable]
) -> web.Application:
    """Builds the application for a booted twin's own port: the RAPP surface, no page, no structure."""
    app = _empty(daemon, tenant, {f"127.0.0.1:{port}", f"localhost:{port}"})
    of_modules = [*chat.routes, *health.routes, *later_routes.routes_of(_OF_TWINS)]
    of_table = (route for below in _OPERATIONS_OF_TWINS for route in routes_of(table, below=below))
    add_grouped(app, [*of_modules, *of_table])
    return app


def _empty(daemon: Daemon, tenant: Tenant, hosts: set[str]) -> web.Application:
    app = web.Application(middlewares=[guard], client_max_size=daemon.settings.number("http.body_mb") << 20)
    app[DAEMON], app[TENANT], app[HOSTS] = daemon, tenant, hosts
    return app


def add_grouped(app: web.Application, routes: Iterable[web.AbstractRouteDef]) -> None:
    """Adds ``routes`` to the application, in a group each for what their paths begin with; others as they are."""
    groups: dict[str, list[web.RouteDef]] = {}
    for route in routes:
        first = route.path.split("/")[1] if isinstance(route, web.RouteDef) else ""
        if isinstance(route, web.RouteDef) and first and "{" not in first:
            groups.setdefault(f"/{first}", []).append(route)
        else:
            app.add_routes([route])
    for path, group in groups.items():
        app.router.register_resource(_RouteGroup(app.router, path, group))


class _RouteGroup(AbstractResource):
    """All routes at ``path`` and below it. aiohttp compiles the pattern of a path when its route is added.

    The first request that may be one of theirs puts them into the router, in the group's place.
    """

    def __init__(self, router: UrlDispatcher, path: str, routes: list[web.RouteDef]) -> None:
        super().__init__()
        self._router = router
        self._path = path
        self._routes = routes

    @property
    def canonical(self) -> str:
        return self._path

    @cached_property
    def _dispatcher(self) -> UrlDispatcher:
        dispatcher = UrlDispatcher()
        dispatcher.add_routes(self._routes)
        return dispatcher

    async def resolve(self, request: web.Request) -> tuple[UrlMappingMatchInfo | None, set[str]]:
        own = self._dispatcher
        self._router.unindex_resource(self)
        for resource in own.resources():
            self._router.index_resource(resource)
        found: AbstractMatchInfo = await own.resolve(request)
        problem = found.http_exception
        if problem is None and isinstance(found, UrlMappingMatchInfo):
            return found, set()
        return None, set(problem.allowed_methods) if isinstance(problem, web.HTTPMethodNotAllowed) else set()

    def __iter__(self) -> Iterator[AbstractRoute]:
        return iter(self._dispatcher.routes())

    def __len__(self) -> int:
        return len(self._dispatcher.routes())

    def raw_match(self, path: str) -> bool:
        return path == self._path

    def get_info(self) -> dict[str, str]:  # type: ignore[override]  # aiohttp's type for it is private
        return {"prefix": self._path}

    def add_prefix(self, prefix: str) -> None:
        raise NotImplementedError("a group belongs to one application")

    def url_for(self, **kwargs: str) -> URL:
        raise NotImplementedError("a group has no address of its own")
