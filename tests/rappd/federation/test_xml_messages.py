"""Messages in XML: of paired machines over HTTPS, and of programs with an authenticator over a WebSocket."""

from __future__ import annotations

import asyncio
import json
import stat
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pyotp
import pytest
from lxml import etree

from envelopes.codecs.xml_message import ENVELOPE_NS, RAPPD_NS
from tests.rappd.federation.conftest import Node
from tests.rappd.federation.plain_machine import PlainMachine

XML = "application/xml"


def message(sender: str, data: dict[str, Any], *, to: str = "", thread: str = "", more: str = "") -> str:
    recipient = f"<to>{to}</to>" if to else ""
    return (
        f'<message xmlns="{ENVELOPE_NS}"><meta><from>{sender}</from>{recipient}<thread>{thread}</thread>{more}</meta>'
        f'<data xmlns="{RAPPD_NS}">{json.dumps(data)}</data></message>'
    )


def read(raw: bytes | str) -> dict[str, Any]:
    """Fields of a reply: from, thread, verb and data."""
    root = etree.fromstring(raw.encode() if isinstance(raw, str) else raw)
    meta = {one.tag.rpartition("}")[2]: one.text for one in reversed(root[0])}
    return {**meta, "data": json.loads(root[1].text)}


PRIVILEGED = "https://xml-pipeline.org/privileged-msg"
CLOCK = {"agent": "Clock", "args": {}}


# Paired machines.


@pytest.fixture(scope="module")
def desk(node: Node) -> PlainMachine:
    return node.peer("desk", "friend", ["HELP.brainstem", "HELP.brainstem.Clock"])


def test_peers_message_is_answered_in_xml(node: Node, desk: PlainMachine) -> None:
    reply = desk.request(
        "POST", "/envelopes", message(desk.id, CLOCK).encode(), headers={"Content-Type": XML}
    )
    assert (reply.status, reply.headers["content-type"]) == (200, "application/xml; charset=utf-8")
    said = read(reply.body)
    assert said["verb"] == "DONE"
    assert said["data"]["result"] == "it is now"
    assert said["from"] == f"brainstem_{node.fingerprint[:16]}"


def test_conversation_goes_on_by_the_name_of_its_thread(desk: PlainMachine) -> None:
    first = read(
        desk.request(
            "POST", "/envelopes", message(desk.id, CLOCK).encode(), headers={"Content-Type": XML}
        ).body
    )
    again = message(desk.id, CLOCK, thread=first["thread"])
    second = desk.request("POST", "/envelopes", again.encode(), headers={"Content-Type": XML})
    assert read(second.body)["thread"] == first["thread"]


@pytest.mark.parametrize(
    ("change", "status", "reason"),
    [
        ({"thread": "somebody.elses"}, 404, "unknown_thread"),
        ({"thread": "6ba7b810-9dad-41d1-80b4-00c04fd430c8"}, 404, "unknown_thread"),
        ({"to": "Secret_0000000000000000"}, 404, "wrong_recipient"),
    ],
)
def test_what_is_not_the_callers_is_refused(
    desk: PlainMachine, change: dict[str, str], status: int, reason: str
) -> None:
    reply = desk.request(
        "POST", "/envelopes", message(desk.id, CLOCK, **change).encode(), headers={"Content-Type": XML}
    )
    assert (reply.status, read(reply.body)["data"]["reason"]) == (status, reason)


@pytest.mark.parametrize("sender", ["core", "system", "brainstem_0000000000000000"])
def test_name_of_somebody_else_is_refused(desk: PlainMachine, sender: str) -> None:
    reply = desk.request("POST", "/envelopes", message(sender, CLOCK).encode(), headers={"Content-Type": XML})
    assert (reply.status, read(reply.body)["data"]["reason"]) == (403, "wrong_sender")


def test_refused_xml_says_why_and_is_not_recorded(node: Node, desk: PlainMachine) -> None:
    bomb = '<!DOCTYPE m [<!ENTITY a "b">]>' + message(desk.id, CLOCK)
    reply = desk.request("POST", "/envelopes", bomb.encode(), headers={"Content-Type": XML})
    assert (reply.status, read(reply.body)["data"]["reason"]) == (400, "xml_refused")


