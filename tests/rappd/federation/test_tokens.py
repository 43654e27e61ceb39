"""Tokens for programs and permissions for machines: issued, shown once, used, passed on, taken back."""

from __future__ import annotations

import json
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.rappd.federation.conftest import Node
from tests.rappd.federation.plain_machine import PlainMachine


def issued(node: Node, caps: list[str], **more: Any) -> dict[str, Any]:
    status, found = node.owner("POST", "/tokens", {"name": "phone", "caps": caps, **more})
    assert status == 200, found
    token: dict[str, Any] = found["token"]
    return token


def permission(node: Node, machine: PlainMachine, caps: list[str], **more: Any) -> dict[str, Any]:
    body = {"fingerprint": machine.fingerprint, "caps": caps, **more}
    status, found = node.owner("POST", "/tokens/capability", body)
    assert status == 200, found
    token: dict[str, Any] = found["token"]
    return token


def ask(who: PlainMachine, token: str, **more: Any) -> Any:
    """As a program without a key: no certificate, the token alone."""
    return who.post(who.help(sender="my_phone", **more), certificate=False, token=token)


def test_a_tokens_text_is_shown_once_and_never_kept(node: Node) -> None:
    token = issued(node, ["HELP.brainstem.Clock"])
    assert token["text"].count(".") == 2
    listed = node.owner("GET", "/tokens")[1]["tokens"]
    row = next(one for one in listed if one["jti"] == token["jti"])
    assert row["name"] == "phone"
    assert row["caps"] == ["HELP.brainstem.Clock"]
    assert 89 * 86400 < row["expires_at"] - time.time() < 90 * 86400 + 1
    assert "text" not in row
    node.owner("GET", "/tokens")
    signature = token["text"].split(".")[2].encode()
    for path in node.daemon.home.rglob("*"):
        assert not path.is_file() or signature not in path.read_bytes(), path


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"name": "phone"}, "HELP.brainstem"),
        ({"name": "phone", "caps": []}, "HELP.brainstem"),
        ({"name": "phone", "caps": ["help brainstem"]}, "Type HELP.brainstem instead."),
        ({"name": "phone", "caps": "HELP"}, "caps"),
        ({"name": "phone", "caps": ["HELP"], "days": 0}, "days"),
        ({"name": "phone", "caps": ["HELP"], "days": 3651}, "days"),
        ({"name": "phone", "caps": ["HELP"], "days": True}, "days"),
        ({"name": "a b", "caps": ["HELP"]}, "letters"),
        ({"caps": ["HELP"]}, "name"),
    ],
)
def test_what_is_not_issued_says_what_to_type(node: Node, body: dict[str, Any], says: str) -> None:
    status, found = node.owner("POST", "/tokens", body)
    assert 400 <= status < 500
    assert says in found["do"] + found["error"]


def test_tokens_are_the_owners_business(node: Node) -> None:
    for method, path in (
        ("GET", "/tokens"),
        ("POST", "/tokens"),
        ("POST", "/tokens/capability"),
        ("POST", "/tokens/narrow"),
        ("DELETE", f"/tokens/{uuid.uuid4()}"),
    ):
        assert node.daemon.request(method, path, {} if method == "POST" else None).status == 403


def test_a_program_with_a_token_may_what_it_says_and_no_more(node: Node) -> None:
    who = node.stranger()
    token = issued(node, ["HELP.brainstem.Clock"])
    got = ask(who, token["text"])
    assert (got.status, got.data["result"]) == (200, "it is now")
    assert got.json["to"] == f"phone_token-{token['jti'][:8]}"
    refused = who.post(who.help("Secret"), certificate=False, token=token["text"])
    missing = who.post(who.help("Nothing"), certificate=False, token=token["text"])
    assert refused.status == missing.status == 403
    assert refused.data == missing.data
    hello = who.post(who.envelope("HELLO", {}), certificate=False, token=token["text"])
    assert hello.data["capabilities"] == ["Clock"]
    row = next(one for one in node.owner("GET", "/tokens")[1]["tokens"] if one["jti"] == token["jti"])
    assert row["used_at"] is not None


