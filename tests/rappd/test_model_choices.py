"""A model for a request, a conversation and a twin, beside the one for everybody; who answered is told and kept."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fixtures.loopback_server import FakeModel, says
from fixtures.running_daemon import Answer, RunningDaemon

from envelopes.envelope import HELP, THREAD, Envelope, new_id
from rappd.dispatch.rights import Caller
from rappd.dispatch.turns import RequestContext
from rappd.tenants.model_choices import ModelChoices

USUAL, CONVERSATION, TWIN, REQUEST = "usual", "for-talk", "for-twin", "for-once"


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, model: FakeModel) -> Iterator[RunningDaemon]:
    """A daemon that asks ``model``, with a twin called gardener."""
    home = tmp_path_factory.mktemp("choices") / "home"
    model.listed = [{"id": name} for name in (USUAL, CONVERSATION, TWIN, REQUEST)]
    daemon = RunningDaemon(home, OPENAI_BASE_URL=f"{model.url}/v1", OPENAI_MODEL=USUAL).start()
    daemon.post("/twins", {"name": "gardener"}, control=True)
    yield daemon
    daemon.stop()


def _choose(daemon: RunningDaemon, session: Any, model: str | None = None, path: str = "") -> Answer:
    body = {"session_id": session} | ({} if model is None else {"model": model})
    return daemon.post(f"{path}/chat/model", body)


def _twin(daemon: RunningDaemon) -> str:
    (row,) = daemon.get("/twins", control=True).json()["twins"]
    return f"/twins/{row['key']}"


def _asked(daemon: RunningDaemon, server: FakeModel, path: str = "", **fields: Any) -> str:
    """The model that the server was asked for."""
    server.will(says("yes"))
    answer = daemon.post(f"{path}/chat", {"user_input": "hello", **fields})
    assert answer.status == 200, answer.json()
    asked = str(server.asked[-1]["model"])
    assert (answer.json()["model"], answer.json()["requested_model"]) == (asked, asked)
    return asked


def test_request_comes_before_conversation_before_twin_before_everybody(
    desk: RunningDaemon, model: FakeModel
) -> None:
    twin, session = _twin(desk), str(uuid.uuid4())
    assert _asked(desk, model, twin, session_id=session) == USUAL
    chosen = desk.post(f"{twin}/model", {"model": TWIN}, control=True)
    assert (chosen.json()["name"], chosen.json()["model"]) == ("gardener", TWIN)
    assert _asked(desk, model, twin, session_id=session) == TWIN
    assert _choose(desk, session, CONVERSATION, twin).json() == {
        "model": CONVERSATION,
        "by": "conversation",
        "conversation": CONVERSATION,
        "twin": TWIN,
        "everybody": USUAL,
    }
    assert _asked(desk, model, twin, session_id=session) == CONVERSATION
    assert _asked(desk, model, twin, session_id=session, model=REQUEST) == REQUEST
    assert _asked(desk, model, twin, session_id=session) == CONVERSATION
    assert _asked(desk, model, twin, session_id=str(uuid.uuid4())) == TWIN
    assert _asked(desk, model, session_id=session) == USUAL  # the brainstem's is another conversation
    assert _choose(desk, session, "auto", twin).json()["by"] == "twin"
    desk.post(f"{twin}/model", {"model": "auto"}, control=True)
    assert _asked(desk, model, twin, session_id=session) == USUAL


def test_choices_survive_a_restart(make_daemon: Callable[..., RunningDaemon], model: FakeModel) -> None:
    model.listed = [{"id": name} for name in (USUAL, CONVERSATION, TWIN, REQUEST)]
    daemon = make_daemon(OPENAI_BASE_URL=f"{model.url}/v1", OPENAI_MODEL=USUAL).start()
    daemon.post("/twins", {"name": "gardener"}, control=True)
    twin = _twin(daemon)
    daemon.post(f"{twin}/model", {"model": TWIN}, control=True)
    _choose(daemon, "s", CONVERSATION)
    daemon.stop()
    daemon.start()
    assert _asked(daemon, model, session_id="s") == CONVERSATION
    assert _asked(daemon, model, twin, session_id="s") == TWIN
    assert daemon.get(twin, control=True).json()["twin"]["model"] == TWIN


@pytest.mark.parametrize("path", ["/chat", "/chat/model", "twin"])
def test_model_that_is_not_listed_gets_near_names_and_changes_nothing(
    desk: RunningDaemon, model: FakeModel, path: str
) -> None:
    path, control = (f"{_twin(desk)}/model", True) if path == "twin" else (path, False)
    model.will()
    refused = desk.post(
        path, {"user_input": "hello", "session_id": "near", "model": "for-tvin"}, control=control
    )
    assert refused.status == 400
    assert refused.json()["code"] == "unknown_model"
    assert 'no model "for-tvin"' in refused.json()["error"]
    assert refused.json()["do"].startswith(f"did you mean {TWIN}")
    assert model.asked == []
    assert _choose(desk, "near").json()["by"] == "everybody"


@pytest.mark.parametrize("wrong", [7, ["small"], {"id": "small"}, True, "a" * 201, "two\nlines"])
def test_model_of_a_wrong_type_is_a_400_in_the_one_shape(desk: RunningDaemon, wrong: Any) -> None:
    for path in ("/chat", "/chat/stream", "/chat/model"):
        refused = desk.post(path, {"user_input": "hello", "session_id": "s", "model": wrong})
        assert refused.status == 400, path
        assert set(refused.json()) >= {"error", "do", "code"}
        assert "model" in refused.json()["error"]


def test_another_program_chooses_no_model_for_a_twin(desk: RunningDaemon) -> None:
    assert desk.post(f"{_twin(desk)}/model", {"model": TWIN}).status == 403


@pytest.mark.parametrize(
    ("caller", "model"),
    [
        (Caller("loopback"), REQUEST),
        (Caller("control", operator=True), REQUEST),
        (Caller("tether", caps=("HELP",), device="phone"), TWIN),
        (Caller("federation", peer="pi", caps=("HELP",)), TWIN),
        (Caller("legacy", caps=("HELP",)), TWIN),
    ],
)
async def test_only_callers_of_this_machine_have_a_model_of_their_own(caller: Caller, model: str) -> None:
    choices = ModelChoices(Kept(), Lists())  # type: ignore[arg-type]
    await choices.choose_for_conversation("t", CONVERSATION)
    await choices.choose_for_twin("gardener", TWIN)
    for data, wanted in (({"model": REQUEST}, model), ({}, CONVERSATION if model == REQUEST else TWIN)):
        envelope = Envelope(new_id(), "anna", "gardener_1", HELP, data, {THREAD: "t"})
        assert (await choices.of_turn(RequestContext(envelope, caller, "gardener"))).model == wanted


class Kept:
    """A record without anything in it, which takes every change."""

    async def rows(self, statement: str, values: object = ()) -> list[object]:
        return []

    async def change(self, change: object) -> list[object]:
        return []


class Lists:
    """A provider that has every model."""

    async def check_model(self, model: str) -> None:
        return None


def test_model_that_is_gone_is_told_in_the_servers_words_and_the_usual_one_answers(
    desk: RunningDaemon, model: FakeModel
) -> None:
    _choose(desk, "gone", CONVERSATION)

    def gone(body: dict[str, Any]) -> dict[str, Any]:
        if body["model"] == CONVERSATION:
            model.script.insert(0, says("the usual one"))
            raise _refused(f"model '{CONVERSATION}' not found, try pulling it first")
        return says("the usual one")

    model.will(gone)
    answer = desk.chat("hello", session_id="gone")
    assert answer["response"] == "the usual one"
    assert f"model '{CONVERSATION}' not found, try pulling it first" in answer["notice"]
    assert f"{USUAL} answered — choose another model for this conversation." in answer["notice"]
    assert [one["model"] for one in model.asked] == [CONVERSATION, USUAL]
    assert desk.get("/health").json()["provider"]["state"] == "ready"  # the usual model has no fault


def _refused(sentence: str) -> Exception:
    from aiohttp import web

    return web.HTTPNotFound(
        text=f'{{"error": {{"message": "{sentence}", "code": "model_not_found"}}}}',
        content_type="application/json",
    )


def test_answer_says_who_answered_how_long_and_how_many_tokens_and_the_record_keeps_it(
    desk: RunningDaemon, model: FakeModel
) -> None:
    model.will(says("short"))
    answer = desk.chat("hello", session_id="counted")
    who = answer["provider"]
    assert (answer["model"], answer["tokens"], answer["input_tokens"], answer["output_tokens"]) == (
        USUAL,
        10,
        7,
        3,
    )
    assert who == "local model"
    assert answer["seconds"] > 0
    (found,) = [
        one
        for one in desk.get("/conversations", control=True).json()["conversations"]
        if one["session"] == "counted"
    ]
    (turn,) = desk.get(f"/conversations/{found['id']}", control=True).json()["turns"]
    assert (turn["provider"], turn["input_tokens"], turn["output_tokens"]) == (who, 7, 3)
    assert turn["seconds"] == answer["seconds"]


def test_answer_without_a_model_names_the_offline_brain(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(RAPPD_LOCAL_MODELS="off").start()
    answer = daemon.chat("hello")
    assert answer["provider"] == "no model"
    assert "tokens" not in answer
    refused = _choose(daemon, "s", "small")
    assert (refused.status, refused.json()["error"]) == (400, "There is no model to choose from.")


def test_refusal_of_one_model_is_no_fault_of_another(desk: RunningDaemon, model: FakeModel) -> None:
    def broken(body: dict[str, Any]) -> dict[str, Any]:
        from aiohttp import web

        raise web.HTTPBadRequest(
            text='{"error": {"message": "no such template"}}', content_type="application/json"
        )

    model.will(broken)
    assert "no such template" in desk.chat("hello", model=REQUEST)["notice"]
    assert desk.get("/health").json()["provider"]["state"] == "ready"
    model.will(broken)
    assert "no such template" in desk.chat("hello")["notice"]
    assert desk.get("/health").json()["provider"]["state"] == "refused"
    assert _asked(desk, model, model=REQUEST) == REQUEST
    assert desk.get("/health").json()["provider"]["state"] == "refused"  # the other one answered
    assert _asked(desk, model) == USUAL
    assert desk.get("/health").json()["provider"]["state"] == "ready"


def test_what_a_model_was_found_not_to_do_stands_where_it_is_chosen(
    desk: RunningDaemon, model: FakeModel
) -> None:
    def refuses_tools(body: dict[str, Any]) -> dict[str, Any]:
        from aiohttp import web

        model.script.insert(0, says("plain"))
        raise web.HTTPBadRequest(
            text='{"error": {"message": "this model does not support tools"}}',
            content_type="application/json",
        )

    model.will(refuses_tools)
    assert "cannot use agents" in desk.chat("hello", model=TWIN)["notice"]
    model.will(says("plain"))
    assert "notice" not in desk.chat("hello", model=TWIN)
    limit = {"part": "tools", "text": "cannot use agents"}
    listed = {entry["id"]: entry.get("limits") for entry in desk.get("/models").json()["models"]}
    assert listed == {USUAL: None, CONVERSATION: None, TWIN: [limit], REQUEST: None}
    servers = desk.get("/models/servers", control=True).json()
    assert servers["limits"] == [{"model": TWIN, "limits": [limit]}]
    assert f"  {TWIN}  cannot use agents\n" in desk.cli("models", "list").stdout