def test_repaired_message_is_answered_and_the_record_says_so(node: Node, desk: PlainMachine) -> None:
    ident = "550e8400-e29b-41d4-a716-446655440000"
    whole = message(desk.id, CLOCK, more=f'<id xmlns="{RAPPD_NS}">{ident}</id>')
    reply = desk.request(
        "POST", "/envelopes", whole.removesuffix("</message>").encode(), headers={"Content-Type": XML}
    )
    assert read(reply.body)["verb"] == "DONE"
    asked = next(one for one in node.records(ident) if one["verb"] == "HELP")
    assert asked["_x_huh"]["repairs"] == ["<message> was closed"]


# Listeners.

CALCULATOR = "https://xml-pipeline.org/ns/calculator/calculator/v1"


@pytest.fixture(scope="module")
def counter(node: Node) -> PlainMachine:
    return node.peer("counter", "friend", ["HELP.brainstem.calculator"])


def payload(
    machine: PlainMachine, ns: str = CALCULATOR, *, a: str = "0.1", to: str = "", root: str = "calculate"
) -> dict[str, Any]:
    """The reply to a typed payload: status, verb, data or the payload's namespace, root and texts."""
    body = f'<{root} xmlns="{ns}"><a>{a}</a><operation>add</operation><b>0.2</b></{root}>'
    recipient = f"<to>{to}</to>" if to else ""
    whole = f'<message xmlns="{ENVELOPE_NS}"><meta><from>{machine.id}</from>{recipient}<thread/></meta>{body}</message>'
    reply = machine.request("POST", "/envelopes", whole.encode(), headers={"Content-Type": XML})
    found = etree.fromstring(reply.body)[1]
    name = etree.QName(found)
    data = json.loads(found.text or "null") if name.namespace == RAPPD_NS else None
    texts = {etree.QName(one).localname: one.text for one in found}
    return {
        "status": reply.status,
        "ns": name.namespace,
        "root": name.localname,
        "data": data,
        "texts": texts,
    }


def test_listener_is_asked_and_answers_in_xml(node: Node, counter: PlainMachine) -> None:
    found = payload(counter)
    assert (found["status"], found["ns"], found["root"]) == (200, CALCULATOR, "result")
    assert found["texts"] == {"value": "0.3"}
    thread = json.loads(node.daemon.cli("threads", "list", "--json").stdout)["threads"][0]["id"]
    shown = node.daemon.cli("threads", "show", thread).stdout
    assert "calculator <calculate><a>0.1</a>" in shown and "<result><value>0.3</value></result>" in shown
    assert payload(counter, "")["texts"] == {"value": "0.3"}, "without a namespace the root counts"
    for to in (f"calculator_{node.fingerprint[:16]}", "calculator"):
        assert payload(counter, to=to)["texts"] == {"value": "0.3"}, to


def test_payload_that_fails_its_schema_is_refused_with_its_field(node: Node, counter: PlainMachine) -> None:
    found = payload(counter, a="much")
    assert (found["status"], found["data"]["reason"]) == (400, "mistyped")
    assert "calculate.a is mistyped: expected a decimal number" in found["data"]["msg"]
    for to in (f"calculator_{node.fingerprint[:16]}", "calculator"):
        named = payload(counter, root="other", to=to)
        assert (named["status"], named["data"]["reason"]) == (400, "mistyped")


