"""Eggs for a peer that is away, or goes away in the middle: they wait, arrive whole and once, or run out of time."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.machines import Machine

SOME = 1 << 20


class Wire:
    """A relay between a machine and another's listener.

    ``hold(after)``: it carries so many bytes to the listener of each connection and no more; ``mute``: it carries
    nothing back once so many have come.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.most = self.muted_after = 1 << 60
        self.held = threading.Event()
        self._ended = False
        threading.Thread(target=self._take, daemon=True).start()

    def hold(self, after: int = SOME) -> None:
        self.held.clear()
        self.most = after

    def mute(self, after: int) -> None:
        self.held.clear()
        self.muted_after = after

    def free(self) -> None:
        self.most = self.muted_after = 1 << 60

    def close(self) -> None:
        self._ended = True
        self._listener.close()

    def _take(self) -> None:
        while not self._ended:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(near,), daemon=True).start()

    def _carry(self, near: socket.socket) -> None:
        try:
            far = socket.create_connection(("127.0.0.1", self._port))
        except OSError:
            near.close()
            return
        carried = 0
        with near, far:
            while not self._ended:
                ready = select.select([near, far] if carried < self.most else [far], [], [], 0.05)[0]
                if carried >= self.most or carried >= self.muted_after:
                    self.held.set()
                try:
                    if near in ready:
                        if not (piece := near.recv(65536)):
                            return
                        carried += len(piece)
                        far.sendall(piece)
                    if far in ready:
                        if not (piece := far.recv(65536)):
                            return
                        if carried < self.muted_after:
                            near.sendall(piece)
                    elif carried >= self.most and _gone(near):
                        return
                except OSError:
                    return


def _gone(line: socket.socket) -> bool:
    """True when the other end was closed, though bytes of it are still unread."""
    watch = select.poll()
    watch.register(line, select.POLLRDHUP)
    return bool(watch.poll(0))


