"""The small peer of docs/small-peer, run by Node: what docs/wire.md asks for is enough to be a machine among machines."""

from __future__ import annotations

import http.client
import json
import queue
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.free_ports import free_port
from fixtures.running_daemon import REPO

from envelopes.envelope import new_id
from neighborhoods.auth.tls import TlsFiles, client_context
from tests.rappd.federation.conftest import Node, make_node

SOURCE = REPO / "docs" / "small-peer"
NODE = shutil.which("node")

pytestmark = pytest.mark.skipif(NODE is None, reason="Node runs the small peer")


class SmallPeer:
    """The program, what it prints, and what is typed into it."""

    def __init__(self, folder: Path, address: str) -> None:
        self.folder, self.address = folder, address
        self.printed: queue.Queue[str] = queue.Queue()
        self.process: subprocess.Popen[str] | None = None

    def start(self, *arguments: str) -> SmallPeer:
        assert NODE is not None
        self.process = subprocess.Popen(
            [NODE, str(SOURCE / "peer.mjs"), str(self.folder), *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True).start()
        return self

    def _read(self, stream: Any) -> None:
        for line in stream:
            self.printed.put(line.rstrip("\n"))

    def hear(self, what: str = "", seconds: float = 100) -> str:
        """The next line that it prints and that holds this."""
        heard: list[str] = []
        while True:
            try:
                heard.append(self.printed.get(timeout=seconds))
            except queue.Empty:
                raise AssertionError("\n".join(["It printed:", *heard])) from None
            if re.search(what, heard[-1]):
                return heard[-1]

    def type(self, line: str) -> None:
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for stream in (self.process.stdin, self.process.stdout):
                assert stream is not None
                stream.close()
            self.process = None

    @property
    def notes(self) -> list[str]:
        path = self.folder / "notes.txt"
        return path.read_text().split() if path.exists() else []

    def pair(self, node: Node, *more: str) -> SmallPeer:
        """By words, of which the owner of the daemon says that they are the same."""
        self.start("pair", self.address, *more)
        words = self.hear(r"^[a-z]+(  [a-z]+){3}$", 15).split()
        (asking,) = node.owner("GET", "/peers")[1]["asking"]
        assert asking["words"] == words
        said = {"same": True, "whose": "mine"}
        assert node.owner("POST", f"/pairings/{asking['attempt']}", said)[0] == 200
        self.type("yes")
        self.hear("^paired$", 15)
        self.kill()
        return self


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    found = make_node(tmp_path_factory.mktemp("house"), LLM_FAKE="1").start()
    yield found
    found.close()


@pytest.fixture
def small(node: Node, tmp_path: Path) -> Iterator[Callable[[str], SmallPeer]]:
    made: list[SmallPeer] = []

    def one(name: str) -> SmallPeer:
        made.append(SmallPeer(tmp_path / name, node.address))
        return made[-1]

    yield one
    for peer in made:
        peer.kill()


def called(node: Node, *arguments: str) -> tuple[int, Any]:
    done = node.daemon.cli("call", *arguments, "--json")
    return done.returncode, json.loads(done.stdout or done.stderr)


def test_it_is_as_small_as_it_says() -> None:
    text = (SOURCE / "peer.mjs").read_text()
    assert len(text.splitlines()) <= 300
    assert max(map(len, text.splitlines())) <= 130
    imported = {line.split("'")[1] for line in text.splitlines() if line.startswith("import ")}
    assert all(name.startswith("node:") for name in imported)


def test_it_pairs_calls_and_is_called_without_a_listener(node: Node, small: Any) -> None:
    peer = small("kitchen").pair(node).start("run")
    peer.hear("the line is open")
    peer.type(':Clock {"zone": "UTC"}')
    assert peer.hear("DONE") == 'DONE "it is UTC"'
    peer.type("how are you?")
    assert peer.hear("DONE") == 'DONE "fake-llm: how are you?"'
    code, found = called(node, "kitchen:Note", "--args", '{"text": "milk"}')
    assert (code, found["call"]["result"]) == (0, "noted: milk")
    code, found = called(node, "kitchen", "hello")
    assert (code, found["call"]["result"]) == (0, "Ask one of my agents: Clock, Note.")
    row = node.owner("GET", "/peers/kitchen")[1]["peer"]
    assert (row["presence"], row["address"], row["trouble"]) == ("here", "", "")
    assert [one["name"] for one in row["agents_here"]] == ["Clock", "Note"]
    assert peer.notes == ["milk"]
    egg = node.folder / "a.egg"
    egg.parent.mkdir(exist_ok=True)
    egg.write_bytes(b"egg")
    sent = node.daemon.cli("egg", "send", str(egg), "kitchen")
    assert "kitchen takes no eggs" in sent.stderr


def test_what_waited_comes_on_its_line_and_is_done_once(node: Node, small: Any) -> None:
    peer = small("attic").pair(node)
    code, found = called(node, "attic:Note", "--args", '{"text": "early"}')
    assert (code, found["call"]["state"]) == (8, "queued")
    peer.start("run")
    id = found["call"]["id"]
    node.daemon.wait_for(lambda: state_of(node, id) == "done", what="the call that waited")
    assert node.records(id)[-1]["data"]["result"] == "noted: early"
    code, again = called(node, "attic:Note", "--args", '{"text": "late", "seconds": 8}', "--wait", "0.5")
    assert (code, again["call"]["state"]) in ((8, "queued"), (8, "accepted"))
    id = again["call"]["id"]
    node.daemon.wait_for(lambda: state_of(node, id) == "accepted", what="its word that it has begun")
    node.daemon.wait_for(lambda: state_of(node, id) == "done", what="the call that took longer than the wait")
    assert node.records(id)[-1]["data"]["result"] == "noted: late"
    assert peer.notes == ["early", "late"]


def test_work_that_outlasts_the_line_is_answered_on_the_next_one(node: Node, small: Any) -> None:
    peer = small("cellar").pair(node).start("run")
    peer.hear("the line is open")
    code, found = called(node, "cellar:Note", "--args", '{"text": "salt", "seconds": 12}', "--wait", "4")
    assert (code, found["call"]["state"]) == (8, "accepted")
    node.daemon.stop()
    node.start()
    id = found["call"]["id"]
    node.daemon.wait_for(lambda: state_of(node, id) == "done", what="the answer")
    assert node.records(id)[-1]["data"]["result"] == "noted: salt"
    assert peer.notes == ["salt"]


def test_killed_in_the_middle_it_says_so_and_does_it_no_second_time(node: Node, small: Any) -> None:
    peer = small("shed").pair(node).start("run")
    peer.hear("the line is open")
    asking = threading.Thread(
        target=called, args=(node, "shed:Note", "--args", '{"text": "a", "seconds": 60}')
    )
    asking.start()
    node.daemon.wait_for(lambda: peer.notes == ["a"], what="the work to begin")
    peer.kill()
    asking.join(100)
    (row,) = (one for one in node.owner("GET", "/outbox")[1]["outbox"] if one["to"] == "shed")
    peer.start("run")
    node.daemon.wait_for(
        lambda: state_of(node, row["id"]) == "failed", what="its word about what was cut off"
    )
    assert node.records(row["id"])[-1]["data"]["reason"] == "interrupted"
    assert peer.notes == ["a"]


def test_its_own_question_outlives_the_line(node: Node, small: Any) -> None:
    peer = small("porch").pair(node).start("run")
    peer.hear("the line is open")
    peer.type(':Counted {"tell": "porch", "seconds": 25}')
    node.daemon.wait_for(lambda: "porch" in node.counted(), what="the work to begin")
    node.daemon.stop()
    node.start()
    assert peer.hear("ERROR|DONE", 60) == 'ERROR "This was cut off before it was done."'
    peer.type(":Clock {}")
    assert peer.hear("DONE") == 'DONE "it is now"'
    assert node.counted().count("porch") == 1


def test_with_its_listener_it_is_called_without_a_line_of_its_own(node: Node, small: Any) -> None:
    port = str(free_port())
    peer = small("garage").pair(node, port)
    script = f"""
        import {{ open, Lines }} from '{SOURCE / "peer.mjs"}'
        import {{ listen }} from '{SOURCE / "listener.mjs"}'
        const me = open('{peer.folder}')
        me.introduction.port = {port}
        listen(me, new Lines(me))
    """
    assert NODE is not None
    alone = subprocess.Popen([NODE, "--input-type=module", "-e", script], stdout=subprocess.PIPE, text=True)
    try:
        assert alone.stdout is not None
        assert "listening" in alone.stdout.readline()
        code, found = called(node, "garage:Note", "--args", '{"text": "oil"}')
        assert (code, found["call"]["result"]) == (0, "noted: oil")
        row = node.owner("GET", "/peers/garage")[1]["peer"]
        assert (row["presence"], row["address"]) == ("here", f"127.0.0.1:{port}")
        assert node.owner("POST", "/peers", {"address": f"127.0.0.1:{port}"})[1]["added"]["name"] == "garage"
        asked = help_to(
            node,
            row["fingerprint"],
            {"agent": "Note", "args": {"text": "tar", "seconds": 1}},
            _x_deadline=0.2,
        )
        status, reply = posted(node, port, asked)
        assert (status, reply["verb"], reply["data"]) == (202, "ACK", {"state": "started"})
        node.daemon.wait_for(lambda: posted(node, port, asked)[0] == 200, what="its answer from the journal")
        assert posted(node, port, asked)[1]["data"] == {"result": "noted: tar"}
        assert peer.notes == ["oil", "tar"]
    finally:
        alone.kill()
        alone.wait()
        alone.stdout.close()


def help_to(node: Node, fingerprint: str, data: dict[str, Any], **more: Any) -> dict[str, Any]:
    addresses = {"from": f"brainstem_{node.fingerprint[:16]}", "to": f"brainstem_{fingerprint[:16]}"}
    return {"id": new_id(), **addresses, "verb": "HELP", "data": data, **more}


def posted(node: Node, port: str, envelope: dict[str, Any]) -> tuple[int, Any]:
    """Posts an envelope of the node's to a listener; the status and the reply."""
    keys = node.daemon.home / "keys"
    context = client_context(None, TlsFiles(keys / "machine.pem", keys / "machine-key.pem"))
    line = http.client.HTTPSConnection("127.0.0.1", int(port), context=context, timeout=100)
    line.request("POST", "/envelopes", json.dumps(envelope))
    answer = line.getresponse()
    found = answer.status, json.loads(answer.read())
    line.close()
    return found


def state_of(node: Node, id: str) -> str:
    return next((row["state"] for row in node.owner("GET", "/outbox")[1]["outbox"] if row["id"] == id), "")