def test_a_bare_name_is_of_this_machine_and_tells_no_more_than_another(
    counter: PlainMachine, desk: PlainMachine
) -> None:
    unknown, refused = payload(counter, to="nobody"), payload(desk, to="calculator")
    assert (unknown["status"], unknown["data"]) == (refused["status"], refused["data"])
    assert (
        payload(counter, to=f"calculator_{counter.fingerprint[:16]}")["data"]["reason"] == "wrong_recipient"
    )


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (("</data>", "</data><more/>"), "malformed"),
        (("<thread>", "<thread>elsewhere"), "unknown_thread"),
        (("</from>", "core</from>"), "wrong_sender"),
    ],
)
def test_a_refusal_has_the_id_of_its_question(
    desk: PlainMachine, wrong: tuple[str, str], reason: str
) -> None:
    ident = str(uuid.uuid4())
    text = message(desk.id, CLOCK, more=f'<id xmlns="{RAPPD_NS}">{ident}</id>').replace(*wrong)
    said = read(desk.request("POST", "/envelopes", text.encode(), headers={"Content-Type": XML}).body)
    assert (said["data"]["reason"], said["id"]) == (reason, ident)


def test_a_repeat_names_the_thread_that_its_question_began(desk: PlainMachine) -> None:
    text = message(desk.id, CLOCK, more=f'<id xmlns="{RAPPD_NS}">{uuid.uuid4()}</id>').encode()
    first, again = (
        read(desk.request("POST", "/envelopes", text, headers={"Content-Type": XML}).body) for _ in range(2)
    )
    assert first == again
    assert first["thread"]


def test_agent_answers_a_payload_made_of_its_parameters(node: Node, desk: PlainMachine) -> None:
    ns = "https://xml-pipeline.org/ns/agents/Clock/v1"
    body = f'<clock xmlns="{ns}"></clock>'
    whole = f'<message xmlns="{ENVELOPE_NS}"><meta><from>{desk.id}</from><thread/></meta>{body}</message>'
    reply = desk.request("POST", "/envelopes", whole.encode(), headers={"Content-Type": XML})
    assert (reply.status, read(reply.body)["data"]["result"]) == (200, "it is now")
    more = whole.replace("></clock>", "><zone>x</zone></clock>")
    reply = desk.request("POST", "/envelopes", more.encode(), headers={"Content-Type": XML})
    assert (reply.status, read(reply.body)["data"]["reason"]) == (400, "mistyped")


def test_unknown_listener_and_one_that_is_not_allowed_get_the_same_words(
    counter: PlainMachine, desk: PlainMachine
) -> None:
    unknown, refused = payload(counter, root="nothing"), payload(desk)
    mistyped = payload(desk, a="much")
    assert unknown["status"] == refused["status"] == 403
    assert unknown["data"] == refused["data"] == mistyped["data"], "capability is asked before the schema"


def payload_of(machine: PlainMachine, payload: str) -> Any:
    """The payload of the reply, or the data of an ERROR."""
    meta = f"<meta><from>{machine.id}</from><thread/></meta>"
    text = f'<message xmlns="{ENVELOPE_NS}">{meta}{payload}</message>'
    reply = machine.request("POST", "/envelopes", text.encode(), headers={"Content-Type": XML})
    found = etree.fromstring(reply.body)[1]
    return json.loads(found.text or "") if found.tag == f"{{{RAPPD_NS}}}data" else found


def test_privileged_message_is_a_security_event_in_json_too(node: Node, desk: PlainMachine) -> None:
    ns = PRIVILEGED
    assert payload_of(desk, f'<shutdown xmlns="{ns}"/>')["code"] == 403
    data = {"ns": ns, "root": "shutdown", "body": "<shutdown/>"}
    assert desk.post(desk.envelope("HELP", data)).json["data"]["code"] == 403
    event = "security: a privileged message came to the listener for other machines"
    node.daemon.wait_for(lambda: node.daemon.log.count(event) == 2, what="both, in the log")
    assert desk.post(desk.envelope("HELP", {"agent": "Clock", "args": {"zone": ns}})).verb == "DONE"