class Network:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.answer = b""
        self.desk, self.pi = (
            Machine(folder / name, name, LLM_FAKE="1", RAPPD_NEARBY="off") for name in ("desk", "pi")
        )
        self.desk.start()
        self.pi.start()
        self.wire = Wire(int(self.pi.address.rpartition(":")[2]))
        asked = {"peer": self.wire.address, "fingerprint": self.pi.fingerprint, "whose": "mine"}
        assert self.desk.owner("POST", "/pairings", asked)["pairing"]["state"] == "paired"
        self.pi.trusts(self.desk)
        self.desk.knows("pi")
        self.desk.owner("POST", "/twins", {"name": "Garden", "text": "You are Garden."})

    def egg(self, name: str = "garden.egg", size: int = 0) -> Path:
        (twin,) = (self.desk.home / "twins").glob("*/soul.md")
        memory = twin.parent / ".brainstem_data" / "pictures.bin"
        memory.parent.mkdir(exist_ok=True)
        memory.write_bytes(os.urandom(size))
        into = self.folder / name
        self.desk.owner("POST", "/eggs/pack", {"twin": "Garden", "into": str(into)})
        assert into.stat().st_size > size
        return into

    def sends(self, egg: Path, status: int = 200) -> Any:
        return self.desk.owner("POST", "/eggs/send", {"path": str(egg), "peer": "pi"}, status=status)

    def begins_to_send(self, egg: Path) -> None:
        """Sends, and waits for no answer."""
        threading.Thread(target=self._sends, args=(egg,), daemon=True).start()

    def _sends(self, egg: Path) -> None:
        body = {"path": str(egg), "peer": "pi"}
        with contextlib.suppress(OSError):  # it was killed meanwhile
            self.answer = self.desk.request("POST", "/eggs/send", body, control=True).body

    def is_held_up(self) -> None:
        """Waits until half of it is under way."""
        held = self.wire.held.wait(100)
        assert held, (self.answer, self.outbox(), self.desk.log[-2000:], self.pi.log[-2000:])

    def outbox(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.desk.owner("GET", "/outbox")["outbox"]
        return found

    def arrived(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.pi.owner("GET", "/eggs/arrived")["arrived"]
        return found

    def waits_for_nothing(self) -> None:
        self.desk.wait_for(
            lambda: not self.desk.owner("GET", "/outbox?waiting=1")["outbox"], what="nothing to wait any more"
        )

    def staged(self) -> list[Path]:
        """The bytes of eggs that desk keeps for others."""
        folder = self.desk.home / "eggs" / ".outgoing"
        return sorted(folder.iterdir()) if folder.exists() else []

    def is_tidy(self) -> bool:
        """True when desk keeps no bytes, and pi nothing that is not an egg which arrived."""
        there = self.pi.home / "eggs" / ".arrived"
        names = {path.name for path in there.iterdir()}
        return not self.staged() and names == {row["id"] for row in self.arrived()}


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    made = Network(tmp_path)
    try:
        yield made
    finally:
        made.wire.close()
        made.desk.stop()
        made.pi.stop()


@pytest.mark.own_process
def test_an_egg_for_a_peer_that_is_away_waits_and_goes_by_itself(network: Network) -> None:
    desk, pi = network.desk, network.pi
    egg = network.egg()
    pi.stop()
    told = desk.cli("egg", "send", str(egg), "pi")
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.splitlines()[0] == "! Egg garden.egg to pi, waiting: pi is away. It goes by itself."
    assert "rappd outbox list" in told.stdout
    (row,) = network.outbox()
    assert (row["kind"], row["what"], row["to"], row["state"]) == ("egg", "garden.egg", "pi", "queued")
    listed = desk.cli("outbox", "list").stdout.splitlines()
    assert listed[1].split("  ")[1:4] == ["pi", "Egg garden.egg", "waiting"]
    (file,) = network.staged()
    assert file.stat().st_mode & 0o777 == 0o600
    assert b"Garden" not in file.read_bytes(), "it lies there sealed"
    egg.unlink()  # what waits is a copy
    desk.kill()
    assert desk.cli("outbox", "list").stdout.splitlines()[1].split("  ")[2] == "Egg garden.egg"
    desk.start()
    assert network.outbox()[0]["state"] in ("queued", "delivered")
    pi.start()
    network.waits_for_nothing()
    assert [row["state"] for row in network.outbox()] == ["done"]
    (there,) = network.arrived()
    assert (there["name"], there["from"]) == ("garden.egg", "desk")
    assert pi.owner("POST", "/eggs/hatch", {"path": there["path"]})["hatched"]["name"] == "Garden"
    network.pi.wait_for(network.is_tidy, what="nothing to be left over")


def test_where_the_peer_is_there_the_command_says_delivered(network: Network) -> None:
    egg = network.egg()
    told = network.desk.cli("egg", "send", str(egg), "pi")
    assert told.stdout.startswith("✓ Delivered: pi has garden.egg.") or "Delivered: pi has" in told.stdout
    (there,) = network.arrived()
    found = json.loads(network.desk.cli("egg", "send", str(egg), "pi", "--json").stdout)["sent"]
    assert (found["state"], found["id"]) == ("done", there["id"])
    network.pi.stop()
    away = network.desk.cli("egg", "send", str(egg), "pi", "--json")
    assert (away.returncode, json.loads(away.stdout)["sent"]["state"]) == (0, "queued")


def test_a_sealed_egg_is_sent_as_it_is(network: Network) -> None:
    into = network.folder / "rose.egg"
    packed = network.desk.owner("POST", "/eggs/pack", {"twin": "Garden", "to": "pi", "into": str(into)})
    sealed = Path(packed["packed"]["path"])
    network.pi.stop()
    assert network.sends(sealed)["sent"]["state"] == "queued"
    assert network.staged()[0].read_bytes() == sealed.read_bytes()
    network.pi.start()
    network.waits_for_nothing()
    assert [row["name"] for row in network.arrived()] == ["rose.egg"]


@pytest.mark.parametrize("killed", ["who sends", "who receives"])
@pytest.mark.own_process
def test_killed_upload_arrives_whole_and_once(network: Network, killed: str) -> None:
    egg = network.egg(size=8 * SOME)
    network.wire.hold(4 * SOME)
    network.begins_to_send(egg)
    network.is_held_up()
    assert network.arrived() == []
    one = network.desk if killed == "who sends" else network.pi
    one.kill()
    one.start()
    assert network.arrived() == [], "half an egg is none"
    assert [row["state"] for row in network.outbox()] in (["queued"], ["delivered"])
    network.wire.free()
    network.waits_for_nothing()
    (there,) = network.arrived()
    assert Path(there["path"]).read_bytes() == egg.read_bytes()
    assert [row["state"] for row in network.outbox()] == ["done"]
    network.pi.wait_for(network.is_tidy, what="nothing to be left over")


@pytest.mark.own_process
def test_an_egg_whose_receipt_was_lost_does_not_come_twice(network: Network) -> None:
    egg = network.egg(size=SOME)
    network.wire.mute(after=SOME)
    network.begins_to_send(egg)
    network.pi.wait_for(network.arrived, what="the egg")
    network.desk.kill()
    (there,) = network.arrived()
    network.pi.owner("DELETE", f"/eggs/arrived/{there['id']}")
    network.wire.free()
    network.desk.start()
    network.waits_for_nothing()
    assert [row["state"] for row in network.outbox()] == ["done"]
    assert network.arrived() == [], "its owner threw it away; it is not sent again"
    network.pi.wait_for(network.is_tidy, what="nothing to be left over")


def test_one_that_nobody_wants_any_more_stays_here(network: Network) -> None:
    egg = network.egg(size=8 * SOME)
    network.wire.hold(4 * SOME)
    network.begins_to_send(egg)
    network.is_held_up()
    (row,) = network.outbox()
    dropped = network.desk.cli("outbox", "drop", row["id"][:8])
    assert dropped.stdout.rstrip().endswith("Dropped: Egg garden.egg to pi.")
    network.desk.wait_for(lambda: not network.staged(), what="its bytes to be gone")
    network.wire.free()
    assert network.sends(network.egg("other.egg"))["sent"]["state"] == "done", "the next one goes"
    assert [row["name"] for row in network.arrived()] == ["other.egg"]
    assert [row["state"] for row in network.outbox()] == ["dropped", "done"]
    network.pi.wait_for(network.is_tidy, what="nothing to be left over")


def test_what_waited_too_long_is_not_sent_any_more(network: Network) -> None:
    network.pi.stop()
    network.sends(network.egg())
    network.desk.stop()
    with sqlite3.connect(network.desk.home / "rappd.db") as record:  # as if a day had passed
        record.execute("UPDATE outbox SET expires_at = ?", (time.time_ns() // 1000 - 1,))
    network.desk.start()
    network.pi.start()
    network.waits_for_nothing()
    assert [row["state"] for row in network.outbox()] == ["expired"]
    network.desk.wait_for(lambda: not network.staged(), what="its bytes to be gone")
    network.desk.knows("pi")
    assert network.arrived() == []


def test_a_refusal_is_told_at_once_and_nothing_waits(network: Network) -> None:
    (network.folder / "poem.egg").write_text("Roses are red.")
    network.sends(network.folder / "poem.egg", status=400)
    assert network.outbox() == []
    network.pi.owner("POST", "/peers/desk/scopes", {"scopes": []})
    refused = network.sends(network.egg(), status=502)
    assert refused["error"] == "pi did not take the egg: Not allowed."
    assert [row["state"] for row in network.outbox()] == ["failed"]
    network.pi.owner("POST", "/peers/desk/revoke")
    network.sends(network.egg("again.egg"), status=403)
    assert network.desk.owner("GET", "/outbox?waiting=1")["outbox"] == []
    network.desk.wait_for(lambda: not network.staged(), what="their bytes to be gone")


def test_calls_do_not_wait_behind_an_egg(network: Network) -> None:
    network.wire.hold(4 * SOME)
    network.begins_to_send(network.egg(size=8 * SOME))
    network.is_held_up()
    assert network.desk.call("pi", text="hello")["state"] == "done"
    network.wire.free()


@pytest.mark.own_process
def test_bytes_that_no_row_waits_for_go_at_the_start(network: Network) -> None:
    network.pi.stop()
    network.sends(network.egg())
    (kept,) = network.staged()
    network.desk.kill()
    orphan = kept.with_name("00000000-0000-4000-8000-000000000000")
    for left in (orphan, kept.with_name(".half.sealing.tmp")):
        left.write_bytes(b"x")
    network.desk.start()
    assert network.staged() == [kept]


def test_two_for_one_peer_go_one_after_the_other(network: Network) -> None:
    network.pi.stop()
    first, second = network.egg("first.egg"), network.egg("second.egg", size=10)
    network.sends(first)
    network.sends(second)
    network.pi.start()
    network.waits_for_nothing()
    assert [row["name"] for row in reversed(network.arrived())] == ["first.egg", "second.egg"]
