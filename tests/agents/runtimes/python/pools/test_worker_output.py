"""The output of workers: all of it, line by line, unless it is a flood."""

from __future__ import annotations

import asyncio
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.errors import WorkerDiedError
from agents.runtimes.python.pools.pool import WorkerPool
from agents.runtimes.python.pools.supervisor import WorkerSupervisor
from agents.runtimes.python.pools.worker_handle import WorkerHandle
from agents.runtimes.python.worker.printed_output import LINE_BYTES, Output
from tests.agents.runtimes.python.pools.trial_home import Home, until


async def test_lines_arrive_with_pool_and_process(
    supervisor: WorkerSupervisor, pool: WorkerPool, home: Home
) -> None:
    await pool.request("talk", {"lines": 3, "text": "naïve"}, timeout=100)
    await until(lambda: len(home.printed) == 3)
    assert home.printed == [("a", pool.stats()["pids"][0], f"naïve {n}") for n in range(3)]


async def test_worker_gets_calls_once_its_process_is_known(
    pool: WorkerPool, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = WorkerHandle.on_started
    late = asyncio.Event()

    def start_late(link: WorkerHandle, pid: int) -> None:
        asyncio.get_running_loop().call_later(0.2, lambda: (started(link, pid), late.set()))

    monkeypatch.setattr(WorkerHandle, "on_started", start_late)
    await pool.request("talk", {"lines": 3, "text": "early"}, timeout=100)
    assert late.is_set()
    await until(lambda: len(home.printed) == 3)
    assert home.printed == [("a", pool.stats()["pids"][0], f"early {n}") for n in range(3)]


async def test_lines_arrive_while_the_call_still_runs(pool: WorkerPool, home: Home) -> None:
    code = "import time; print('begun'); time.sleep(60)"
    task = asyncio.create_task(pool.request("run", {"code": code}, timeout=100))
    await until(lambda: home.lines() == ["begun"])
    task.cancel()


async def test_an_unfinished_line_arrives_at_the_end(
    supervisor: WorkerSupervisor, pool: WorkerPool, home: Home
) -> None:
    await pool.request("mutter", {"text": "hm"}, timeout=100)
    await supervisor.remove("a")
    pool = supervisor.pool("b", pool.plan)
    await pool.request("mutter", {"text": "hm"}, timeout=100)
    pool.retire()
    await until(lambda: "b" in [key for key, _, _ in home.printed])
    assert set("".join(line for key, _, line in home.printed if key == "b")) == set("hm!")


async def test_the_words_of_a_crash_arrive(pool: WorkerPool, home: Home) -> None:
    with pytest.raises(WorkerDiedError):
        await pool.request(
            "run", {"code": "import sys; sys.stderr.write('last words\\n'); os._exit(1)"}, timeout=20
        )
    await until(lambda: "last words" in home.lines())


async def test_a_flood_is_counted_not_kept(pool: WorkerPool, home: Home) -> None:
    assert await pool.request("talk", {"lines": 100_000}, timeout=100) == 100_000
    await until(lambda: any("not kept" in line for line in home.lines()))

    def accounted() -> int:
        dropped = sum(int(line[1:].split()[0]) for line in home.lines() if "not kept" in line)
        return dropped + sum("not kept" not in line for line in home.lines())

    await until(lambda: accounted() == 100_000)
    assert len(home.lines()) < 5_000


async def test_a_line_without_end_is_cut(pool: WorkerPool, home: Home) -> None:
    await pool.request("run", {"code": "print('x' * 1_000_000); print('next')"}, timeout=100)
    await until(lambda: "next" in home.lines())
    assert home.lines() == ["x" * LINE_BYTES, "next"]


async def test_agent_code_may_replace_or_close_its_output(pool: WorkerPool) -> None:
    code = "import sys; sys.stdout.close(); sys.stdout = None; os.close(1); os.close(2); answer = 1"
    assert await pool.request("run", {"code": code}, timeout=100) == 1
    assert await pool.request("echo", {"n": 1}, timeout=100) == {"n": 1}


@settings(max_examples=60, deadline=None)
@given(
    lines=st.lists(st.text(alphabet="ab é☂", max_size=30), max_size=60),
    cuts=st.lists(st.integers(1, 40), min_size=1, max_size=20),
)
def test_any_pieces_make_the_same_lines(lines: list[str], cuts: list[int]) -> None:
    data = "".join(f"{line}\n" for line in lines).encode()
    assert asyncio.run(_through(data, cuts)) == lines


@settings(max_examples=30, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 3 * LINE_BYTES), max_size=12),
    cuts=st.lists(st.integers(1, 9000), min_size=1),
)
def test_any_long_lines_are_cut_once(lengths: list[int], cuts: list[int]) -> None:
    data = b"".join(b"y" * length + b"\n" for length in lengths)
    assert asyncio.run(_through(data, cuts)) == ["y" * min(length, LINE_BYTES) for length in lengths]


async def _through(data: bytes, cuts: list[int]) -> list[str]:
    out, into = os.pipe()
    heard: list[str] = []
    output = Output(asyncio.get_running_loop(), out, heard.append)
    number = 0
    while data:
        size = cuts[number % len(cuts)]
        number += 1
        os.write(into, data[:size])
        data = data[size:]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    os.close(into)
    output.close()
    return heard


async def test_worker_that_starts_after_it_was_given_up_reads_nobody_elses_file(
    pool: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    late: list[tuple[WorkerHandle, int]] = []
    monkeypatch.setattr(WorkerHandle, "on_started", lambda link, pid: late.append((link, pid)))
    asking = asyncio.ensure_future(pool.request("talk", {"lines": 1, "text": "x"}, timeout=100))
    await until(lambda: late)
    monkeypatch.undo()
    link, pid = late[0]
    number = link._output_end
    link.give_up("It took too long.")
    reading, writing = os.pipe()
    os.dup2(reading, number)  # as the next file that anybody opens
    link.on_started(pid)
    os.write(writing, b"not for it\n")
    await asyncio.sleep(0.1)
    assert os.read(number, 100) == b"not for it\n"
    for end in (reading, writing, number):
        os.close(end)
    await asyncio.gather(asking, return_exceptions=True)
