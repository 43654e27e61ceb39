from __future__ import annotations

import functools
import json
from typing import Any

import pytest

from agents.basic_agent import BasicAgent
from agents.runtimes.python.worker.invoke import perform

ANN = "11111111-2222-3333-4444-555555555555"
MODELS_GUESS = "99999999-9999-9999-9999-999999999999"


class Base:
    """A base class of the registry's kind: name and metadata, nothing else."""

    def __init__(self, name: str = "Foreign", metadata: dict[str, Any] | None = None) -> None:
        self.name = name
        self.metadata = metadata or {}


def seen(agent: Any, **arguments: Any) -> Any:
    return json.loads(perform(agent, arguments, user_guid=ANN).result)


def test_only_accepted_arguments_are_passed() -> None:
    class Closed(Base):
        def perform(self, query: str, count: int = 5, *, lang: str = "en") -> Any:
            return [query, count, lang]

    assert seen(Closed(), query="q", lang="no", invented=True, self="x", _context=1) == ["q", 5, "no"]


def test_a_missing_argument_is_the_agents_own_error() -> None:
    class Closed(Base):
        def perform(self, query: str) -> str:
            return query

    with pytest.raises(TypeError, match="query"):
        perform(Closed(), {"other": 1}, user_guid=ANN)


def test_unusual_ways_of_writing_perform() -> None:
    def plain(query: str, /, count: int = 1, **rest: Any) -> Any:
        return [query, count, rest]

    class Static(Base):
        perform = staticmethod(plain)

    class ByClass(Base):
        @classmethod
        def perform(cls, query: str) -> Any:
            return [cls.__name__, query]

    class Callable:
        def __call__(self, query: str) -> Any:
            return ["called", query]

    class Partial(Base):
        perform = functools.partial(plain, "bound")

    class OnInstance(Base):
        def __init__(self) -> None:
            super().__init__()
            self.perform = Callable()

    class Open(Base):
        def perform(this, **kwargs: Any) -> Any:
            return kwargs

    assert seen(Static(), query="q", count=2, more=3) == ["q", 2, {"more": 3}]
    assert seen(ByClass(), query="q", cls="x", more=3) == ["ByClass", "q"]
    assert seen(Partial(), count=2, more=3) == ["bound", 2, {"more": 3}]
    assert seen(OnInstance(), query="q", more=3) == ["called", "q"]
    assert seen(Open(), this="x", self="y") == {"self": "y"}


def test_decorated_perform_takes_inner_signature() -> None:
    def logged(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapper

    class Decorated(Base):
        @logged
        def perform(self, query: str, user_guid: str = "") -> Any:
            return [query, user_guid]

    assert seen(Decorated(), query="q", more=1) == ["q", ANN]


class WantsByLiteral(Base):
    def perform(self, **kwargs: Any) -> Any:
        return kwargs.get("user_guid")


class WantsByParameter(Base):
    def perform(self, user_guid: str | None = None) -> Any:
        return user_guid


class WantsBySchema(Base):
    def __init__(self) -> None:
        super().__init__(metadata={"parameters": {"type": "object", "properties": {"user_guid": {}}}})

    def perform(self, **kwargs: Any) -> Any:
        return next(iter(kwargs.values()), None)


class WantsBelow(WantsByLiteral):
    def perform(self, **kwargs: Any) -> Any:
        return super().perform(**kwargs)


class WantsWithin(Base):
    def perform(self, **kwargs: Any) -> Any:
        return [kwargs[key] for key in ("user_guid",)][0]  # noqa: RUF015


@pytest.mark.parametrize("kind", [WantsByLiteral, WantsByParameter, WantsBySchema, WantsBelow, WantsWithin])
def test_who_wants_the_caller_gets_the_caller_and_nobody_else(kind: type[Base]) -> None:
    assert perform(kind(), {}, user_guid=ANN).result == ANN
    assert perform(kind(), {"user_guid": MODELS_GUESS}, user_guid=ANN).result == ANN


def test_who_does_not_want_the_caller_is_not_told() -> None:
    class Plain(Base):
        def perform(self, **kwargs: Any) -> Any:
            return kwargs

    class Closed(Base):
        def perform(self, query: str = "") -> Any:
            return query

    assert seen(Plain(), query="q") == {"query": "q"}
    assert seen(Plain(), user_guid=MODELS_GUESS) == {"user_guid": ANN}  # never the model's
    assert perform(Closed(), {"user_guid": MODELS_GUESS}, user_guid=ANN).result == ""


def test_metadata_of_any_shape_does_no_harm() -> None:
    for metadata in (None, "text", {"parameters": None}, {"parameters": {"properties": ["user_guid"]}}):
        agent = Base()
        agent.metadata = metadata  # type: ignore[assignment]
        agent.perform = lambda **kwargs: kwargs  # type: ignore[attr-defined]
        assert seen(agent, a=1) == {"a": 1}


def test_the_given_arguments_are_left_as_they_are() -> None:
    arguments = {"query": "q", "upstream_slush": {"a": 1}, "user_guid": MODELS_GUESS, "_slosh_filter": {}}
    before = dict(arguments)
    perform(WantsByLiteral(), arguments, user_guid=ANN)
    assert arguments == before


class Odd:
    def __str__(self) -> str:
        return "odd"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        (None, ""),
        ("", ""),
        ({"a": "é", "b": [1, None]}, '{"a": "é", "b": [1, null]}'),
        ([1, "x"], '[1, "x"]'),
        ((1, 2), "[1, 2]"),
        ({"odd": Odd()}, '{"odd": "odd"}'),
        ({(1, 2): 3}, '{"(1, 2)": 3}'),
        (42, "42"),
        (True, "True"),
        (Odd(), "odd"),
        (b"bytes \xff", "bytes \ufffd"),
        ("lone \ud800", "lone ?"),
    ],
)
def test_results_become_text(value: Any, text: str) -> None:
    agent = Base()
    agent.perform = lambda **kwargs: value  # type: ignore[attr-defined]
    result = perform(agent, {}, user_guid=ANN).result
    assert result == text
    result.encode()


