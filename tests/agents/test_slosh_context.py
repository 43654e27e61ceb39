from __future__ import annotations

import copy
import json
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import datetime, timedelta
from typing import Any

import orjson
import pytest

from agents.basic_agent import BasicAgent
from agents.runtimes.python.worker.invoke import perform
from agents.slosh.context import Context

KEYS = [
    "timestamp",
    "temporal",
    "query_signals",
    "memory_echoes",
    "behavioral",
    "priors",
    "orientation",
    "breadcrumbs",
]


class Asker(BasicAgent):
    """Answers with whatever a function makes of it."""

    def __init__(self, ask: Callable[[Asker], Any]) -> None:
        super().__init__("Asker", {})
        self.ask = ask

    def perform(self, **kwargs: Any) -> Any:
        return self.ask(self)


def asked(ask: Callable[[Asker], Any], **arguments: Any) -> Any:
    return Asker(ask).execute(**arguments)


class Shelf:
    """A memory that counts how often it is taken down."""

    def __init__(self) -> None:
        self.read_for: list[str | None] = []

    def __call__(self, guid: str | None) -> dict[str, Any]:
        self.read_for.append(guid)
        return {"1": {"message": f"red apple of {guid}", "theme": "fact"}}


def test_both_sets_of_names_by_item_and_by_attribute() -> None:
    def ask(agent: Asker) -> None:
        context = agent.context
        assert context.memory is context["memory_echoes"] is context["memory"] is context.memory_echoes
        assert context.query is context["query_signals"] is context.get("query")
        assert context.slush is context["upstream_slush"] is context.upstream_slush
        assert context.slush.mood == context["slush"]["mood"] == "sunny"
        assert context.temporal.fiscal == context["temporal"]["fiscal"]
        assert context.behavioral["technical_level"] == "standard"
        assert context.query.specificity == "low"
        assert "slush" in context
        assert "memory" in context

    asked(ask, query="hello", upstream_slush={"mood": "sunny"})


def test_the_keys_are_the_published_ones() -> None:
    assert asked(lambda agent: list(agent.context)) == KEYS
    assert asked(lambda agent: list(agent.context.keys()), upstream_slush={"a": 1}) == [
        *KEYS,
        "upstream_slush",
    ]


@pytest.mark.parametrize("slush", [None, {}, "text", [1], 5])
def test_only_a_filled_dict_is_upstream_slush(slush: Any) -> None:
    def ask(agent: Asker) -> Any:
        return "upstream_slush" in agent.context, agent.context.slush, agent.context.get("slush", "none")

    assert asked(ask, upstream_slush=slush) == (False, {}, "none")


def test_what_is_not_there_is_said_by_name() -> None:
    with pytest.raises(AttributeError, match="weather"):
        asked(lambda agent: agent.context.weather)
    with pytest.raises(KeyError, match="weather"):
        asked(lambda agent: agent.context["weather"])
    assert asked(lambda agent: agent.context.get("weather", 5)) == 5


def test_the_timestamp_is_the_moment_of_the_call_in_local_time() -> None:
    stamp = datetime.fromisoformat(asked(lambda agent: agent.context["timestamp"]))
    assert abs(datetime.now() - stamp) < timedelta(minutes=1)


def test_memory_is_read_once_and_only_when_looked_at() -> None:
    def performed(ask: Callable[[Asker], Any]) -> list[str | None]:
        shelf = Shelf()
        perform(Asker(ask), {"query": "red apple"}, user_guid="ann", memory_reader=shelf)
        return shelf.read_for

    assert performed(lambda agent: None) == []
    assert performed(lambda agent: (agent.context.temporal, agent.context.query, agent.context.slush)) == []
    assert performed(lambda agent: (agent.context.keys(), "memory" in agent.context)) == []
    assert performed(lambda agent: agent.context.memory) == ["ann"]
    assert performed(lambda agent: json.dumps(agent.context)) == ["ann"]
    assert performed(lambda agent: (agent.context.priors, agent.context.behavioral, agent.context)) == ["ann"]