def test_a_program_may_fetch_its_own_answer(node: Node) -> None:
    who = node.stranger()
    token = issued(node, ["HELP.brainstem.*"])["text"]
    asked = who.help("Counted", {"tell": "program", "seconds": 1}, _x_deadline=0.2)
    assert who.post(asked, certificate=False, token=token).verb == "ACK"
    path = f"/envelopes/{asked['id']}"
    until = time.monotonic() + 100
    while (
        got := who.request("GET", path, certificate=False, token=token)
    ).status == 202 and time.monotonic() < until:
        time.sleep(0.1)
    assert got.data["result"] == "counted program"
    batched = who.help("Counted", {"tell": "batch-program"})
    got = who.request("POST", "/envelopes/batch", [batched], certificate=False, token=token)
    assert got.json[0]["verb"] in ("ACK", "DONE")


def test_revoked_token_is_refused_on_open_connection(node: Node) -> None:
    who = node.stranger()
    token = issued(node, ["HELP.brainstem.Clock"])
    connection = who.connect(certificate=False)
    assert who.post(who.help(sender="p"), token=token["text"], on=connection).status == 200
    status, found = node.owner("DELETE", f"/tokens/{token['jti']}")
    assert (status, found["revoked"]["name"]) == (200, "phone")
    got = who.post(who.help(sender="p"), token=token["text"], on=connection)
    connection.close()
    assert (got.status, got.data["reason"]) == (401, "bad_token")
    assert "taken back" in got.data["msg"]
    row = next(one for one in node.owner("GET", "/tokens")[1]["tokens"] if one["jti"] == token["jti"])
    assert row["revoked_at"] is not None
    assert node.owner("DELETE", "/tokens/nothing")[0] == 404


def test_a_machine_with_a_permission_needs_no_pairing(node: Node) -> None:
    holder = node.stranger("holder")
    text = permission(node, holder, ["HELP.brainstem.Clock"])["text"]
    got = holder.post(holder.signed(holder.help(_x_cap=text)), certificate=False)
    assert (got.status, got.data["result"]) == (200, "it is now")
    got = holder.post(holder.signed(holder.help("Secret", _x_cap=text)), certificate=False)
    assert (got.status, got.data["reason"]) == (403, "refused")
    alone = holder.post(holder.help(_x_cap=text), certificate=False)
    assert (alone.status, alone.data["reason"]) == (401, "bad_token")
    thief = node.stranger("thief")
    stolen = thief.post(thief.signed(thief.help(_x_cap=text)), certificate=False)
    assert (stolen.status, stolen.data["reason"]) == (401, "bad_token")
    bearer = thief.post(thief.help(), certificate=False, token=text)
    assert (bearer.status, bearer.data["reason"]) == (401, "bad_token")


def test_a_peer_shows_a_permission_beside_its_certificate(node: Node) -> None:
    friend = node.peer("friend", "friend")
    assert friend.post(friend.help()).status == 403
    text = permission(node, friend, ["HELP.brainstem.Clock"])["text"]
    assert friend.post(friend.help(_x_cap=text)).data["result"] == "it is now"
    assert friend.post(friend.help("Secret", _x_cap=text)).status == 403


def test_permission_is_delegated_only_narrower(node: Node) -> None:
    first, second = node.stranger("first"), node.stranger("second")
    root = permission(node, first, ["HELP.brainstem.Clock", "HELP.brainstem.Counted"])
    chain = first.narrowed([root["text"]], second.fingerprint, ["HELP.brainstem.Clock"])
    got = second.post(second.signed(second.help(_x_cap=chain)), certificate=False)
    assert got.data["result"] == "it is now"
    got = second.post(second.signed(second.help("Counted", _x_cap=chain)), certificate=False)
    assert got.status == 403
    wider = first.narrowed([root["text"]], second.fingerprint, ["HELP.brainstem.Secret"])
    got = second.post(second.signed(second.help("Secret", _x_cap=wider)), certificate=False)
    assert (got.status, got.data["reason"]) == (401, "bad_token")
    cut = second.signed(second.help(_x_cap=chain[1:]))
    assert second.post(cut, certificate=False).status == 401
    node.owner("DELETE", f"/tokens/{root['jti']}")
    got = second.post(second.signed(second.help(_x_cap=chain)), certificate=False)
    assert (got.status, got.data["reason"]) == (401, "bad_token")


