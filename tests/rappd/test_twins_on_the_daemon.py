"""Twins on a running daemon: each its own port, worker, memory, agents and soul; through stops, kills and archives."""

from __future__ import annotations

import http.client
import json
import random
import re
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from daemon_under_test import Answer, RunningDaemon, agent_source
from loopback_server import FakeModel, calls, says
from terminal_under_test import lives

from agents.worker.ancestry import descendants
from rappd.doors.loopback import agent_files, chat
from rappd.doors.loopback import twins as twins_door
from rappd.doors.twin_door import PORTS
from rappd.tenants import MOST_OPEN
from twins.identity_file import Identity
from twins.rappid import Rappid

AGENT = agent_source("Kettle", 'return "It boils."')


class Farm:
    """A daemon and the model that thinks for everybody on it."""

    def __init__(self, daemon: RunningDaemon, model: FakeModel) -> None:
        self.daemon = daemon
        self.model = model

    def new(self, name: str, **fields: str) -> str:
        """A twin; returns its key."""
        key: str = self.post("/twins", {"name": name, **fields}).json()["key"]
        return key

    def boot(self, key: str) -> int:
        port: int = self.post(f"/twins/{key}/boot").json()["port"]
        return port

    def post(self, path: str, body: dict[str, Any] | None = None) -> Answer:
        """As the operator."""
        answer = self.daemon.post(path, body, control=True)
        assert answer.status == 200, answer.body
        return answer

    def processes(self) -> set[int]:
        """Everything that the daemon runs."""
        assert self.daemon.process is not None
        return set(descendants(self.daemon.process.pid))

    def rows(self) -> dict[str, dict[str, Any]]:
        """The list, by key."""
        return {row["key"]: row for row in self.daemon.get("/twins", control=True).json()["twins"]}

    def folder(self, key: str) -> Path:
        return self.daemon.home / "twins" / key

    def says_to(self, key: str, text: str, **more: Any) -> dict[str, Any]:
        """A sentence for a twin; key "" is the brainstem."""
        path = f"/twins/{key}/chat" if key else "/chat"
        answer = self.daemon.post(path, {"user_input": text, **more}, control=True)
        assert answer.status == 200, answer.body
        found: dict[str, Any] = answer.json()
        return found

    @contextmanager
    def talkers(self, key: str, answers: list[Answer]) -> Iterator[None]:
        """Six who talk to a twin without pause; what they get is added to ``answers``."""
        stop = threading.Event()

        def talk() -> None:
            while not stop.is_set():
                body = {"user_input": "go", "turn_id": str(uuid.uuid4())}
                answers.append(self.daemon.post(f"/twins/{key}/chat", body, control=True))

        threads = [threading.Thread(target=talk) for _ in range(6)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            for thread in threads:
                thread.join(60)

    def runs(self, key: str, agent: str, **arguments: Any) -> str:
        """What an agent answers in a turn of a twin that the model lets it run in."""
        self.model.will(calls((agent, arguments)), says("done"))
        self.says_to(key, "go")
        return self.model.results()[agent]

    def remember(self, key: str, content: str) -> None:
        assert "Successfully" in self.runs(key, "ManageMemory", memory_type="fact", content=content)

    def recall(self, key: str) -> str:
        """All that a turn is given of what was remembered: by the system text, and by the agent."""
        said = self.runs(key, "ContextMemory")
        return f"{self.model.system()}\n{said}"

    def system(self, key: str) -> str:
        """What the model is told about whom it speaks for."""
        self.model.will(says("done"))
        self.says_to(key, "hello")
        return self.model.system()


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory, model: FakeModel) -> Iterator[Farm]:
    """One daemon for the tests that leave it running."""
    home = tmp_path_factory.mktemp("farm") / "home"
    daemon = RunningDaemon(home, OPENAI_BASE_URL=model.url, OPENAI_MODEL="small", RAPPD_NAME="desk").start()
    yield Farm(daemon, model)
    daemon.stop()


@pytest.fixture
def lone(make_daemon: Callable[..., RunningDaemon], model: FakeModel) -> Farm:
    """A daemon of the test's own, not started."""
    return Farm(make_daemon(OPENAI_BASE_URL=model.url, OPENAI_MODEL="small", RAPPD_NAME="desk"), model)