@pytest.mark.parametrize("way", ["JSON", "XML", "XML as JSON", "pairing", "webhook"])
def test_privileged_message_of_a_stranger_is_a_security_event(
    node: Node, desk: PlainMachine, way: str
) -> None:
    payload = {"ns": PRIVILEGED, "root": "shutdown", "body": "<shutdown/>"}
    xml = f'<privileged-msg xmlns="{PRIVILEGED}"><payload/></privileged-msg>'.encode()
    path, raw, kind = {
        "JSON": ("/envelopes", json.dumps(desk.envelope("HELP", payload)).encode(), ""),
        "XML": ("/envelopes", xml, XML),
        "XML as JSON": ("/envelopes", xml, ""),
        "pairing": ("/pairing", json.dumps({"step": "offer", **payload}).encode(), ""),
        "webhook": ("/hooks/nobody", json.dumps(payload).encode(), ""),
    }[way]
    before = node.daemon.log.count("security: a privileged message")
    headers = {"Content-Type": kind or "application/json; charset=utf-8"}
    reply = desk.request("POST", path, raw, headers=headers, certificate=False)
    assert reply.status in (401, 403, 415), reply.body
    node.daemon.wait_for_log("security: a privileged message")
    node.daemon.wait_for(lambda: node.daemon.log.count("security: a privileged message") == before + 1)


def test_core_says_what_there_is_and_its_schema(counter: PlainMachine) -> None:
    meta = 'xmlns="https://xml-pipeline.org/ns/meta/v1"'

    def asked(what: str, name: str) -> Any:
        return payload_of(counter, f"<request-{what} {meta}><capability>{name}</capability></request-{what}>")

    (row,) = payload_of(counter, f"<list-capabilities {meta}/>")
    name = row.get("name")
    schema = etree.XMLSchema(etree.fromstring(asked("schema", name).text.encode()))
    example = etree.fromstring(asked("example", name).text)
    assert schema.validate(example)
    assert example.tag == f"{{{row.get('namespace')}}}{row.get('root')}"
    assert asked("prompt", name).text.startswith(row.text)
    for other in ("Secret", "nothing"):
        assert (asked("schema", other)["code"], asked("schema", other)["msg"]) == (403, "Not allowed.")


def test_this_machine_asks_the_same_without_xml(node: Node) -> None:
    rows = node.daemon.request("GET", "/organism/listeners").json()["listeners"]
    row = next(one for one in rows if one["name"] == "Clock")
    assert (row["namespace"], row["root"]) == ("https://xml-pipeline.org/ns/agents/Clock/v1", "clock")
    whole = node.daemon.request("GET", "/organism/listeners/Clock").json()
    assert {"xsd", "example", "schema", "prompt"} <= whole.keys()
    assert node.daemon.request("GET", "/organism/listeners/nothing").status == 404


def test_token_without_an_authenticator_sends_json(node: Node, desk: PlainMachine) -> None:
    token = node.owner("POST", "/tokens", {"name": "plain", "caps": ["HELP.brainstem"]})[1]["token"]["text"]
    reply = desk.request(
        "POST",
        "/envelopes",
        message("x", CLOCK).encode(),
        headers={"Content-Type": XML},
        certificate=False,
        token=token,
    )
    assert reply.status == 415


# Programs with an authenticator.


def issued(node: Node, name: str, *caps: str) -> dict[str, Any]:
    body = {"name": name, "caps": caps or ["HELP.brainstem", "HELP.brainstem.Clock"], "totp": True}
    status, found = node.owner("POST", "/tokens", body)
    assert status == 200, found
    token: dict[str, Any] = found["token"]
    return token


def code(token: dict[str, Any], steps: int = 0) -> str:
    return pyotp.TOTP(token["secret"]).at(time.time() + 30 * steps)


def sign_in(user: str, digits: str) -> str:
    return f'<authenticate user="{user}" totp="{digits}"/>'


@asynccontextmanager
async def connected(node: Node, *, first: str | None) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    url = f"wss://{node.address}/messages"
    async with aiohttp.ClientSession() as session, session.ws_connect(url, ssl=False) as socket:
        if first is not None:
            await socket.send_str(first)
        yield socket


def refused(node: Node, first: str) -> int | None:
    """The code with which a first frame closes the connection."""

    async def ask() -> int | None:
        async with connected(node, first=first) as socket:
            got = await socket.receive(10)
            assert got.type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED), got
            return socket.close_code

    return asyncio.run(ask())


