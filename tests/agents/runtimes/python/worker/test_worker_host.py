"""Requests of the daemon to a worker host, as a workspace changes under it."""

from __future__ import annotations

import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from agents.runtimes.python.pools.errors import AgentRaisedError

ALICE, BOB = "11111111-aaaa-bbbb-cccc-123456789abc", "22222222-aaaa-bbbb-cccc-123456789abc"

COUNTER = """
from agents.basic_agent import BasicAgent


class Counter(BasicAgent):
    def __init__(self):
        self.count = 0
        super().__init__("Counter", {"name": "Counter", "description": "Counts"})

    def perform(self, **kwargs):
        self.count += 1
        return f"{self.count} in {__file__}"
"""


async def test_a_file_is_loaded_once_and_again_when_it_changes(worker_host: Any) -> None:
    file = worker_host.write("counter_agent.py", COUNTER)
    where = f"in {worker_host.agents / 'counter_agent.py'}"
    assert await worker_host.perform(file, "Counter") == f"1 {where}"
    assert await worker_host.perform(file, "Counter") == f"2 {where}"
    changed = worker_host.write("counter_agent.py", COUNTER.replace("self.count += 1", "self.count += 10"))
    assert await worker_host.perform(changed, "Counter") == f"10 {where}"


async def test_the_version_asked_for_is_run_from_its_kept_copy(worker_host: Any, simple: str) -> None:
    good = worker_host.write("simple_agent.py", simple.format(text="good"))
    kept = worker_host.data / "kept.py"
    kept.write_text((worker_host.agents / "simple_agent.py").read_text())
    worker_host.write("simple_agent.py", "def broken(:\n")
    assert (await worker_host.describe("simple_agent.py"))["failure"]["line"] == 1
    assert await worker_host.perform({**good, "source_path": str(kept)}, "Simple") == "good"


async def test_a_kept_copy_sees_the_place_of_the_original(worker_host: Any) -> None:
    good = worker_host.write("counter_agent.py", COUNTER)
    kept = worker_host.data / "kept.py"
    kept.write_text(COUNTER)
    (worker_host.agents / "counter_agent.py").unlink()
    answer = await worker_host.perform({**good, "source_path": str(kept)}, "Counter")
    assert answer == f"1 in {worker_host.agents / 'counter_agent.py'}"


async def test_a_file_that_went_away_is_said_to_be_gone(worker_host: Any, simple: str) -> None:
    file = worker_host.write("simple_agent.py", simple.format(text="here"))
    (worker_host.agents / "simple_agent.py").unlink()
    with pytest.raises(
        AgentRaisedError, match=r"simple_agent\.py has no agent Simple now: it cannot be read"
    ):
        await worker_host.perform(file, "Simple")


async def test_an_agent_that_is_not_in_the_file(worker_host: Any, simple: str) -> None:
    file = worker_host.write("simple_agent.py", simple.format(text="here"))
    with pytest.raises(AgentRaisedError, match=r"simple_agent\.py has no agent Other now"):
        await worker_host.perform(file, "Other")


async def test_an_imported_neighbour_is_never_out_of_date(worker_host: Any, simple: str) -> None:
    worker_host.write("simple_agent.py", simple.format(text="first"))
    importer = worker_host.write(
        "importer_agent.py",
        "from agents.basic_agent import BasicAgent\n"
        "from agents.simple_agent import Simple\n"
        "import words\n\n\n"
        "class Importer(BasicAgent):\n"
        "    def perform(self, **kwargs):\n"
        "        return words.WORD + ' ' + Simple().perform()\n",
    )
    worker_host.write("words.py", "WORD = 'the'\n")
    assert await worker_host.perform(importer, "Importer") == "the first"
    worker_host.write("simple_agent.py", simple.format(text="second"))
    assert await worker_host.perform(importer, "Importer") == "the second"
    worker_host.write("words.py", "WORD = 'a'\n")
    assert await worker_host.perform(importer, "Importer") == "a second"


async def test_the_workspaces_own_utils_go_on_to_work(worker_host: Any) -> None:
    (worker_host.root / "utils").mkdir()
    (worker_host.root / "utils" / "greeting.py").write_text("WORD = 'hello'\n")
    file = worker_host.write(
        "greeter_agent.py",
        "from basic_agent import BasicAgent\nfrom utils.greeting import WORD\n\n\n"
        "class Greeter(BasicAgent):\n    def perform(self, **kwargs):\n        return WORD\n",
    )
    assert await worker_host.perform(file, "Greeter") == "hello"


