"""Trust that ends stays ended, whatever becomes of the database, and ends what is under way or open."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import shutil
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.rappd.federation.conftest import Node
from tests.rappd.federation.plain_connection import line_of
from tests.rappd.federation.plain_machine import PlainMachine
from tests.rappd.federation.test_tokens import ask, issued


def _remove(node: Node, copy: Path) -> None:
    for path in node.daemon.home.glob("rappd.db*"):
        path.unlink()


def _put_back(node: Node, copy: Path) -> None:
    _remove(node, copy)
    shutil.copy(copy, node.daemon.home / "rappd.db")


@pytest.mark.parametrize("damage", [_put_back, _remove], ids=["older database", "no database"])
def test_revoked_stays_revoked(
    make: Callable[..., Node], tmp_path: Path, damage: Callable[[Node, Path], None]
) -> None:
    node = make().start()
    mine, other = node.peer("mine"), node.peer("other")
    token = issued(node, ["HELP.brainstem.Clock"])
    assert ask(mine, token["text"], agent="Clock").verb == "DONE"
    node.daemon.stop()
    copy = tmp_path / "rappd.db"
    shutil.copy(node.daemon.home / "rappd.db", copy)
    node.start()
    assert node.owner("DELETE", f"/tokens/{token['jti']}")[0] == 200
    name = next(row["name"] for row in _peers(node) if row["fingerprint"] == other.fingerprint)
    assert node.owner("POST", f"/peers/{name}/revoke", {})[0] == 200
    node.daemon.stop()
    damage(node, copy)

    node.start()
    assert ask(mine, token["text"], agent="Clock").status == 401
    paired = {row["fingerprint"] for row in _peers(node) if row["paired"]}
    assert paired == ({mine.fingerprint} if damage is _put_back else set())
    with pytest.raises(OSError):  # its certificate is refused in the handshake
        other.post(other.help("Clock"))


def test_peer_paired_anew_after_revocation_stays(make: Callable[..., Node]) -> None:
    node = make().start()
    mine = node.peer("mine")
    name = _peers(node)[0]["name"]
    assert node.owner("POST", f"/peers/{name}/revoke", {})[0] == 200
    node.pair(mine)
    node.daemon.stop()
    node.start()
    assert mine.post(mine.help("Clock")).verb == "DONE"


def _peers(node: Node) -> list[dict[str, object]]:
    found: list[dict[str, object]] = node.owner("GET", "/peers")[1]["peers"]
    return found


_SECRET = "what-the-agent-said"


@pytest.fixture(scope="module")
def egg(node: Node) -> bytes:
    assert node.daemon.cli("twins", "new", "Rose").returncode == 0
    (rose,) = (node.daemon.home / "twins").glob("[0-9a-f]*")
    (rose / ".brainstem_data").mkdir(exist_ok=True)
    (rose / ".brainstem_data" / "large.bin").write_bytes(
        os.urandom(6 << 20)
    )  # more than what waits in buffers
    path = node.folder / "rose.egg"
    assert node.daemon.cli("egg", "pack", "Rose", "--output", str(path)).returncode == 0
    return path.read_bytes()


def arrived(node: Node) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = node.owner("GET", "/eggs/arrived")[1]["arrived"]
    return found


def half_sent(machine: PlainMachine, octets: bytes, path: str = "/eggs") -> http.client.HTTPSConnection:
    """An upload of which the first half has been sent."""
    connection = machine.connect(timeout=100)
    connection.putrequest("POST", path)
    for name, value in (("Content-Length", str(len(octets))), ("X-Rappd-Name", "rose.egg")):
        connection.putheader(name, value)
    connection.endheaders(octets[: len(octets) // 2])
    return connection


@pytest.mark.parametrize("how", ["revoked", "narrowed", "alone"])
def test_egg_under_way_when_the_right_ends_is_not_kept(node: Node, egg: bytes, how: str) -> None:
    gone = node.peer(f"sends{how[0]}", whose="friend")
    part = node.daemon.home / "eggs" / ".arrived"
    connection = half_sent(gone, egg)
    node.daemon.wait_for(lambda: any(_size(one) for one in part.rglob("*")), what="half an egg to be there")
    if how == "revoked":
        assert node.owner("POST", f"/peers/{gone.fingerprint}/revoke")[0] == 200
    elif how == "narrowed":
        assert node.owner("POST", f"/peers/{gone.fingerprint}/scopes", {"scopes": ["HELP"]})[0] == 200
    status = 0
    try:
        connection.send(egg[len(egg) // 2 :])
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException):
        pass
    if how == "alone":
        assert status == 200
        assert [row["peer"] for row in arrived(node)] == [gone.fingerprint]
        assert node.owner("DELETE", f"/eggs/arrived/{arrived(node)[0]['id']}")[0] == 200
        return
    assert status in (0, 401, 403)
    assert not arrived(node)
    node.daemon.wait_for(lambda: not any(_size(one) for one in part.rglob("*")), what="the half to be gone")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except FileNotFoundError:
        return 0


@pytest.mark.parametrize("accepts", ["text/event-stream", "application/json"])
@pytest.mark.parametrize("by", ["certificate", "token", "alone"])
def test_answer_ends_with_the_trust(node: Node, by: str, accepts: str) -> None:
    gone = node.peer(f"reads{by[0]}{accepts[-4:]}")
    token, mark = gone.token() if by == "token" else "", f"{by}-{accepts[-4:]}"
    connection = gone.connect(certificate=not token, timeout=100)
    headers = {"Content-Type": "application/json", "Accept": accepts}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    seconds = 2 if by == "alone" else 20  # its trust ends before the agent does
    asked = gone.help("Counted", {"tell": f"{_SECRET}-{mark}", "seconds": seconds})
    connection.request("POST", "/envelopes", json.dumps(asked), headers)
    node.daemon.wait_for(lambda: any(mark in one for one in node.counted()), what="the agent to be at work")
    if by != "alone":
        assert node.owner("POST", f"/peers/{gone.fingerprint}/revoke")[0] == 200
    told = b""
    try:
        answer = connection.getresponse()
        while piece := answer.read1(65536):
            told += piece
    except (OSError, http.client.HTTPException):
        pass
    assert (f"counted {_SECRET}".encode() in told) == (by == "alone"), told


async def test_line_under_way_says_nothing_more(node: Node) -> None:
    gone = await asyncio.to_thread(node.peer, "streams")
    async with line_of(gone) as line:
        asked = gone.help(
            "Counted",
            {"tell": "lined", "seconds": 20},
        )
        await line.send({**asked, "data": {**asked["data"], "stream": True}})
        await asyncio.to_thread(node.daemon.wait_for, lambda: "lined" in node.counted())
        await asyncio.to_thread(node.owner, "POST", f"/peers/{gone.fingerprint}/revoke")
        heard = []
        async with asyncio.timeout(100):
            while (message := await line.receive()).type is aiohttp.WSMsgType.TEXT:
                heard.append(message.data)
        assert not any("counted lined" in one for one in heard)


def test_line_that_is_being_opened_is_refused(node: Node) -> None:
    """The request for a line comes half before the trust ends, half after it."""
    gone = node.peer("opens")
    host, _, port = gone.daemon_address.rpartition(":")
    request = (
        f"GET /line HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    ).encode()
    with gone.context().wrap_socket(socket.create_connection((host, int(port)), 20)) as raw:
        raw.settimeout(100)
        raw.sendall(request[:60])
        assert node.owner("POST", f"/peers/{gone.fingerprint}/revoke")[0] == 200
        try:
            raw.sendall(request[60:])
            found = raw.recv(4096)
        except (OSError, ssl.SSLError):
            found = b""
        assert not found.startswith(b"HTTP/1.1 101")
