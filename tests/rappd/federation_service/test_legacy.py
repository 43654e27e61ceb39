"""Published brainstems: called where they were written down, and let in by a listener of their own."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from fixtures.loopback_server import LoopbackServer
from fixtures.machines import Machine
from fixtures.running_daemon import RunningDaemon, agent_source
from lan.daemons import Daemon
from lan.network import Lan, require

CLOCK = agent_source("Clock", 'return "noon"', "Tells the time.")


class Published(LoopbackServer):
    """A brainstem as it is published: no keys, ``/chat``, HTML for what it does not know."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.answer: Callable[[web.Request], web.StreamResponse] | None = None
        self.seconds = 0.0
        self.elsewhere = 0

    def routes(self, app: web.Application) -> None:
        app.router.add_post("/chat", self._chat)
        app.router.add_route("*", "/elsewhere", self._elsewhere)

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(json.loads(await request.read()))
        self.headers.append(dict(request.headers))
        await asyncio.sleep(self.seconds)
        if self.answer is not None:
            return self.answer(request)
        said = f"you said {self.asked[-1]['user_input']}"
        return web.json_response(
            {"response": said, "session_id": self.asked[-1]["session_id"], "agent_logs": ""}
        )

    async def _elsewhere(self, request: web.Request) -> web.StreamResponse:
        self.elsewhere += 1
        return web.json_response({"response": "from elsewhere"})


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    machine = Machine(tmp_path_factory.mktemp("legacy") / "desk", "desk", LLM_FAKE="1").start()
    yield machine
    machine.stop()


@pytest.fixture
def kitchen(desk: Machine) -> Iterator[Published]:
    server = Published()
    server.start()
    assert desk.cli("peers", "add", server.url).returncode == 0
    yield server
    desk.owner("POST", "/peers/forget", {"address": server.url})
    server.stop()


def asks(desk: Machine, server: Published, *more: str) -> Any:
    return desk.cli("call", server.url, "how are you?", "--yes", *more)


@pytest.mark.parametrize("key", ["response", "assistant_response"])
def test_either_spelling_is_an_answer_and_stands_on_a_thread(
    desk: Machine, kitchen: Published, key: str
) -> None:
    kitchen.answer = lambda request: web.json_response({key: "fine", "agent_logs": ""})
    done = asks(desk, kitchen, "--json")
    assert done.returncode == 0, done.stderr
    row = json.loads(done.stdout)["call"]
    assert (row["state"], row["result"]) == ("done", "fine")
    said = [
        (e["verb"], e["data"].get("user_input") or e["data"].get("response"))
        for e in desk.events(row["thread"])
    ]
    assert said == [("HELP", "how are you?"), ("DONE", "fine")]


def test_what_goes_out_is_the_sentence_and_a_claim(desk: Machine, kitchen: Published) -> None:
    assert asks(desk, kitchen).stdout.startswith("you said how are you?")
    (body,) = kitchen.asked
    rappid = json.loads((desk.home / "brainstem" / "rappid.json").read_text())["rappid"]
    envelope = body.pop("twin_chat_envelope")
    assert set(body) == {"user_input", "conversation_history", "session_id"}
    assert (envelope["schema"], envelope["kind"]) == ("rapp-twin-chat/1.0", "say")
    assert (envelope["from_rappid"], envelope["payload"]) == (rappid, {"text": "how are you?"})
    headers = {name.lower() for name in kitchen.headers[0]}
    assert not headers & {"authorization", "cookie", "x-rappd-signature"}
    everything = json.dumps([body, envelope, kitchen.headers[0]])
    assert desk.fingerprint not in everything
    assert str(desk.home) not in everything


def test_trusted_only_data_never_goes_unencrypted(desk: Machine, kitchen: Published, tmp_path: Path) -> None:
    pi = Machine(tmp_path / "pi", "pi", LLM_FAKE="1").start()
    written = desk.home / "peers.json"
    before = written.read_bytes()
    try:
        desk.trusts(pi)
        written.write_text(json.dumps({"peers": [{"name": "pi", "url": kitchen.url}]}))
        pi.stop()
        row = desk.call("pi", text="secret?", wait=0.5)
        assert row["state"] == "queued"
        assert kitchen.asked == []
        desk.owner("DELETE", f"/outbox/{row['id']}")
    finally:
        pi.stop()
        written.write_bytes(before)
        desk.owner("POST", "/peers/pi/revoke")