def ask(port: int, method: str, path: str, body: Any = None, **headers: str) -> Answer:
    """A request to a port of 127.0.0.1."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        response = connection.getresponse()
        return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
    finally:
        connection.close()


def closed(farm: Farm, port: int) -> bool:
    """Whether no twin of the farm answers there. Anybody may have taken the port meanwhile, twins of others too."""
    try:
        return str(farm.daemon.home) not in ask(port, "GET", "/health").json()["brainstem_dir"]
    except (OSError, ValueError, KeyError):
        return True


def taken(port: int) -> bool:
    """Whether anybody listens there."""
    with socket.socket() as line:
        return line.connect_ex(("127.0.0.1", port)) == 0


# A port of its own.


def test_a_booted_twin_answers_on_its_port_with_its_own_name_and_agents(farm: Farm) -> None:
    key = farm.new("gardener")
    (farm.folder(key) / "agents" / "kettle_agent.py").write_text(AGENT)
    port = farm.boot(key)
    assert port in PORTS
    health = ask(port, "GET", "/health").json()
    assert health["name"] == "gardener"
    assert health["brainstem_dir"] == str(farm.folder(key))
    farm.model.will(calls(("Kettle", {})), says("there"))
    said = ask(port, "POST", "/chat", {"user_input": "go"}).json()
    assert said["response"] == "there"
    assert said["agent_logs"] == "[Kettle] It boils."
    assert farm.rows()[key] | {"last_talk": 0} == farm.rows()[key] | {
        "state": "awake", "port": port, "last_talk": 0,
    }  # fmt: skip
    assert time.time() - farm.rows()[key]["last_talk"] < 60
    assert "Kettle" not in farm.daemon.agent_names(), "the brainstem has no part in it"


def test_booting_again_and_again_at_once_gives_one_port(farm: Farm) -> None:
    key = farm.new("eager")
    with ThreadPoolExecutor(8) as pool:
        ports = set(pool.map(lambda _: farm.boot(key), range(16)))
    assert len(ports) == 1
    farm.post(f"/twins/{key}/stop")
    assert closed(farm, *ports)
    assert farm.rows()[key]["state"] == "asleep"
    assert farm.rows()[key]["port"] is None


def test_booting_and_stopping_at_once_leaves_it_in_one_of_the_two_states(farm: Farm) -> None:
    key = farm.new("torn")
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda n: farm.post(f"/twins/{key}/{'boot' if n % 2 else 'stop'}"), range(24)))
    row = farm.rows()[key]
    farm.model.will(says("I am here"))
    if row["state"] == "awake":
        assert ask(row["port"], "POST", "/chat", {"user_input": "well?"}).json()["response"] == "I am here"
    else:
        assert farm.says_to(key, "well?")["response"] == "I am here"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "localhost:1", "127.0.0.1.evil.example", ""])
def test_a_twins_port_answers_to_this_machines_names_only(farm: Farm, host: str) -> None:
    port = farm.boot(
        next((key for key, row in farm.rows().items() if row["name"] == "named"), "") or farm.new("named")
    )
    for path in ("/health", "/agents"):
        answer = ask(port, "GET", path, Host=host)
        assert (answer.status, answer.json()["code"]) == (403, "refused")
    assert ask(port, "POST", "/chat", {"user_input": "x"}, Host=host).status == 403
    for right in (f"127.0.0.1:{port}", f"localhost:{port}"):
        assert ask(port, "GET", "/health", Host=right).status == 200


def test_a_twins_port_has_no_page_no_operator_and_no_other_twins(farm: Farm) -> None:
    key = farm.new("alone")
    port = farm.boot(key)
    for method, path in (
        ("GET", "/"), ("GET", "/twins"), ("GET", f"/twins/{key}"), ("POST", f"/twins/{key}/chat"),
        ("POST", "/operator/key"), ("GET", "/operator/status"), ("GET", "/threads"), ("GET", "/settings"),
    ):  # fmt: skip
        assert ask(port, method, path, {}).status == 404, path
    for method, path in (("POST", "/agents/new"), ("POST", "/agents/run"), ("DELETE", "/agents/x_agent.py")):
        assert ask(port, method, path, {}).json()["code"] == "not_operator", path


def test_pages_of_other_sites_may_not_use_a_twins_port(farm: Farm) -> None:
    port = farm.boot(farm.new("shy"))
    answer = ask(port, "POST", "/chat", {"user_input": "x"}, Origin="http://evil.example")
    assert answer.status == 403
    assert "access-control-allow-origin" not in answer.headers


def _structural() -> list[tuple[str, str]]:
    own = [(route.method, route.path) for route in twins_door.routes if isinstance(route, web.RouteDef)]
    below = [
        (route.method, f"/twins/{{twin}}{route.path}")
        for route in agent_files.routes
        if isinstance(route, web.RouteDef) and getattr(route.handler, "operator_only", False)
    ]
    return own + below


@pytest.mark.parametrize(("method", "path"), _structural())
def test_twins_and_their_agents_are_the_operators_business(farm: Farm, method: str, path: str) -> None:
    key = next(iter(farm.rows()), "") or farm.new("watched")
    before = farm.rows()
    place = re.sub(r"\{filename:[^}]*\}", "x_agent.py", path.replace("{twin}", key))
    answer = farm.daemon.request(
        method, place, b'{"name": "x", "confirm": true, "filter": {"kind": "personal"}}'
    )
    assert (answer.status, answer.json()["code"]) == (403, "not_operator")
    assert farm.rows().keys() == before.keys()


def test_all_that_talks_to_the_brainstem_talks_to_a_twin_too(farm: Farm) -> None:
    paths = {route.path for table in (chat.routes, agent_files.routes) for route in table}  # type: ignore[attr-defined]
    described = farm.daemon.get("/openapi.json").json()["paths"]
    below = {re.sub(r"\{(\w+):[^}]*\}", r"{\1}", f"/twins/{{twin}}{path}") for path in paths}
    assert below <= described.keys()


# What is its own.


def test_a_twins_memory_is_its_own(farm: Farm) -> None:
    ada, bob = farm.new("Ada"), farm.new("Bob")
    farm.remember(ada, "The spare key lies under the third pot.")
    assert "third pot" in farm.recall(ada)
    for other in (bob, "", farm.new("Cleo")):
        assert "third pot" not in farm.recall(other)
    assert farm.rows()[ada]["memories"] == 1
    assert farm.rows()[bob]["memories"] == 0
    user = str(uuid.uuid4())
    farm.model.will(calls(("ManageMemory", {"memory_type": "fact", "content": "Mine."})), says("kept"))
    farm.says_to(ada, "remember", user_guid=user)
    farm.model.will(calls(("ContextMemory", {})), says("there"))
    farm.says_to(bob, "well?", user_guid=user)
    assert "Mine." not in farm.model.results()["ContextMemory"], "the same person, another twin"
    assert farm.rows()[ada]["memories"] == 2


def test_one_twins_code_cannot_read_what_another_keeps(farm: Farm) -> None:
    if farm.daemon.get("/operator/status", control=True).json()["sandbox"]["kind"] == "none":
        pytest.skip("this kernel offers nothing to shut workers in with")
    keeper, prying = farm.new("keeper"), farm.new("prying")
    farm.remember(keeper, "Nobody else's business.")
    memory = farm.folder(keeper) / ".brainstem_data" / "shared_memories" / "memory.json"
    assert "Nobody else" in memory.read_text()
    for number, path in enumerate((memory, farm.folder(keeper) / "soul.md", farm.daemon.home / "rappd.db")):
        body = f"return open({str(path)!r}, errors='replace').read()"
        (farm.folder(prying) / "agents" / f"pry{number}_agent.py").write_text(
            agent_source(f"Pry{number}", body)
        )
    farm.daemon.wait_for(lambda: farm.system(prying) and "Pry2" in farm.model.tools())
    for number in range(3):
        said = farm.runs(prying, f"Pry{number}")
        assert "Nobody" not in said
        assert re.search("No such file|Permission denied", said), said


def test_an_agent_dropped_into_a_twins_folder_serves_its_turns_and_no_others(farm: Farm) -> None:
    key, other = farm.new("handy"), farm.new("plain")
    for one in (key, other):
        farm.system(one)
        assert "Kettle" not in farm.model.tools()
    file = farm.folder(key) / "agents" / "kettle_agent.py"
    for answer in ("It boils.", "It is cold."):
        file.write_text(agent_source("Kettle", f"return {answer!r}"))
        time.sleep(0.6)  # files are looked at twice a second at most
        assert farm.runs(key, "Kettle") == answer
    farm.system(other)
    assert "Kettle" not in farm.model.tools()
    assert "Kettle" not in farm.daemon.agent_names()


def test_an_edited_soul_is_in_force_at_the_next_turn(farm: Farm) -> None:
    key = farm.new("moody", soul="You are glum.")
    assert farm.system(key).startswith("You are glum.")
    edit = farm.daemon.request(
        "PUT", f"/twins/{key}/soul", {"soul": "You are merry.", "reason": "spring"}, control=True
    )
    assert edit.json()["kept_as"] == 1
    assert farm.system(key).startswith("You are merry.")
    farm.post(f"/twins/{key}/soul/restore", {"number": 1})
    assert farm.system(key).startswith("You are glum.")
    (farm.folder(key) / "soul.md").write_text("You are terse, by hand.")
    assert farm.system(key).startswith("You are terse, by hand.")
    history = farm.daemon.get(f"/twins/{key}/soul", control=True).json()["history"]
    assert {kept["reason"] for kept in history} == {"spring", "before-going-back-to-1"}


def test_two_twins_of_one_name_are_two(farm: Farm) -> None:
    first, second = farm.new("Rose"), farm.new("rose")
    farm.remember(first, "I am the elder.")
    assert "elder" not in farm.recall(second)
    assert farm.boot(first) != farm.boot(second)
    answer = farm.daemon.post("/twins/ROSE/stop", control=True)
    assert (answer.status, answer.json()["code"]) == (409, "twin_conflict")
    assert first[:12] in answer.json()["error"]
    assert second[:12] in answer.json()["error"]
    farm.post(f"/twins/{first[:12]}/stop")
    assert farm.rows()[first]["state"] == "asleep"
    assert farm.rows()[second]["state"] == "awake"


def test_a_fork_keeps_the_memories_and_goes_its_own_way(farm: Farm) -> None:
    key = farm.new("elder", soul="You are old.")
    farm.remember(key, "The well is deep.")
    port = farm.boot(key)
    told = farm.post(f"/twins/{key}/fork", {"name": "younger"}).json()
    fork = told["key"]
    assert farm.rows()[key]["port"] == port, "the original is awake again, where it was"
    assert farm.rows()[fork]["state"] == "asleep"
    assert farm.rows()[fork]["parent_rappid"] == farm.rows()[key]["rappid"]
    assert "The well is deep." in farm.recall(fork)
    farm.remember(fork, "I have seen the sea.")
    farm.remember(key, "I stayed at home.")
    assert "sea" not in farm.recall(key)
    assert "at home" not in farm.recall(fork)
    farm.daemon.request("PUT", f"/twins/{fork}/soul", {"soul": "You are young."}, control=True)
    assert farm.system(key).startswith("You are old.")
    assert farm.system(fork).startswith("You are young.")
    tree = farm.daemon.get(f"/twins/lineage?twin={fork}", control=True).json()["lineage"]
    assert [(row["name"], row["depth"]) for row in tree] == [("elder", 0), ("younger", 1)]


def test_a_renamed_twin_is_called_so_at_once(farm: Farm) -> None:
    key = farm.new("old name")
    port = farm.boot(key)
    farm.post(f"/twins/{key}/rename", {"name": "new name"})
    assert ask(port, "GET", "/health").json()["name"] == "new name"
    assert farm.daemon.get("/twins/new%20name", control=True).json()["twin"]["key"] == key
    assert farm.daemon.get("/twins/old-name", control=True).json()["twin"]["key"] == key, "the slug stays"


def test_conversations_of_one_session_name_are_kept_apart(farm: Farm) -> None:
    ada, bob = farm.new("reader"), farm.new("writer")
    threads = set()
    for key in (ada, bob, ""):
        body = {"user_input": "hi", "session_id": "one", "turn_id": str(uuid.uuid4())}
        path = f"/twins/{key}/chat" if key else "/chat"
        threads.add(farm.daemon.post(path, body).json()["thread"])
    assert len(threads) == 3


# Set aside.


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


def test_a_twin_archived_in_the_middle_of_its_turns_leaves_nothing_behind(farm: Farm) -> None:
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


def test_a_twin_stopped_under_its_talkers_answers_or_says_why_not(farm: Farm) -> None:
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
    assert "dozy sleeps as soon as it has answered." in farm.model.results()["Twin"]
    farm.daemon.wait_for(lambda: farm.rows()[key]["state"] == "asleep")

    farm.boot(key)
    ran = farm.post(f"/twins/{key}/agents/run", {"agent": "Twin", "args": given}).json()
    assert "dozy sleeps as soon as it has answered." in ran["result"]
    farm.daemon.wait_for(lambda: farm.rows()[key]["state"] == "asleep")

    farm.boot(key)
    assert "dozy sleeps." in farm.runs("", "Twin", **given), "nobody talks with it, so it sleeps at once"
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
    farm.daemon.wait_for(lambda: farm.rows()[key]["port"] == port, what="it is awake again")
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
                names.append(ask(port, "GET", "/health").json()["name"])
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
    assert refused == [], "whoever comes meanwhile waits"
    assert not closed(farm, port)
    farm.post(f"/twins/{key}/stop")
    assert closed(farm, port), "a stop keeps nothing"


def test_a_twin_keeps_itself_renames_itself_and_goes_back_after_it_has_answered(farm: Farm) -> None:
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
    farm.daemon.wait_for(lambda: (farm.folder(key) / "soul.md").read_text() != "# Spoiled\n")
    farm.daemon.wait_for(lambda: farm.rows()[key]["state"] == "awake")
    told = farm.runs(key, "Twin", action="checkpoints", rappid_uuid=key)
    assert f"{made['checkpoint']['id']} (while it is good)" in told and "before going back" in told
    missing = farm.runs(key, "Twin", **given, confirm=True, text="1999-01-01")
    assert missing.startswith("Error: ") and 'no checkpoint "1999-01-01"' in missing


def test_a_twin_does_not_set_itself_aside_over_another_of_its_rappid(farm: Farm) -> None:
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


# Stops and kills.


def wakes_where_it_was(farm: Farm, key: str) -> int:
    """Starts the daemon, with a port far up for its twin, and returns the port. Other daemons on this machine take
    ports, too: when the port is another's by then, the start says nothing."""
    for _ in range(5):
        port = random.choice([one for one in PORTS[70:] if not taken(one)])
        (farm.daemon.home / "ports" / f"{key}.port").write_text(f"{port}\n")
        farm.daemon.start()
        farm.daemon.wait_for(lambda: farm.rows()[key]["state"] == "awake")
        if farm.rows()[key]["port"] == port:
            return port
        assert taken(port), "the port was free, and the twin woke on another"
        farm.daemon.stop()
    raise AssertionError("every port that was free was another's at once")


