"""Routes by the first part of their path, set up once one of them is asked for: a start waits for none of 500."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from aiohttp import web
from aiohttp.abc import AbstractMatchInfo
from aiohttp.web_urldispatcher import AbstractResource, AbstractRoute, UrlDispatcher, UrlMappingMatchInfo
from yarl import URL


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
        app.router.register_resource(RouteGroup(app.router, path, group))


class RouteGroup(AbstractResource):
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
