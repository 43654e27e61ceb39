"""Eggs on this machine, by name and number of files, and the address of an egg: what it is asked with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from aiohttp import web
from fixtures.loopback_server import LoopbackServer
from fixtures.refusals import refused
from fixtures.running_daemon import RunningDaemon

from rappd.features.eggs.download import fetch_egg
from rappd.features.eggs.packing import egg_file_name
from rappd.features.eggs.uploaded_eggs import UploadedEggs


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("Gardener", "Gardener.egg"),
        ("a/b: c?", "a_b_ c_.egg"),
        ("..", "egg.egg"),
        ("ö" * 100, f"{'ö' * 80}.egg"),
    ],
)
def test_file_name_is_the_twins(name: str, file: str) -> None:
    assert egg_file_name(name) == file


def test_packed_egg_is_listed_under_its_name_and_counted_the_same_everywhere(
    fake_daemon: RunningDaemon, tmp_path: Path
) -> None:
    fake_daemon.cli("twins", "new", "Gardener")
    [twin] = fake_daemon.get("/twins", control=True).json()["twins"]
    fake_daemon.post(f"/twins/{twin['key']}/chat", {"user_input": "remember me"}, control=True)
    packed = fake_daemon.post("/eggs/pack", {"twin": twin["key"]}, control=True).json()["packed"]
    assert packed["left_out"] == [], "nothing but what rappd itself made empty"
    assert fake_daemon.get("/eggs/laid").status == 403
    [egg] = fake_daemon.get("/eggs/laid", control=True).json()["eggs"]
    assert (egg["file"], egg["path"], egg["size"]) == ("Gardener.egg", packed["path"], packed["size"])
    fetched = fake_daemon.get(f"/eggs/laid/{egg['folder']}/{Path(egg['path']).name}", control=True)
    assert len(fetched.body) == egg["size"]

    copy = shutil.copy(egg["path"], tmp_path / "Gardener.egg")
    home = {"RAPP_HOME": str(tmp_path / "elsewhere")}
    plan = json.loads(fake_daemon.cli("egg", "plan", copy, "--json", **home).stdout)["plan"]
    files = plan["create"]["count"]
    assert plan["create"]["roles"]["conversations"] == 1
    hatched = fake_daemon.cli("egg", "hatch", copy, "--yes", **home)
    assert f"Gardener hatched: {files} files." in hatched.stdout
    [row] = json.loads(fake_daemon.cli("egg", "hatchings", "--json", **home).stdout)["hatchings"]
    assert row["files"] == files


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
