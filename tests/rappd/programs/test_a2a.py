"""A2A 1.0 with the SDK's own client, unmodified, in both bindings; and what it refuses, by plain requests."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.client_programs import packages_of
from fixtures.loopback_server import FakeModel
from fixtures.running_daemon import Answer, RunningDaemon, agent_source

sys.path.extend(packages_of("a2a"))
pytest.importorskip("a2a", reason="needs a2a: sh tests/client-programs .venv/programs a2a")

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.client import ClientCallContext
from a2a.types import (
    CancelTaskRequest,
    GetExtendedAgentCardRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskState,
)
from a2a.utils.constants import TransportProtocol
from a2a.utils.errors import (
    A2AError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
    VersionNotSupportedError,
)
from a2a.utils.signing import create_signature_verifier
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from envelopes.codecs.a2a import EVENTS, REPLAY, Sent
from envelopes.codecs.a2a_tasks import TaskRecord
from rappd.dispatch.turns import Turn
from rappd.listeners import a2a as a2a_listener
from rappd.listeners import a2a_tasks
from rappd.listeners.a2a_tasks import Tasks
from rappd.store.turn_table import TurnRow

bindings = pytest.mark.parametrize("binding", [TransportProtocol.JSONRPC, TransportProtocol.HTTP_JSON])
Work = Callable[[Any], Awaitable[Any]]


PAGE = "https://page.example"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory, model: FakeModel) -> Iterator[RunningDaemon]:
    """A machine with a scripted model, whose agents may be called by everybody here."""
    daemon = RunningDaemon(
        tmp_path_factory.mktemp("a2a") / "home",
        OPENAI_BASE_URL=f"{model.url}/v1",
        OPENAI_MODEL="m",
        RAPPD_MODEL_HELP="never",
        RAPPD_HTTP_TOOLS="1",
        RAPP_CORS_ORIGINS=PAGE,
    )
    daemon.drop("dice_agent.py", agent_source("Dice", "return '{\"sum\": 7}'", "Rolls dice."))
    daemon.drop("bad_agent.py", agent_source("Bad", 'raise ValueError("too warm")', "Fails."))
    daemon.start()
    yield daemon
    daemon.stop()


def address(daemon: RunningDaemon) -> str:
    return f"http://127.0.0.1:{daemon.port}"


def message(text: str, id: str, **more: Any) -> Message:
    return Message(message_id=id, role=Role.ROLE_USER, parts=[Part(text=text)], **more)


def asking(url: str, work: Work, binding: str = "JSONRPC", *, streaming: bool = False) -> Any:
    """The result of ``work`` with a client of the SDK for the card at ``url``."""

    async def run() -> Any:
        async with httpx.AsyncClient(timeout=100, verify=False) as http:
            card = await A2ACardResolver(http, url).get_agent_card()
            config = ClientConfig(
                streaming=streaming, httpx_client=http, supported_protocol_bindings=[binding]
            )
            return await work(ClientFactory(config).create(card))

    return asyncio.run(run())


def sending(sent: Message, context: ClientCallContext | None = None, **settings: Any) -> Work:
    async def work(client: Any) -> list[Any]:
        request = SendMessageRequest(message=sent, configuration=SendMessageConfiguration(**settings))
        return [event async for event in client.send_message(request, context=context)]

    return work


def getting(id: str) -> Work:
    return lambda client: client.get_task(GetTaskRequest(id=id))


def words(task: Task) -> str:
    return "".join(part.text for artifact in task.artifacts for part in artifact.parts)


def post(daemon: RunningDaemon, path: str, body: Any, **headers: str) -> Answer:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return daemon.request("POST", path, raw, {"A2A-Version": "1.0", **headers})


def rpc(method: str, params: Any, **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params, **more}


def said(text: str, id: str, **more: Any) -> dict[str, Any]:
    return {"message": {"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}], **more}}


def events(answer: Answer) -> list[tuple[int, dict[str, Any]]]:
    found = re.findall(rb"id: (\d+)\n(?:event: \w+\n)?data: (.*)\n", answer.body)
    return [(int(number), json.loads(data)) for number, data in found]


@bindings
def test_a_message_is_answered_and_its_task_is_found_again(
    daemon: RunningDaemon, model: FakeModel, binding: str
) -> None:
    model.will({"content": "It is Monday."})
    sent = message("which day?", f"first {binding}", context_id=f"days {binding}")
    [answer] = asking(address(daemon), sending(sent), binding)
    task = answer.task
    assert (task.status.state, words(task)) == (TaskState.TASK_STATE_COMPLETED, "It is Monday.")
    assert (task.context_id, task.history[0].message_id) == (sent.context_id, sent.message_id)
    found = asking(address(daemon), getting(task.id), binding)
    assert (found.id, found.artifacts, found.history) == (task.id, task.artifacts, task.history)
    with pytest.raises(TaskNotFoundError):
        asking(address(daemon), getting("77f7b6d2-5e44-4a71-9bcb-5ddc21019f24"), binding)


@bindings
def test_a_repeat_is_the_same_task_and_is_not_done_again(
    daemon: RunningDaemon, model: FakeModel, binding: str
) -> None:
    model.will({"content": "once"}, {"content": "twice"})
    sent = message("count", f"repeat {binding}")
    [first], [again] = (asking(address(daemon), sending(sent), binding) for _ in range(2))
    assert (again.task.id, again.task.context_id) == (first.task.id, first.task.context_id)
    assert words(again.task) == words(first.task) == "once"
    changed = message("something else", f"repeat {binding}", context_id=first.task.context_id)
    [third] = asking(address(daemon), sending(changed), binding)
    assert (third.task.id, words(third.task)) == (first.task.id, "once")
    assert third.task.history == first.task.history, "the message that was answered"


@bindings
def test_a_message_id_in_another_context_is_another_message(
    daemon: RunningDaemon, model: FakeModel, binding: str
) -> None:
    """Clients that count their messages within each context use the same ids again."""
    model.will({"content": "once"}, {"content": "twice"})
    contexts = ["", f"second {binding}", f"second {binding}", ""]
    sent = [message("count", f"counted {binding}", context_id=one) for one in contexts]
    found = [asking(address(daemon), sending(one), binding)[0].task for one in sent]
    assert [words(one) for one in found] == ["once", "twice", "twice", "once"]
    assert [one.context_id for one in found[1:3]] == contexts[1:3]
    assert len({one.id for one in found}) == 2
    known = message("count", f"counted {binding}", context_id=contexts[1], task_id=found[1].id)
    [again] = asking(address(daemon), sending(known), binding)
    assert (again.task.id, words(again.task)) == (found[1].id, "twice")


@bindings
def test_an_answer_comes_in_pieces_of_one_artifact(
    daemon: RunningDaemon, model: FakeModel, binding: str
) -> None:
    model.will({"content": "one two three"})
    model.pieces = ["one ", "two ", "three"]
    try:
        got = asking(address(daemon), sending(message("go", f"pieces {binding}")), binding, streaming=True)
    finally:
        model.pieces = []
    assert got[0].HasField("task")
    chunks = [one.artifact_update for one in got if one.HasField("artifact_update")]
    assert "".join(chunk.artifact.parts[0].text for chunk in chunks) == "one two three"
    assert [chunk.append for chunk in chunks] == [False] + [True] * (len(chunks) - 1)
    assert [chunk.last_chunk for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert got[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED


@bindings
def test_a_task_runs_on_is_followed_and_cancelled(
    daemon: RunningDaemon, model: FakeModel, binding: str
) -> None:
    model.hang = True
    try:
        sent = message("think", f"long {binding}")
        [answer] = asking(address(daemon), sending(sent, return_immediately=True), binding)
        id = answer.task.id
        assert answer.task.status.state == TaskState.TASK_STATE_WORKING
        assert asking(address(daemon), getting(id), binding).status.state == TaskState.TASK_STATE_WORKING

        async def follow(client: Any) -> list[Any]:
            got = []
            async for one in client.subscribe(SubscribeToTaskRequest(id=id)):
                got.append(one)
                if len(got) == 1:
                    cancelled = await client.cancel_task(CancelTaskRequest(id=id))
                    assert cancelled.status.state == TaskState.TASK_STATE_CANCELED
            return got

        got = asking(address(daemon), follow, binding, streaming=True)
    finally:
        model.hang = False
    assert got[0].task.status.state == TaskState.TASK_STATE_WORKING
    assert got[-1].status_update.status.state == TaskState.TASK_STATE_CANCELED
    assert asking(address(daemon), getting(id), binding).status.state == TaskState.TASK_STATE_CANCELED
    with pytest.raises(TaskNotCancelableError):
        asking(address(daemon), lambda client: client.cancel_task(CancelTaskRequest(id=id)), binding)

    async def follow_what_is_over(client: Any) -> list[Any]:
        return [one async for one in client.subscribe(SubscribeToTaskRequest(id=id))]

    with pytest.raises(UnsupportedOperationError):
        asking(address(daemon), follow_what_is_over, binding, streaming=True)


@bindings
def test_tasks_of_a_context_are_listed_by_pages_and_states(daemon: RunningDaemon, binding: str) -> None:
    context = f"listed {binding}"
    ids = []
    for number in range(3):
        sent = message("hello", f"list {binding} {number}", context_id=context)
        ids.append(asking(address(daemon), sending(sent), binding)[0].task.id)

    async def pages(client: Any) -> list[Any]:
        got = []
        token = ""
        while not got or token:
            asked = ListTasksRequest(
                context_id=context, page_size=2, page_token=token, include_artifacts=True
            )
            got.append(await client.list_tasks(asked))
            token = got[-1].next_page_token
        return got

    got = asking(address(daemon), pages, binding)
    assert [[one.id for one in page.tasks] for page in got] == [ids[:0:-1], ids[:1]]
    assert [page.total_size for page in got] == [3, 3]
    assert words(got[0].tasks[0])

    async def failed(client: Any) -> Any:
        asked = ListTasksRequest(context_id=context, status=TaskState.TASK_STATE_FAILED)
        return await client.list_tasks(asked)

    assert not asking(address(daemon), failed, binding).tasks


def test_a_task_that_ends_as_it_is_listed_is_listed_by_its_end(
    daemon: RunningDaemon, model: FakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: list[Turn] = []
    begin, recorded_turns = Tasks.begin, a2a_tasks.recorded_turns

    async def begun(self: Tasks, sent: Sent) -> tuple[TaskRecord, Turn]:
        found, turn = await begin(self, sent)
        turns.append(turn)
        return found, turn

    async def ended_since(*asked: Any, **more: Any) -> list[TurnRow]:
        found = await recorded_turns(*asked, **more)
        turns[0].cancel()
        await turns[0].over_within(None)
        return found

    monkeypatch.setattr(Tasks, "begin", begun)
    monkeypatch.setattr(a2a_tasks, "recorded_turns", ended_since)
    model.hang = True
    sent = {**said("think", "ends listed", contextId="ends"), "configuration": {"returnImmediately": True}}
    id = post(daemon, "/a2a", rpc("SendMessage", sent)).json()["result"]["task"]["id"]
    asked = {"contextId": "ends", "status": "TASK_STATE_CANCELED"}
    listed = post(daemon, "/a2a", rpc("ListTasks", asked)).json()["result"]["tasks"]
    model.hang = False
    assert [one["id"] for one in listed] == [id]


def test_who_shows_no_token_lists_no_tasks_of_others(daemon: RunningDaemon) -> None:
    sent = said("hello", "of somebody else", contextId="6-of-somebody-else")
    assert "result" in post(daemon, "/a2a", rpc("SendMessage", sent)).json()
    empty = {"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0}
    assert post(daemon, "/a2a", rpc("ListTasks", {})).json()["result"] == empty
    assert daemon.get("/a2a/tasks", headers={"A2A-Version": "1.0"}).json() == empty
    for guessed in ("6", "*", "6*", "?-of-somebody-else", "[0-9]*"):
        assert post(daemon, "/a2a", rpc("ListTasks", {"contextId": guessed})).json()["result"] == empty
    named = post(daemon, "/a2a", rpc("ListTasks", {"contextId": "6-of-somebody-else"})).json()["result"]
    assert named["totalSize"] == 1


def test_a_skill_is_one_agent_with_data_for_arguments(daemon: RunningDaemon, model: FakeModel) -> None:
    model.will()
    sent = Message(
        message_id="dice", role=Role.ROLE_USER, parts=[Part(text="")], metadata={"skillId": "Dice"}
    )
    [answer] = asking(address(daemon), sending(sent))
    [part] = answer.task.artifacts[0].parts
    assert part.data.struct_value["sum"] == 7
    assert not model.asked, "no model was asked"
    sent = Message(message_id="bad", role=Role.ROLE_USER, parts=[Part(text="x")], metadata={"skillId": "Bad"})
    [answer] = asking(address(daemon), sending(sent))
    assert answer.task.status.state == TaskState.TASK_STATE_FAILED
    assert "too warm" in answer.task.status.message.parts[0].text


@pytest.mark.parametrize("skill", ["LearnNew", "Nobody"])
def test_a_structural_agent_is_not_there(daemon: RunningDaemon, skill: str) -> None:
    asked = rpc("SendMessage", said("x", f"structural {skill}", metadata={"skillId": skill}))
    error = post(daemon, "/a2a", asked).json()["error"]
    assert error["message"].startswith(f'No agent "{skill}"')
    assert error["data"][0]["reason"] == "NOT_FOUND"


def test_without_the_switch_no_agent_is_called_directly(fake_daemon: RunningDaemon) -> None:
    asked = said("x", "direct", metadata={"skillId": "QuickAnswers"})
    answer = post(fake_daemon, "/a2a/message:send", asked)
    assert answer.status == 404
    assert answer.json()["error"]["details"][0]["metadata"]["code"] == "not_found"


def test_a_picture_reaches_the_model(daemon: RunningDaemon, model: FakeModel) -> None:
    model.will({"content": "a dot"})
    png = b"\x89PNG\r\n\x1a\n" + b"\0" * 8
    sent = Message(
        message_id="picture",
        role=Role.ROLE_USER,
        parts=[Part(text="what is it?"), Part(raw=png, media_type="image/png")],
    )
    [answer] = asking(address(daemon), sending(sent), "HTTP+JSON")
    assert words(answer.task) == "a dot"
    assert model.pictures()[-1]


@bindings
def test_push_is_refused_as_unsupported(daemon: RunningDaemon, binding: str) -> None:
    from a2a.types import TaskPushNotificationConfig

    push = TaskPushNotificationConfig(task_id="x", url="http://127.0.0.1/x")
    with pytest.raises(PushNotificationNotSupportedError, match="taskPushNotificationConfig"):
        asking(address(daemon), sending(message("x", "push"), task_push_notification_config=push), binding)
    with pytest.raises(PushNotificationNotSupportedError):
        asking(address(daemon), lambda client: client.create_task_push_notification_config(push), binding)


@bindings
@pytest.mark.parametrize("version", ["", "0.3"])
def test_another_version_is_refused(daemon: RunningDaemon, binding: str, version: str) -> None:
    context = ClientCallContext(service_parameters={"A2A-Version": version})
    with pytest.raises(VersionNotSupportedError):
        asking(address(daemon), sending(message("x", "old"), context), binding)


def test_a_task_takes_one_message(daemon: RunningDaemon) -> None:
    [answer] = asking(address(daemon), sending(message("hello", "one message", context_id="k")))
    id = answer.task.id
    for more, kind in [
        ({"task_id": id}, UnsupportedOperationError),
        ({"task_id": id, "context_id": "another"}, A2AError),
        ({"task_id": "77f7b6d2-5e44-4a71-9bcb-5ddc21019f24"}, TaskNotFoundError),
    ]:
        with pytest.raises(kind):
            asking(address(daemon), sending(message("and?", "second", **more)))
    [again] = asking(address(daemon), sending(message("hello", "one message", task_id=id)))
    assert again.task.id == id, "a repeat may name its task"


def test_a_stream_goes_on_after_the_last_event_that_came(daemon: RunningDaemon, model: FakeModel) -> None:
    model.will({"content": "one two three"})
    model.pieces = ["one ", "two ", "three"]
    asked = rpc("SendStreamingMessage", said("go", "replay"))
    try:
        whole = post(daemon, "/a2a/", asked, **{"A2A-Extensions": f"{REPLAY}, urn:other"})
    finally:
        model.pieces = []
    assert whole.headers["a2a-extensions"] == REPLAY
    got = events(whole)
    id = got[0][1]["result"]["task"]["id"]
    for number, _ in got[1:]:
        rest = [one for one in got[1:] if one[0] > number]
        assert events(post(daemon, "/a2a/", asked, **{"Last-Event-ID": str(number)})) == rest
        followed = post(daemon, f"/a2a/tasks/{id}:subscribe", b"", **{"Last-Event-ID": str(number)})
        assert events(followed) == [(place, told["result"]) for place, told in rest]


def test_a_stream_of_a_call_that_ended_as_it_was_opened_tells_the_end(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call that tells nothing on its way is not kept: only the record has its end."""
    gate = daemon.data / "open"
    body = f"import pathlib, time\n        while not pathlib.Path({str(gate)!r}).exists():\n            time.sleep(0.02)"
    daemon.drop("gate_agent.py", agent_source("Gate", f'{body}\n        return "through"', "Waits."))
    daemon.wait_for(lambda: "Gate" in daemon.agent_names(), what="the agent")
    noted = Tasks.noted

    async def ended_since(self: Tasks, found: TaskRecord, turn: Turn) -> TaskRecord:
        found = await noted(self, found, turn)
        gate.touch()
        await turn.over_within(None)
        return found

    monkeypatch.setattr(Tasks, "noted", ended_since)
    sent = {**said("", "gate"), "metadata": {"skillId": "Gate"}}
    told = [one["result"] for _, one in events(post(daemon, "/a2a", rpc("SendStreamingMessage", sent)))]
    assert told[0]["task"]["status"]["state"] == "TASK_STATE_WORKING"
    assert told[1]["artifactUpdate"]["artifact"]["parts"] == [{"text": "through"}]
    assert told[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


def test_a_long_silence_in_a_stream_is_shown_to_be_none(
    daemon: RunningDaemon, model: FakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(a2a_listener, "BEAT_SECONDS", 0.02)
    model.hang = True
    try:
        asked = {"A2A-Version": "1.0"}
        connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=100)
        connection.request("POST", "/a2a/message:stream", json.dumps(said("think", "silence")), asked)
        stream = connection.getresponse()
        lines = [stream.readline() for _ in range(5)]
        id = json.loads(lines[1][6:])["task"]["id"]
        post(daemon, f"/a2a/tasks/{id}:cancel", b"")
    finally:
        model.hang = False
    assert lines[3] == b":\n"
    assert b"TASK_STATE_CANCELED" in stream.read()


def test_thoughts_and_calls_come_to_those_alone_who_ask(daemon: RunningDaemon, model: FakeModel) -> None:
    call = {"tool_calls": [{"id": "1", "type": "function", "function": {"name": "Dice", "arguments": "{}"}}]}
    for id, headers, told in [("quiet", {}, False), ("loud", {"A2A-Extensions": EVENTS}, True)]:
        model.will(call, {"content": "seven"})
        answer = post(daemon, "/a2a/message:stream", said("roll", id), **headers)
        assert (b'"type":"call"' in answer.body) is told
        assert b"seven" in answer.body


def test_the_card_is_signed_by_the_identity_key(daemon: RunningDaemon) -> None:
    self = daemon.get("/peers", control=True).json()["self"]
    keys = []

    def key_of(kid: str | None, jku: str | None) -> Any:
        [signature] = daemon.get("/.well-known/agent-card.json").json()["signatures"]
        jwk = signature["header"]["jwk"]
        keys.append(kid)
        import base64

        return Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(jwk["x"] + "="))

    async def run() -> Any:
        async with httpx.AsyncClient() as http:
            verifier = create_signature_verifier(key_of, ["EdDSA"])
            return await A2ACardResolver(http, address(daemon)).get_agent_card(signature_verifier=verifier)

    card = asyncio.run(run())
    assert keys == [self["fingerprint"]]
    assert {"ask", "Dice"} <= {skill.id for skill in card.skills}
    assert "LearnNew" not in {skill.id for skill in card.skills}
    assert [one.protocol_binding for one in card.supported_interfaces] == ["JSONRPC", "HTTP+JSON"]
    assert (card.capabilities.streaming, card.capabilities.push_notifications) == (True, False)

    async def extended(client: Any) -> Any:
        return await client.get_extended_agent_card(GetExtendedAgentCardRequest())

    for binding in ("JSONRPC", "HTTP+JSON"):
        assert asking(address(daemon), extended, binding).skills == card.skills
    assert daemon.get("/.well-known/agent.json").status == 404