def test_twins_that_were_awake_wake_on_their_ports_after_a_restart_and_a_kill(lone: Farm) -> None:
    lone.daemon.start()
    awake, stopped, asleep = (lone.new(name) for name in ("awake", "stopped", "asleep"))
    lone.boot(awake)
    lone.boot(stopped)
    lone.post(f"/twins/{stopped}/stop")
    lone.daemon.stop()
    marks = lone.daemon.home / "ports"
    assert [mark.name for mark in marks.iterdir()] == [f"{awake}.port"]
    for end in (lone.daemon.kill, lone.daemon.stop):
        (marks / "0000.port").write_text("7151\n")  # of one that is gone
        port = wakes_where_it_was(lone, awake)
        assert ask(port, "GET", "/health").json()["name"] == "awake"
        assert {lone.rows()[key]["state"] for key in (stopped, asleep)} == {"asleep"}
        assert [mark.name for mark in marks.iterdir()] == [f"{awake}.port"]
        end()
        assert closed(lone, port)


def test_a_killed_daemon_loses_nothing_that_a_twin_answered(lone: Farm) -> None:
    lone.daemon.start()
    key = lone.new("steady")
    port = lone.boot(key)
    lone.remember(key, "The gate squeaks.")
    processes = lone.processes()
    turn = str(uuid.uuid4())
    lone.model.will(says("once"))
    first = lone.says_to(key, "only once", turn_id=turn, session_id="s")
    lone.daemon.kill()
    lone.daemon.wait_for(lambda: not any(map(lives, processes)), 10, "workers to follow their daemon")
    somebody = FakeModel()
    somebody.port = port
    try:
        somebody.start()
    except OSError:  # a twin of another daemon was quicker, and may go when it likes
        somebody.stop()
        somebody, port = FakeModel(), random.choice([one for one in PORTS[70:] if not taken(one)])
        somebody.port = port
        somebody.start()
        (lone.daemon.home / "ports" / f"{key}.port").write_text(f"{port}\n")
    try:
        lone.daemon.start()
        lone.daemon.wait_for(lambda: lone.rows()[key]["state"] == "awake")
    finally:
        somebody.stop()
    assert lone.rows()[key]["port"] in set(PORTS) - {port}, "its own was taken meanwhile"
    assert lone.rows()[key]["memories"] == 1
    assert time.time() - lone.rows()[key]["last_talk"] < 120
    lone.model.will(says("twice"))
    again = lone.says_to(key, "only once", turn_id=turn, session_id="s")
    assert (again["response"], again["thread"]) == ("once", first["thread"])
    assert lone.model.asked == []
    assert "The gate squeaks." in lone.recall(key)
    verified = lone.daemon.cli("threads", "verify", "--json")
    assert verified.returncode == 0, verified.stdout