def test_program_signs_in_gets_its_catalog_and_is_answered(node: Node) -> None:
    token = issued(node, "console")

    async def talk() -> None:
        async with connected(node, first=sign_in("console", code(token))) as socket:
            catalog = etree.fromstring((await socket.receive_str(timeout=100)).encode())
            rows = [(one.get("name"), one.get("namespace"), one.get("root")) for one in catalog]
            assert rows == [("Clock", "https://xml-pipeline.org/ns/agents/Clock/v1", "clock")]
            me = catalog.get("from")
            await socket.send_str(message(me, CLOCK))
            said = read(await socket.receive_str(timeout=100))
            assert (said["verb"], said["to"], said["data"]["result"]) == ("DONE", me, "it is now")
            await socket.send_str(message(me, {"agent": "Secret", "args": {}}))
            said = read(await socket.receive_str(timeout=100))
            assert (said["verb"], said["data"]["code"]) == ("ERROR", 403)
            await socket.send_str(message("core", CLOCK))
            assert read(await socket.receive_str(timeout=100))["data"]["reason"] == "wrong_sender"
            await socket.send_str(f'<privileged-msg xmlns="{PRIVILEGED}"><payload/></privileged-msg>')
            said = read(await socket.receive_str(timeout=100))
            assert said["data"]["code"] == 403 and said["data"]["msg"] == "Not allowed."
            await socket.send_str("nonsense")
            assert read(await socket.receive_str(timeout=100))["data"]["reason"] == "malformed"
            await socket.send_bytes(message(me, CLOCK).encode())
            assert read(await socket.receive_bytes(timeout=100))["verb"] == "DONE", (
                "in the kind that it came in"
            )

    asyncio.run(talk())


def test_secret_is_shown_once_and_only_its_owner_reads_it(node: Node) -> None:
    token = issued(node, "phone-app")
    uri = urlsplit(token["uri"])
    assert (uri.scheme, uri.netloc, parse_qs(uri.query)["secret"]) == ("otpauth", "totp", [token["secret"]])
    assert "text" not in token
    assert "secret" not in json.dumps(node.owner("GET", "/tokens")[1])
    file = node.daemon.home / "keys" / "codes" / f"{token['jti']}.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    node.owner("DELETE", f"/tokens/{token['jti']}")
    assert not file.exists()


def test_each_code_counts_once(node: Node) -> None:
    token = issued(node, "once")
    digits = code(token)

    async def comes_in() -> None:
        async with connected(node, first=sign_in("once", digits)) as socket:
            assert "catalog" in await socket.receive_str(timeout=100)

    asyncio.run(comes_in())
    assert refused(node, sign_in("once", digits)) == 1008


@pytest.mark.parametrize(
    "first",
    [
        "<authenticate/>",
        "hello",
        '<hello user="a" totp="b"/>',
        '<!DOCTYPE a><authenticate user="a" totp="b"/>',
        '<authenticate user="nobody" totp="000000"/>',
        "x" * 10_000,
    ],
)
def test_other_first_frames_close_the_connection(node: Node, first: str) -> None:
    issued(node, "somebody")
    assert refused(node, first) == 1008


def test_five_wrong_codes_are_banned_and_the_sixth_is_not_looked_at(make: Callable[..., Node]) -> None:
    node = make().start()
    token = issued(node, "console")
    wrong = f"{(int(code(token)) + 1) % 1_000_000:06d}"
    for _ in range(5):
        assert refused(node, sign_in("console", wrong)) == 1008
    assert refused(node, sign_in("console", code(token))) == 1008
    node.daemon.wait_for(lambda: node.daemon.log.count("a wrong code") >= 5, what="five in the log")
    assert node.daemon.log.count("a wrong code") == 5


def test_revoked_access_ends_its_connection(node: Node) -> None:
    token = issued(node, "short")

    async def talk() -> None:
        async with connected(node, first=sign_in("short", code(token))) as socket:
            me = etree.fromstring((await socket.receive_str(timeout=100)).encode()).get("from")
            await asyncio.to_thread(node.owner, "DELETE", f"/tokens/{token['jti']}")
            await socket.send_str(message(me, CLOCK))
            await socket.receive(10)
            assert socket.close_code == 1008

    asyncio.run(talk())


