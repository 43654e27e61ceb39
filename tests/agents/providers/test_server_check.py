"""Trying a model server: each way in which it can fail is told apart, at real servers on this machine."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from fixtures.free_ports import free_port

from agents.providers.openai_server import Azure
from agents.providers.server_check import CheckLimits, check_azure, check_server

KEY = "sk-quite-secret-0123456789"
PATIENT = CheckLimits(listing=60.0, answer=60.0)
"""For servers that answer: they fail in no other way because this machine is busy."""
LIST = {"object": "list", "data": [{"id": "nomic-embed"}, {"id": "small"}, {"id": "big"}]}
ANSWER = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "yes"}}]}


class Server:
    """A server whose two answers a test sets: (status, body) for the list and for a question."""

    def __init__(self) -> None:
        self.listed: tuple[int, Any] = (200, LIST)
        self.answered: tuple[int, Any] = (200, ANSWER)
        self.headers: dict[str, str] = {}
        self.asked: list[tuple[str, Any]] = []
        self.keys: list[str] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        is_list = request.method == "GET"
        self.asked.append((request.path, None if is_list else await request.json()))
        self.keys.append(request.headers.get("Authorization", request.headers.get("api-key", "")))
        status, body = self.listed if is_list else self.answered
        if status == 0:
            await asyncio.sleep(30)
        text = body if isinstance(body, str) else json.dumps(body)
        return web.Response(text=text, status=status or 200, headers=self.headers)


@asynccontextmanager
async def serving(
    server: Server, paths: str = "/v1/{rest:.*}", tls: ssl.SSLContext | None = None
) -> AsyncIterator[Server]:
    app = web.Application()
    app.router.add_route("*", paths, server.answer)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        server.port = runner.addresses[0][1]
        yield server
    finally:
        await runner.cleanup()


async def test_working_server_is_asked_one_question_with_its_key() -> None:
    async with serving(Server()) as server:
        found = await check_server(server.url, KEY, "", limits=PATIENT)
    assert (found.works, found.model, found.models) == (True, "small", ("small", "big"))
    assert [path for path, _ in server.asked] == ["/v1/models", "/v1/chat/completions"]
    assert server.keys == [f"Bearer {KEY}"] * 2


@pytest.mark.parametrize(
    ("listed", "answered", "model", "reason", "says"),
    [
        ((401, {}), (200, ANSWER), "", "key_refused", "refused the key"),
        ((200, LIST), (401, {"error": KEY}), "small", "key_refused", "refused the key"),
        ((404, "no"), (404, "no"), "", "wrong_path", "has no models at /v1"),
        ((200, "<!doctype html>"), (200, ""), "", "not_json", "a web page"),
        ((200, {"hello": 1}), (200, ""), "", "not_openai", "not in the way of OpenAI"),
        ((200, LIST), (200, "fine"), "small", "not_json", "does not send JSON"),
        ((200, LIST), (200, ANSWER), "huge", "no_model", 'no model "huge"'),
        ((200, {"data": []}), (404, {"error": KEY}), "huge", "no_model", 'no model "huge"'),
        ((200, {"object": "list", "data": None}), (200, ANSWER), "", "no_model", "no model yet"),
        ((500, {"error": KEY}), (200, ANSWER), "", "server_error", "trouble of its own (500)"),
        ((429, {}), (200, ANSWER), "", "limit", "limit is reached"),
        ((0, LIST), (200, ANSWER), "", "timeout", "did not answer within 1 s"),
        ((200, LIST), (0, ANSWER), "big", "slow", '"big" did not answer within 1 s'),
    ],
)
async def test_failing_server_is_told_apart(
    listed: tuple[int, Any], answered: tuple[int, Any], model: str, reason: str, says: str
) -> None:
    server = Server()
    server.listed, server.answered = listed, answered
    async with serving(server):
        limits = CheckLimits(listing=60.0 if listed[0] else 1.0, answer=60.0 if answered[0] else 1.0)
        found = await check_server(server.url, KEY, model, limits=limits)
    assert (found.reason, says in found.text, bool(found.do)) == (reason, True, True), found
    assert KEY not in repr(found)


async def test_server_without_key_asks_for_one() -> None:
    server = Server()
    server.listed = (401, {})
    async with serving(server):
        assert (await check_server(server.url, "", "", limits=PATIENT)).reason == "key_missing"


async def test_port_where_nothing_listens_is_refused() -> None:
    found = await check_server(f"127.0.0.1:{free_port()}", "", "", limits=PATIENT)
    assert found.reason == "refused"
    assert "Nothing listens at 127.0.0.1:" in found.text


async def test_name_of_no_computer_is_told() -> None:
    assert (
        await check_server("http://no-such-computer.invalid/v1", "", "", limits=PATIENT)
    ).reason == "unknown_host"


@pytest.mark.parametrize("typed", ["", "   ", "ftp://x/v1", "http://a b/", "http://x:port/v1", "file:///etc"])
async def test_what_is_no_web_address_is_not_asked(typed: str) -> None:
    assert (await check_server(typed, KEY, "", limits=PATIENT)).reason == "bad_address"


async def test_wrong_path_proposes_the_usual_one() -> None:
    async with serving(Server()) as server:
        found = await check_server(f"http://127.0.0.1:{server.port}/api", "", "", limits=PATIENT)
    assert (found.reason, found.address) == ("wrong_path", server.url)


async def test_redirect_is_told_and_not_followed() -> None:
    inner, outer = Server(), Server()
    async with serving(inner), serving(outer):
        outer.listed = (307, "")
        outer.headers = {"Location": f"{inner.url}/models"}
        found = await check_server(outer.url, KEY, "", limits=PATIENT)
    assert (found.reason, inner.asked) == ("redirect", [])


async def test_https_is_told_apart_from_http(
    tmp_path: Path, certificate: Callable[[Path], ssl.SSLContext]
) -> None:
    async with serving(Server()) as server:
        plain = await check_server(server.url.replace("http:", "https:"), "", "", limits=PATIENT)
    async with serving(Server(), tls=certificate(tmp_path)) as server:
        own = await check_server(server.url.replace("http:", "https:"), "", "", limits=PATIENT)
    assert (plain.reason, own.reason, server.asked) == ("no_tls", "untrusted", [])


async def test_server_of_an_agent_is_sent_nothing() -> None:
    async with serving(Server()) as server:
        found = await check_server(server.url, KEY, "", lambda *_: True, PATIENT)
        azure = Azure(f"http://127.0.0.1:{server.port}", "mine", KEY)
        assert (await check_azure(azure, lambda *_: True, PATIENT)).reason == "agent"
    assert (found.reason, server.asked) == ("agent", [])


async def test_azure_deployment_is_asked_as_azure_wants_it() -> None:
    server = Server()
    async with serving(server, "/openai/deployments/{rest:.*}"):
        azure = Azure(f"http://127.0.0.1:{server.port}/", "mine", KEY)
        assert (await check_azure(azure, limits=PATIENT)).works
        server.answered = (404, {"error": {"code": "DeploymentNotFound"}})
        missing = await check_azure(azure, limits=PATIENT)
    assert server.asked[0][0] == "/openai/deployments/mine/chat/completions"
    assert server.keys[0] == KEY
    assert (missing.reason, 'no model "mine"' in missing.text) == ("no_model", True)


@pytest.fixture
def certificate() -> Callable[[Path], ssl.SSLContext]:
    """A TLS server context with a certificate that nobody trusts."""

    def make(folder: Path) -> ssl.SSLContext:
        import datetime

        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
        now = datetime.datetime.now(datetime.UTC)
        made = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(1)
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .sign(key, hashes.SHA256())
        )
        form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        pem = made.public_bytes(serialization.Encoding.PEM)
        file = folder / "both.pem"
        file.write_bytes(pem + key.private_bytes(serialization.Encoding.PEM, *form))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context

    return make
