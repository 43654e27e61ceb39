"""Twins that are set aside, forked, rested, brought back, purged: also in the middle of their turns, and by themselves."""

from __future__ import annotations

import http.client
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fixtures.loopback_server import calls, says
from fixtures.running_daemon import Answer, agent_source, on
from fixtures.terminal import lives
from fixtures.twin_farm import Farm, closed


@pytest.mark.own_process(zygote=True)
def test_archiving_a_booted_twin_ends_its_port_and_its_workers(farm: Farm) -> None:
    key = farm.new("sleepy")
    before = farm.processes()
    port = farm.boot(key)
    farm.remember(key, "Something worth keeping.")
    workers = farm.processes() - before
    assert workers
    farm.post(f"/twins/{key}/archive", {"reason": "winter"})
    assert closed(farm, port)
    assert not any(map(lives, workers))
    assert not farm.folder(key).exists()
    place = farm.daemon.home / "twins" / ".archive" / key
    record = json.loads((place / "archived.json").read_text())
    assert record["last_known"]["alive_at_archive"] is True
    assert record["last_known"]["port"] == port
    for path in (f"/twins/{key}/chat", "/twins/sleepy/chat"):
        refused = farm.daemon.post(path, {"user_input": "are you there?"}, control=True)
        assert (refused.status, refused.json()["code"]) == (409, "twin_conflict")
        assert refused.json()["error"] == "sleepy is archived."
    farm.post(f"/twins/{key}/unarchive")
    assert farm.rows()[key]["state"] == "asleep"
    assert "worth keeping" in farm.recall(key)


def test_twin_archived_during_turns_leaves_nothing(farm: Farm) -> None:
    key = farm.new("busy")
    body = 'import time; time.sleep(0.1); return "awake"'
    (farm.folder(key) / "agents" / "slow_agent.py").write_text(agent_source("Slow", body))
    farm.model.will(*[calls(("Slow", {})), says("done")] * 400)
    answers: list[Answer] = []
    with farm.talkers(key, answers):
        for _ in range(8):
            so_far = len(answers)
            farm.daemon.wait_for(lambda so_far=so_far: len(answers) > so_far + 4)
            farm.post(f"/twins/{key}/archive")
            assert not farm.folder(key).exists(), "nothing wrote it anew"
            farm.daemon.wait_for(lambda so_far=so_far: len(answers) > so_far + 12)
            assert not farm.folder(key).exists()
            farm.post(f"/twins/{key}/unarchive")
    refused = {answer.json()["error"] for answer in answers if answer.status != 200}
    assert refused <= {"busy is archived.", "It was stopped before it could answer."}
    farm.model.will(says("back"))
    assert farm.says_to(key, "well?")["response"] == "back"


def test_stopped_twin_answers_or_says_why(farm: Farm) -> None:
    key = farm.new("restless")
    answers: list[Answer] = []
    with farm.talkers(key, answers):
        for number in range(16):
            so_far = len(answers)
            farm.post(f"/twins/{key}/{'boot' if number % 3 else 'stop'}")
            farm.daemon.wait_for(lambda so_far=so_far: len(answers) > so_far + 4)
    refused = [answer.json() for answer in answers if answer.status != 200]
    assert {answer["error"] for answer in refused} <= {"It was stopped before it could answer."}
    assert len(refused) < len(answers)


def test_a_twin_that_lets_itself_sleep_answers_first(farm: Farm) -> None:
    key = farm.new("dozy")
    farm.boot(key)
    given = {"action": "stop", "rappid_uuid": key}
    farm.model.will(calls(("Twin", given)), says("Good night."))
    assert farm.says_to(key, "sleep now")["response"] == "Good night."
    assert "dozy is stopped as soon as it has answered." in farm.model.results()["Twin"]
    farm.daemon.wait_for(lambda: farm.rows()[key]["state"] == "asleep")

    farm.boot(key)
    ran = farm.post(f"/twins/{key}/agents/run", {"agent": "Twin", "args": given}).json()
    assert "dozy is stopped as soon as it has answered." in ran["result"]
    farm.daemon.wait_for(lambda: farm.rows()[key]["state"] == "asleep")

    farm.boot(key)
    assert "dozy is stopped." in farm.runs("", "Twin", **given), (
        "nobody talks with it, so it is stopped at once"
    )
    assert farm.rows()[key]["state"] == "asleep"


