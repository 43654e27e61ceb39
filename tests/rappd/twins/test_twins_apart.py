"""Memory, agents, soul, name and conversations of a twin are its own."""

from __future__ import annotations

import re
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

from fixtures.kernel_features import end_without, offers
from fixtures.loopback_server import calls, says
from fixtures.running_daemon import agent_source, on
from fixtures.twin_farm import Farm


def test_a_twins_memory_is_its_own(farm: Farm) -> None:
    ada, bob = farm.new("Ada"), farm.new("Bob")
    farm.remember(ada, "The spare key lies under the third pot.")
    assert "in Ada's memory" in farm.model.results()["ManageMemory"]
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
    if (kind := farm.daemon.get("/operator/status", control=True).json()["sandbox"]["kind"]) == "none":
        end_without("mount namespace" if offers("mount namespace") else "landlock", kind)
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


def test_agent_in_twins_folder_serves_that_twin_only(farm: Farm) -> None:
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


def test_turn_that_comes_while_a_file_is_being_read_waits_for_it(farm: Farm) -> None:
    key = farm.new("slow")
    farm.system(key)
    time.sleep(0.6)  # as above
    (farm.folder(key) / "agents" / "lamp_agent.py").write_text(
        f"import time\ntime.sleep(2)\n{agent_source('Lamp', 'return 1')}"
    )
    farm.model.will(says("done"), says("done"))
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(farm.says_to, key, "hello")
        time.sleep(0.4)  # it began to look
        second = pool.submit(farm.says_to, key, "hello, too")
        assert first.result() and second.result()
    assert ["Lamp" in farm.model.tools(number) for number in range(len(farm.model.asked))] == [True, True]


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
    assert farm.rows()[key]["port"] == port, "the original is running again, where it was"
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
    assert on(port, "GET", "/health").json()["name"] == "new name"
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