async def test_packages_come_from_the_workspace_before_anything_else(worker_host: Any) -> None:
    file = worker_host.write(
        "path_agent.py",
        "import sys\nfrom basic_agent import BasicAgent\n\n\n"
        "class Path(BasicAgent):\n    def perform(self, **kwargs):\n        return sys.path[0]\n",
    )
    assert await worker_host.perform(file, "Path") == worker_host.pool.plan.settings["deps_dir"]
    assert sys.path[0] != worker_host.pool.plan.settings["deps_dir"], "only the worker's path changes"


async def test_system_context_is_the_callers_own(collection: Any) -> None:
    asked = {
        "agents": [
            {"file": collection.file("system_context_agent.py"), "name": "SystemContext"},
            {"file": collection.file("system_context_raises_agent.py"), "name": "SystemContextRaises"},
            {"file": collection.file("base_plain_agent.py"), "name": "BasePlain"},
        ],
        "user_guid": ALICE,
    }
    found = await collection.ask("system_context", asked)
    assert found == {
        "SystemContext": f"<who>{ALICE}</who>",
        "SystemContextRaises": None,
        "BasePlain": None,
    }
    again = await collection.ask("system_context", {**asked, "user_guid": BOB})
    assert again["SystemContext"] == f"<who>{BOB}</who>"
    shared = await collection.ask("system_context", {**asked, "user_guid": None})
    assert shared["SystemContext"] == "<who>None</who>"


async def test_memories_of_two_users_stay_apart(collection: Any) -> None:
    file = collection.file("storage_memory_agent.py")
    assert await collection.perform(file, "StorageMemory", ALICE, query="tea") == "1"
    assert await collection.perform(file, "StorageMemory", ALICE, query="milk") == "2"
    assert await collection.perform(file, "StorageMemory", BOB, query="coffee") == "1"
    memory = collection.data / "memory"
    assert "coffee" not in (memory / ALICE / "user_memory.json").read_text()
    assert "coffee" in (memory / BOB / "user_memory.json").read_text()


async def test_a_storage_forgets_whose_memory_an_earlier_call_chose(worker_host: Any) -> None:
    file = worker_host.write(
        "diary_agent.py",
        "from agents.basic_agent import BasicAgent\n"
        "from utils.storage_factory import get_storage_manager\n\n"
        "STORE = get_storage_manager()\n\n\n"
        "class Diary(BasicAgent):\n"
        "    def perform(self, whose=None, **kwargs):\n"
        "        if whose:\n"
        "            STORE.set_memory_context(whose)\n"
        "        return str(STORE.current_guid)\n",
    )
    assert await worker_host.perform(file, "Diary", whose=ALICE) == ALICE
    assert await worker_host.perform(file, "Diary") == "None"


async def test_an_agent_asks_the_model_through_the_daemon(collection: Any) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []

    async def answer(operation: str, arguments: dict[str, Any]) -> Any:
        asked.append((operation, arguments))
        if operation == "llm_status":
            return {"available": True, "provider": "local", "model": "m", "reason": ""}
        return {"text": "It will rain.", "model": "m"}

    body = {
        "file": collection.file("uses_llm_agent.py"),
        "name": "UsesLlm",
        "arguments": {"query": "rain?"},
        "user_guid": "",
    }
    found = await collection.ask("perform", body, answer)
    assert found["result"] == "It will rain."
    assert asked[1] == (
        "llm",
        {"messages": [{"role": "user", "content": "rain?"}], "tools": [], "model": None},
    )


async def test_agent_gets_the_daemons_refusal(collection: Any) -> None:
    async def refuse(operation: str, arguments: dict[str, Any]) -> Any:
        raise PermissionError(f"{operation} {arguments['operation']} for {arguments['state']}: not allowed")

    body = {
        "file": collection.file("uses_host_agent.py"),
        "name": "UsesHost",
        "arguments": {},
        "user_guid": "",
    }
    with pytest.raises(AgentRaisedError, match="CallbackRefusedError"):
        await collection.ask("perform", body, refuse)

    async def allow(operation: str, arguments: dict[str, Any]) -> Any:
        return [operation, arguments]

    found = await collection.ask("perform", body, allow)
    assert found["result"] == "['host', {'state': 'awake', 'operation': 'twins.list'}]"


async def test_slush_that_is_not_json_still_arrives(worker_host: Any) -> None:
    file = worker_host.write(
        "clock_agent.py",
        "import datetime\nfrom basic_agent import BasicAgent\n\n\n"
        "class Clock(BasicAgent):\n"
        "    def perform(self, **kwargs):\n"
        "        day = datetime.timedelta(days=1)\n"
        "        return {'data_slush': {'span': day, (1, 2): 3}}\n",
    )
    body = {"file": file, "name": "Clock", "arguments": {}, "user_guid": ""}
    assert (await worker_host.ask("perform", body))["data_slush"] == {"span": "1 day, 0:00:00"}