@pytest.mark.parametrize("path", ["/a2a", "/a2a/"])
def test_what_is_no_request_gets_the_protocols_code(daemon: RunningDaemon, path: str) -> None:
    for body, code in [
        (b"{", -32700),
        (b"[]", -32600),
        ([rpc("GetTask", {"id": "x"})], -32600),
        (rpc("tasks/get", {}), -32601),
        (rpc("GetTask", []), -32602),
        (rpc("GetTask", {}), -32602),
        (rpc("GetTask", {"id": "x"}, jsonrpc="1.0"), -32600),
        ({"jsonrpc": "2.0", "method": "GetTask", "params": {"id": "x"}}, -32600),
        (rpc("GetTask", {"id": "x", "tenant": 7}), -32602),
    ]:
        answer = post(daemon, path, body)
        assert (answer.status, answer.json()["error"]["code"]) == (200, code), answer.body


@pytest.mark.parametrize("twin", ["twin/nobody", "nobody"])
def test_an_unknown_twin_is_not_found_and_the_known_are_named(daemon: RunningDaemon, twin: str) -> None:
    named = post(daemon, "/a2a", rpc("SendMessage", {**said("x", "twin"), "tenant": twin}))
    paths = [f"/a2a/{twin}/message:send"] if twin.startswith("twin/") else []
    for answer in (named, *(post(daemon, path, said("x", "twin")) for path in paths)):
        assert answer.status == 404
        assert "brainstem" in answer.json()["error"]["message"]


