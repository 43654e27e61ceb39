from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from agents.storage import atomic_write
from agents.storage.storage_manager import storage_for

GUID = "aaaaaaaa-0000-4000-8000-00000000000a"
ROUNDS = 60
fork = multiprocessing.get_context("fork")


def _add(data: Path, name: str, rounds: int) -> None:
    storage = storage_for(data)
    storage.set_memory_context(GUID)
    for number in range(rounds):

        def put(memories: dict[str, Any], key: str = f"{name}-{number}") -> None:
            memories[key] = {"message": key}

        assert storage.update_json(put)


def test_updates_of_many_processes_and_threads_lose_nothing(tmp_path: Path) -> None:
    processes = [fork.Process(target=_add, args=(tmp_path, f"p{n}", ROUNDS)) for n in range(4)]
    for process in processes:
        process.start()
    threads = [threading.Thread(target=_add, args=(tmp_path, f"t{n}", ROUNDS)) for n in range(2)]
    for thread in threads:
        thread.start()
    for worker in [*threads, *processes]:
        worker.join(100)
    assert [process.exitcode for process in processes] == [0] * 4
    storage = storage_for(tmp_path)
    storage.set_memory_context(GUID)
    expected = {f"{name}-{n}" for name in ("p0", "p1", "p2", "p3", "t0", "t1") for n in range(ROUNDS)}
    assert set(storage.read_json()) == expected


def test_readers_see_whole_files_while_writers_are_killed(tmp_path: Path) -> None:
    storage = storage_for(tmp_path)
    storage.set_memory_context(GUID)
    storage.write_json({"first": "x" * 50_000})

    def write_forever() -> None:
        mine = storage_for(tmp_path)
        mine.set_memory_context(GUID)
        number = 0
        while True:
            number += 1
            mine.write_json({"first": str(number % 10) * 50_000})

    for _ in range(10):
        writer = fork.Process(target=write_forever)
        writer.start()
        assert writer.pid is not None
        for _ in range(20):
            assert len(set(storage.read_json()["first"])) == 1
        os.kill(writer.pid, signal.SIGKILL)
        writer.join()
        assert len(storage.read_json()["first"]) == 50_000
        assert storage.write_json(storage.read_json()) is True  # a killed writer holds no lock
    assert [entry.name for entry in storage.list_files(f"memory/{GUID}")] == ["user_memory.json"]


def test_the_mutator_may_change_in_place_or_return(tmp_path: Path) -> None:
    storage = storage_for(tmp_path)
    assert storage.update_json(lambda memories: memories.update(a=1)) is True
    assert storage.update_json(lambda memories: {**memories, "b": 2}) is True
    assert storage.read_json() == {"a": 1, "b": 2}


def test_mutator_error_passes_and_changes_nothing(tmp_path: Path) -> None:
    storage = storage_for(tmp_path)
    storage.write_json({"a": 1})

    def spoil(memories: dict[str, Any]) -> None:
        memories.clear()
        raise FileNotFoundError("the agent's own")

    with pytest.raises(FileNotFoundError, match="the agent's own"):
        storage.update_json(spoil)
    assert storage.read_json() == {"a": 1}
    assert storage.update_json(lambda memories: memories.update(b=2)) is True  # the lock is free again


def test_a_mutator_may_write_in_the_same_folder(tmp_path: Path) -> None:
    storage = storage_for(tmp_path)

    def both(memories: dict[str, Any]) -> None:
        assert storage.write_file("shared_memories", "log.txt", "one more")
        memories["a"] = 1

    assert storage.update_json(both) is True
    assert storage.read_json() == {"a": 1}
    assert storage.read_file("shared_memories/log.txt") == "one more"


def test_a_writer_that_waits_too_long_gives_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic_write, "PATIENCE", 0.05)
    storage = storage_for(tmp_path)
    storage.write_json({"a": 1})
    answers: list[bool] = []

    def hold(memories: dict[str, Any]) -> None:
        other = threading.Thread(target=lambda: answers.append(storage_for(tmp_path).write_json({"b": 2})))
        other.start()
        other.join(100)

    assert storage.update_json(hold) is True
    assert answers == [False]
    assert storage.read_json() == {"a": 1}
