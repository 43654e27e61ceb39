"""The listener for phones over https: what it refuses, and what the owner is told where its key cannot be read."""

from __future__ import annotations

import http.client
import json
import re
import socket
import ssl
from collections.abc import Iterator

import pytest
from fixtures.running_daemon import RunningDaemon

from tests.rappd.tether.conftest import reachable


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    home = tmp_path_factory.mktemp("desk") / "home"
    made = RunningDaemon(home, **reachable(), LLM_FAKE="1", RAPPD_TETHER_TLS="on").start()
    yield made
    made.stop()


def opened(desk: RunningDaemon) -> tuple[str, int]:
    """Host and port of the link that the QR code shows."""
    desk.request("DELETE", "/devices/window", control=True)
    window = desk.request("POST", "/devices/window", {}, control=True).json()
    host, port = re.findall(r"https://([^/:]+):(\d+)/t#", window["links"][0])[0]
    return host, int(port)


def status(host: str, port: int, **headers: str) -> int:
    asking = http.client.HTTPSConnection(host, port, context=ssl._create_unverified_context(), timeout=100)
    asking.request("GET", "/t", headers=headers)
    found = asking.getresponse().status
    asking.close()
    return found


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
def test_plain_http_old_versions_and_pages_over_http_are_refused(desk: RunningDaemon) -> None:
    host, port = opened(desk)
    assert status(host, port, Origin=f"https://{host}:{port}") == 200
    assert status(host, port, Origin=f"http://{host}:{port}") == 403
    with socket.create_connection((host, port), 20) as plain:
        plain.sendall(f"GET /t HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        assert plain.recv(1000) == b""
    taken = []
    for version in ("TLSv1", "TLSv1_1", "TLSv1_2", "TLSv1_3"):
        context = ssl._create_unverified_context()
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
        try:
            with context.wrap_socket(socket.create_connection((host, port), 20)):
                taken.append(version)
        except (ssl.SSLError, ConnectionError):
            pass
    assert taken == ["TLSv1_2", "TLSv1_3"]


def test_key_that_cannot_be_read_is_told_and_harms_nobody_who_is_served(desk: RunningDaemon) -> None:
    host, port = opened(desk)
    key = desk.home / "keys" / "machine-key.pem"
    kept = key.rename(key.with_suffix(".kept"))
    key.mkdir()
    assert status(host, port) == 200
    desk.stop()
    device = {"id": "ab" * 32, "name": "Anna", "secret": "AAAA", "created_at": 4e9}
    (desk.home / "devices.json").write_text(json.dumps({"devices": [device]}))
    desk.start()
    told = desk.request("POST", "/devices/window", {}, control=True)
    assert "key or certificate in" in told.json()["error"]
    assert str(key.parent) in told.json()["error"] and told.json()["do"]
    desk.wait_for_log("phones cannot connect: This machine's key")
    desk.wait_for_log("other machines cannot be reached: This machine's key")
    assert "Traceback" not in desk.log
    key.rmdir()
    kept.rename(key)
    assert status(*opened(desk)) == 200