@pytest.mark.parametrize(
    "plain",
    [
        lambda context: json.loads(json.dumps(context)),
        lambda context: json.loads(json.dumps(context, indent=2, sort_keys=True)),
        lambda context: json.loads(json.dumps({"deep": [context]}))["deep"][0],
        lambda context: orjson.loads(orjson.dumps(dict(context))),
        lambda context: dict(context),
        lambda context: {**context},
        lambda context: dict(context.items()),
        lambda context: dict(zip(context, context.values(), strict=True)),
        lambda context: copy.copy(context),
        lambda context: copy.deepcopy(context),
        lambda context: context.copy(),
        lambda context: context | {},
        lambda context: {} | context,
        lambda context: pickle.loads(pickle.dumps(context)),
        lambda context: eval(repr(context)),
        lambda context: {key: context.pop(key) for key in list(context)},
        lambda context: dict(context.popitem() for _ in range(len(context))),
        lambda context: {key: context.setdefault(key, 0) for key in context},
    ],
)
def test_every_way_of_taking_it_all_computes_it(plain: Callable[[Context], Any]) -> None:
    def ask(agent: Asker) -> Any:
        fresh = plain(agent.context)
        return fresh, type(fresh)

    agent = Asker(ask)
    (taken, kind) = agent.execute(query="show my latest", upstream_slush={"a": 1})
    assert kind is dict
    assert set(taken) == {*KEYS, "upstream_slush"}
    assert taken["query_signals"]["hints"] == ["temporal:recency", "ownership:user"]
    assert taken["orientation"]["approach"] == "contextual"


def test_it_equals_what_it_shows() -> None:
    assert asked(lambda agent: agent.context == dict(agent.context))
    assert not asked(lambda agent: agent.context != dict(agent.context))
    assert asked(lambda agent: agent.context != {})


def test_encoder_without_mapping_refuses() -> None:
    with pytest.raises(TypeError):
        asked(lambda agent: orjson.dumps(agent.context))
    with pytest.raises(TypeError):
        asked(lambda agent: orjson.dumps(agent.context, default=str))


def test_the_agent_may_write_in_it_for_this_call_only() -> None:
    def ask(agent: Asker) -> Any:
        before = agent.context.get("note"), agent.context.slush.get("x")
        agent.context["note"] = 1
        agent.context.slush = {"x": 2}
        agent.context["temporal"]["fiscal"] = "mine"
        return before, agent.context["note"], agent.context["upstream_slush"], agent.context.temporal.fiscal

    agent = Asker(ask)
    for _ in range(2):
        assert agent.execute() == ((None, None), 1, {"x": 2}, "mine")


def test_breadcrumbs_are_the_five_questions_before_newest_first() -> None:
    agent = Asker(lambda agent: [dict(crumb) for crumb in agent.context["breadcrumbs"]])
    assert agent.execute(query="open 1a2b3c4d-0") == []
    first = agent.execute(query="hello")
    assert [(crumb["query"], crumb["confidence"]) for crumb in first] == [("open 1a2b3c4d-0", "high")]
    datetime.fromisoformat(first[0]["timestamp"])
    agent.execute()  # no question, no crumb
    for number in range(7):
        agent.execute(query=f"item {number}")
    assert [crumb["query"] for crumb in agent.execute(query="last")] == [f"item {n}" for n in (6, 5, 4, 3, 2)]


def test_what_one_user_asked_does_not_show_in_anothers_context() -> None:
    agent = Asker(lambda agent: [crumb["query"] for crumb in agent.context.breadcrumbs])
    perform(agent, {"query": "ann's secret"}, user_guid="ann")
    assert perform(agent, {"query": "hello"}, user_guid="bob").result == "[]"
    assert perform(agent, {"query": "hello"}, user_guid="ann").result == '["ann\'s secret"]'