def test_a_foreign_page_and_host_are_refused(daemon: RunningDaemon) -> None:
    asked = rpc("SendMessage", said("x", "foreign"))
    assert post(daemon, "/a2a", asked, Origin="https://evil.example").status == 403
    assert post(daemon, "/a2a", asked, Host="evil.example").status == 403
    preflight = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    assert daemon.request("OPTIONS", "/a2a", None, preflight).status == 403
    assert daemon.get("/.well-known/agent-card.json", headers={"Host": "evil.example"}).status == 403


def test_a_conversation_of_the_owners_goes_on_over_a2a(daemon: RunningDaemon, model: FakeModel) -> None:
    model.will({"content": "Hello Ada."}, {"content": "Ada."}, {"content": "You are Ada."})
    session = daemon.chat("I am Ada.")["session_id"]
    sent = message("who am I?", "goes on", context_id=session)
    [answer] = asking(address(daemon), sending(sent))
    assert (words(answer.task), answer.task.context_id) == ("Ada.", session)
    daemon.chat("say it again", session_id=session)
    [thread] = [
        one["id"]
        for one in daemon.get("/threads", control=True).json()["threads"]
        if one["session"] and session in str(one["session"])
    ]
    events = daemon.get(f"/threads/{thread}", control=True).json()["events"]
    asked = [one["data"].get("user_input") for one in events if one["verb"] == "HELP"]
    assert [text for text in asked if text] == ["I am Ada.", "who am I?", "say it again"]


