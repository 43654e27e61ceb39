from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from agents.basic_agent import BasicAgent
from agents.chains.chain import AgentChain


class Step(BasicAgent):
    """Performs a function of itself and its arguments."""

    def __init__(self, does: Callable[..., Any], name: str = "Step") -> None:
        super().__init__(name, {})
        self.does = does

    def perform(self, **kwargs: Any) -> Any:
        return self.does(self, kwargs)


def gives(slush: Any = None, **payload: Any) -> Step:
    result = {"status": "success", **payload}
    if slush is not None:
        result["data_slush"] = slush
    return Step(lambda agent, kwargs: json.dumps(result))


def fails() -> Step:
    def perform(agent: Step, kwargs: dict[str, Any]) -> Any:
        raise ValueError("no rain gauge")

    return Step(perform)


def tells_upstream() -> Step:
    return Step(lambda agent, kwargs: {"upstream": dict(agent.context.slush), "got": kwargs})


def test_slush_goes_from_step_to_step_whole_and_replaced() -> None:
    chain = (
        AgentChain().add("a", gives({"x": 1, "y": 1})).add("b", gives({"x": 2})).add("c", tells_upstream())
    )
    done = chain.run()
    assert done.status == "success"
    assert done.final_result == {"upstream": {"x": 2}, "got": {}}
    assert [(step.name, step.status) for step in done.steps] == [
        ("a", "success"),
        ("b", "success"),
        ("c", "success"),
    ]
    assert done.total_duration_ms >= sum(step.duration_ms for step in done.steps) > 0
    assert (done.failed_step, done.error) == (None, None)


def test_a_step_without_slush_hands_on_a_synthetic_one() -> None:
    done = AgentChain().add("a", gives(note="hi")).add("b", tells_upstream()).run(query="show my latest")
    assert done.final_result is not None
    upstream = done.final_result["upstream"]
    assert upstream["signals"] == {"step_name": "a", "step_result_status": "success"}
    assert upstream["source_agent"] == "Step"
    assert upstream["orientation"]["approach"] == "contextual"


def test_initial_arguments_reach_the_first_step_only() -> None:
    chain = AgentChain().add("a", tells_upstream(), {"city": "Oslo"}).add("b", tells_upstream(), {"n": 1})
    done = chain.run({"city": "Rome", "query": "q"}, unit="C")
    assert done.steps[0].result == {"upstream": {}, "got": {"city": "Oslo", "query": "q", "unit": "C"}}
    assert done.steps[1].result is not None
    assert done.steps[1].result["got"] == {"n": 1}


def test_transform_builds_arguments_from_last_result() -> None:
    def transform(result: dict[str, Any], slush: Any) -> dict[str, Any]:
        return {"n": result["value"] + slush["plus"]}

    chain = AgentChain().add("a", gives({"plus": 2}, value=40), transform=transform)
    done = chain.add("b", tells_upstream(), {"n": 0, "m": 1}, transform).run()
    assert done.final_result is not None
    assert done.final_result["got"] == {"n": 42, "m": 1}


@pytest.mark.parametrize("made", [lambda r, s: 1 / 0, lambda r, s: "text"])
def test_a_transform_that_fails_is_a_failed_step(made: Any) -> None:
    done = AgentChain().add("a", gives()).add("b", gives(), transform=made).run()
    assert (done.status, done.failed_step) == ("error", "b")


def test_text_that_is_no_object_is_kept_raw() -> None:
    for text in ("just words", "[1, 2]", "5"):
        done = AgentChain().add("a", Step(lambda agent, kwargs, text=text: text)).run()
        assert done.final_result == {"status": "success", "raw": text}


def test_an_exception_stops_the_chain() -> None:
    done = AgentChain().add("a", gives(n=1)).add("b", fails()).add("c", gives(n=3)).run()
    assert (done.status, done.failed_step, done.error) == ("error", "b", "ValueError: no rain gauge")
    assert [step.status for step in done.steps] == ["success", "error"]
    assert done.final_result is not None
    assert done.final_result["n"] == 1


