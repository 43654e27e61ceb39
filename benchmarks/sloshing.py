"""Measures the cost of an agent's context, read and unread."""

from __future__ import annotations

import json
import tempfile
import time
import timeit
from collections.abc import Callable
from typing import Any

from agents.basic_agent import BasicAgent
from agents.runtimes.python.worker.invoke import perform
from agents.slosh.invocation import slosh
from agents.storage.memory import memory_reader
from agents.storage.storage_manager import storage_for

QUERY = {"query": "show my latest red apple orders today"}
MEMORIES = 200
USER = "aaaaaaaa-0000-4000-8000-00000000000a"


class Unread(BasicAgent):
    def perform(self, **kwargs: Any) -> str:
        return "done"


class Calendar(BasicAgent):
    def perform(self, **kwargs: Any) -> str:
        return str(self.context.temporal.fiscal + self.context.query.specificity)


class Everything(BasicAgent):
    def perform(self, **kwargs: Any) -> str:
        return json.dumps(self.context)


def run() -> list[tuple[str, str]]:
    """``[(what, figure)]``."""
    with tempfile.TemporaryDirectory() as folder:
        storage = storage_for(folder)
        storage.set_memory_context(USER)
        storage.write_json(
            {str(n): {"message": f"ordered red apples, box {n}", "theme": "fact"} for n in range(MEMORIES)}
        )
        memory = memory_reader(folder)
        agents = {
            "perform() with an unread context": Unread("a", {}),
            "perform() that reads time and query": Calendar("a", {}),
            f"perform() that dumps all, {MEMORIES} memories": Everything("a", {}),
        }
        bare = Unread("a", {})
        rows = [("the agent's own perform, called directly", _per_call(lambda: bare.perform(**QUERY)))]
        rows.append(("building a context", _per_call(lambda: slosh(bare, dict(QUERY), user_guid=USER))))
        for what, agent in agents.items():
            call = lambda agent=agent: perform(agent, QUERY, user_guid=USER, memory_reader=memory)  # noqa: E731
            rows.append((what, _per_call(call)))
    return rows


def _per_call(call: Callable[[], Any]) -> str:
    timer = timeit.Timer(call, timer=time.process_time)  # the machine may be busy with something else
    number, _ = timer.autorange()
    return f"{min(timer.repeat(5, number)) / number * 1e6:.1f} µs"