@pytest.mark.parametrize("chosen", ["by its rappid", "by a filter"])
def test_a_twin_that_sets_itself_aside_answers_first(farm: Farm, chosen: str) -> None:
    name = f"leaver {chosen}"
    key, other = farm.new(name), farm.new(f"{name}, a friend")
    port = farm.boot(key)
    farm.remember(key, "Something worth keeping.")
    given: dict[str, Any] = {"action": "archive", "rappid_uuid": key, "reason": "it is autumn"}
    if chosen == "by a filter":
        given |= {"rappid_uuid": "", "filter": {"name_prefix": name}, "confirm": True}
    farm.model.will(calls(("Twin", given)), says("Goodbye."))
    assert farm.says_to(key, "set yourself aside")["response"] == "Goodbye."
    told = json.loads(farm.model.results()["Twin"])
    assert told["message"] == f"{name} is archived as soon as it has answered."
    assert [twin["hash"] for twin in told["put_off"]] == [key]
    record = farm.daemon.home / "twins" / ".archive" / key / "archived.json"
    farm.daemon.wait_for(record.exists)
    assert json.loads(record.read_text())["archived_reason"] == "it is autumn"
    assert key not in farm.rows()
    assert closed(farm, port)
    friend_too = chosen == "by a filter"
    assert [twin["hash"] for twin in told["archived"]] == ([other] if friend_too else [])
    assert (other in farm.rows()) is not friend_too
    refused = farm.daemon.post(f"/twins/{key}/chat", {"user_input": "are you there?"}, control=True)
    assert refused.json()["error"] == f"{name} is archived."

    back = json.loads(farm.runs("", "Twin", action="unarchive", rappid_uuid=key))
    assert [twin["hash"] for twin in back["unarchived"]] == [key]
    assert "worth keeping" in farm.recall(key)
    ran = farm.post(
        f"/twins/{key}/agents/run", {"agent": "Twin", "args": {**given, "rappid_uuid": key}}
    ).json()
    assert f"{name} is archived as soon as it has answered." in ran["result"]
    farm.daemon.wait_for(record.exists)
    purged = farm.runs("", "Twin", action="purge", rappid_uuid=key, confirm=True)
    assert json.loads(purged)["purged"][0]["hash"] == key


def test_a_twin_that_forks_itself_answers_first(farm: Farm) -> None:
    key = farm.new("splitter")
    port = farm.boot(key)
    farm.remember(key, "Something worth keeping.")
    farm.model.will(calls(("Twin", {"action": "fork", "rappid_uuid": key, "name": "Split"})), says("Soon."))
    assert farm.says_to(key, "fork yourself")["response"] == "Soon."
    told = json.loads(farm.model.results()["Twin"])
    assert told["message"] == "Split, a fork of splitter, is made as soon as splitter has answered."
    assert [twin["hash"] for twin in told["put_off"]] == [key]
    named = farm.daemon.wait_for(lambda: [row for row in farm.rows().values() if row["name"] == "Split"])
    assert "worth keeping" in farm.recall(named[0]["key"])
    farm.daemon.wait_for(lambda: farm.rows()[key]["port"] == port, what="it is running again")
    refused = farm.runs(key, "Twin", action="fork", rappid_uuid=key, name="x" * 200)
    assert refused.startswith("Error: A name is one line"), "told at once, not only written down"