@pytest.mark.parametrize("status", ["error", "ERROR", "Error"])
def test_a_returned_error_is_a_failure_too(status: str) -> None:
    done = AgentChain().add("a", gives(status=status, message="no rain gauge")).add("b", gives()).run()
    assert (done.status, done.failed_step, done.error, len(done.steps)) == ("error", "a", "no rain gauge", 1)


def test_without_stopping_the_chain_is_partial_or_failed_whole() -> None:
    done = (
        AgentChain(stop_on_error=False)
        .add("a", gives({"x": 1}))
        .add("b", fails())
        .add("c", tells_upstream())
        .run()
    )
    assert (done.status, done.failed_step) == ("partial", "b")
    assert done.final_result == {"upstream": {"x": 1}, "got": {}}
    assert AgentChain(stop_on_error=False).add("a", fails()).add("b", fails()).run().status == "error"


def test_an_agent_that_exits_is_a_failed_step() -> None:
    def leave(agent: Step, kwargs: dict[str, Any]) -> Any:
        raise SystemExit(3)

    assert AgentChain().add("a", Step(leave)).run().error == "SystemExit: 3"


def test_a_step_past_its_limit_is_a_failure() -> None:
    release = threading.Event()
    stuck = Step(lambda agent, kwargs: release.wait(100))
    try:
        done = AgentChain(step_timeout=20).add("a", stuck).add("b", gives()).run()
    finally:
        release.set()
    assert (done.status, done.failed_step, done.error) == ("error", "a", "a was stopped after 20 ms")
    assert len(done.steps) == 1


def test_a_limit_that_is_not_reached_changes_nothing() -> None:
    chain = AgentChain(step_timeout=60_000).add("a", gives({"x": 1})).add("b", tells_upstream())
    done = chain.run()
    assert (done.status, done.final_result) == ("success", {"upstream": {"x": 1}, "got": {}})
    assert AgentChain(step_timeout=60_000).add("a", fails()).run().error == "ValueError: no rain gauge"


def test_async_agents_and_agents_of_other_classes_are_steps() -> None:
    class Foreign:
        name = "Foreign"

        async def perform(self, **kwargs: Any) -> Any:
            return {"data_slush": {"n": 1}}

    class OwnExecute(BasicAgent):
        def execute(self, **kwargs: Any) -> Any:
            self.last_data_slush = {"own": kwargs["upstream_slush"]}
            return "done"

    done = AgentChain().add("a", Foreign()).add("b", OwnExecute()).add("c", tells_upstream()).run()
    assert done.final_result == {"upstream": {"own": {"n": 1}}, "got": {}}


def test_filters_and_privacy_hold_in_a_chain() -> None:
    def look(agent: Step, kwargs: dict[str, Any]) -> Any:
        return {"temporal": agent.context.temporal, "slush": agent.context.slush}

    private = Step(look)
    private.slosh_privacy = {"redact": ["upstream_slush.card"], "obfuscate": ["temporal.fiscal"]}
    chain = AgentChain().add("a", gives({"card": "4111", "mood": "sunny"})).add("b", private)
    result = chain.run().final_result
    assert result is not None
    assert result["slush"] == {"mood": "sunny"}
    assert result["temporal"]["fiscal"].startswith("[obfuscated:")
    filtered = AgentChain().add("a", Step(look), {"_slosh_filter": {"exclude": ["temporal"]}}).run()
    assert filtered.final_result == {"temporal": {}, "slush": {}}


def test_the_result_can_be_written_down() -> None:
    done = AgentChain().add("a", gives({"x": 1})).add("b", fails()).run()
    written = json.loads(json.dumps(done.as_json()))
    assert written["steps"][1]["error"] == "ValueError: no rain gauge"
    assert written["final_slush"] == {"x": 1}


def test_an_empty_chain_succeeds_with_nothing() -> None:
    done = AgentChain().run()
    assert (done.status, done.steps, done.final_result) == ("success", [], None)