def test_it_asks_before_it_sends_unprotected(desk: Machine, kitchen: Published) -> None:
    done = desk.cli("call", kitchen.url, "secret?")
    assert done.returncode == 6
    assert "plain http" in done.stderr
    assert kitchen.asked == []


def html(request: web.Request) -> web.StreamResponse:
    return web.Response(status=404, text="<h1>Not Found</h1>", content_type="text/html")


def to_elsewhere(request: web.Request) -> web.StreamResponse:
    raise web.HTTPFound("/elsewhere")


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (html, "does not answer as a brainstem (404)"),
        (to_elsewhere, "sends callers elsewhere (302)"),
        (lambda r: web.Response(text="{half"), "does not answer as a brainstem (200)"),
        (lambda r: web.Response(text="[]"), "does not answer as a brainstem (200)"),
        (lambda r: web.json_response({"response": 5}), "answered without a text"),
        (lambda r: web.json_response({"error": "no model here"}, status=502), "no model here"),
        (lambda r: web.json_response({"error": "NO_COPILOT_ACCESS:me"}), "NO_COPILOT_ACCESS:me"),
        (lambda r: web.Response(body=b'"' + b"x" * (5 << 20) + b'"'), "more than 4 MB"),
    ],
)
def test_what_is_no_answer_is_told_in_words_and_asked_once(
    desk: Machine, kitchen: Published, answer: Callable[[web.Request], web.StreamResponse], told: str
) -> None:
    kitchen.answer = answer
    done = asks(desk, kitchen)
    assert done.returncode == 1
    assert told in done.stderr
    assert len(kitchen.asked) == 1
    assert kitchen.elsewhere == 0
    latest = desk.owner("GET", "/threads?limit=1")["threads"][0]
    assert told in str(desk.events(latest["id"])[-1]["data"]["msg"])


def test_a_large_answer_comes_whole(desk: Machine, kitchen: Published) -> None:
    kitchen.answer = lambda request: web.json_response({"response": "x" * 3_000_000})
    row = json.loads(asks(desk, kitchen, "--json").stdout)["call"]
    assert len(row["result"]) == 3_000_000


def test_who_is_slow_is_not_asked_twice(desk: Machine, kitchen: Published) -> None:
    kitchen.seconds = 20
    done = asks(desk, kitchen, "--wait", "1")
    assert done.returncode == 8
    assert "did not answer within 1 s" in done.stderr
    assert len(kitchen.asked) == 1


def test_who_breaks_off_is_not_asked_twice(desk: Machine) -> None:
    accepted = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def hang_up() -> None:
            while True:
                try:
                    line, _ = server.accept()
                except OSError:
                    return
                accepted.append(line.recv(100_000))
                line.close()

        threading.Thread(target=hang_up, daemon=True).start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        desk.owner("POST", "/peers", {"address": url})
        done = desk.cli("call", url, "hi", "--yes")
        server.shutdown(socket.SHUT_RDWR)
    assert done.returncode == 8
    assert "may have done it" in done.stderr
    assert len(accepted) == 1


def test_who_is_away_is_told_and_nothing_is_queued(desk: Machine, kitchen: Published) -> None:
    kitchen_url = kitchen.url
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        assert url != kitchen_url
        desk.owner("POST", "/peers", {"address": url})
        done = desk.cli("call", url, "hi", "--yes")
    assert done.returncode == 8
    assert "is away" in done.stderr
    assert desk.owner("GET", "/outbox?waiting=1")["outbox"] == []


def test_it_takes_sentences_and_nothing_else(desk: Machine, kitchen: Published) -> None:
    asked = {"peer": kitchen.url, "agent": "Clock"}
    refused = desk.request("POST", "/call", asked, control=True)
    assert refused.status == 400
    assert "a sentence" in refused.json()["error"]
    assert kitchen.asked == []