def test_this_machine_passes_on_what_another_permitted(node: Node) -> None:
    other, third = node.stranger("other"), node.stranger("third")
    now = int(time.time())
    claims = {
        "iss": other.fingerprint,
        "sub": node.fingerprint,
        "aud": other.fingerprint,
        "iat": now,
        "exp": now + 9000,
        "jti": str(uuid.uuid4()),
        "cnf": {"kid": node.fingerprint},
        "caps": ["HELP.brainstem.*"],
        "uses": 5,
    }
    root = other.jwt(claims, key=other.public.hex())
    body = {"chain": root, "to": third.fingerprint, "caps": ["HELP.brainstem.Lamp"], "uses": 2, "days": 9}
    status, found = node.owner("POST", "/tokens/narrow", body)
    assert status == 200, found
    child = json.loads(_claims(found["token"]["chain"][1]))
    assert child["iss"] == node.fingerprint
    assert child["sub"] == third.fingerprint
    assert (child["caps"], child["uses"], child["exp"]) == (["HELP.brainstem.Lamp"], 2, now + 9000)
    for wrong in ({"caps": ["EGG"]}, {"chain": ["x"]}, {"to": "nobody"}, {"chain": []}):
        assert node.owner("POST", "/tokens/narrow", {**body, **wrong})[0] in (400, 401, 404)


def test_two_uses_are_two_whatever_comes_at_once(node: Node) -> None:
    holder = node.stranger("twice")
    text = permission(node, holder, ["HELP.brainstem.Counted"], uses=2)["text"]
    asked = [
        holder.signed(holder.help("Counted", {"tell": f"use{n}", "seconds": 0.3}, _x_cap=text))
        for n in range(8)
    ]
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda one: holder.post(one, certificate=False), asked))
    assert sorted(one.status for one in got) == [200] * 2 + [403] * 6
    assert {one.data["reason"] for one in got if one.status == 403} == {"used_up"}
    assert len([one for one in node.counted() if one.startswith("use")]) == 2


def test_repeats_and_refusals_use_nothing_up(node: Node) -> None:
    holder = node.stranger("repeats")
    text = permission(node, holder, ["HELP.brainstem.Counted"], uses=2)["text"]

    def signed(envelope: dict[str, Any]) -> dict[str, Any]:
        return holder.signed({**envelope, "_x_cap": text})

    once = signed(holder.help("Counted", {"tell": "repeat", "seconds": 0.3}))
    with ThreadPoolExecutor(6) as pool:
        got = list(pool.map(lambda _: holder.post(once, certificate=False), range(6)))
    assert [one.data.get("result") for one in got] == ["counted repeat"] * 6
    assert holder.post(once, certificate=False).status == 200
    for refused in (
        signed(holder.help("Secret")),
        signed(holder.help("Counted", to="brainstem_0000000000000000")),
        signed(holder.help("Counted", _x_path=[node.fingerprint[:16]])),
    ):
        assert holder.post(refused, certificate=False).status in (403, 404, 508)
    second = signed(holder.help("Counted", {"tell": "repeat2"}))
    batch = holder.request("POST", "/envelopes/batch", [second, second, second], certificate=False)
    assert {one["verb"] for one in batch.json} <= {"ACK", "DONE"}
    third = holder.post(signed(holder.help("Counted", {"tell": "repeat3"})), certificate=False)
    assert (third.status, third.data["reason"]) == (403, "used_up")
    node.daemon.wait_for(lambda: "repeat2" in node.counted(), what="the batch to be worked on")
    assert [one for one in node.counted() if one.startswith("repeat")] == ["repeat", "repeat2"]


def test_uses_of_a_chain_are_counted_for_each_link(node: Node) -> None:
    first, second = node.stranger("root"), node.stranger("leaf")
    root = permission(node, first, ["HELP.brainstem.*"], uses=2)["text"]
    chain = first.narrowed([root], second.fingerprint, ["HELP.brainstem.Clock"], uses=1)
    statuses = [
        second.post(second.signed(second.help(_x_cap=chain)), certificate=False).status for _ in range(2)
    ]
    assert statuses == [200, 403]
    statuses = [first.post(first.signed(first.help(_x_cap=root)), certificate=False).status for _ in range(2)]
    assert statuses == [200, 403]


def test_uses_and_revocation_outlive_the_daemon(node: Node) -> None:
    holder = node.stranger("outlives")
    text = permission(node, holder, ["HELP.brainstem.Clock"], uses=1)["text"]
    token = issued(node, ["HELP.brainstem.Clock"])
    assert holder.post(holder.signed(holder.help(_x_cap=text)), certificate=False).status == 200
    node.owner("DELETE", f"/tokens/{token['jti']}")
    node.daemon.stop()
    node.start()
    got = holder.post(holder.signed(holder.help(_x_cap=text)), certificate=False)
    assert (got.status, got.data["reason"]) == (403, "used_up")
    assert ask(holder, token["text"]).status == 401


def _claims(text: str) -> bytes:
    import base64

    part = text.split(".")[1]
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
