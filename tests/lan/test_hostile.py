"""A machine in the network means harm; the daemons of the others are not moved by it."""

from __future__ import annotations

import base64
import json
import queue
import ssl
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.peer_tokens import mint_peer_token

from envelopes.codecs.emergence import encode
from envelopes.envelope import HELP, Envelope, agent_id, new_id
from envelopes.identity.keys import IdentityKey
from envelopes.identity.signatures import sign
from lan.daemons import Daemon, measured, new_key, pair
from lan.network import Lan, Machine, require

pytestmark = [pytest.mark.needs_root, pytest.mark.timeout(900)]

ATTACKER = Path(__file__).with_name("attacker.py")


class Attacker:
    """A deed of the attacker, under way on a machine."""

    def __init__(self, machine: Machine, *deed: str) -> None:
        self.said: list[dict[str, Any]] = []
        self._lines: queue.Queue[str] = queue.Queue()
        self.process = machine.start(
            [sys.executable, ATTACKER, *deed], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        threading.Thread(target=self._read, daemon=True).start()

    def next(self, event: str = "", seconds: float = 100) -> dict[str, Any]:
        """The next thing it says, of that kind."""
        until = time.monotonic() + seconds
        while True:
            try:
                one = json.loads(self._lines.get(timeout=max(0.01, until - time.monotonic())))
            except queue.Empty:
                raise AssertionError(f"the attacker never said {event}: {self.said}") from None
            self.said.append(one)
            if not event or one.get("event") == event:
                found: dict[str, Any] = one
                return found

    def all(self, event: str) -> list[dict[str, Any]]:
        """Everything of a kind that it said up to now."""
        while not self._lines.empty():
            self.said.append(json.loads(self._lines.get()))
        return [one for one in self.said if one.get("event") == event]

    def ask(self, method: str, path: str, **more: Any) -> tuple[int, Any]:
        """A request: the status (0: none came), and the answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"method": method, "path": path, **more}) + "\n")
        self.process.stdin.flush()
        answer = self.next()
        return answer["status"], answer["body"]

    def end(self) -> None:
        self.process.kill()
        self.process.wait()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)


class Three:
    """The desk and the shed are paired with the pi; the rogue is a machine that nobody trusts."""

    def __init__(self, lan: Lan, folder: Path) -> None:
        self.desk, self.pi, self.shed = (
            Daemon(lan.machine(name), folder).launch() for name in ("desk", "pi", "shed")
        )
        self.rogue = lan.machine("rogue")
        for one in (self.desk, self.pi, self.shed):
            one.wait_ready()
        pair(self.desk, self.pi)
        pair(self.shed, self.pi)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Three]:
    require()
    with Lan() as lan:
        yield Three(lan, tmp_path_factory.mktemp("three"))


Attack = Callable[..., Attacker]
"""Begins a deed on the rogue."""


@pytest.fixture
def attack(three: Three) -> Iterator[Attack]:
    """Attackers that are gone when the test is over."""
    begun: list[Attacker] = []

    def begin(*deed: str) -> Attacker:
        begun.append(Attacker(three.rogue, *deed))
        return begun[-1]

    yield begin
    for one in begun:
        one.end()


def identity(daemon: Daemon) -> IdentityKey:
    return IdentityKey.from_pem((daemon.home / "keys" / "identity.pem").read_bytes())


def certificate(daemon: Daemon) -> list[str]:
    """The files by which an attacker would be that machine: only for what even then must not succeed."""
    return [str(daemon.home / "keys" / "machine.pem"), str(daemon.home / "keys" / "machine-key.pem")]


def der(daemon: Daemon) -> bytes:
    return ssl.PEM_cert_to_DER_cert(Path(certificate(daemon)[0]).read_text())


def asking(sender: Daemon, receiver: Daemon, key: str) -> Envelope:
    """A call of ``Count``, as the sender would send it."""
    data = {"agent": "Count", "args": {"key": key}}
    to, by = (agent_id("brainstem", one.fingerprint) for one in (receiver, sender))
    return Envelope(new_id(), by, to, HELP, data)


def test_one_announced_in_anothers_name_gets_nothing(three: Three, attack: Attack) -> None:
    desk, pi = three.desk, three.pi
    rogue = three.rogue
    desk.crash()  # after its start it has no open line, and no memory of where the pi was reached
    attacker = attack("impostor", "pi", pi.fingerprint, rogue.address, "7443")
    attacker.next("ready")
    desk.start()
    for _ in range(3):
        key = new_key()
        row = desk.call("pi", key)
        assert (row["state"], row["result"], pi.begun()[key]) == ("done", f"counted {key}", 1)
    pi.crash()
    key = new_key()
    began = time.monotonic()
    answer = desk.request("POST", "/call", {"peer": "pi", "agent": "Count", "args": {"key": key}, "wait": 20})
    measured("the changed key is told after", time.monotonic() - began)
    assert (answer.status, answer.json()["code"]) == (403, "key_changed"), answer.body
    assert "nothing was sent" in answer.json()["error"]
    attacker.next("refused")  # it hears of it after the desk has answered, perhaps
    assert not any(one["said"] for one in attacker.all("heard"))
    pi.start()
    measured("a call goes again after", _goes(desk, pi, attacker))


def test_what_waits_goes_on_when_the_impostor_was_seen(three: Three, attack: Attack) -> None:
    """An attacker must not stop a queue for good by standing there once."""
    desk, pi = three.desk, three.pi
    pi.crash()
    key = new_key()
    row = desk.call("pi", key, wait=0.5)
    assert row["state"] == "queued"
    attacker = attack("impostor", "pi", pi.fingerprint, three.rogue.address, "7443")
    attacker.next("ready")
    desk.wait_for(lambda: "key has changed" in desk.peers()["pi"]["trouble"], what="the trouble to be told")
    pi.start()
    since = time.monotonic()
    desk.wait_for(lambda: desk.ends(row["thread"]), what="the answer")
    measured("answered after the right one's return", time.monotonic() - since)
    assert desk.ends(row["thread"]) == [{"result": f"counted {key}"}]
    assert not any(one["said"] for one in attacker.all("heard"))


def test_who_pairs_through_another_sees_other_words(three: Three, attack: Attack) -> None:
    shed, desk = three.shed, three.desk
    attacker = attack("between", "desk", desk.address, "7443", "shed")
    attacker.next("ready")
    asked = shed.ask("POST", "/pairings", {"peer": f"{three.rogue.address}:7443", "whose": "mine"})["pairing"]
    mine = shed.ask("GET", f"/pairings/{asked['attempt']}?state=asking")["pairing"]
    assert (mine["state"], mine["peer"]) == ("words", "desk")
    (theirs,) = desk.wait_for(lambda: desk.ask("GET", "/peers")["asking"], what="the question")
    theirs = desk.ask("GET", f"/pairings/{theirs['attempt']}?state=asking")["pairing"]
    assert len(mine["words"]) == len(theirs["words"]) == 4
    assert mine["words"] != theirs["words"]
    assert {tuple(attacker.next("words")["words"]) for _ in range(2)} == {
        tuple(mine["words"]),
        tuple(theirs["words"]),
    }
    for one, attempt in ((shed, mine), (desk, theirs)):
        one.ask("POST", f"/pairings/{attempt['attempt']}", {"same": False})
    assert {attacker.next("end")["state"] for _ in range(2)} == {"differ"}
    assert not attacker.all("paired")
    for one in (shed, desk):
        assert [row["name"] for row in one.peers().values() if row["paired"]] == ["pi"]
    answer = shed.request(
        "POST", "/pairings", {"peer": f"{three.rogue.address}:7443", "fingerprint": desk.fingerprint}
    )
    assert (answer.status, answer.json()["code"]) == (403, "key_changed")
    attacker.end()
    attacker = attack("mirror", desk.address, "7443")
    attacker.next("ready")
    answer = shed.request("POST", "/pairings", {"peer": f"{three.rogue.address}:7443", "whose": "mine"})
    assert (answer.status, "stands between" in answer.json()["error"]) == (404, True), answer.body
    attacker.next("handed on")


def test_a_stolen_token_or_envelope_is_worth_nothing(three: Three, attack: Attack) -> None:
    desk, pi, shed = three.desk, three.pi, three.shed
    attacker = attack("ask", pi.address)
    key = new_key()
    question = asking(desk, pi, key)
    body = encode(question).decode()

    def send(token: str = "", certificate: Any = None, body: str = body) -> tuple[int, str]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        status, answer = attacker.ask(
            "POST", "/envelopes", body=body, headers=headers, certificate=certificate
        )
        return status, answer["data"]["reason"] if isinstance(answer, dict) else answer

    bound = mint_peer_token(
        identity(desk),
        subject="brainstem",
        audience=pi.fingerprint,
        now=time.time(),
        seconds=300,
        certificate=der(desk),
    )
    for shown in (None, certificate(shed)):
        assert send(bound, shown)[0] == 401
    assert send(bound, "own")[0] in (0, 401)  # who shows a certificate of nobody's is not let in at all
    elsewhere = mint_peer_token(
        identity(desk), subject="brainstem", audience=shed.fingerprint, now=time.time(), seconds=300
    )
    late = mint_peer_token(
        identity(desk), subject="brainstem", audience=pi.fingerprint, now=time.time() - 700, seconds=600
    )
    for worthless in (
        elsewhere,
        late,
        _unsigned(bound, "none"),
        _unsigned(bound, "HS256"),
        "a.b.c",
        "x" * 5000,
    ):
        assert send(worthless)[0] == 401
        assert send(worthless, certificate(desk))[0] == 401
    assert send()[0] == 401
    assert send(certificate=certificate(shed)) == (403, "wrong_sender")
    signed = encode(sign(question, identity(desk), time.time())).decode()
    assert send(body=signed)[0] == 401  # a signature alone opens no listener
    old = encode(sign(question, identity(desk), time.time() - 400)).decode()
    assert send(certificate=certificate(desk), body=old)[0] in (400, 401, 403)
    assert pi.begun()[key] == 0
    answers = [attacker.ask("POST", "/envelopes", body=body, certificate=certificate(desk)) for _ in range(3)]
    assert answers[0] == answers[1] == answers[2]
    assert (answers[0][0], answers[0][1]["data"]["result"]) == (200, f"counted {key}")
    assert pi.begun()[key] == 1
    assert attacker.ask("GET", f"/envelopes/{question.id}", certificate=certificate(shed))[0] == 404


def test_a_flood_of_greetings_does_not_hold_up_a_peer(three: Three, attack: Attack) -> None:
    desk, pi = three.desk, three.pi
    flood = attack("flood", pi.address, "4")
    flood.next("ready")
    took = []
    until = time.monotonic() + 4
    while time.monotonic() < until:
        key = new_key()
        row = desk.call("pi", key)
        assert row["result"] == f"counted {key}"
        took.append(row["seconds"])
    statuses = flood.next("over")["statuses"]
    measured(f"a call during a flood ({statuses}): median of {len(took)}", statistics.median(took))
    measured("… the slowest", max(took))
    assert set(statuses) == {"200", "429"}
    assert statuses["200"] <= 120
    assert desk.presence("pi") == "here"


def test_who_is_revoked_is_out_at_once(three: Three, attack: Attack) -> None:
    desk, pi = three.desk, three.pi
    attacker = attack("ask", pi.address)
    key = new_key()

    def send() -> tuple[int, Any]:
        question = encode(asking(desk, pi, key)).decode()
        return attacker.ask("POST", "/envelopes", body=question, certificate=certificate(desk))

    assert send()[0] == 200  # the attacker has a connection
    late = desk.call("pi", new_key(), seconds=2, wait=0.3)
    assert late["state"] == "accepted"  # a line is open
    desk.ask("POST", f"/outbox/{late['id']}/retry")  # and, for the answer, a connection beside it
    desk.wait_for(lambda: desk.ends(late["thread"]), what="the answer")
    pi.ask("POST", "/peers/desk/revoke")
    before = pi.begun()
    status, _ = send()
    assert status in (0, 401)
    answer = desk.request("POST", "/call", {"peer": "pi", "agent": "Count", "args": {"key": new_key()}})
    assert answer.status >= 400, answer.body
    assert answer.json()["code"] in ("not_paired", "peer_refused"), answer.body
    assert pi.begun() == before
    pair(desk, pi)
    assert desk.call("pi", new_key())["state"] == "done"


def _unsigned(token: str, algorithm: str) -> str:
    """The same claims under a header that asks not to look."""
    header = json.loads(base64.urlsafe_b64decode(token.split(".")[0] + "=="))
    header["alg"] = algorithm
    encoded = base64.urlsafe_b64encode(json.dumps(header).encode()).rstrip(b"=").decode()
    return ".".join([encoded, token.split(".")[1], "" if algorithm == "none" else token.split(".")[2]])


def _goes(desk: Daemon, pi: Daemon, attacker: Attacker) -> float:
    began = time.monotonic()
    key = new_key()
    body = {"peer": "pi", "agent": "Count", "args": {"key": key}, "wait": 20}
    desk.wait_for(lambda: desk.request("POST", "/call", body).status == 200, what="a call to go")
    assert pi.begun()[key] == 1
    assert not any(one["said"] for one in attacker.all("heard"))
    return time.monotonic() - began
