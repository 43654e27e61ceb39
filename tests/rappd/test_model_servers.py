"""Choosing where answers come from: servers listed, tried and put to use by the operator alone; keys stay here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fixtures.free_ports import free_port
from fixtures.loopback_server import FakeModel, says
from fixtures.running_daemon import RunningDaemon

from rappd.settings.registry import SETTINGS
from rappd.settings.wording import WORDING

KEY = "sk-quite-secret-0123456789"


@pytest.fixture
def other_model() -> Iterator[FakeModel]:
    server = FakeModel()
    server.start()
    yield server
    server.stop()


def _post(daemon: RunningDaemon, path: str, **body: str) -> Any:
    answer = daemon.post(path, {**body}, control=True)
    assert answer.status == 200, answer.body
    return answer.json()


def _servers(daemon: RunningDaemon) -> Any:
    return daemon.get("/models/servers", control=True).json()


def test_servers_are_listed_tried_and_used_by_the_operator_alone(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel
) -> None:
    daemon = make_daemon().start()
    order = {"kind": "server", "url": fake_model.url, "key": KEY, "model": "small"}
    for answer in (
        daemon.get("/models/servers"),
        daemon.post("/models/test", order),
        daemon.post("/models/use", order),
        daemon.post("/models/test", order, headers={"Cookie": "rappd_operator=x", "X-Rappd-Signature": "x"}),
    ):
        assert (answer.status, answer.json()["code"]) == (403, "not_operator")
    assert fake_model.asked == []
    assert _servers(daemon)["used"] == ""
    found = _post(daemon, "/models/test", **order)
    assert (found["works"], found["model"], found["models"]) == (True, "small", ["small", "big"])
    assert fake_model.keys == [f"Bearer {KEY}"], "positive control"
    assert _servers(daemon)["server"]["url"] == "", "a trial changes nothing"


def test_used_server_answers_and_its_key_is_never_told(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel
) -> None:
    daemon = make_daemon().start()
    fake_model.will(says("I am small"))
    used = _post(daemon, "/models/use", kind="server", url=fake_model.url, key=KEY, model="small")
    assert used["used"] == "server"
    assert daemon.chat("hello")["response"] == "I am small"
    listed = daemon.get("/models/servers", control=True)
    assert listed.json()["server"] == {"url": fake_model.url, "key": True, "model": "small"}
    told = listed.body + daemon.get("/settings", control=True).body + daemon.log.encode()
    assert KEY.encode() not in told
    assert KEY in (daemon.home / ".env").read_text()
    assert KEY not in (daemon.home / "rappd.toml").read_text()


def test_kept_key_goes_to_no_other_server(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel, other_model: FakeModel
) -> None:
    daemon = make_daemon().start()
    _post(daemon, "/models/use", kind="server", url=fake_model.url, key=KEY, model="small")
    assert _post(daemon, "/models/test", kind="server", url=f"{fake_model.url}/v1", model="big")["works"]
    assert fake_model.keys[-1] == f"Bearer {KEY}"
    assert _post(daemon, "/models/test", kind="server", url=other_model.url, model="small")["works"]
    _post(daemon, "/models/use", kind="server", url=other_model.url, model="small")
    daemon.chat("hello")
    assert len(other_model.keys) == 2
    assert not any(KEY in sent for sent in other_model.keys)
    assert _servers(daemon)["server"]["key"] is False


def test_choice_switches_without_forgetting_and_none_is_no_model(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel, other_model: FakeModel
) -> None:
    daemon = make_daemon(RAPPD_LOCAL_PORTS=str(other_model.port))
    del daemon.environment["RAPPD_LOCAL_MODELS"]
    daemon.start()
    _post(daemon, "/models/use", kind="server", url=fake_model.url, key=KEY, model="small")
    (local,) = _servers(daemon)["local"]["servers"]
    assert (local["models"], local["agent"]) == (["small", "big"], False)
    other_model.will(says("I am local"))
    assert _post(daemon, "/models/use", kind="local", server=local["server"], model="big")["used"] == "local"
    assert daemon.chat("hello")["response"] == "I am local"
    assert other_model.asked[-1]["model"] == "big"
    assert _post(daemon, "/models/use", kind="none")["used"] == ""
    assert "(no model)" in daemon.chat("hello")["response"]
    daemon.stop()
    daemon.start()
    assert "(no model)" in daemon.chat("hello")["response"]
    fake_model.will(says("back"))
    assert _post(daemon, "/models/use", kind="server", url=fake_model.url)["used"] == "server"
    assert daemon.chat("hello")["response"] == "back"
    assert fake_model.keys[-1] == f"Bearer {KEY}"


def test_server_without_any_model_is_listed_as_such(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel
) -> None:
    fake_model.listed = []
    daemon = make_daemon(
        RAPPD_LOCAL_MODELS="ask", RAPPD_LOCAL_PORTS=f"{free_port()},{fake_model.port}"
    ).start()
    (found,) = _servers(daemon)["local"]["servers"]
    assert (found["where"], found["models"]) == (f"127.0.0.1:{fake_model.port}", [])


def test_value_of_the_environment_is_not_overruled_silently(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel
) -> None:
    daemon = make_daemon(OPENAI_API_KEY=KEY).start()
    order = {"kind": "server", "url": fake_model.url, "model": "small"}
    refused = daemon.post("/models/use", order, control=True)
    assert (refused.status, refused.json()["do"]) == (409, "unset OPENAI_API_KEY, then restart rappd")
    assert _post(daemon, "/models/test", **order)["works"]
    assert KEY not in fake_model.keys[-1]
    assert _servers(daemon)["use"] == "auto"


def test_every_setting_has_a_name_and_a_sentence_of_its_own(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    rows = make_daemon().start().get("/settings", control=True).json()["settings"]
    assert set(WORDING) == {setting.name for setting in SETTINGS}
    for row in rows:
        assert list(row["choice_words"]) == row["choices"], "each choice has words of its own"
        assert len(set(row["choice_words"].values())) == len(row["choices"])
    titles = [row["title"] for row in rows]
    assert len(set(titles)) == len(titles)
    assert [row["name"] for row in rows if not row["about"].endswith(".") or "." in row["title"]] == [
        "voice_zip_password"
    ]


def test_unfit_orders_are_refused_with_what_to_send(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon().start()
    for body in ({}, {"kind": "cloud"}, {"kind": "server", "url": 5}, {"kind": "server", "url": "a\nb"}):
        answer = daemon.post("/models/use", body, control=True)
        assert 400 <= answer.status < 500, body
        assert answer.json()["do"]
    assert not (daemon.home / "rappd.toml").exists()
