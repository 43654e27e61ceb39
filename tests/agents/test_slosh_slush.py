from __future__ import annotations

import json
from typing import Any

import pytest

from agents.basic_agent import BasicAgent
from agents.slosh.slush import outcome


@pytest.mark.parametrize(
    ("value", "slush"),
    [
        ('{"data_slush": {"mood": "sunny"}}', {"mood": "sunny"}),
        ({"data_slush": {"mood": "sunny"}}, {"mood": "sunny"}),
        ('{"data_slush": [1, 2]}', [1, 2]),
        ('{"data_slush": {"a": NaN, "b": 1}, "x": "\\ud800"}', None),
        ('{"status": "success"}', None),
        ('["data_slush"]', None),
        ("data_slush is not here", None),
        ('{"data_slush": ', None),
        (None, None),
        (5, None),
    ],
)
def test_data_slush_is_found_in_results(value: Any, slush: Any) -> None:
    found, _ = outcome(value)
    if value == '{"data_slush": {"a": NaN, "b": 1}, "x": "\\ud800"}':
        assert found["b"] == 1  # what json.dumps writes is read, also where it is no strict JSON
    else:
        assert found == slush


def test_the_last_slush_is_that_of_the_last_call() -> None:
    class Giver(BasicAgent):
        def perform(self, **kwargs: Any) -> str:
            if kwargs.get("fail"):
                raise ValueError("no")
            return json.dumps({"data_slush": kwargs["give"]} if "give" in kwargs else {})

    agent = Giver()
    assert agent.last_data_slush is None
    agent.execute(give={"a": 1})
    assert agent.last_data_slush == {"a": 1}
    agent.execute()
    assert agent.last_data_slush is None
    agent.execute(give={"a": 1})
    with pytest.raises(ValueError, match="no"):
        agent.execute(fail=True)
    assert agent.last_data_slush is None


def test_slush_out_says_who_when_and_how_sure() -> None:
    class Maker(BasicAgent):
        def perform(self, **kwargs: Any) -> str:
            return json.dumps(self.slush_out(signals={"t": 21}, confidence="high", place="Oslo"))

    slush = json.loads(Maker("Weather").execute(query="show my latest"))
    assert slush["source_agent"] == "Weather"
    assert slush["orientation"] == {"confidence": "medium", "approach": "contextual"}
    assert set(slush["temporal_snapshot"]) == {"time_of_day", "fiscal"}
    assert (slush["signals"], slush["confidence"], slush["place"]) == ({"t": 21}, "high", "Oslo")


def test_slush_out_without_context_omits_unknown() -> None:
    slush = BasicAgent("Quiet").slush_out(agent_name="Other")
    assert set(slush) == {"source_agent", "timestamp"}
    assert slush["source_agent"] == "Other"
