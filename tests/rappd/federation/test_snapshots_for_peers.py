"""A daemon that peers read for their snapshots: who may, what never leaves, and when a stream ends."""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fixtures import member_homes as homes
from fixtures.running_daemon import agent_source

from neighborhoods.snapshot import served_home
from neighborhoods.snapshot.tar_guard import TarEntry, TarGuard, files_of, read_tar
from tests.rappd.federation.conftest import Node
from tests.rappd.federation.plain_machine import PlainMachine
from tests.rappd.federation.test_tokens import issued
from twins.trust.quarantine import QuarantineList

READS = ("/snapshot", "/snapshot/twins", f"/snapshot/twins/{homes.TWIN}", "/snapshot/agents")


@pytest.fixture(scope="module")
def mine(node: Node) -> PlainMachine:
    return node.peer("mine")


@pytest.fixture
def twin(node: Node) -> Iterator[Path]:
    folder = node.daemon.home / "twins" / homes.TWIN
    homes.fill_twin(folder)
    yield folder
    shutil.rmtree(folder)


def names(stream: bytes) -> set[str]:
    return {one.path for one in read_tar([stream], TarGuard()) if isinstance(one, TarEntry)}


@pytest.mark.parametrize("path", READS)
def test_read_friend_is_refused_until_it_is_shared(node: Node, twin: Path, path: str) -> None:
    friend = node.peer("friend", whose="friend")
    refused = friend.request("GET", path)
    assert (refused.status, refused.json["code"]) == (403, "refused")
    assert "--add SNAPSHOT" in refused.json["do"]
    for helpless in ("HELP.*", "SNAPSHOT.brainstem", "EGG.*"):
        share(node, friend, helpless)
        assert friend.request("GET", path).status == 403
    share(node, friend, "SNAPSHOT")
    assert friend.request("GET", path).status == 200
    assert friend.post(friend.help("Clock")).status == 403, "and nothing else"


@pytest.mark.parametrize("path", READS)
def test_read_stranger_and_token_holder_are_refused(node: Node, twin: Path, path: str) -> None:
    with pytest.raises(OSError):  # its certificate is refused in the handshake
        node.stranger().request("GET", path)
    assert node.stranger().request("GET", path, certificate=False).status == 401
    text = issued(node, ["SNAPSHOT"])["text"]
    assert node.stranger().request("GET", path, certificate=False, token=text).status == 401


def test_read_twin_secrets_links_and_quarantined_code_stay_here(
    node: Node, mine: PlainMachine, twin: Path
) -> None:
    for name in (".env.bak", "id_ed25519", "tls.pem", "keys/node.key", "private/diary.md"):
        (twin / name).parent.mkdir(exist_ok=True)
        (twin / name).write_bytes(b"SECRET-OCTETS")
    (twin / "hard.txt").symlink_to(node.daemon.home / "keys")
    unread = agent_source("Unread")
    (twin / "agents/unread_agent.py").write_text(unread)
    hold(node, twin / "agents/unread_agent.py")
    (twin / "organism.yaml").write_text("listeners: [Unread]\n")
    hold(node, twin / "organism.yaml")
    friend = node.peer("curious", whose="friend", scopes=["SNAPSHOT"])
    for peer in (mine, friend):
        stream = peer.request("GET", f"/snapshot/twins/{homes.TWIN}").body
        guard = TarGuard()
        found = {entry.path for entry, _ in files_of(read_tar([stream], guard))}
        assert {"soul.md", "agents/water_agent.py", ".brainstem_data/memory.json"} <= found
        for octets in (b"SECRET-OCTETS", b"KEY=1", b"Unread", b"diary", b"node.key"):
            assert octets not in stream
        named = {one.path: one.reason for one in guard.left_out}
        if peer is mine:
            assert (
                named.items()
                >= {
                    ".env.bak": "may hold secrets",
                    "id_ed25519": "may hold secrets",
                    "keys": "may hold secrets",
                    "private": "is private",
                    "hard.txt": "is a link, and links are not followed",
                    "agents/unread_agent.py": "is quarantined, and nobody signs what nobody has read",
                    "organism.yaml": "is quarantined, and nobody signs what nobody has read",
                }.items()
            )
        else:
            for octets in (b".env", b"id_ed25519", b"hard.txt", b"private", b"unread"):
                assert octets not in stream


@pytest.mark.parametrize(
    "twin_name",
    ["..", "%2e%2e", "..%2f..%2fkeys", "..%2f..%2f..%2fetc", ".archive", "-C", "a%00b", "con", "linked"],
)
def test_read_twin_name_that_leads_elsewhere_gives_nothing(
    node: Node, mine: PlainMachine, twin: Path, twin_name: str
) -> None:
    link = twin.parent / "linked"
    link.symlink_to(node.daemon.home / "keys")
    try:
        for query in ("", "?archived=1"):
            answer = mine.request("GET", f"/snapshot/twins/{twin_name}{query}")
            assert answer.status in (400, 404), answer.body
    finally:
        link.unlink()


