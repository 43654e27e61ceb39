"""The address of an egg: what it is asked with, and what is kept from it."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiohttp import web
from fixtures.loopback_server import LoopbackServer
from fixtures.refusals import refused

from rappd.features.eggs.download import fetch_egg
from rappd.features.eggs.uploaded_eggs import UploadedEggs


class _Publisher(LoopbackServer):
    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def routes(self, app: web.Application) -> None:
        app.router.add_get("/{name}", self._answer)

    async def _answer(self, request: web.Request) -> web.Response:
        self.headers = dict(request.headers)
        self.asked.append(f"http://{request.host}{request.path}")
        return web.Response(status=404)


async def test_fetching_an_egg_sends_no_password_of_this_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login anna password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    publisher = _Publisher()
    publisher.start()
    try:
        with refused("unreachable", match="answered 404"):
            await fetch_egg(f"{publisher.url}/a.egg", UploadedEggs(tmp_path / "waiting"))
    finally:
        publisher.stop()
    assert "Authorization" not in publisher.headers


async def test_proxy_of_the_environment_is_asked_for_what_is_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher, proxy = _Publisher(), _Publisher()
    for one in (publisher, proxy):
        one.start()
    for name in ("HTTP_PROXY", "NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", proxy.url)
    waiting = UploadedEggs(tmp_path / "waiting")
    try:
        for url in (f"{publisher.url}/a.egg", "http://eggs.example/b.egg"):
            with refused("unreachable", match="answered 404"):
                await fetch_egg(url, waiting)
        monkeypatch.setenv("no_proxy", "eggs.example")
        with refused("unreachable", match=r"eggs\.example/c\.egg does not answer"):
            await fetch_egg("http://eggs.example/c.egg", waiting)
    finally:
        for one in (publisher, proxy):
            one.stop()
    assert publisher.asked == [f"{publisher.url}/a.egg"], "this machine is asked by itself"
    assert proxy.asked == ["http://eggs.example/b.egg"]
