"""Routes that are set up when they are first asked for answer as if they had been there from the start."""

from __future__ import annotations

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from rappd.listeners.loopback.app import add_grouped

ROUTES = [
    ("GET", "/"),
    ("GET", "/twins"),
    ("GET", "/twins/installed"),
    ("GET", "/twins/{twin}"),
    ("POST", "/twins/{twin}/boot"),
    ("DELETE", "/agents/{file}"),
    ("GET", "/{other}/anything"),
]
ASKED = {
    ("GET", "/twins/x"): (200, "/twins/{twin}"),
    ("GET", "/"): (200, "/"),
    ("HEAD", "/twins"): (200, ""),
    ("GET", "/twins/installed"): (200, "/twins/installed"),
    ("POST", "/twins/x/boot"): (200, "/twins/{twin}/boot"),
    ("GET", "/twins/x/boot"): (405, "POST"),
    ("POST", "/twins"): (405, "GET,HEAD"),
    ("GET", "/agents/x.py"): (405, "DELETE"),
    ("DELETE", "/agents/x.py"): (200, "/agents/{file}"),
    ("GET", "/agents/anything"): (200, "/{other}/anything"),
    ("GET", "/agents"): (404, ""),
    ("GET", "/twinsets"): (404, ""),
}


def app() -> web.Application:
    async def answer(request: web.Request) -> web.Response:
        resource = request.match_info.route.resource
        assert resource is not None
        return web.Response(text=resource.canonical)

    made = web.Application()
    kinds = {"GET": web.get, "POST": web.post, "DELETE": web.delete}
    add_grouped(made, [kinds[method](path, answer) for method, path in ROUTES])
    return made


async def test_grouped_routes_answer_as_routes_do() -> None:
    async with TestClient(TestServer(app())) as client:
        for again in (False, True):
            for (method, path), (status, text) in ASKED.items():
                answer = await client.request(method, path)
                found = answer.headers["Allow"] if status == 405 else await answer.text()
                assert (answer.status, "" if status == 404 else found) == (status, text), (
                    method,
                    path,
                    again,
                )


def test_listing_routes_has_those_of_groups() -> None:
    listed = {(route.method, route.resource.canonical) for route in app().router.routes() if route.resource}
    assert listed - {(method, path) for method, path in listed if method == "HEAD"} == set(ROUTES)
