"""A2A at the listener for other machines: cards, tokens, peers, and what each may."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from typing import Any

import pytest
from fixtures.card_signatures import signer_of
from fixtures.client_programs import packages_of

from tests.rappd.federation.conftest import Node
from tests.rappd.federation.plain_machine import PlainMachine, Reply
from tests.rappd.programs.conftest import ask, setting, token

CARD = "/.well-known/agent-card.json"
VERSION = {"A2A-Version": "1.0"}


def post(machine: PlainMachine, path: str, body: Any, token: str = "", **headers: str) -> Reply:
    return ask(machine, path, body, token, headers={**VERSION, **headers})


def rpc(method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def said(text: str, id: str, skill: str = "", **args: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]}
    if skill:
        message |= {"metadata": {"skillId": skill}, "parts": [{"data": args}]}
    return {"message": message}


def skills(card: Any) -> set[str]:
    return {one["id"] for one in card["skills"]}


def test_a_stranger_gets_a_signed_card_with_what_is_public(node: Node, elsewhere: PlainMachine) -> None:
    node.owner("POST", "/neighborhoods", {"name": "Club"})
    node.owner("POST", "/neighborhoods/Club/publish", {"agent": "Clock", "scope": "public"})
    answer = ask(elsewhere, CARD)
    assert skills(answer.json) == {"ask", "Clock"}
    assert signer_of(answer.json) == node.fingerprint
    assert answer.json["supportedInterfaces"][0]["url"] == f"https://{node.address}/a2a/"
    assert answer.json["securitySchemes"]["bearer"]
    assert ask(elsewhere, f"/a2a/twin/gardener{CARD}").status == 404


def test_a_card_that_is_the_same_still_is_not_sent_again(node: Node, elsewhere: PlainMachine) -> None:
    first = ask(elsewhere, CARD)
    again = ask(elsewhere, CARD, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status, again.headers["etag"]) == (304, first.headers["etag"])
    assert "max-age=0" in first.headers["cache-control"]
    issued = token(node, "HELP.brainstem", "HELP.brainstem.Secret", name="kept")["text"]
    own = ask(elsewhere, CARD, token=issued, headers={"If-None-Match": first.headers["etag"]})
    assert own.status == 200, "it has another one"


def test_a_media_type_that_is_not_taken_has_its_own_number(node: Node, elsewhere: PlainMachine) -> None:
    issued = token(node, "HELP.brainstem", name="media")["text"]
    told = {"Content-Type": "text/plain"}
    refused = post(elsewhere, "/a2a", rpc("SendMessage", said("hi", "media")), issued, **told)
    assert refused.json["error"]["code"] == -32005


def test_a_card_is_signed_for_the_names_of_this_machine(node: Node, elsewhere: PlainMachine) -> None:
    port = node.address.rpartition(":")[2]
    for name in (f"{socket.gethostname().partition('.')[0]}.local", f"{node.fingerprint[:12]}.local"):
        answer = ask(elsewhere, CARD, headers={"Host": f"{name}:{port}"})
        assert signer_of(answer.json) == node.fingerprint
        assert f"https://{name}:{port}/a2a" in answer.json["supportedInterfaces"][1]["url"]


def test_no_card_is_signed_for_an_address_that_is_not_this_machines(
    node: Node, elsewhere: PlainMachine
) -> None:
    for host in ("evil.example:7443", f"evil.example:{node.address.rpartition(':')[2]}", "127.0.0.1:1"):
        answer = ask(elsewhere, CARD, headers={"Host": host})
        assert host in answer.json["supportedInterfaces"][0]["url"]
        assert "signatures" not in answer.json


def test_a_token_gets_the_extended_card_and_what_it_may(node: Node, elsewhere: PlainMachine) -> None:
    issued = token(node, "HELP.brainstem", "HELP.brainstem.Clock")["text"]
    by_http = ask(elsewhere, "/a2a/extendedAgentCard", token=issued, headers=VERSION).json
    by_rpc = post(elsewhere, "/a2a", rpc("GetExtendedAgentCard", {}), issued).json["result"]
    assert skills(by_http) == skills(by_rpc) == {"ask", "Clock"}
    assert signer_of(by_http) == node.fingerprint
    of_one_agent = token(node, "HELP.brainstem.Clock", name="one-agent")["text"]
    assert skills(ask(elsewhere, CARD, token=of_one_agent).json) == {"Clock"}, "it may not talk"
    clock = post(elsewhere, "/a2a", rpc("SendMessage", said("", "clock", "Clock", zone="UTC")), issued)
    assert clock.json["result"]["task"]["artifacts"][0]["parts"] == [{"text": "it is UTC"}]
    kind = {"Content-Type": "application/a2a+json"}
    turn = post(elsewhere, "/a2a/message:send", said("use Clock", "turn"), issued, **kind)
    assert "it is now" in turn.json["task"]["artifacts"][0]["parts"][0]["text"]


@pytest.mark.parametrize("skill", ["Secret", "LearnNew", "Nobody"])
def test_what_a_token_may_not_is_not_there(node: Node, elsewhere: PlainMachine, skill: str) -> None:
    issued = token(node, "HELP.brainstem", "HELP.brainstem.Clock")["text"]
    refused = post(elsewhere, "/a2a", rpc("SendMessage", said("", f"no {skill}", skill)), issued).json[
        "error"
    ]
    assert refused["message"].replace(skill, "X").startswith('No agent "X"')


def test_a_twin_is_asked_at_its_own_address_by_those_who_may(node: Node, elsewhere: PlainMachine) -> None:
    may = token(node, "HELP.brainstem", "HELP.anybody.anything", "*")["text"]
    not_twins = token(node, "HELP.brainstem")["text"]
    card = ask(elsewhere, f"/a2a/twin/gardener{CARD}", token=may).json
    assert (card["name"], signer_of(card)) == ("Gardener", node.fingerprint)
    assert card["supportedInterfaces"][1]["url"].endswith("/a2a/twin/gardener")
    for path, params in [
        ("/a2a/twin/gardener", said("hello", "by path")),
        ("/a2a", {**said("hello", "by tenant"), "tenant": "twin/gardener"}),
    ]:
        assert post(elsewhere, path, rpc("SendMessage", params), may).json["result"]["task"]["artifacts"]
        answers = [
            post(elsewhere, path.replace("gardener", name), rpc("SendMessage", params), not_twins)
            for name in ("gardener", "nobody")
        ]
        assert [one.status for one in answers] == [403, 403]
    by_http = post(elsewhere, "/a2a/twin/gardener/message:send", said("hello", "by http"), may).json["task"]
    to_another = post(elsewhere, "/a2a/message:send", said("hello", "by http"), may).json["task"]
    assert by_http["id"] != to_another["id"], "the same messageId to another is another message"


def test_tasks_are_of_the_token_that_began_them(node: Node, elsewhere: PlainMachine) -> None:
    mine, others = (token(node, "HELP.brainstem", name=name)["text"] for name in ("mine", "others"))
    task = post(elsewhere, "/a2a", rpc("SendMessage", said("hello", "private")), mine).json["result"]["task"]
    listed = post(elsewhere, "/a2a", rpc("ListTasks", {}), mine).json["result"]
    assert [one["id"] for one in listed["tasks"]] == [task["id"]]
    assert post(elsewhere, "/a2a", rpc("ListTasks", {}), others).json["result"]["tasks"] == []
    for method in ("GetTask", "CancelTask", "SubscribeToTask"):
        asked = rpc(method, {"id": task["id"]})
        assert post(elsewhere, "/a2a", asked, others).json["error"]["code"] == -32001
    same = post(elsewhere, "/a2a", rpc("SendMessage", said("hello", "private")), others).json["result"][
        "task"
    ]
    assert same["id"] != task["id"], "another's message of the same id is another message"


def test_a_paired_machine_needs_no_token(node: Node) -> None:
    peer = node.peer(scopes=["HELP.brainstem.Clock"])
    asked = rpc("SendMessage", said("", "peer", "Clock"))
    answer = peer.request("POST", "/a2a", asked, headers=VERSION)
    assert answer.json["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert peer.request("POST", "/a2a", rpc("SendMessage", said("hi", "talk")), headers=VERSION).status == 403


def test_a_stranger_and_a_revoked_token_get_401(node: Node, elsewhere: PlainMachine) -> None:
    issued = token(node, "HELP.brainstem")
    node.owner("DELETE", f"/tokens/{issued['jti']}")
    for key in ("", "sk-nothing", issued["text"]):
        for path in ("/a2a", "/a2a/", "/a2a/message:send", "/a2a/message:stream"):
            answer = post(elsewhere, path, b"[" * 5_000_000, key)
            assert answer.status == 401, "refused before it is read"
            assert answer.headers["www-authenticate"] == "Bearer"
            assert "error" in json.loads(answer.body)


def test_switched_off_it_is_not_there(node: Node, elsewhere: PlainMachine) -> None:
    issued = token(node, "HELP.brainstem")["text"]
    setting(node, "programs.a2a", "off")
    try:
        assert ask(elsewhere, CARD).status == 404
        assert post(elsewhere, "/a2a", rpc("ListTasks", {}), issued).status == 404
        assert node.daemon.get(CARD).status == 404
    finally:
        setting(node, "programs.a2a", "on")


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
def test_the_sdks_client_needs_a_token_alone(node: Node, binding: str) -> None:
    sys.path.extend(packages_of("a2a"))
    pytest.importorskip("a2a", reason="needs a2a: sh tests/client-programs .venv/programs a2a")
    import httpx
    from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
    from a2a.types import GetExtendedAgentCardRequest, Message, Part, Role, SendMessageRequest

    issued = token(node, "HELP.brainstem", "HELP.brainstem.Clock")["text"]
    sent = Message(message_id=f"sdk {binding}", role=Role.ROLE_USER, parts=[Part(text="use Clock")])

    async def run() -> tuple[Any, list[Any]]:
        headers = {"Authorization": f"Bearer {issued}"}
        async with httpx.AsyncClient(headers=headers, verify=False, timeout=100) as http:
            card = await A2ACardResolver(http, f"https://{node.address}").get_agent_card()
            config = ClientConfig(httpx_client=http, supported_protocol_bindings=[binding])
            client = ClientFactory(config).create(card)
            extended = await client.get_extended_agent_card(GetExtendedAgentCardRequest())
            return extended, [one async for one in client.send_message(SendMessageRequest(message=sent))]

    extended, streamed = asyncio.run(run())
    assert {one.id for one in extended.skills} == {"ask", "Clock"}
    pieces = [
        one.artifact_update.artifact.parts[0].text for one in streamed if one.HasField("artifact_update")
    ]
    assert "it is now" in "".join(pieces)