def test_slush_is_taken_from_text_and_from_dicts() -> None:
    for value in ('{"data_slush": {"a": 1}}', {"data_slush": {"a": 1}}):
        agent = Base()
        agent.perform = lambda value=value, **kwargs: value  # type: ignore[attr-defined]
        assert perform(agent, {}, user_guid=ANN).data_slush == {"a": 1}
    agent.perform = lambda **kwargs: {"data_slush": "text"}  # type: ignore[attr-defined]
    assert perform(agent, {}, user_guid=ANN).data_slush is None


async def async_answer(**kwargs: Any) -> Any:
    return {"data_slush": {"n": len(kwargs)}}


def test_an_async_perform_is_run() -> None:
    class Slow(Base):
        async def perform(self, query: str) -> Any:
            return await async_answer(query=query)

    performed = perform(Slow(), {"query": "q", "more": 1}, user_guid=ANN)
    assert (performed.result, performed.data_slush) == ('{"data_slush": {"n": 1}}', {"n": 1})


def test_exceptions_go_through_also_from_async() -> None:
    class Fails(Base):
        def perform(self, **kwargs: Any) -> str:
            raise LookupError("no such city")

    class FailsLater(Base):
        async def perform(self, **kwargs: Any) -> str:
            raise LookupError("no such city")

    for agent in (Fails(), FailsLater()):
        with pytest.raises(LookupError, match="no such city"):
            perform(agent, {}, user_guid=ANN)


class Reader(Base):
    def perform(self, **kwargs: Any) -> Any:
        return self.context.slush  # type: ignore[attr-defined]


def test_agents_of_other_base_classes_have_a_context_too() -> None:
    agent = Reader()
    for number in range(2):
        performed = perform(agent, {}, user_guid=ANN, upstream_slush={"n": number})
        assert performed.result == f'{{"n": {number}}}'


def test_upstream_slush_comes_by_keyword_or_among_the_arguments() -> None:
    assert seen(Reader(), upstream_slush={"n": 1}) == {"n": 1}
    performed = perform(Reader(), {"upstream_slush": {"n": 1}}, user_guid=ANN, upstream_slush={"n": 2})
    assert performed.result == '{"n": 2}'


def test_agent_declaring_upstream_slush_gets_it() -> None:
    class Declares(Base):
        def perform(self, upstream_slush: Any = None) -> Any:
            return upstream_slush

    assert seen(Declares(), upstream_slush={"n": 1}) == {"n": 1}


def test_a_context_of_the_agents_own_is_left_alone() -> None:
    class Keeps(Base):
        def __init__(self) -> None:
            super().__init__()
            self.context = {"count": 0}

        def perform(self, **kwargs: Any) -> Any:
            self.context["count"] += 1
            return self.context

    class Defines(Base):
        @property
        def context(self) -> str:
            return "mine"

        def perform(self, **kwargs: Any) -> Any:
            return self.context

    class Slots:
        __slots__ = ()

        def perform(self, **kwargs: Any) -> Any:
            return "none kept"

    agent = Keeps()
    assert [seen(agent), seen(agent)] == [{"count": 1}, {"count": 2}]
    assert perform(Defines(), {}, user_guid=ANN).result == "mine"
    assert perform(Slots(), {}, user_guid=ANN).result == "none kept"


def test_a_class_loaded_anew_is_read_anew() -> None:
    def load(source: str) -> Any:
        space: dict[str, Any] = {"BasicAgent": BasicAgent}
        exec(source, space)
        return space["A"]()

    old = load("class A(BasicAgent):\n def perform(self, a): return [a]")
    new = load("class A(BasicAgent):\n def perform(self, b): return [b]")
    assert seen(old, a=1, b=2) == [1]
    assert seen(new, a=1, b=2) == [2]