def test_own_port_is_no_peer(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon().start()
    own = [f"http://{host}:{daemon.port}" for host in ("127.0.0.1", "localhost", "[::1]", "127.9.9.9")]
    (daemon.home / "peers.json").write_text(json.dumps({"peers": [*own, "https://127.0.0.1:7443"]}))
    for one in own:
        assert daemon.cli("peers", "add", one).returncode == 5
    assert daemon.get("/peers", control=True).json()["peers"] == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"addresses": []}, "To whom"),
        ({"addresses": ["kitchen"]}, "is no address"),
        ({"addresses": ["127.0.0.1"]}, "not the address of another machine"),
        ({"addresses": ["0.0.0.0/0"]}, "machine"),
        ({"addresses": ["10.0.0.0/8"]}, "too many machines"),
        ({"addresses": ["10.77.0.9"], "scopes": ["*"]}, "not given at this listener"),
        ({"addresses": ["10.77.0.9"], "scopes": ["HELP.brainstem.LearnNew"]}, "not given at this listener"),
        ({"addresses": ["10.77.0.9"], "scopes": ["HELP.brainstem.AskPeer"]}, "not given at this listener"),
        ({"addresses": ["10.77.0.9"], "scopes": ["HELP.brainstem.*"]}, "not given at this listener"),
        ({"addresses": ["10.77.0.9"], "scopes": ["EGG"]}, "not given at this listener"),
    ],
)
def test_listener_refuses_wide_networks_and_keys(desk: Machine, given: dict[str, Any], said: str) -> None:
    refused = desk.request("POST", "/legacy", given, control=True)
    assert refused.status in (400, 403)
    assert said in refused.json()["error"]
    assert not desk.owner("GET", "/legacy")["legacy"]["open"]


def test_opening_the_listener_asks_first(desk: Machine) -> None:
    done = desk.cli("peers", "legacy", "open", "10.77.0.9")
    assert done.returncode == 6
    assert "plain http" in done.stderr
    assert desk.cli("peers", "legacy", "show").stdout == "The legacy listener is closed.\n"
    assert desk.post("/legacy", {"addresses": ["10.77.0.9"]}).status == 403  # and only for the owner


POST = """
import http.client, json, sys
host, method, path, body, headers = json.loads(sys.argv[1])
line = http.client.HTTPConnection(host, 7071, timeout=30)
line.request(method, path, body, headers)
answer = line.getresponse()
print(json.dumps([answer.status, answer.read().decode(), dict(answer.getheaders())]))
"""


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Desk with its legacy listener open for kitchen; stranger is not listed."""
    require()
    with Lan() as lan:
        desk, kitchen, stranger = (lan.machine(name) for name in ("desk", "kitchen", "stranger"))
        daemon = Daemon(desk, tmp_path_factory.mktemp("door"))
        daemon.drop("clock_agent.py", CLOCK)
        daemon.start()
        yield daemon, desk, kitchen, stranger
        daemon.stop()


def sent(
    machine: Any,
    to: str,
    body: Any = None,
    *,
    path: str = "/chat",
    method: str = "POST",
    headers: dict[str, str] | None = None,
) -> tuple[int, str, dict[str, str]]:
    raw = json.dumps(body) if body is not None else None
    done = machine.run([sys.executable, "-c", POST, json.dumps([to, method, path, raw, headers or {}])])
    assert done.returncode == 0, done.stderr
    status, text, found = json.loads(done.stdout)
    return status, text, found


def test_a_listed_machine_talks_and_others_learn_nothing(network: Any) -> None:
    daemon, desk, kitchen, stranger = network
    opened = daemon.cli("peers", "legacy", "open", kitchen.address, "--yes")
    assert opened.returncode == 0, opened.stderr
    assert f"Open at {desk.address}:7071" in opened.stdout
    assert "and use no agent" in opened.stdout

    status, text, headers = sent(kitchen, desk.address, {"user_input": "hello", "user_guid": "me"})
    assert status == 200, text
    answer = json.loads(text)
    assert answer["response"] == answer["assistant_response"] == "fake-llm: hello"  # no agent was offered
    assert (answer["user_guid"], answer["agent_logs"]) == ("me", "")
    assert "aiohttp" not in str(headers).lower()
    recorded = [e for t in daemon.threads() for e in daemon.ask("GET", f"/threads/{t}")["events"]]
    assert {e["from"] for e in recorded if e["data"].get("user_input") == "hello"} == {
        f"legacy {kitchen.address}"
    }

    status, text, _ = sent(kitchen, desk.address, path="/health", method="GET")
    assert (status, json.loads(text)["agents"]) == (200, [])
    for path in ("/", "/peers", "/agents", "/openapi.json", "/chat/stream", "/call"):
        assert sent(kitchen, desk.address, path=path, method="GET")[0] in (404, 405)
    for path, method in (("/chat", "POST"), ("/health", "GET"), ("/nothing", "GET"), ("/peers", "GET")):
        status, text, _ = sent(stranger, desk.address, {"user_input": "hello"}, path=path, method=method)
        assert (status, json.loads(text)) == (403, {"error": "Not allowed.", "do": "", "code": "refused"})
    for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert sent(kitchen, desk.address, {"user_input": "hello"}, headers=headers)[0] == 403
    assert sent(kitchen, desk.address, {"user_input": ""})[0] == 400
    privileged = {"ns": "https://xml-pipeline.org/privileged-msg", "root": "shutdown", "body": ""}
    assert sent(kitchen, desk.address, {"user_input": "hello", **privileged})[0] == 403
    picture = {"type": "image/gif", "data": base64.b64encode(b"GIF89a").decode()}
    status, text, _ = sent(kitchen, desk.address, {"user_input": "hello", "pictures": [picture]})
    assert (status, json.loads(text)["error"]) == (403, "Pictures are not taken from other machines.")


def test_named_agent_alone_is_offered_also_after_restart(network: Any) -> None:
    daemon, desk, kitchen, _ = network
    opened = daemon.cli("peers", "legacy", "open", kitchen.address, "--may", "HELP.brainstem.Clock", "--yes")
    assert "and use Clock" in opened.stdout, opened.stderr
    for start in (False, True):
        if start:
            daemon.stop()
            daemon.start()
            daemon.wait_for(lambda: daemon.ask("GET", "/legacy")["legacy"]["open"], what="the door")
        answer = json.loads(sent(kitchen, desk.address, {"user_input": "what time is it?"})[1])
        assert answer["agent_logs"] == "[Clock] noon"  # the first tool offered, in each round
        assert set(answer["agent_logs"].splitlines()) == {"[Clock] noon"}
    assert daemon.cli("peers", "legacy", "close").stdout == "The legacy listener is closed.\n"
    assert (
        kitchen.run(["timeout", "5", "bash", "-c", f"exec 3<>/dev/tcp/{desk.address}/7071"]).returncode != 0
    )
    daemon.stop()
    daemon.start()
    assert not daemon.ask("GET", "/legacy")["legacy"]["open"]


FLOOD = """
import http.client, sys
statuses = []
for _ in range(130):
    line = http.client.HTTPConnection(sys.argv[1], 7071, timeout=30)
    line.request("GET", "/health")
    statuses.append(line.getresponse().status)
    line.close()
