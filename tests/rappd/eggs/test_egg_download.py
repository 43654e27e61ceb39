"""The address of an egg: what it is asked with, and what is kept from it."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiohttp import web
from fixtures.loopback_server import LoopbackServer

from rappd.operations.egg_download import EggUnreachableError, fetch_egg
from rappd.operations.uploaded_eggs import UploadedEggs


class _Publisher(LoopbackServer):
    def routes(self, app: web.Application) -> None:
        app.router.add_get("/{name}", self._answer)

    async def _answer(self, request: web.Request) -> web.Response:
        self.headers = dict(request.headers)
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
        with pytest.raises(EggUnreachableError, match="answered 404"):
            await fetch_egg(f"{publisher.url}/a.egg", UploadedEggs(tmp_path / "waiting"))
    finally:
        publisher.stop()
    assert "Authorization" not in publisher.headers