def test_a_port_is_nobody_elses_while_its_twin_rests(farm: Farm) -> None:
    key, others = farm.new("keeper"), [farm.new(f"squatter {number}") for number in range(3)]
    port = farm.boot(key)
    over = threading.Event()
    names, refused = [], []

    def squat() -> None:
        while not over.is_set():
            for other in others:
                farm.boot(other)
            for other in others:
                farm.post(f"/twins/{other}/stop")

    def call() -> None:
        while not over.is_set():
            try:
                names.append(on(port, "GET", "/health").json()["name"])
            except ConnectionRefusedError as error:
                refused.append(error)
            except (OSError, http.client.HTTPException):  # cut off, as by a stop
                pass

    with ThreadPoolExecutor(2) as pool:
        beside = [pool.submit(squat), pool.submit(call)]
        try:
            for number in range(4):
                farm.post(f"/twins/{key}/fork", {"name": f"offshoot {number}"})
                assert farm.rows()[key]["port"] == port
        finally:
            over.set()
        for one in beside:
            one.result()
    assert set(names) == {"keeper"}
    assert refused == [], "callers that come meanwhile wait"
    assert not closed(farm, port)
    farm.post(f"/twins/{key}/stop")
    assert closed(farm, port), "a stop keeps nothing"


def test_twin_checkpoint_rename_restore_wait_for_answer(farm: Farm) -> None:
    key = farm.new("changing")
    farm.boot(key)
    made = json.loads(farm.runs(key, "Twin", action="checkpoint", rappid_uuid=key, reason="while it is good"))
    assert made["checkpoint"]["note"] == "while it is good"
    assert "It is changed now." in farm.runs(key, "Twin", action="rename", rappid_uuid=key, name="changed")
    assert farm.rows()[key]["state"] == "awake", "nobody rests for these two"
    (farm.folder(key) / "soul.md").write_text("# Spoiled\n")
    given = {"action": "rollback", "rappid_uuid": key}
    dry = json.loads(farm.runs(key, "Twin", **given))
    assert dry["mode"] == "dry-run" and "Nothing changed yet" in dry["message"]
    assert (farm.folder(key) / "soul.md").read_text() == "# Spoiled\n"
    farm.model.will(calls(("Twin", given | {"confirm": True})), says("Back to it."))
    assert farm.says_to(key, "yes")["response"] == "Back to it."
    at = made["checkpoint"]["at"]
    assert f"is as it was at {at} as soon as it has answered." in farm.model.results()["Twin"]
    soul = farm.folder(key) / "soul.md"
    farm.daemon.wait_for(
        lambda: soul.exists() and soul.read_text() != "# Spoiled\n"
    )  # the folder is exchanged
    farm.daemon.wait_for(lambda: farm.rows()[key]["state"] == "awake")
    told = farm.runs(key, "Twin", action="checkpoints", rappid_uuid=key)
    assert f"{made['checkpoint']['id']} (while it is good)" in told and "before going back" in told
    missing = farm.runs(key, "Twin", **given, confirm=True, text="1999-01-01")
    assert missing.startswith("Error: ") and 'no checkpoint "1999-01-01"' in missing


def test_archive_does_not_replace_same_rappid(farm: Farm) -> None:
    key = farm.new("double")
    farm.post(f"/twins/{key}/archive")
    farm.folder(key).mkdir()
    earlier = farm.daemon.home / "twins" / ".archive" / key
    (farm.folder(key) / "rappid.json").write_bytes((earlier / "rappid.json").read_bytes())
    assert "archived already" in farm.runs(key, "Twin", action="archive", rappid_uuid=key)
    assert farm.rows()[key]["state"] == "asleep"


def test_a_purged_twin_is_gone_from_everywhere_but_the_ledger(farm: Farm) -> None:
    key = farm.new("mayfly")
    farm.post(f"/twins/{key}/archive")
    dry = farm.post(f"/twins/{key}/purge").json()
    assert dry["mode"] == "dry-run"
    assert farm.post(f"/twins/{key}/purge", {"confirm": True}).json()["purged"][0]["hash"] == key
    assert not (farm.daemon.home / "twins" / ".archive" / key).exists()
    for verb in ("boot", "stop", "chat", "purge", "unarchive", "archive", "fork"):
        refused = farm.daemon.post(f"/twins/{key}/{verb}", {"user_input": "x"}, control=True)
        assert refused.json()["error"] == "mayfly is purged.", verb
    purged = farm.daemon.get("/twins?state=purged", control=True).json()["purged"]
    assert [row["name"] for row in purged if row["hash"] == key] == ["mayfly"]