def test_a_page_that_the_owner_listed_may_speak_a2a(daemon: RunningDaemon) -> None:
    preflight = {"Origin": PAGE, "Access-Control-Request-Method": "POST"}
    allowed = daemon.request("OPTIONS", "/a2a", None, preflight)
    assert allowed.status == 204
    assert {"A2A-Version", "A2A-Extensions"} <= set(
        allowed.headers["access-control-allow-headers"].split(", ")
    )
    answer = post(daemon, "/a2a", rpc("GetTask", {"id": "x"}), Origin=PAGE)
    assert answer.headers["access-control-allow-origin"] == PAGE


def golden(found: Any) -> Any:
    """JSON without what differs from run to run."""
    text = json.dumps(found)
    for pattern, put in [
        (r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", "ID"),
        (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "MOMENT"),
        (r"127\.0\.0\.1:\d+", "HOST"),
        (r'"(protected|signature|x|kid)": "[^"]+"', r'"\1": "KEY"'),
    ]:
        text = re.sub(pattern, put, text)
    return json.loads(text)


def test_the_wire_keeps_its_golden_shape(daemon: RunningDaemon, model: FakeModel) -> None:
    model.will({"content": "It is Monday."}, {"content": "one two"})
    card = daemon.get("/.well-known/agent-card.json").json()
    card["skills"] = [one for one in card["skills"] if one["id"] == "Dice"]
    card["name"] = card["description"] = card["version"] = "ANY"
    found = {"card": card}
    found["task"] = post(daemon, "/a2a", rpc("SendMessage", said("which day?", "golden task"))).json()
    model.pieces = ["one ", "two"]
    try:
        stream = post(daemon, "/a2a/message:stream", said("count", "golden stream", contextId="golden"))
    finally:
        model.pieces = []
    found["stream"] = events(stream)
    refused = said("x", "golden refused", taskId="77f7b6d2-5e44-4a71-9bcb-5ddc21019f24")
    found["refused by JSON-RPC"] = post(daemon, "/a2a", rpc("SendMessage", refused)).json()
    found["refused by HTTP"] = post(daemon, "/a2a/message:send", refused).json()
    kept = Path(__file__).parent / "golden" / "a2a.json"
    assert golden(found) == json.loads(kept.read_text())
