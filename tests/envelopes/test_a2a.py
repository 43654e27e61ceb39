"""The A2A codec: bytes to what is asked, turns to tasks and stream events, cards signed and read."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from fixtures.card_signatures import signer_of

from envelopes.codecs import a2a, a2a_cards, a2a_tasks
from envelopes.codecs.a2a import A2AError
from envelopes.codecs.a2a_cards import Skill
from envelopes.codecs.a2a_tasks import TaskRecord
from envelopes.codecs.jsonrpc import id_in
from envelopes.envelope import DONE, ERROR, Envelope
from envelopes.errors import MalformedError, ReportableError
from envelopes.events import Call, Delta, Notice, Thought
from envelopes.identity.keys import IdentityKey

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 8).decode()


def rpc(**fields: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {}, **fields}).encode()


def sent(*parts: Any, **fields: Any) -> dict[str, Any]:
    message = {"messageId": "m", "role": "ROLE_USER", "parts": list(parts), **fields}
    return {"message": message}


@pytest.mark.parametrize(
    ("raw", "reason", "ident"),
    [
        (b"{", "PARSE_ERROR", None),
        (b"\xff", "PARSE_ERROR", None),
        (b"[" * 100_000, "PARSE_ERROR", None),
        (b"[" + rpc() + b"]", "INVALID_REQUEST", None),
        (b"7", "INVALID_REQUEST", None),
        (rpc(jsonrpc="1.0"), "INVALID_REQUEST", 1),
        (rpc(id=None), "INVALID_REQUEST", None),
        (rpc(id=True), "INVALID_REQUEST", None),
        (rpc(id={}), "INVALID_REQUEST", None),
        (rpc(id=1.5), "INVALID_REQUEST", None),
        (rpc(method=7), "INVALID_REQUEST", 1),
        (rpc(method="message/send"), "METHOD_NOT_FOUND", 1),
        (rpc(params=[1], id="x"), "INVALID_PARAMS", "x"),
    ],
)
def test_what_is_no_request_gets_the_code_of_json_rpc(raw: bytes, reason: str, ident: Any) -> None:
    with pytest.raises(A2AError) as found:
        a2a.decode_rpc(raw)
    assert found.value.reason == reason
    assert id_in(raw) == ident
    error = a2a.rpc_error(ident, found.value)
    assert (error["jsonrpc"], error["id"]) == ("2.0", ident)
    assert error["error"]["data"][0]["reason"] == reason


@pytest.mark.parametrize("said", ["", "0.3", "0.3.0", "2.0", "1.1", "1", "x", "1.0.\u0661"])
def test_another_version_gets_the_version_error(said: str) -> None:
    with pytest.raises(A2AError) as found:
        a2a.check_version(said)
    assert (found.value.reason, a2a.shape_of(found.value).rpc) == ("VERSION_NOT_SUPPORTED", -32009)


def test_a_patch_of_the_version_says_nothing() -> None:
    for said in ("1.0", " 1.0 ", "1.0.7"):
        a2a.check_version(said)


def test_text_data_and_pictures_become_a_sentence_and_pictures() -> None:
    picture = {"raw": PNG, "mediaType": "image/png", "filename": "a.png"}
    found = a2a.read_sent(sent({"text": "look"}, {"data": {"a": 1}}, picture, contextId="c"))
    assert found.text == 'look\n\n```json\n{"a":1}\n```'
    assert found.pictures == [{"type": "image/png", "data": PNG, "name": "a.png"}]
    assert (found.message_id, found.context, found.skill, found.at_once) == ("m", "c", "", False)


def test_both_spellings_of_protobuf_are_read() -> None:
    params = {
        "message": {"message_id": "m", "parts": [{"raw": PNG.rstrip("="), "media_type": "image/png"}]},
        "configuration": {"return_immediately": True, "history_length": 0},
    }
    found = a2a.read_sent(params)
    assert (found.message_id, found.at_once, found.history, len(found.pictures)) == ("m", True, 0, 1)
    assert found.text, "a turn has a sentence"


def test_a_skill_is_called_with_the_data_parts() -> None:
    metadata = {"skillId": "Clock"}
    found = a2a.read_sent({**sent({"data": {"zone": "UTC"}}, {"data": {"short": True}}, metadata=metadata)})
    assert (found.skill, found.args) == ("Clock", {"zone": "UTC", "short": True})
    assert a2a.read_sent({**sent({"text": "now"}), "metadata": metadata}).skill == "Clock"


@pytest.mark.parametrize(
    ("params", "reason", "named"),
    [
        ({}, "INVALID_PARAMS", "message"),
        (sent(), "INVALID_PARAMS", "message.parts"),
        (sent({"text": ""}), "INVALID_PARAMS", "says nothing"),
        (sent({"text": 7}), "INVALID_PARAMS", "parts[0].text"),
        (sent({}), "INVALID_PARAMS", "parts[0]"),
        (sent({"text": "a", "data": 1}), "INVALID_PARAMS", "parts[0]"),
        (sent(*[{"text": "a"}] * 101), "INVALID_PARAMS", "parts"),
        (sent({"text": "a"}, messageId=""), "INVALID_PARAMS", "messageId"),
        (sent({"text": "a"}, messageId="x" * 201), "INVALID_PARAMS", "messageId"),
        (sent({"text": "a"}, messageId=7), "INVALID_PARAMS", "messageId"),
        (sent({"text": "a"}, contextId="a\nb"), "INVALID_PARAMS", "contextId"),
        (sent({"text": "a"}, role="ROLE_AGENT"), "INVALID_PARAMS", "role"),
        (sent({"text": "a"}, metadata={"skillId": 7}), "INVALID_PARAMS", "skillId"),
        (sent({"data": 7}, metadata={"skillId": "a"}), "INVALID_PARAMS", "data part"),
        ({**sent({"text": "a"}), "configuration": {"historyLength": -1}}, "INVALID_PARAMS", "historyLength"),
        (sent({"url": "http://x/a.png", "mediaType": "image/png"}), "CONTENT_TYPE_NOT_SUPPORTED", "parts[0]"),
        (sent({"raw": PNG, "mediaType": "video/mp4"}), "CONTENT_TYPE_NOT_SUPPORTED", "video/mp4"),
        (sent({"raw": PNG, "mediaType": "image/gif"}), "CONTENT_TYPE_NOT_SUPPORTED", "image/png"),
        (sent({"raw": "%%", "mediaType": "image/png"}), "CONTENT_TYPE_NOT_SUPPORTED", "base64"),
        (sent(*[{"raw": PNG, "mediaType": "image/png"}] * 5), "CONTENT_TYPE_NOT_SUPPORTED", "pictures"),
        (
            {**sent({"text": "a"}), "configuration": {"taskPushNotificationConfig": {"url": "http://x"}}},
            "PUSH_NOTIFICATION_NOT_SUPPORTED",
            "taskPushNotificationConfig",
        ),
    ],
)
def test_a_message_that_is_not_taken_names_what_is_wrong(
    params: dict[str, Any], reason: str, named: str
) -> None:
    with pytest.raises(A2AError) as found:
        a2a.read_sent(params)
    assert found.value.reason == reason
    assert named in str(found.value)


def test_data_that_is_nested_too_deep_is_refused() -> None:
    deep: Any = {}
    for _ in range(500):
        deep = {"a": deep}
    with pytest.raises(A2AError):
        a2a.read_sent(sent({"data": deep}))


@pytest.mark.parametrize(
    ("params", "named"),
    [
        ({"pageSize": 0}, "pageSize"),
        ({"pageSize": "101"}, "pageSize"),
        ({"pageSize": "many"}, "pageSize"),
        ({"status": "working"}, "status"),
        ({"status": [1]}, "status"),
        ({"pageToken": "x"}, "pageToken"),
        ({"pageToken": 7}, "pageToken"),
        ({"statusTimestampAfter": "yesterday"}, "statusTimestampAfter"),
        ({"statusTimestampAfter": 7}, "statusTimestampAfter"),
    ],
)
def test_a_query_that_is_not_taken_names_what_is_wrong(params: dict[str, Any], named: str) -> None:
    with pytest.raises(A2AError, match=named):
        a2a.read_query(params)


def test_a_query_reads_alike_by_json_and_by_a_query_string() -> None:
    by_json = {"pageSize": 5, "includeArtifacts": True, "historyLength": 0}
    by_url = {"pageSize": "5", "includeArtifacts": "true", "historyLength": "0"}
    assert a2a.read_query(by_json) == a2a.read_query(by_url)
    assert a2a.read_query({"statusTimestampAfter": "1970-01-01T00:00:01.5Z"}).after == 1_500_000


@pytest.mark.parametrize(
    ("verb", "data", "state", "parts", "said"),
    [
        (DONE, {"response": "hi", "notice": "by itself"}, a2a.COMPLETED, [{"text": "hi"}], "by itself"),
        (DONE, {"result": "18 °C"}, a2a.COMPLETED, [{"text": "18 °C"}], ""),
        (
            DONE,
            {"result": '{"a": [1]}'},
            a2a.COMPLETED,
            [{"data": {"a": [1]}, "mediaType": "application/json"}],
            "",
        ),
        (DONE, {"result": "[not json"}, a2a.COMPLETED, [{"text": "[not json"}], ""),
        (ERROR, {"code": 500, "msg": "No.", "do": "Again."}, a2a.FAILED, [], "No. Again."),
        (
            ERROR,
            {"code": 499, "msg": "Stopped.", "response": "so f"},
            a2a.CANCELED,
            [{"text": "so f"}],
            "Stopped.",
        ),
        (ERROR, {"code": 403, "msg": "No."}, a2a.REJECTED, [], "No."),
        (ERROR, {"code": 401, "msg": "Who?"}, a2a.AUTH_REQUIRED, [], "Who?"),
    ],
)
def test_replies_are_tasks(verb: str, data: dict[str, Any], state: str, parts: list[Any], said: str) -> None:
    reply = Envelope("i", "brainstem", "me", verb, data)
    assert (a2a_tasks.state_of(reply), a2a_tasks.parts_of(reply), a2a_tasks.said_of(reply)) == (
        state,
        parts,
        said,
    )


FOUND = TaskRecord("t", "c", a2a.COMPLETED, 1_000, "m", "hello?", [{"text": "hi"}], "")


def test_history_and_artifacts_are_cut_as_asked() -> None:
    whole = a2a_tasks.task(FOUND)
    assert whole["status"]["timestamp"] == "1970-01-01T00:00:00.001Z"
    assert (whole["history"][0]["messageId"], whole["artifacts"][0]["parts"]) == ("m", [{"text": "hi"}])
    assert "history" not in a2a_tasks.task(FOUND, history=0)
    assert "artifacts" not in a2a_tasks.task(FOUND, artifacts=False)


def test_thoughts_and_calls_are_told_to_those_alone_who_ask_for_them() -> None:
    for event in (Thought("hm"), Call("1", "Clock", {})):
        assert a2a_tasks.event_of(FOUND, event, first=True, everything=False) is None
        told = a2a_tasks.event_of(FOUND, event, first=True, everything=True)
        assert told is not None
        assert "message" not in told["statusUpdate"]["status"], "never as words of the answer"
        assert told["statusUpdate"]["metadata"][a2a.EVENTS]["type"] == type(event).__name__.lower()
    notice = a2a_tasks.event_of(FOUND, Notice("one moment"), first=True, everything=False)
    assert notice is not None
    assert notice["statusUpdate"]["status"]["message"]["parts"] == [{"text": "one moment"}]


def test_pieces_of_an_answer_are_chunks_of_one_artifact() -> None:
    first = a2a_tasks.event_of(FOUND, Delta("h"), first=True, everything=False)
    then = a2a_tasks.event_of(FOUND, Delta("i"), first=False, everything=False)
    assert first is not None
    assert then is not None
    assert "append" not in first["artifactUpdate"]
    assert then["artifactUpdate"]["append"] is True
    told = list(a2a_tasks.end_of(FOUND, "hi"))
    assert [next(iter(one)) for one in told] == ["artifactUpdate", "statusUpdate"]
    assert told[0]["artifactUpdate"]["lastChunk"] is True
    assert told[0]["artifactUpdate"]["artifact"]["parts"] == [{"text": ""}]
    other = next(a2a_tasks.end_of(FOUND, "hi |||"))["artifactUpdate"]
    assert other["artifact"]["parts"] == [{"text": "hi"}], (
        "the whole answer where its pieces were another text"
    )
    assert "append" not in other


def test_errors_of_ours_keep_their_sentence_and_code_in_both_shapes() -> None:
    for problem, code, status in [
        (ReportableError("Broken.", do="Ask again."), -32603, 500),
        (MalformedError("No.", do="So."), -32602, 400),
        (a2a.no_task(), -32001, 404),
    ]:
        by_rpc, by_http = a2a.rpc_error("1", problem)["error"], a2a.http_error(problem)["error"]
        assert (by_rpc["code"], by_http["code"]) == (code, status)
        assert by_rpc["message"] == by_http["message"] == problem.with_advice()
        assert by_rpc["data"][0]["metadata"]["code"] == problem.code


def card(**more: Any) -> dict[str, Any]:
    skills = [Skill("Clock", "Clock", "Tells the 𝄞 time.")]
    return {**a2a_cards.card("désk", "x", "https://h:1/a2a", skills, "1", remote=True), **more}


def test_a_signature_covers_every_word_of_a_card() -> None:
    key = IdentityKey.generate()
    found = a2a_cards.signed(card(), key)
    assert signer_of(found) == key.fingerprint
    assert signer_of({**found, "iconUrl": ""}) == key.fingerprint, "empty fields are none"
    for field in ("name", "description", "supportedInterfaces", "skills", "capabilities"):
        assert signer_of({**found, field: "y"}) == ""
    header = {
        **found["signatures"][0]["header"]["jwk"],
        "x": found["signatures"][0]["header"]["jwk"]["x"][::-1],
    }
    for signature in ({}, 7, {**found["signatures"][0], "header": {"jwk": header}}, {"protected": "!"}):
        assert signer_of({**found, "signatures": [signature]}) == ""


def test_nothing_in_a_card_is_empty() -> None:
    """Published verifiers differ in which empty values a signature covers."""

    def empty(found: Any) -> bool:
        if isinstance(found, dict | list):
            return not found or any(
                empty(one) for one in (found.values() if isinstance(found, dict) else found)
            )
        return found in ("", None)

    for remote in (True, False):
        assert not empty(
            a2a_cards.card("desk", "x", "https://h:1/a2a", [Skill("ask", "n", "")], "1", remote=remote)
        )


def foreign(*interfaces: Any, **more: Any) -> bytes:
    shown = [
        {"url": url, "protocolBinding": kind, "protocolVersion": version} for url, kind, version in interfaces
    ]
    return json.dumps({"name": "Other", "skills": [], "supportedInterfaces": shown, **more}).encode()


def test_a_card_of_somebody_else_is_read() -> None:
    skills = [{"id": "s", "name": "S\x1b[2J", "description": "d" * 5000}, {"name": "no id"}, 7]
    raw = foreign(
        ("https://h/grpc", "GRPC", "1.0"),
        ("https://h:9/rest", "HTTP+JSON", "1.0"),
        skills=skills,
        capabilities={"streaming": True},
    )
    found = a2a_cards.read_card(raw, "https://h/.well-known/agent-card.json")
    assert (found.name, found.url, found.binding, found.streams) == (
        "Other",
        "https://h:9/rest",
        "HTTP+JSON",
        True,
    )
    assert [(one.id, one.name, len(one.description)) for one in found.skills] == [("s", "S [2J", 2000)]


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"<html>", "JSON|unexpected|character"),
        (b"[]", "no card"),
        (b'{"skills": []}', "no name"),
        (foreign(), "no interface"),
        (b'{"name": "Old", "protocolVersion": "0.3.0", "url": "http://h/"}', "speaks A2A 0.3.0"),
        (foreign(("http://h/", "JSONRPC", "0.3")), "no interface of A2A 1.0"),
        (foreign(("http://h/", "GRPC", "1.0")), "no interface of A2A 1.0"),
        (foreign(("http://127.0.0.1:7071/", "JSONRPC", "1.0")), "another machine"),
        (foreign(("http://h@evil/", "JSONRPC", "1.0")), "another machine"),
        (foreign(("file:///etc/passwd", "JSONRPC", "1.0")), "another machine"),
        (foreign(("http://h:99999/", "JSONRPC", "1.0")), "another machine"),
    ],
)
def test_a_card_that_cannot_be_used_says_why(raw: bytes, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        a2a_cards.read_card(raw, "http://h/.well-known/agent-card.json")


def test_a_card_over_tls_leads_to_nothing_less() -> None:
    with pytest.raises(ValueError, match="another machine"):
        a2a_cards.read_card(foreign(("http://h/", "JSONRPC", "1.0")), "https://h/card")