def test_nobody_is_let_in_while_there_is_no_such_access(make: Callable[..., Node]) -> None:
    node = make().start()

    async def ask() -> int:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"https://{node.address}/messages", ssl=False) as answer,
        ):
            return answer.status

    assert asyncio.run(ask()) == 404
    token = issued(node, "console")
    assert refused(node, "hello") == 1008
    node.owner("DELETE", f"/tokens/{token['jti']}")
    assert asyncio.run(ask()) == 404


def test_used_code_stays_used_over_a_restart(make: Callable[..., Node]) -> None:
    node = make().start()
    token = issued(node, "console")
    digits = code(token, 1)  # counts for a minute still

    async def comes_in() -> None:
        async with connected(node, first=sign_in("console", digits)) as socket:
            assert "catalog" in await socket.receive_str(timeout=100)

    asyncio.run(comes_in())
    node.daemon.stop()
    node.start()
    assert refused(node, sign_in("console", digits)) == 1008


# The client of the terminal.


def test_client_of_the_terminal_signs_in_and_prints_answers(node: Node, tmp_path: Path) -> None:
    token = issued(node, "terminal")
    payload = tmp_path / "clock.xml"
    payload.write_text(f'<data xmlns="{RAPPD_NS}">{json.dumps(CLOCK)}</data>')
    ran = node.daemon.cli("xml", node.address, str(payload), "--user", "terminal", "--code", code(token))
    assert ran.returncode == 0, ran.stderr
    assert '<capability name="Clock" ' in ran.stdout
    assert "it is now" in ran.stdout


def test_client_sends_no_code_to_a_machine_that_nobody_knows(
    node: Node, make: Callable[..., Node], tmp_path: Path
) -> None:
    other = make("other").start()
    ran = other.daemon.cli("xml", node.address, "--user", "terminal", "--code", "123456")
    assert ran.returncode == 5
    assert f"--fingerprint {node.fingerprint}" in ran.stderr
    token = issued(node, "elsewhere")
    arguments = ("--user", "elsewhere", "--code", code(token), "--fingerprint", node.fingerprint)
    assert other.daemon.cli("xml", node.address, *arguments).returncode == 0


def test_client_says_that_a_code_was_wrong(node: Node) -> None:
    issued(node, "wrong")
    ran = node.daemon.cli("xml", node.address, "--user", "wrong", "--code", "000000")
    assert ran.returncode == 5
    assert "belong together" in ran.stderr


# What core does for others.

CORE = "https://xml-pipeline.org/ns/core/v1"


@pytest.fixture(scope="module")
def clerk(node: Node) -> PlainMachine:
    return node.peer("clerk", "friend", ["HELP.brainstem.calculator"])


def sent(machine: PlainMachine, body: str, *, thread: str = "", to: str = "") -> tuple[int, Any]:
    """Status and message of the reply to a payload."""
    whole = (
        f'<message xmlns="{ENVELOPE_NS}"><meta><from>{machine.id}</from>{to}<thread>{thread}</thread></meta>'
        f"{body}</message>"
    )
    reply = machine.request("POST", "/envelopes", whole.encode(), headers={"Content-Type": XML})
    return reply.status, etree.fromstring(reply.body)


def threads_of(message: Any) -> tuple[str, str]:
    """The rendered path and the UUID of a message."""
    return message[0].findtext(f"{{{ENVELOPE_NS}}}thread"), message[0].findtext(f"{{{RAPPD_NS}}}thread")


SPAWN = f'<spawn-thread xmlns="{CORE}"><name>deep.er</name></spawn-thread>'
SUM = '<calculate xmlns=""><a>1</a><operation>add</operation><b>2</b></calculate>'


