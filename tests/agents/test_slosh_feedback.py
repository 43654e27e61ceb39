from __future__ import annotations

import json
from typing import Any

import pytest

from agents.basic_agent import BasicAgent
from agents.slosh.invocation import decayed, scored, suppressed


def test_scores_fade_and_are_forgotten() -> None:
    assert decayed({"temporal.fiscal": 2.0, "priors": -0.0111, "query": 0.01}) == {"temporal.fiscal": 1.8}
    assert decayed({"priors": -0.012}) == {"priors": pytest.approx(-0.0108)}


def test_useful_and_useless_signals_are_counted() -> None:
    feedback = {"useful_signals": ["a.b", "a.b", 5], "useless_signals": ["c", "a.b"]}
    assert scored({"c": -1.0}, feedback) == {"a.b": 1.0, "c": -2.0}


@pytest.mark.parametrize("feedback", [None, "text", [], {"useful_signals": 5}, {"useless_signals": None}])
def test_feedback_of_another_shape_changes_nothing(feedback: Any) -> None:
    assert scored({"c": 1.0}, feedback) == {"c": 1.0}


def test_a_category_is_suppressed_at_minus_three_in_sum() -> None:
    assert suppressed({"temporal.fiscal": -2.0, "temporal.quarter": -1.0}) == {"temporal"}
    assert suppressed({"temporal.fiscal": -2.0, "temporal.quarter": -0.99}) == frozenset()
    assert suppressed({"temporal": -4.0, "temporal.fiscal": 2.0}) == frozenset()
    assert suppressed({"memory.message": -3.0}) == {"memory_echoes"}
    assert suppressed({"orientation": -9.0}) == frozenset()  # only the five categories can go


class Picky(BasicAgent):
    """Finds the calendar useless."""

    def perform(self, **kwargs: Any) -> str:
        seen = dict(self.context["temporal"])
        return json.dumps(
            {"seen": seen, "slosh_feedback": {"useless_signals": ["temporal.fiscal", "temporal.quarter"]}}
        )


def _sees_the_calendar(agent: BasicAgent, **more: Any) -> bool:
    return bool(json.loads(agent.execute(query="x", **more))["seen"])


def test_a_layer_called_useless_often_enough_goes_away() -> None:
    agent = Picky()
    # Sums before each call: 0, -1.8, -3.42.
    assert [_sees_the_calendar(agent) for _ in range(3)] == [True, True, False]


def test_include_restores_what_other_exclude_left() -> None:
    agent = Picky()
    for _ in range(5):
        agent.execute(query="x")
    assert _sees_the_calendar(agent, _slosh_filter={"include": ["temporal"]})
    assert not _sees_the_calendar(agent, _slosh_filter={"exclude": ["priors"]})


def test_a_suppressed_layer_comes_back_when_complaints_stop() -> None:
    class Once(Picky):
        def perform(self, **kwargs: Any) -> str:
            if kwargs.get("quiet"):
                return json.dumps({"seen": dict(self.context["temporal"])})
            return super().perform(**kwargs)

    agent = Once()
    agent.execute(query="x")
    agent.execute(query="x")  # -3.8
    assert not _sees_the_calendar(agent, quiet=True)  # -3.42
    assert not _sees_the_calendar(agent, quiet=True)  # -3.078
    assert _sees_the_calendar(agent, quiet=True)  # -2.77