def test_read_twin_revoked_meanwhile_ends_the_stream(make: Callable[..., Node]) -> None:
    node = make().start()
    mine = node.peer("mine")
    twin = node.daemon.home / "twins" / homes.TWIN
    homes.fill_twin(twin)
    (twin / "large.bin").write_bytes(os.urandom(48 << 20))  # more than every buffer on the way
    connection, size = begun(mine)
    node.owner("POST", f"/peers/{peer_name(node, mine)}/revoke", {})
    assert rest_of(connection) < size
    assert not list(node.daemon.home.glob("tmp*"))


def test_read_twin_share_taken_back_meanwhile_ends_the_stream(node: Node, twin: Path) -> None:
    friend = node.peer("friend", whose="friend", scopes=["SNAPSHOT"])
    (twin / "large.bin").write_bytes(os.urandom(48 << 20))
    connection, size = begun(friend)
    share(node, friend, "EGG")
    assert rest_of(connection) < size


def test_read_twin_more_at_once_than_allowed_is_refused(node: Node, mine: PlainMachine, twin: Path) -> None:
    (twin / "large.bin").write_bytes(os.urandom(48 << 20))
    begun_ones = [begun(mine)[0] for _ in range(served_home.MOST_READS)]
    try:
        refused = mine.request("GET", f"/snapshot/twins/{homes.TWIN}")
        assert (refused.status, refused.json["code"]) == (429, "member_busy")
        assert mine.post(mine.help("Clock")).verb == "DONE", "calls go on"
    finally:
        for one in begun_ones:
            one.close()
    path = f"/snapshot/twins/{homes.TWIN}"
    node.daemon.wait_for(lambda: mine.request("GET", path).status == 200, what="room again")


def test_read_twin_while_it_answers_waits_for_the_end_of_the_call(node: Node, mine: PlainMachine) -> None:
    assert node.owner("POST", "/twins", {"name": "Rose", "text": "You are Rose."})[0] in (200, 201)
    key = next(one["key"] for one in node.owner("GET", "/twins")[1]["twins"] if one["name"] == "Rose")
    agents = node.daemon.home / "twins" / key / "agents"
    agents.mkdir(exist_ok=True)
    body = (
        'import pathlib, time\n        folder = pathlib.Path(".brainstem_data")\n        '
        '(folder / "one.txt").write_text("1")\n        time.sleep(2)\n        '
        '(folder / "two.txt").write_text("2")\n        return "done"'
    )
    (agents / "halves_agent.py").write_text(agent_source("Halves", body))
    asked = mine.envelope("HELP", {"agent": "Halves", "args": {}}, to=mine.to(key))
    call = threading.Thread(target=mine.post, args=(asked,))
    call.start()
    folder = node.daemon.home / "twins" / key / ".brainstem_data"
    node.daemon.wait_for((folder / "one.txt").exists, what="the call to be half done")
    found = names(mine.request("GET", f"/snapshot/twins/{key}").body)
    call.join()
    assert {".brainstem_data/one.txt", ".brainstem_data/two.txt"} <= found


def begun(machine: PlainMachine) -> tuple[http.client.HTTPConnection, int]:
    """A stream of which only the head has been read, and its size."""
    connection = machine.connect(timeout=100)
    connection.request("GET", f"/snapshot/twins/{homes.TWIN}")
    response = connection.getresponse()
    assert response.status == 200
    connection.begun = response  # type: ignore[attr-defined]
    return connection, int(response.headers["Content-Length"])


def rest_of(connection: http.client.HTTPConnection) -> int:
    """The octets that still come; nobody sends more, and the connection ends."""
    response, got = connection.begun, 0  # type: ignore[attr-defined]
    try:
        while piece := response.read1(1 << 20):
            got += len(piece)
    except (OSError, http.client.HTTPException):
        pass
    return got


def peer_name(node: Node, machine: PlainMachine) -> str:
    rows = node.owner("GET", "/peers")[1]["peers"]
    return next(str(row["name"]) for row in rows if row["fingerprint"] == machine.fingerprint)


def share(node: Node, machine: PlainMachine, *scopes: str) -> None:
    status, found = node.owner("POST", f"/peers/{peer_name(node, machine)}/scopes", {"scopes": list(scopes)})
    assert status == 200, found


def hold(node: Node, path: Path) -> None:
    """Quarantines a file, as the installer does."""
    held = QuarantineList(node.daemon.home / "held.json", node.daemon.home)
    held.hold(path, hashlib.sha256(path.read_bytes()).hexdigest(), "a test", "a stranger")