print(statuses.count(200), set(statuses[120:]))
"""


LARGE = """
import http.client, sys
line = http.client.HTTPConnection(sys.argv[1], 7071, timeout=30)
line.request("POST", "/chat", b'{"user_input": "' + b"x" * (2 << 20) + b'"}')
print(line.getresponse().status)
"""


def test_an_address_that_asks_without_end_is_slowed_down(network: Any) -> None:
    daemon, desk, kitchen, stranger = network
    listed = [kitchen.address, stranger.address]
    assert daemon.cli("peers", "legacy", "open", *listed, "--yes").returncode == 0
    flood = kitchen.run([sys.executable, "-c", FLOOD, desk.address])
    assert flood.stdout == "120 {429}\n", flood.stderr
    assert sent(stranger, desk.address, path="/health", method="GET")[0] == 200
    assert stranger.run([sys.executable, "-c", LARGE, desk.address]).stdout == "413\n"
    assert daemon.cli("peers", "legacy", "close").returncode == 0


def test_listener_follows_a_changed_address(network: Any) -> None:
    daemon, desk, kitchen, _ = network
    assert daemon.cli("peers", "legacy", "open", kitchen.address, "--yes").returncode == 0
    desk.move("10.77.0.50")
    daemon.wait_for(
        lambda: daemon.ask("GET", "/legacy")["legacy"]["listening"] == ["10.77.0.50:7071"], what="the door"
    )
    assert sent(kitchen, "10.77.0.50", {"user_input": "hello"})[0] == 200


def test_published_brainstem_on_another_port_is_added_and_called(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon(LLM_FAKE="1").start()
    server = Published()
    server.start()
    try:
        url = f"http://127.0.0.1:{server.port}"
        added = daemon.cli("peers", "add", url)
        assert (added.returncode, url in added.stdout + added.stderr) == (0, True), added.stderr
        assert url in json.dumps(daemon.get("/peers", control=True).json())
        assert daemon.cli("call", url, "how are you?", "--yes").stdout.startswith("you said how are you?")
        itself = daemon.cli("peers", "add", f"http://127.0.0.1:{daemon.port}")
        assert (itself.returncode != 0, "is this machine itself" in itself.stderr) == (True, True)
        assert daemon.cli("peers", "forget", url).returncode == 0
    finally:
        server.stop()
