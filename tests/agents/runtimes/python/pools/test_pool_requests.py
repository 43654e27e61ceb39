"""Requests that are answered: by whom, in what order, with what."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agents.errors import AgentError, WorkerDiedError, WorkerStartError
from agents.runtimes.python.pools.errors import AgentRaisedError
from agents.runtimes.python.pools.pool import WorkerPool
from agents.runtimes.python.pools.supervisor import WorkerSupervisor
from agents.runtimes.python.pools.worker_quota import WorkerQuota
from tests.agents.runtimes.python.pools.trial_home import Home, MakePlan, until


async def test_an_answer_comes_back(pool: WorkerPool) -> None:
    body = {"text": "naïve ☂", "numbers": [1, 2.5, None, True], "nested": {"deep": [{}]}}
    assert await pool.request("echo", body, timeout=100) == body


async def test_state_in_memory_lives_on_between_requests(pool: WorkerPool) -> None:
    first = await pool.request("whoami", {}, timeout=100)
    second = await pool.request("whoami", {}, timeout=100)
    assert (first["count"], second["count"]) == (1, 2)


async def test_worker_has_configured_environment_only(
    supervisor: WorkerSupervisor, plan: MakePlan, home: Home
) -> None:
    os.environ["RAPPD_TEST_SECRET"] = "token"
    try:
        pool = supervisor.pool("a", plan(settings={"name": "a"}, env={"LANG": "C.UTF-8", "TZ": "UTC"}))
        told = await pool.request("whoami", {}, timeout=100)
    finally:
        del os.environ["RAPPD_TEST_SECRET"]
    threads = {name for name in told["env"] if name.endswith("_NUM_THREADS")}
    assert {name: told["env"][name] for name in told["env"].keys() - threads} == {
        "LANG": "C.UTF-8",
        "TZ": "UTC",
    }
    assert {told["env"][name] for name in threads} == {"1"}, "libraries leave no idle threads behind a call"
    assert told["settings"] == {"name": "a"}
    where = await pool.request("where", {}, timeout=100)
    assert where["cwd"] == str(home.workspace)
    environ = await pool.request("read", {"path": "/proc/self/environ"}, timeout=100)
    assert "token" not in environ


async def test_packages_of_the_daemon_are_not_the_agents(pool: WorkerPool) -> None:
    where = await pool.request("where", {}, timeout=100)
    assert not [path for path in where["path"] if "site-packages" in path]
    assert "aiohttp" not in where["modules"]
    assert await pool.request("can_import", {"name": "agents.runtimes.python.pools.config"}, timeout=100)
    for name in ("aiohttp", "requests", "neighborhoods", "rappd"):
        assert not await pool.request("can_import", {"name": name}, timeout=100), name


@pytest.mark.parametrize("size", [10_000, 60_000, 61_440, 100_000, 5_000_000])
async def test_large_requests_and_answers(pool: WorkerPool, size: int) -> None:
    text = "x" * size
    assert await pool.request("echo", {"text": text}, timeout=100) == {"text": text}


async def test_large_requests_wait_for_memory(pool: WorkerPool) -> None:
    texts = [str(number) * 50_000 for number in range(60)]
    answers = await asyncio.gather(*(pool.request("echo", {"t": text}, timeout=100) for text in texts))
    assert [answer["t"] for answer in answers] == texts


async def test_what_agent_code_raises_arrives_with_its_line(pool: WorkerPool, home: Home) -> None:
    agent = home.workspace / "agent.py"
    agent.write_text("import json\n\njson.loads('{')\n")
    with pytest.raises(AgentRaisedError) as caught:
        await pool.request("run_file", {"path": str(agent)}, timeout=10)
    assert caught.value.kind == "JSONDecodeError"
    assert caught.value.line == 3
    assert "line 3" in str(caught.value)
    assert "agent.py" in caught.value.trace
    assert await pool.request("echo", {"still": "here"}, timeout=100) == {"still": "here"}


async def test_a_syntax_error_has_its_own_line(pool: WorkerPool, home: Home) -> None:
    agent = home.workspace / "agent.py"
    agent.write_text("x = 1\nif x\n")
    with pytest.raises(AgentRaisedError) as caught:
        await pool.request("run_file", {"path": str(agent)}, timeout=10)
    assert (caught.value.kind, caught.value.line, caught.value.message) == ("SyntaxError", 2, "expected ':'")


@pytest.mark.parametrize(
    "code",
    [
        "class Rude(Exception):\n    def __str__(self): raise ValueError\nraise Rude()",
        "raise ValueError('\\udc80')",
        "answer = object()",
        "answer = 'x' * (70 << 20)",
        "raise SystemExit(4)",
        "def f(): f()\nf()",
    ],
)
async def test_odd_failures_are_failures_of_that_request_only(
    supervisor: WorkerSupervisor, plan: MakePlan, code: str
) -> None:
    pool = supervisor.pool("a", plan(max_workers=1))  # a slow answer is no reason for another one
    before = await pool.request("whoami", {}, timeout=100)
    with pytest.raises(AgentRaisedError):
        await pool.request("run", {"code": code}, timeout=20)
    after = await pool.request("whoami", {}, timeout=100)
    assert after["count"] == before["count"] + 2, "another worker answered"


async def test_a_body_that_is_no_json_is_refused_before_it_travels(pool: WorkerPool) -> None:
    with pytest.raises(TypeError):
        await pool.request("echo", {"x": object()}, timeout=10)


async def test_ten_thousand_requests_run_exactly_once(pool: WorkerPool, home: Home) -> None:
    book = home.workspace / "book"
    first = [
        pool.request("append", {"path": str(book), "line": f"s{n}", "pause": 0.3}, timeout=100)
        for n in range(8)
    ]
    pids = await asyncio.gather(*first)
    await until(lambda: pool.stats()["workers"] == 4)
    rest = [pool.request("append", {"path": str(book), "line": str(n)}, timeout=100) for n in range(10_000)]
    await asyncio.gather(*rest)
    counted = Counter(book.read_text().split())
    assert set(counted) == {str(n) for n in range(10_000)} | {f"s{n}" for n in range(8)}
    assert set(counted.values()) == {1}
    assert len(pids) == 8
    assert pool.stats()["workers"] == 4


async def test_slow_requests_run_in_parallel_quick_in_one_worker(pool: WorkerPool) -> None:
    for _ in range(50):
        await pool.request("echo", {}, timeout=100)
    assert pool.stats()["workers"] == 1
    await asyncio.gather(*(pool.request("sleep", {"seconds": 0.5}, timeout=100) for _ in range(4)))
    assert pool.stats()["workers"] > 1


async def stop(pid: int) -> None:
    """Has it stand still; not before it does can a request be put where it would not take it."""
    os.kill(pid, signal.SIGSTOP)
    await until(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")


async def test_a_slow_request_does_not_hold_up_a_quick_one(pool: WorkerPool) -> None:
    slow = asyncio.create_task(pool.request("sleep", {"seconds": 30}, timeout=100))
    await until(lambda: pool.stats()["pids"])
    assert await pool.request("echo", {"quick": 1}, timeout=100) == {"quick": 1}
    assert not slow.done()
    slow.cancel()


async def test_one_worker_does_one_thing_at_a_time_in_one_process(
    supervisor: WorkerSupervisor, plan: MakePlan
) -> None:
    pool = supervisor.pool("a", plan(one_worker=True))
    pauses = [pool.request("sleep", {"seconds": 0.15}, timeout=100) for _ in range(3)]
    await asyncio.gather(*pauses)
    counts = [await pool.request("whoami", {}, timeout=100) for _ in range(2)]
    assert pool.stats()["workers"] == 1
    assert [told["count"] for told in counts] == [4, 5]


async def test_second_one_worker_waits_until_the_last_has_left(
    supervisor: WorkerSupervisor, plan: MakePlan, home: Home
) -> None:
    pool = supervisor.pool("a", plan(one_worker=True))
    book = home.workspace / "book"
    last = asyncio.create_task(
        pool.request("append", {"path": str(book), "line": "last", "pause": 0.5}, timeout=100)
    )
    await until(book.exists)
    supervisor.pool("a", plan(one_worker=True, settings={"new": True}))
    assert (await pool.request("whoami", {}, timeout=100))["settings"] == {"new": True}
    assert last.done(), "two processes had the agent's state in memory at once"
    await last


async def test_pools_that_share_a_quota_have_no_more_workers_at_work_together(
    supervisor: WorkerSupervisor, plan: MakePlan, home: Home
) -> None:
    quota = WorkerQuota(1)
    first, second = (supervisor.pool(name, plan(), quota) for name in ("a", "b"))
    begun, go = home.workspace / "begun", home.workspace / "go"
    code = f"import os, time\nopen({str(begun)!r}, 'w').close()\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)"
    busy = asyncio.create_task(first.request("run", {"code": code}, timeout=100))
    await until(begun.exists)
    waits = asyncio.create_task(second.request("whoami", {}, timeout=100))
    await until(lambda: second.stats()["waiting"] == 1)
    await asyncio.sleep(0.2)
    assert (second.stats()["workers"], second.stats()["waiting"]) == (0, 1)
    go.touch()
    assert (await waits)["count"] == 1 and busy.done()
    assert (await first.request("whoami", {}, timeout=100))["count"] == 1, "its idle worker made room"
    await busy


async def test_a_worker_may_call_back(pool: WorkerPool) -> None:
    asked = []

    async def answer(operation: str, arguments: dict[str, Any]) -> Any:
        asked.append((operation, arguments))
        await asyncio.sleep(0)
        return {"text": "hello"}

    body = {"operation": "model", "arguments": {"prompt": "hi"}}
    assert await pool.request("ask", body, timeout=100, on_callback=answer) == {"heard": {"text": "hello"}}
    assert asked == [("model", {"prompt": "hi"})]


async def test_a_callback_without_handler_is_refused(pool: WorkerPool) -> None:
    with pytest.raises(AgentRaisedError) as caught:
        await pool.request("ask", {"operation": "model", "arguments": {}}, timeout=10)
    assert caught.value.kind == "CallbackRefusedError"
    assert "nobody here answers 'model'" in caught.value.message


async def test_a_failing_callback_tells_its_own_words_but_not_a_bugs(pool: WorkerPool) -> None:
    async def refuse(operation: str, arguments: dict[str, Any]) -> Any:
        if operation == "model":
            raise AgentError("No budget left")
        raise RuntimeError("internal detail")

    for operation, words in (("model", "No budget left"), ("other", "other failed")):
        with pytest.raises(AgentRaisedError) as caught:
            await pool.request(
                "ask", {"operation": operation, "arguments": {}}, timeout=10, on_callback=refuse
            )
        assert caught.value.message == words
        assert "internal detail" not in caught.value.trace


async def test_a_callback_after_the_request_is_not_performed(pool: WorkerPool, home: Home) -> None:
    heard: list[str] = []

    async def hear(operation: str, arguments: dict[str, Any]) -> None:
        heard.append(operation)

    note = home.workspace / "note"
    await pool.request("ask_later", {"path": str(note)}, timeout=100, on_callback=hear)
    for _ in range(10):
        assert await pool.request("echo", {}, timeout=100, on_callback=hear) == {}
        await asyncio.sleep(0.02)
    assert heard == []
    assert not note.exists(), "the thread that was left behind ended with its worker"


async def test_a_forked_child_that_returns_does_not_answer_twice(pool: WorkerPool) -> None:
    await pool.request("fork_and_return", {}, timeout=100)
    for number in range(20):
        assert await pool.request("echo", {"n": number}, timeout=100) == {"n": number}
    assert await pool.request("parallel", {"number": 4}, timeout=100) == [0, 1, 4, 9]


async def test_an_idle_pool_has_no_processes_and_wakes_again(
    supervisor: WorkerSupervisor, plan: MakePlan
) -> None:
    pool = supervisor.pool("a", plan(idle_seconds=0.2))
    first = await pool.request("whoami", {}, timeout=100)
    await until(lambda: pool.stats()["workers"] == 0)
    second = await pool.request("whoami", {}, timeout=100)
    assert (first["count"], second["count"]) == (1, 1)


async def test_a_busy_pool_is_not_idle(supervisor: WorkerSupervisor, plan: MakePlan) -> None:
    pool = supervisor.pool("a", plan(idle_seconds=0.1, max_workers=1))
    busy = asyncio.create_task(pool.request("sleep", {"seconds": 0.6}, timeout=100))
    await asyncio.sleep(0)
    behind = asyncio.create_task(pool.request("whoami", {}, timeout=100))
    assert await busy == "awake"
    assert (await behind)["count"] == 2


@pytest.mark.parametrize("idle_seconds", [4.0, float("inf")])
async def test_rare_quick_requests_keep_a_worker(
    supervisor: WorkerSupervisor, plan: MakePlan, idle_seconds: float
) -> None:
    pool = supervisor.pool("a", plan(idle_seconds=idle_seconds, max_workers=1))
    for number in range(1, 16):
        assert (await pool.request("whoami", {}, timeout=100))["count"] == number
        await asyncio.sleep(0.4)


async def test_retiring_finishes_the_old_and_starts_fresh(
    supervisor: WorkerSupervisor, plan: MakePlan, home: Home
) -> None:
    pool = supervisor.pool("a", plan(max_workers=1))
    book = home.workspace / "book"
    body = {"path": str(book), "line": "begun", "pause": 0.5}
    slow = asyncio.create_task(pool.request("append", body, timeout=100))
    queued = asyncio.create_task(pool.request("whoami", {}, timeout=100))
    await until(book.exists)
    assert supervisor.pool("a", plan(max_workers=1, settings={"new": True})) is pool
    fresh = await pool.request("whoami", {}, timeout=100)
    assert fresh["settings"] == {"new": True}
    assert fresh["count"] == 2, "it performed the one that waited first"
    assert await slow > 0
    assert (await queued)["settings"] == {"new": True}
    await until(lambda: pool.stats()["workers"] == 1)


async def test_closing_fails_what_is_under_way_and_leaves_no_process(
    supervisor: WorkerSupervisor, plan: MakePlan
) -> None:
    pool = supervisor.pool("a", plan(max_workers=1))
    tasks = [asyncio.create_task(pool.request("sleep", {}, timeout=100)) for _ in range(3)]
    await until(lambda: pool.stats()["pids"])
    pids = pool.stats()["pids"]
    await supervisor.remove("a")
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        assert isinstance(outcome, WorkerDiedError)
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
    with pytest.raises(WorkerDiedError):
        await pool.request("echo", {}, timeout=10)


async def test_failed_host_is_reported_and_tried_again(supervisor: WorkerSupervisor, plan: MakePlan) -> None:
    pool = supervisor.pool("a", plan(settings={"break": "no such soul"}))
    outcomes = await asyncio.gather(
        *(pool.request("echo", {}, timeout=100) for _ in range(3)), return_exceptions=True
    )
    for outcome in outcomes:
        assert isinstance(outcome, WorkerStartError)
        assert "RuntimeError: no such soul" in str(outcome)
    pool.retire(plan())
    assert await pool.request("echo", {}, timeout=100) == {}


async def test_unknown_host_module_is_reported(supervisor: WorkerSupervisor, plan: MakePlan) -> None:
    pool = supervisor.pool("a", plan(room="agents.nowhere:Room"))
    with pytest.raises(WorkerStartError, match="No module named"):
        await pool.request("echo", {}, timeout=10)


async def test_an_exit_while_loading_is_told(supervisor: WorkerSupervisor, plan: MakePlan) -> None:
    pool = supervisor.pool("a", plan(settings={"exit": 7}))
    with pytest.raises(WorkerDiedError, match=r"ended itself \(exit 7\) before it could serve"):
        await pool.request("echo", {}, timeout=10)