def test_more_twins_than_are_kept_open_all_answer_at_once(lone: Farm) -> None:
    del lone.daemon.environment["OPENAI_BASE_URL"]
    lone.daemon.environment["LLM_FAKE"] = "1"
    rappids = [Rappid.parse(f"rappid:@desk/many:{2**255 + number:064x}") for number in range(MOST_OPEN + 4)]
    for number, rappid in enumerate(rappids):
        lone.folder(rappid.key).mkdir(parents=True)
        identity = Identity.new(rappid, name=f"one of many {number}", kind="many", born_at=datetime.now(UTC))
        (lone.folder(rappid.key) / "rappid.json").write_bytes(identity.encode())
    keys = [rappid.key for rappid in rappids]
    lone.daemon.start()

    def talk(key: str) -> str:
        answer = lone.daemon.post(f"/twins/{key}/chat", {"user_input": f"I am {key[-4:]}"})
        assert answer.status == 200, answer.body
        assert answer.json()["agent_logs"].startswith("[ContextMemory] "), "its workers are its own"
        assert "stopped" not in answer.json()["agent_logs"]
        return str(answer.json()["response"])

    # Round and round, so that whoever was closed last is wanted next.
    with ThreadPoolExecutor(12) as pool:
        said = list(pool.map(talk, keys * 3))
    assert said == [f"fake-llm: I am {key[-4:]}" for key in keys * 3]


def test_without_a_model_a_name_that_nobody_has_is_not_taken_for_a_twin_that_failed(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon().start()

    def says(text: str) -> str:
        answer = daemon.post("/chat", {"user_input": text}, control=True)
        assert answer.status == 200, answer.body
        return str(answer.json()["response"])

    nobody = says("show me Paris")
    assert nobody.startswith(
        '(no model) No twin is called "Paris", and none of my agents does that. I can: recall'
    ), nobody
    assert says("show me the twin Paris") == '(no model) Twin failed: No twin "Paris".', "it was meant"
    city = agent_source("Map", 'return "A map of " + kwargs["city"]', "Shows a city on a map.",
                        '{"city": {"type": "string", "description": "The city"}}')  # fmt: skip
    daemon.post("/twins", {"name": "Paris"}, control=True)
    assert says("show me Paris").startswith("(no model) Paris (personal, asleep)")
    daemon.drop("map_agent.py", city)
    daemon.wait_for(lambda: "Map" in daemon.agent_names())
    assert says("show me the city Paris on a map") == "(no model) A map of Paris"
    assert says("show me Paris").startswith("(no model) Paris (personal, asleep)")