def test_spawned_thread_is_gone_on_with_by_its_rendered_path_or_its_id(
    clerk: PlainMachine, desk: PlainMachine
) -> None:
    status, spawned = sent(clerk, SPAWN)
    root, _ = threads_of(spawned)
    assert (status, etree.QName(spawned[1]).localname) == (200, "thread-spawned")
    assert spawned[1].findtext(f"{{{CORE}}}name") == "deep.er"
    assert spawned[0].findtext(f"{{{ENVELOPE_NS}}}from") == "core"
    above = spawned[1].findtext(f"{{{CORE}}}parent_id")
    assert threads_of(sent(clerk, SUM, thread=above)[1]) == (root, root), "the thread above, by its id"
    assert sent(desk, SUM.replace("calculate", "clock"), thread=above)[0] == 404, "another caller's"
    assigned = spawned[1].findtext(f"{{{CORE}}}assigned_id")
    for name in (f"{root}.deep.er", assigned):
        status, answer = sent(clerk, SUM, thread=name)
        assert (status, threads_of(answer)) == (200, (f"{root}.deep.er", assigned)), name
    assert sent(clerk, SPAWN, thread=root)[1][1].findtext(f"{{{CORE}}}name") == "deep.er-1"
    for name in (f"{root}.deep", f"{root}.deep.er.x", f"{root}..deep.er"):
        status, refused = sent(clerk, SUM, thread=name)
        assert (status, json.loads(refused[1].text)["reason"]) == (404, "unknown_thread"), name
    body = SUM.replace("calculate", "clock")
    assert sent(desk, body, thread=f"{root}.deep.er")[0] == 404, "another caller's"


COUNT = """
from dataclasses import dataclass
from agents.listener import listener

@listener(category="tests")
@dataclass
class Tally:
    "Counts letters."
    word: str

def tally(payload: Tally) -> str:
    return str(len(payload.word))
"""


@pytest.mark.parametrize("address", ["Fern", "fern-KEY"])
def test_payload_for_a_sleeping_twin_wakes_it_for_who_may_ask_something_of_it(
    node: Node, clerk: PlainMachine, address: str
) -> None:
    key = node.owner("POST", "/twins", {"name": "Fern"})[1]["key"]
    (node.daemon.home / "twins" / key / "agents" / "tally_listener.py").write_text(COUNT)
    node.owner("POST", f"/twins/{key}/stop", {})
    friend = node.peer(f"friend-{key[:6]}", "friend", [f"HELP.{key}.tally"])
    name = address.replace("KEY", key[:8])
    to, body = f"<to>{name}_{node.fingerprint[:16]}</to>", '<tally xmlns=""><word>four</word></tally>'
    assert sent(clerk, body, to=to)[0] in (403, 404), "of which it may use nothing"
    assert sent(friend, body.replace("tally", "other"), to=to)[0] == 403
    status, answer = sent(friend, body, to=to)
    assert (status, json.loads(answer[1].text)) == (200, {"result": "4"}), address
    node.owner("POST", f"/twins/{key}/archive", {})


def test_core_takes_the_rights_of_who_asks(clerk: PlainMachine) -> None:
    payload = f"<name>t</name><payload>{SUM}</payload>"
    status, both = sent(clerk, f'<spawn-thread xmlns="{CORE}">{payload}</spawn-thread>')
    assert status == 200 and '{"value":"3"}' in json.loads(both[1].text)["result"]
    status, refused = sent(clerk, f'<timer xmlns="{CORE}"><what>x</what><when>in 3 hours</when></timer>')
    assert (status, json.loads(refused[1].text)["msg"]) == (403, "You may set no timers here.")
    status, refused = sent(
        clerk, f'<delay xmlns="{CORE}"><seconds>60</seconds><payload>{SUM}</payload></delay>'
    )
    assert (status, json.loads(refused[1].text)["msg"]) == (403, "You may set no timers here.")
    status, refused = sent(clerk, f'<delay xmlns="{CORE}"><seconds>soon</seconds></delay>')
    assert (status, json.loads(refused[1].text)["reason"]) == (400, "mistyped")
    status, refused = sent(clerk, f'<boot xmlns="{CORE}"/>')
    assert status == 403