def test_feedback_of_one_user_does_not_filter_for_another() -> None:
    def ask(agent: Asker) -> dict[str, Any]:
        return {"seen": bool(agent.context.temporal), "slosh_feedback": {"useless_signals": ["temporal"] * 5}}

    agent = Asker(ask)
    perform(agent, {}, user_guid="ann")
    assert '"seen": false' in perform(agent, {}, user_guid="ann").result
    assert '"seen": true' in perform(agent, {}, user_guid="bob").result


def test_users_long_gone_are_forgotten() -> None:
    agent = Asker(lambda agent: [crumb["query"] for crumb in agent.context.breadcrumbs])
    for number in range(200):
        perform(agent, {"query": f"by {number}"}, user_guid=str(number))
    assert perform(agent, {}, user_guid="199").result == '["by 199"]'
    assert perform(agent, {}, user_guid="0").result == "[]"


def test_nested_call_has_own_context_and_same_user() -> None:
    shelf = Shelf()
    inner = Asker(lambda agent: (agent.context.slush.get("level"), agent.context.memory[0].message))

    def ask(agent: Asker) -> Any:
        before = agent.context
        found = inner.execute(query="red apple", upstream_slush={"level": 2})
        return [agent.context is before, agent.context.slush.level, found]

    result = perform(
        Asker(ask), {"query": "x"}, user_guid="ann", upstream_slush={"level": 1}, memory_reader=shelf
    )
    assert json.loads(result.result) == [True, 1, [2, "red apple of ann"]]


def test_an_agent_that_calls_itself_sees_each_calls_context() -> None:
    def ask(agent: Asker) -> Any:
        depth = agent.context.slush.depth
        deeper = agent.execute(upstream_slush={"depth": depth + 1}) if depth < 3 else []
        return [agent.context.slush.depth, *deeper]

    assert asked(ask, upstream_slush={"depth": 1}) == [1, 2, 3]


def test_calls_at_the_same_time_do_not_mix() -> None:
    meet = threading.Barrier(4, timeout=100)

    def ask(agent: Asker) -> Any:
        meet.wait()
        return agent.context.slush.n, agent.context.memory[0].message

    agent = Asker(ask)

    def call(number: int) -> Any:
        return perform(
            agent,
            {"query": "red apple"},
            user_guid=f"user{number}",
            upstream_slush={"n": number},
            memory_reader=lambda guid: {"1": {"message": f"red apple of {guid}"}},
        ).result

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(call, range(4)))
    assert answers == [f'[{n}, "red apple of user{n}"]' for n in range(4)]


def test_a_thread_of_the_agents_own_sees_the_context_it_is_given() -> None:
    def ask(agent: Asker) -> Any:
        seen: list[Any] = []
        look = lambda: seen.append(agent.context.slush.get("n"))  # noqa: E731
        for target in (look, lambda: copy_context().run(look)):
            thread = threading.Thread(target=target)
            thread.start()
            thread.join()
        carried = copy_context()
        thread = threading.Thread(target=carried.run, args=(look,))
        thread.start()
        thread.join()
        return seen

    assert asked(ask, upstream_slush={"n": 1}) == [None, None, 1]


def test_after_the_call_its_context_can_still_be_read() -> None:
    agent = Asker(lambda agent: None)
    agent.execute(query="show my latest")
    assert agent.context["query_signals"]["hints"] == ["temporal:recency", "ownership:user"]
    assert agent.get_signal("query.specificity") == "medium"


def test_an_agent_with_a_context_can_be_copied_and_pickled() -> None:
    agent = BasicAgent("Copied", {})
    agent.execute(query="x")
    for twin in (copy.copy(agent), copy.deepcopy(agent), pickle.loads(pickle.dumps(agent))):
        twin.execute(query="y")
        assert twin.name == "Copied"


def test_direct_perform_sloshes_nothing() -> None:
    agent = Asker(lambda agent: (dict(agent.context), agent.context.temporal, agent.context.slush))
    assert agent.perform(query="show my latest") == ({}, {}, {})
