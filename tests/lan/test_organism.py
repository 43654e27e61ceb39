"""The organism over a real network: listeners asked in XML, gateways, and privileged messages that nobody takes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyotp
import pytest
from fixtures.running_daemon import agent_source
from lxml import etree

from envelopes.codecs.emergence import encode
from envelopes.codecs.privileged import NAMESPACE
from envelopes.codecs.privileged_xml import sign as sign_privileged
from envelopes.codecs.xml_message import ENVELOPE_NS, RAPPD_NS
from envelopes.envelope import HELP, Envelope, agent_id, new_id
from envelopes.identity.keys import IdentityKey
from envelopes.identity.signatures import sign
from lan.daemons import Daemon, pair
from lan.network import Lan, Machine, require

PROGRAM, MODEL = (Path(__file__).with_name(f"{name}.py") for name in ("xml_program", "searching_model"))
MODEL_PORT = 18_200
CALCULATOR = "https://xml-pipeline.org/ns/calculator/calculator/v1"
XML = {"Content-Type": "application/xml"}
JSON = {"Content-Type": "application/json; charset=utf-8"}


class Program:
    """A program on a machine."""

    def __init__(self, machine: Machine) -> None:
        self._process = machine.start(
            [sys.executable, PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def begin(self, url: str, **more: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"url": url, **more}) + "\n")
        self._process.stdin.flush()

    def end(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        return found

    def ask(self, url: str, **more: Any) -> dict[str, Any]:
        self.begin(url, **more)
        return self.end()


class Place(NamedTuple):
    """Three machines of an owner, of which the desk knows both others, and a laptop that nobody knows."""

    lan: Lan
    desk: Daemon
    pi: Daemon
    shed: Daemon
    laptop: Program
    silent: Program
    """Says nothing since the beginning."""
    local: Program
    """On the pi itself."""
    since: float


def search(where: str) -> str:
    told = '{"query": {"type": "string"}, "wait": {"type": "number"}}'
    body = f"__import__('time').sleep({8 if where == 'pi' else 0})\n        return 'on {where}: ' + str(kwargs.get('query'))"
    return agent_source("Search", body, f"Searches {where}.", told)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    require()
    folder = tmp_path_factory.mktemp("organism")
    with Lan() as lan:
        desk, pi, shed = (Daemon(lan.machine(name), folder, name) for name in ("desk", "pi", "shed"))
        model = desk.machine.start([sys.executable, MODEL, str(MODEL_PORT)], stdout=subprocess.PIPE)
        assert model.stdout is not None and model.stdout.readline() == b"ready\n"
        del desk.environment["LLM_FAKE"]
        desk.environment |= {"OPENAI_BASE_URL": f"http://127.0.0.1:{MODEL_PORT}", "OPENAI_MODEL": "small"}
        for one in (pi, shed):
            one.drop("search_agent.py", search(one.name))
        (desk.home / "prompts").mkdir(parents=True)
        (desk.home / "prompts" / "clerk.md").write_text("You look things up.")
        for one in (desk, pi, shed):
            one.launch()
        laptop = lan.machine("laptop")
        programs = [Program(laptop), Program(lan.machine("stranger")), Program(pi.machine)]
        for one in (desk, pi, shed):
            one.wait_ready()
        issue(pi, "early")
        programs[1].begin(url(pi, "/messages", "wss"), frames=[])
        began = time.monotonic()
        for other in (pi, shed):
            pair(desk, other)
            desk.wait_for(
                lambda other=other: "Search" in str(desk.ask("GET", f"/peers/{other.name}")["peer"]),
                what="agents",
            )
        opened = pi.cli("peers", "legacy", "open", laptop.address, "--yes")
        assert opened.returncode == 0, opened.stderr
        yield Place(lan, desk, pi, shed, *programs, began)


def url(daemon: Daemon, path: str, scheme: str = "https") -> str:
    return f"{scheme}://{daemon.address}{path}"


def issue(daemon: Daemon, name: str, *caps: str, totp: bool = True) -> dict[str, Any]:
    caps = caps or ("HELP.brainstem.calculator", "HELP.brainstem")
    found: dict[str, Any] = daemon.ask("POST", "/tokens", {"name": name, "caps": caps, "totp": totp})["token"]
    return found


def code(token: dict[str, Any]) -> str:
    return pyotp.TOTP(token["secret"]).now()


def sign_in(user: str, digits: str) -> str:
    return f'<authenticate user="{user}" totp="{digits}"/>'


def message(sender: str, payload: str, *, thread: str = "", to: str = "") -> str:
    recipient = f"<to>{to}</to>" if to else ""
    meta = f"<meta><from>{sender}</from>{recipient}<thread>{thread}</thread></meta>"
    return f'<message xmlns="{ENVELOPE_NS}">{meta}{payload}</message>'


def added(a: str, b: str) -> str:
    return f'<calculate xmlns="{CALCULATOR}"><a>{a}</a><operation>add</operation><b>{b}</b></calculate>'


def value(reply: str) -> str | None:
    found: str | None = etree.fromstring(reply.encode())[1].findtext("{*}value")
    return found


def certificate(daemon: Daemon) -> list[str]:
    return [str(daemon.home / "keys" / one) for one in ("machine.pem", "machine-key.pem")]


def brainstem(daemon: Daemon) -> str:
    return agent_id("brainstem", daemon.fingerprint)


# Listeners in XML.


def test_program_of_a_machine_that_nobody_paired_asks_a_listener(place: Place) -> None:
    pi, laptop = place.pi, place.laptop
    token = issue(pi, "console")
    digits = code(token)
    messages = url(pi, "/messages", "wss")
    asked = message("FROM", added("0.1", "0.2"))
    said = laptop.ask(messages, frames=[sign_in("console", digits), asked])
    catalog = etree.fromstring(said["frames"][0].encode())
    assert [one.get("name") for one in catalog] == ["calculator"]
    again = laptop.ask(messages, frames=[sign_in("console", digits)])
    assert (again["frames"], again["close"]) == ([], 1008), "each code counts once"
    assert value(said["frames"][1]) == "0.3", said


def test_wrong_code_is_banned_and_silence_ends_after_fifteen_seconds(place: Place) -> None:
    pi = place.pi
    token = issue(pi, "guessed")
    right = code(token)
    messages = url(pi, "/messages", "wss")
    silent = place.silent.end()
    assert (silent["frames"], silent["close"]) == ([], 1008)
    assert time.monotonic() - place.since > 14
    wrong = f"{(int(right) + 1) % 1_000_000:06d}"
    for _ in range(5):
        assert place.silent.ask(messages, frames=[sign_in("guessed", wrong)])["close"] == 1008
    banned = place.silent.ask(messages, frames=[sign_in("guessed", code(token))])
    assert (banned["frames"], banned["close"]) == ([], 1008), "the right code, too"
    other = place.laptop.ask(messages, frames=[sign_in("guessed", code(token))])
    assert "<catalog" in other["frames"][0], "another address is not banned for it"


def test_paired_machine_needs_no_code(place: Place) -> None:
    desk, pi, laptop = place.desk, place.pi, place.laptop
    mine = certificate(desk)
    asked = message(brainstem(desk), added("1", "2"))
    reply = laptop.ask(url(pi, "/envelopes"), headers=XML, body=asked, certificate=mine)
    assert (reply["status"], value(reply["text"])) == (200, "3")
    said = laptop.ask(url(pi, "/messages", "wss"), first=1, frames=[asked], certificate=mine)
    assert "<catalog" in said["frames"][0] and value(said["frames"][1]) == "3"
    spoofed = message(brainstem(place.shed), added("1", "2"))
    reply = laptop.ask(url(pi, "/envelopes"), headers=XML, body=spoofed, certificate=mine)
    assert reply["status"] == 403 and "wrong_sender" in reply["text"]
    without = laptop.ask(url(pi, "/envelopes"), headers=XML, body=asked)
    assert without["status"] == 415, "a program without an access"


def test_client_of_the_terminal_asks_from_another_machine(place: Place, tmp_path: Path) -> None:
    desk, pi, shed = place.desk, place.pi, place.shed
    file = tmp_path / "sum.xml"
    file.write_text(added("20", "22"))

    def run(on: Daemon, user: str, *more: str) -> subprocess.CompletedProcess[str]:
        token = issue(pi, user)
        words = ["xml", pi.address, str(file), "--user", user, "--code", code(token), *more]
        return on.machine.run_rappd(words, on.environment)

    done = run(desk, "terminal")
    assert done.returncode == 0, done.stderr
    assert '<capability name="calculator"' in done.stdout and "<value>42</value>" in done.stdout
    stranger = run(shed, "elsewhere")
    assert stranger.returncode == 5 and f"--fingerprint {pi.fingerprint}" in stranger.stderr
    assert run(shed, "told", "--fingerprint", pi.fingerprint).returncode == 0


# Gateways.


def organism(place: Place, mode: str, *names: str, key: str = "") -> None:
    keys = {"lab": key or place.pi.fingerprint, "barn": place.shed.fingerprint}
    (place.desk.home / "organism.yaml").write_text(
        "gateways:\n"
        + "".join(f"  - {{name: {name}, fingerprint: {keys[name]}}}\n" for name in keys)
        + "agents:\n  - name: clerk\n    prompt: prompts/clerk.md\n"
        + f"    tools: [{{name: Search, gateways: [{', '.join(names)}], mode: {mode}}}]\n"
    )
    place.desk.ask("POST", "/organism/reload", {})


@pytest.mark.parametrize(
    ("mode", "names", "found"),
    [
        ("single", ["barn"], ["on shed: nails"]),
        ("first-answer-wins", ["lab", "barn"], ["on shed: nails"]),
        ("all", ["lab", "barn"], ["on pi: nails", "on shed: nails"]),
    ],
)
def test_tool_of_a_gateway_is_asked_there(
    place: Place, mode: str, names: list[str], found: list[str]
) -> None:
    desk = place.desk
    organism(place, mode, *names)
    ran = desk.ask("POST", "/agents/run", {"agent": "clerk", "args": {"text": "look up nails"}})
    assert ran["ok"], ran
    for text in found:
        assert text in ran["result"]
    tree = json.dumps(desk.ask("GET", f"/threads/{ran['thread']}/tree"))
    asked = [place.pi, place.shed] if mode == "all" else [place.shed]
    for one in asked:
        assert f"_{one.fingerprint[:16]}" in tree, "its answer is from that machine"
        assert mode != "all" or f"Search_{one.fingerprint[:16]}" in ran["result"]


def test_gateway_whose_machine_has_another_key_is_refused_loudly(place: Place) -> None:
    desk = place.desk
    organism(place, "single", "lab", key="ab" * 32)
    desk.ask("POST", "/peers/pi/rename", {"name": "lab"})
    ran = desk.ask("POST", "/agents/run", {"agent": "clerk", "args": {"text": "look up nails"}})
    assert ran["result"] == "There is no such tool."
    desk.wait_for_log("security: the gateway lab is refused")
    assert "The gateway lab is refused" in str(desk.ask("GET", "/notices"))
    assert "the gateway lab is refused" in str(desk.ask("GET", "/activity")["security"])
    assert "lab: another key" in desk.cli("organism", "show").stdout
    desk.ask("POST", "/peers/lab/rename", {"name": "pi"})


def test_workflow_and_session_take_participants_of_gateways(place: Place) -> None:
    desk = place.desk
    organism(place, "single", "barn")
    folder = desk.home / "brainstem" / "workflows"
    folder.mkdir(exist_ok=True)
    steps = [{"participant": "Finder", "cue": "nails"}]
    found = {
        "name": "find",
        "title": "Find",
        "participants": [{"name": "Finder", "plays": "Search@barn"}],
        "steps": steps,
    }
    (folder / "find.json").write_text(json.dumps(found))
    desk.ask("POST", "/sessions", {})
    invited = desk.cli("sessions", "invite", "search@barn", "--json")
    assert invited.returncode == 0, invited.stderr
    started = desk.request("POST", "/workflows/find/run", {})
    assert started.status == 200, started.body
    desk.wait_for(
        lambda: "on shed: " in str(desk.ask("GET", "/threads?limit=20")) or "on shed" in everything(desk),
        what="the step",
    )


def everything(daemon: Daemon) -> str:
    return json.dumps([daemon.ask("GET", f"/threads/{one}") for one in daemon.threads()[:20]])


# Privileged messages.

OPERATION = f'<shutdown xmlns="{NAMESPACE}"/>'
PAYLOAD = {"ns": NAMESPACE, "root": "shutdown", "body": OPERATION}
KEY = IdentityKey.generate()


def signed() -> str:
    return sign_privileged(OPERATION.encode(), KEY).decode()


def rpc(method: str, params: dict[str, Any]) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


def security_events(daemon: Daemon) -> int:
    found = re.search(
        r"^rappd_security_events_total (\d+)", daemon.request("GET", "/metrics").body.decode(), re.M
    )
    assert found is not None
    return int(found[1])


def envelope(place: Place, data: dict[str, Any], *, key: IdentityKey | None = None) -> str:
    made = Envelope(new_id(), brainstem(place.desk), brainstem(place.pi), HELP, data)
    return encode(made if key is None else sign(made, key, time.time())).decode()


def over_http(place: Place, *, mine: list[str], token: str, hook: str) -> dict[str, dict[str, Any]]:
    """Requests at each listener of the pi that other machines reach, by name."""
    key = IdentityKey.from_pem((place.desk.home / "keys" / "identity.pem").read_bytes())
    pi = place.pi
    bearer = {**JSON, "Authorization": f"Bearer {token}"}
    legacy = f"http://{pi.machine.address}:7071"
    tether = f"http://{pi.machine.address}:7072"
    parts = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": PAYLOAD}]}}
    chat = {"user_input": "hi", **PAYLOAD}
    return {
        "envelope": {"url": url(pi, "/envelopes"), "body": envelope(place, PAYLOAD), "certificate": mine},
        "signed envelope": {
            "url": url(pi, "/envelopes"), "body": envelope(place, PAYLOAD, key=key), "certificate": mine,
        },
        "arguments": {
            "url": url(pi, "/envelopes"),
            "body": envelope(place, {"agent": "calculator", "args": PAYLOAD}),
            "certificate": mine,
        },
        "batch": {
            "url": url(pi, "/envelopes/batch"), "body": f"[{envelope(place, PAYLOAD)}]", "certificate": mine,
        },
        "envelope of a stranger": {"url": url(pi, "/envelopes"), "body": envelope(place, PAYLOAD)},
        "XML": {
            "url": url(pi, "/envelopes"), "headers": XML, "body": message(brainstem(place.desk), OPERATION),
            "certificate": mine,
        },
        "a whole message": {"url": url(pi, "/envelopes"), "headers": XML, "body": signed(), "certificate": mine},
        "XML of a stranger": {"url": url(pi, "/envelopes"), "headers": XML, "body": signed()},
        "data in XML": {
            "url": url(pi, "/envelopes"), "headers": XML, "certificate": mine,
            "body": message(brainstem(place.desk), f'<data xmlns="{RAPPD_NS}">{json.dumps(PAYLOAD)}</data>'),
        },
        "XML as JSON": {"url": url(pi, "/envelopes"), "body": signed(), "certificate": mine},
        "pairing": {"url": url(pi, "/pairing"), "body": json.dumps({"step": "offer", **PAYLOAD})},
        "OpenAI": {
            "url": url(pi, "/v1/chat/completions"), "headers": bearer,
            "body": json.dumps({"model": "x", "messages": [{"role": "user", "content": "hi"}], "data": PAYLOAD}),
        },
        "OpenAI, XML": {"url": url(pi, "/v1/chat/completions"), "headers": bearer, "body": signed()},
        "Responses": {
            "url": url(pi, "/v1/responses"), "headers": bearer,
            "body": json.dumps({"model": "x", "input": [{"role": "user", "content": "hi", **PAYLOAD}]}),
        },
        "Ollama": {
            "url": url(pi, "/ollama/api/chat"), "headers": bearer,
            "body": json.dumps({"model": "x", "messages": [], **PAYLOAD}),
        },
        "MCP": {
            "url": url(pi, "/mcp"), "headers": bearer,
            "body": rpc("tools/call", {"name": "calculator", "arguments": PAYLOAD}),
        },
        "A2A": {"url": url(pi, "/a2a"), "headers": {**bearer, "A2A-Version": "1.0"}, "body": rpc("SendMessage", parts)},
        "A2A over HTTP": {
            "url": url(pi, "/a2a/message:send"), "headers": {**bearer, "A2A-Version": "1.0"}, "body": json.dumps(parts),
        },
        "webhook": {"url": url(pi, hook), "headers": JSON, "body": json.dumps(PAYLOAD)},
        "webhook, XML": {"url": url(pi, hook), "headers": XML, "body": signed()},
        "legacy": {"url": f"{legacy}/chat", "headers": JSON, "body": json.dumps(chat)},
        "legacy, XML": {"url": f"{legacy}/chat", "headers": XML, "body": signed()},
        "tether": {"url": f"{tether}/tether/v2/offer", "headers": JSON, "body": json.dumps({"offer": PAYLOAD, **PAYLOAD})},
    }  # fmt: skip


def test_no_listener_takes_a_privileged_message_from_another_machine(place: Place) -> None:
    pi, laptop = place.pi, place.laptop
    token = issue(pi, "foreign", totp=False)["text"]
    made = json.loads(pi.cli("webhooks", "add", "ci", "--agent", "calculator", "--json").stdout)["webhook"]
    pi.ask("POST", "/devices/window", {})
    missed = []
    for name, asked in over_http(place, mine=certificate(place.desk), token=token, hook=made["path"]).items():
        before = security_events(pi)
        reply = laptop.ask(**{"headers": JSON, **asked})
        refused = (
            reply["status"] in (202, 204, 400, 401, 403, 404, 415)
            or '"error"' in reply["text"]
            or '"ERROR"' in reply["text"]
        )
        if not refused or "shutdown" in reply["text"] or security_events(pi) != before + 1:
            missed.append((name, reply["status"], reply["text"][:160], security_events(pi) - before))
    assert not missed, "\n".join(map(str, missed))
    said = [one["text"] for one in pi.ask("GET", "/activity")["security"]]
    assert sum("a privileged message" in one for one in said) > 10
    assert pi.request("GET", "/readyz").status == 200


def test_no_connection_takes_one(place: Place) -> None:
    pi, laptop = place.pi, place.laptop
    mine, messages = certificate(place.desk), url(pi, "/messages", "wss")
    before = security_events(pi)
    said = laptop.ask(messages, frames=[signed()])
    assert (said["frames"], said["close"]) == ([], 1008)
    assert security_events(pi) == before + 1
    me = brainstem(place.desk)
    data = f'<data xmlns="{RAPPD_NS}">{json.dumps(PAYLOAD)}</data>'
    frames = [signed(), message(me, OPERATION), message(me, data), message(me, added("1", "1"))]
    said = laptop.ask(messages, first=1, frames=frames, certificate=mine)
    for one in said["frames"][1:4]:
        assert "Not allowed." in one and "shutdown" not in one
    assert value(said["frames"][4]) == "2"
    assert security_events(pi) == before + 4


def test_none_leaves_through_a_gateway(place: Place) -> None:
    desk, pi = place.desk, place.pi
    here, there = security_events(desk), security_events(pi)
    order = {"peer": "pi", "agent": "calculator", "args": PAYLOAD}
    assert desk.request("POST", "/call", order).status == 403
    assert security_events(desk) > here and security_events(pi) == there


def test_none_is_taken_on_the_machine_itself(place: Place) -> None:
    pi = place.pi
    ways = {
        "chat": ("/chat", JSON, json.dumps({"user_input": "hi", **PAYLOAD})),
        "chat in XML": ("/chat", XML, signed()),
        "run": ("/agents/run", JSON, json.dumps({"agent": "calculator", "args": PAYLOAD})),
        "its own route": ("/organism/privileged", XML, signed()),
        "stream": ("/chat/stream", JSON, json.dumps({"user_input": "hi", "data": PAYLOAD})),
        "MCP": ("/mcp", JSON, rpc("tools/call", {"name": "calculator", "arguments": PAYLOAD})),
        "OpenAI": ("/v1/chat/completions", JSON, json.dumps({"model": "x", "messages": [], **PAYLOAD})),
        "a service": ("/api/anything", JSON, json.dumps(PAYLOAD)),
    }
    missed = []
    for name, (path, headers, body) in ways.items():
        before = security_events(pi)
        reply = place.local.ask(f"http://127.0.0.1:{pi.port}{path}", headers=headers, body=body)
        refused = reply["status"] in (400, 401, 403) or '"error"' in reply["text"]
        if not refused or security_events(pi) != before + 1:
            missed.append((name, reply, security_events(pi) - before))
    assert not missed
