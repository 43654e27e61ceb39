from __future__ import annotations

import hashlib
import json
from types import MappingProxyType
from typing import Any

import pytest

from agents.basic_agent import BasicAgent
from agents.runtimes.python.worker.invoke import perform

QUERY = "show my latest red apple orders"
NOTHING = {
    "temporal": {},
    "query_signals": {"specificity": "low", "hints": []},
    "memory_echoes": [],
    "behavioral": {"prefers_brief": False, "technical_level": "standard", "frequent_entities": []},
    "priors": {},
}


def memory(_guid: str | None) -> dict[str, Any]:
    return {
        "1": {"message": "bought a red apple by API", "theme": "fact"},
        "2": {"message": "prefers small for orders", "theme": "preference"},
    }


class Teller(BasicAgent):
    def perform(self, **kwargs: Any) -> str:
        return json.dumps(self.context)


def told(agent: BasicAgent | None = None, **arguments: Any) -> dict[str, Any]:
    answer = perform(agent or Teller(), {"query": QUERY, **arguments}, user_guid="g", memory_reader=memory)
    found: dict[str, Any] = json.loads(answer.result)
    return found


def hidden(context: dict[str, Any]) -> set[str]:
    return {name for name, default in NOTHING.items() if context[name] == default}


def test_unfiltered_all_five_layers_say_something() -> None:
    assert hidden(told()) == set()


@pytest.mark.parametrize(
    ("chosen", "gone"),
    [
        ({"exclude": ["temporal", "priors"]}, {"temporal", "priors"}),
        ({"exclude": ["memory", "query"]}, {"memory_echoes", "query_signals"}),
        ({"include": ["temporal"]}, set(NOTHING) - {"temporal"}),
        ({"include": ["temporal"], "exclude": ["temporal"]}, set(NOTHING) - {"temporal"}),
        ({"include": []}, set(NOTHING)),
        ({"include": None, "exclude": ["behavioral"]}, {"behavioral"}),
        ({"exclude": "priors"}, {"priors"}),
        ({"exclude": ["orientation", "upstream_slush", "nonsense", 5]}, set()),
        ("nonsense", set()),
    ],
)
def test_filters(chosen: Any, gone: set[str]) -> None:
    context = told(_slosh_filter=chosen)
    assert hidden(context) == gone
    assert context["orientation"] == told()["orientation"]  # concluded from what is there, hidden or not


def test_suppress_excludes_and_prioritize_is_the_first_hint() -> None:
    context = told(_slosh_preferences={"suppress": ["temporal"], "prioritize": ["memory_echoes", "priors"]})
    assert hidden(context) == {"temporal"}
    assert context["orientation"]["hints"][:2] == [
        "Signal priority: memory_echoes, priors",
        "Sort by most recent",
    ]


def test_the_instances_settings_hold_until_a_call_brings_its_own() -> None:
    agent = Teller()
    agent.slosh_filter = {"exclude": ["temporal"]}
    agent.slosh_preferences = {"suppress": ["priors"]}
    assert hidden(told(agent)) == {"temporal", "priors"}
    assert hidden(told(agent, _slosh_filter={"exclude": ["behavioral"]})) == {"behavioral", "priors"}
    assert hidden(told(agent, _slosh_preferences={"prioritize": ["temporal"]})) == {"temporal"}


def test_disabled_privacy_leaves_a_minimal_context_and_no_trail() -> None:
    agent = Teller()
    agent.execute(query="an earlier question")
    agent.slosh_privacy = {"disabled": True}
    context = told(agent, upstream_slush={"mood": "sunny"})
    assert hidden(context) == set(NOTHING)
    assert context["orientation"] == {
        "confidence": "low",
        "approach": "clarify",
        "hints": [],
        "response_style": "standard",
    }
    assert context["breadcrumbs"] == []
    assert context["upstream_slush"] == {"mood": "sunny"}  # handed over, not found out
    agent.slosh_privacy = None
    assert [crumb["query"] for crumb in told(agent)["breadcrumbs"]] == []


def test_disabled_privacy_reads_no_memory() -> None:
    def forbidden(_guid: str | None) -> dict[str, Any]:
        raise AssertionError("the memory was read")

    agent = Teller()
    agent.slosh_privacy = {"disabled": True}
    perform(agent, {"query": QUERY}, user_guid="g", memory_reader=forbidden)


def test_redaction_deletes_and_reaches_into_lists() -> None:
    agent = Teller()
    agent.slosh_privacy = {
        "redact": [
            "temporal.fiscal",
            "memory.theme",
            "priors",
            "upstream_slush.card",
            "absent.path",
            "",
            "a..b",
        ]
    }
    context = told(agent, upstream_slush={"card": "4111", "mood": "sunny"})
    assert "fiscal" not in context["temporal"]
    assert "quarter" in context["temporal"]
    assert set(context["memory_echoes"][0]) == {"message", "relevance"}
    assert "priors" not in context
    assert context["upstream_slush"] == {"mood": "sunny"}


def test_redacted_layer_reads_as_empty() -> None:
    class Reader(BasicAgent):
        slosh_privacy = MappingProxyType({"redact": ["memory_echoes", "temporal.fiscal"]})

        def perform(self, **kwargs: Any) -> str:
            return json.dumps(
                [
                    self.context.memory,
                    "memory" in self.context,
                    self.get_signal("temporal.fiscal", "withheld"),
                    "fiscal" in self.slush_out()["temporal_snapshot"],
                ]
            )

    assert json.loads(perform(Reader(), {"query": QUERY}, user_guid="g", memory_reader=memory).result) == [
        [],
        False,
        "withheld",
        False,
    ]


def test_obfuscation_is_stable_and_unreadable() -> None:
    agent = Teller()
    agent.slosh_privacy = {"obfuscate": ["memory_echoes.0.message", "breadcrumbs.query", "timestamp"]}
    first = told(agent)
    digest = hashlib.sha256(b"bought a red apple by API").hexdigest()[:8]
    assert first["memory_echoes"][0]["message"] == f"[obfuscated:{digest}]"
    assert first["timestamp"].startswith("[obfuscated:")
    asked = hashlib.sha256(QUERY.encode()).hexdigest()[:8]
    assert told(agent)["breadcrumbs"][0]["query"] == f"[obfuscated:{asked}]"


def test_no_argument_lifts_an_agents_privacy() -> None:
    agent = Teller()
    agent.slosh_privacy = {"redact": ["temporal.fiscal"]}
    context = told(agent, _slosh_filter={"include": ["temporal"]}, _slosh_privacy={}, slosh_privacy={})
    assert "fiscal" not in context["temporal"]
