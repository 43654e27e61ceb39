"""A daemon whose model server is itself, on whatever way, says so and answers without a model; it never asks itself twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, web
from fixtures.loopback_server import LoopbackServer
from fixtures.running_daemon import RunningDaemon

from rappd.daemon.home import Home
from rappd.errors import UsageProblemError
from rappd.settings.write import write

ITSELF = "That is rappd itself"


class Forwarder(LoopbackServer):
    """Hands requests on to ``to``, as a proxy does that the owner forgot about."""

    to = ""

    def __init__(self) -> None:
        super().__init__()
        self.passed = 0

    def routes(self, app: web.Application) -> None:
        app.router.add_route("*", "/{path:.*}", self._pass_on)

    async def _pass_on(self, request: web.Request) -> web.Response:
        self.passed += request.method == "POST" and "chat" in request.path
        kept = {key: text for key, text in request.headers.items() if key not in ("Host", "Content-Length")}
        async with ClientSession() as http:
            body = await request.read()
            async with http.request(
                request.method, f"{self.to}{request.path}", data=body, headers=kept
            ) as answer:
                told = await answer.read()
                return web.Response(body=told, status=answer.status, content_type=answer.content_type)


@pytest.fixture
def forwarder() -> Any:
    server = Forwarder()
    server.start()
    yield server
    server.stop()


def test_its_own_address_in_the_environment_is_told_in_the_answer(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon(RAPPD_MODEL_HELP="never")
    daemon.environment["OPENAI_BASE_URL"] = f"http://localhost:{daemon.port}/v1"
    daemon.start()
    answer = daemon.chat("hello")
    assert ITSELF in answer["notice"], answer
    found = daemon.post("/v1/embeddings", {"model": "m", "input": "hello"})
    assert (found.status, ITSELF in found.body.decode()) == (502, True), found.body


@pytest.mark.parametrize("name", ["provider.url", "azure.endpoint"])
def test_its_own_address_is_refused_as_a_setting(tmp_path: Path, name: str) -> None:
    home = Home(tmp_path)
    write(home, "port", "7071")
    for address in ("http://localhost:7071/v1", "127.0.0.1:7071", "http://[::1]:7071"):
        with pytest.raises(UsageProblemError, match="that is rappd itself"):
            write(home, name, address)
    write(home, name, "http://127.0.0.1:11434/v1")


def test_another_machine_and_a_proxy_in_between_are_asked_once(
    make_daemon: Callable[..., RunningDaemon], forwarder: Forwarder
) -> None:
    one = make_daemon(OPENAI_BASE_URL=forwarder.url, OPENAI_MODEL="brainstem", RAPPD_MODEL_HELP="never")
    other = make_daemon(
        "other",
        OPENAI_BASE_URL=f"http://127.0.0.1:{one.port}/v1",
        OPENAI_MODEL="brainstem",
        RAPPD_MODEL_HELP="never",
    ).start()
    forwarder.to = f"http://127.0.0.1:{other.port}"
    one.start()
    answer = one.chat("hello")
    assert forwarder.passed == 1
    assert "no model" in answer["response"], "the other one answers without its model, which is this one"
    assert ITSELF in other.log