async def test_upstream_slush_reaches_the_context(worker_host: Any) -> None:
    file = worker_host.write(
        "listener_agent.py",
        "from agents.basic_agent import BasicAgent\n\n\n"
        "class Listener(BasicAgent):\n"
        "    def perform(self, **kwargs):\n        return str(self.context.slush['mood'])\n",
    )
    body = {
        "file": file,
        "name": "Listener",
        "arguments": {},
        "user_guid": "",
        "upstream_slush": {"mood": "calm"},
    }
    assert (await worker_host.ask("perform", body))["result"] == "calm"


async def test_memories_reach_the_context(collection: Any) -> None:
    file = collection.file("storage_memory_agent.py")
    await collection.perform(file, "StorageMemory", ALICE, query="the tomatoes are dry today")
    echo = collection.write(
        "echo_agent.py",
        "from agents.basic_agent import BasicAgent\n\n\n"
        "class Echo(BasicAgent):\n"
        "    def perform(self, **kwargs):\n"
        "        return ' | '.join(found['message'] for found in self.context.memory)\n",
    )
    assert (
        await collection.perform(echo, "Echo", ALICE, query="are tomatoes dry")
        == "the tomatoes are dry today"
    )
    assert await collection.perform(echo, "Echo", BOB, query="are tomatoes dry") == ""


async def test_an_unknown_request_is_refused(worker_host: Any) -> None:
    with pytest.raises(AgentRaisedError, match="a worker does not know 'dance'"):
        await worker_host.ask("dance", {})


@pytest.mark.parametrize("op", ["describe", "perform"])
async def test_only_the_bytes_that_were_checked_are_run(worker_host: Any, op: str) -> None:
    trace = worker_host.agents / "RAN"
    path = worker_host.agents / "late_agent.py"
    path.write_text(f"open({str(trace)!r}, 'w').close()\n")
    stamp = path.stat()
    file = {
        "rel": path.name,
        "path": str(path),
        "stamp": [stamp.st_mtime_ns, stamp.st_size, stamp.st_ino],
        "sha256": sha256(b"what the daemon read a moment before").hexdigest(),
    }
    if op == "describe":
        found = (await worker_host.ask("describe", {"files": [file]}))["files"][0]
        assert (found["agents"], found["failure"]["reason"]) == ([], "it is not the version that was checked")
    else:
        with pytest.raises(AgentRaisedError, match="not the version that was checked"):
            await worker_host.ask("perform", {"file": file, "name": "Late"})
    assert not trace.exists()


async def test_a_service_answers_and_follows_its_file(worker_host: Any) -> None:
    service = worker_host.services / "board_service.py"

    def write(text: str) -> None:
        temporary = Path(f"{service}.tmp")
        temporary.write_text(text)
        temporary.replace(service)

    async def ask(path: str = "") -> Any:
        content = service.read_bytes() if service.exists() else b""
        file = {"path": str(service), "sha256": sha256(content).hexdigest()}
        body = {"file": file, "method": "GET", "path": path, "body": {}}
        return await worker_host.ask("service", body)

    with pytest.raises(AgentRaisedError, match=r"board_service\.py cannot be read"):
        await ask()
    write("def handle(method, path, body):\n    return {'path': path}, 200\n")
    found = await ask(path="tasks/7")
    assert (found["status"], found["headers"]) == (200, {"Content-Type": "application/json"})
    assert found["body"] == "eyJwYXRoIjoidGFza3MvNyJ9"
    write("def handle(method path, body):\n")
    assert (await ask(path="tasks/7"))["status"] == 200, "the earlier version works on"
    write("def handle(method, path, body):\n    return {}, 201\n")
    assert (await ask())["status"] == 201


async def test_trusted_host_loads_standard_library_first(worker_host: Any) -> None:
    packages = worker_host.root / ".deps"
    packages.mkdir()
    (packages / "colorsys.py").write_text("planted = True\n")
    text = (
        COUNTER.replace("self.count += 1", "import colorsys")
        .replace("{self.count} in {__file__}", "{hasattr(colorsys, 'planted')}")
        .replace("self.count = 0", "pass")
    )
    file = worker_host.write("counter_agent.py", text)
    answers = []
    for last in (False, True):
        settings = {**worker_host.pool.plan.settings, "deps_dir": str(packages), "deps_last": last}
        worker_host.pool.retire(replace(worker_host.pool.plan, settings=settings))
        answers.append(await worker_host.perform(file, "Counter"))
    assert answers == ["True", "False"]
