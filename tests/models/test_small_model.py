"""Sentences that work without a model, with a real one of 135 M parameters behind llama.cpp's own server."""

from __future__ import annotations

from fixtures.running_daemon import RunningDaemon
from fixtures.terminal import on_terminal


def test_remember_and_recall_work_with_a_model_of_135_million_parameters(desk: RunningDaemon) -> None:
    told = desk.chat("remember that the boiler is serviced in May")
    assert told["agents_used"] == ["ManageMemory"]
    asked = desk.chat("when is the boiler serviced?")
    assert asked["agents_used"] == ["ContextMemory"]
    assert "May" in asked["response"]
    assert "(no model)" not in told["response"] + asked["response"]


def test_an_agent_by_its_name_and_by_likeness_is_used(desk: RunningDaemon) -> None:
    for sentence in ("use Weather in Berlin", "what is the weather in Berlin?"):
        answer = desk.chat(sentence)
        assert answer["agents_used"] == ["Weather"], sentence
        assert "14" in answer["response"] or "rain" in answer["response"]


def test_a_poem_is_the_models_and_says_that_no_agent_was_used(desk: RunningDaemon) -> None:
    answer = desk.chat("Say hello in five words.")
    assert answer["agents_used"] == []
    assert answer["response"].strip()
    assert "notice" not in answer


def test_the_terminal_names_the_agent_or_says_none(desk: RunningDaemon) -> None:
    used = on_terminal(desk, "chat", "what is the weather in Berlin?")
    assert "Weather city=Berlin" in used.text
    assert "no agent was used" not in used.text
    alone = on_terminal(desk, "chat", "Say hello in five words.")
    assert "no agent was used" in alone.text


def test_the_model_is_shown_as_helped(desk: RunningDaemon) -> None:
    assert desk.get("/health").json()["provider"]["helped"] is True
    assert "helped by keyword matching" in desk.cli("models", "list").stdout
