"""Admission of foreign programs, and what each may use: the same for every protocol, tried with Ollama's."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rappd.federation.conftest import Node
from tests.rappd.federation.plain_machine import PlainMachine
from tests.rappd.programs.conftest import ask, setting, token

TAGS, CHAT = "/ollama/api/tags", "/ollama/api/chat"


def said(text: str = "hi", model: str = "brainstem", **more: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": text}], "stream": False, **more}


def models(answer: Any) -> list[str]:
    found = answer.json if not callable(answer.json) else answer.json()
    return [one["name"].removesuffix(":latest") for one in found["models"]]


def answer_to(node: Node, text: str) -> str:
    found: str = node.daemon.post(CHAT, said(text)).json()["message"]["content"]
    return found


def test_a_program_here_needs_no_key_and_any_key_it_sends_says_nothing(node: Node) -> None:
    keys: list[dict[str, str]] = [
        {},
        {"Authorization": "Bearer sk-nothing"},
        {"Authorization": "Bearer a.b.c"},
    ]
    for headers in keys:
        answer = node.daemon.post(CHAT, said(), headers=headers)
        assert answer.status == 200, answer.body
        assert models(node.daemon.get(TAGS, headers=headers)) == ["brainstem", "twin/gardener"]


def test_a_token_of_this_machine_narrows_its_bearer_here_too(node: Node) -> None:
    issued = token(node, "HELP.brainstem")
    headers = {"Authorization": f"Bearer {issued['text']}"}
    assert models(node.daemon.get(TAGS, headers=headers)) == ["brainstem"]
    assert node.daemon.post(CHAT, said(model="twin/gardener"), headers=headers).status == 403
    node.owner("DELETE", f"/tokens/{issued['jti']}")
    assert node.daemon.get(TAGS, headers=headers).status == 401, "one that is over never counts for more"


def test_a_program_elsewhere_may_use_what_its_token_says(node: Node, elsewhere: PlainMachine) -> None:
    issued = token(node, "HELP.brainstem")
    answer = ask(elsewhere, CHAT, said(), issued["text"])
    assert (answer.status, answer.json["done"]) == (200, True)
    assert models(ask(elsewhere, TAGS, token=issued["text"])) == ["brainstem"]
    known = ask(elsewhere, CHAT, said(model="twin/gardener"), issued["text"])
    unknown = ask(elsewhere, CHAT, said(model="twin/nobody"), issued["text"])
    assert (known.status, unknown.status) == (403, 403)
    assert known.json["error"].replace("gardener", "nobody") == unknown.json["error"]
    node.owner("DELETE", f"/tokens/{issued['jti']}")
    assert ask(elsewhere, CHAT, said(), issued["text"]).status == 401


def test_a_paired_machine_may_use_what_its_scopes_say(node: Node) -> None:
    peer = node.peer(scopes=["HELP.brainstem"])
    assert models(peer.request("GET", TAGS)) == ["brainstem"]
    assert peer.request("POST", CHAT, said()).status == 200


def test_a_stranger_gets_nothing(node: Node, elsewhere: PlainMachine) -> None:
    for key in ("", "sk-nothing"):
        for answer in (ask(elsewhere, TAGS, token=key), ask(elsewhere, CHAT, said(), key)):
            assert answer.status == 401
            assert "brainstem" not in answer.body.decode()
    assert ask(elsewhere, CHAT, b"[" * 5_000_000, "").status == 401, "refused before it is read"


@pytest.mark.parametrize("path", [TAGS, CHAT])
def test_a_foreign_host_is_refused(node: Node, path: str) -> None:
    method = "GET" if path == TAGS else "POST"
    assert node.daemon.request(method, path, b"{}", {"Host": "evil.example:80"}).status == 403


def test_a_foreign_page_is_refused_and_so_is_its_preflight(node: Node, elsewhere: PlainMachine) -> None:
    page = {"Origin": "https://evil.example"}
    assert node.daemon.post(CHAT, said(), headers=page).status == 403
    assert "access-control-allow-origin" not in node.daemon.get(TAGS, headers=page).headers
    preflight = {**page, "Access-Control-Request-Method": "POST"}
    assert node.daemon.request("OPTIONS", CHAT, None, preflight).status == 403
    assert ask(elsewhere, CHAT, said(), token(node, "*")["text"], headers=page).status == 403
    assert elsewhere.request("OPTIONS", CHAT, certificate=False, headers=preflight).status == 403


def test_a_protocol_that_is_switched_off_is_not_there(node: Node, elsewhere: PlainMachine) -> None:
    issued = token(node, "HELP.brainstem")
    setting(node, "programs.ollama", "off")
    try:
        here, there = node.daemon.post(CHAT, said()), ask(elsewhere, CHAT, said(), issued["text"])
        assert (here.status, there.status) == (404, 404)
        assert "rappd config set programs.ollama on" in here.json()["error"]
        assert ask(elsewhere, TAGS).status == 401, "strangers do not learn what is switched off"
    finally:
        setting(node, "programs.ollama", "on")


def test_the_owner_says_which_agents_and_twins_programs_here_may_use(node: Node) -> None:
    setting(node, "programs.ollama_agents", "Clock")
    try:
        assert models(node.daemon.get(TAGS)) == ["brainstem"]
        assert node.daemon.post(CHAT, said(model="twin/gardener")).status == 403
        assert "it is now" in answer_to(node, "use Clock")
        assert "the secret" not in answer_to(node, "use Secret")
        setting(node, "programs.ollama_agents", "Clock,twin/gardener")
        assert models(node.daemon.get(TAGS)) == ["brainstem", "twin/gardener"]
        assert node.daemon.post(CHAT, said(model="twin/gardener")).status == 200
    finally:
        setting(node, "programs.ollama_agents", "")
    assert "the secret" in answer_to(node, "use Secret")


def test_an_unknown_model_names_those_that_the_program_may_know(node: Node) -> None:
    answer = node.daemon.post(CHAT, said(model="llama3"))
    assert answer.status == 404
    assert "brainstem, twin/gardener" in answer.json()["error"]
    assert answer.json()["code"] == "not_found"
