"""The cost of a call to another machine, and who is told: the caller, both records, nobody without prices."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from fixtures.loopback_server import FakeModel, calls, says
from fixtures.machines import Machine, acquaint
from fixtures.running_daemon import agent_source
from fixtures.terminal import on_terminal

ASKS = """
from utils.llm import call_llm
return call_llm([{"role": "user", "content": "ping"}])
"""
READ, WRITTEN = 7, 3  # tokens that the model server counts for every round


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, model: FakeModel) -> Iterator[tuple[Machine, Machine]]:
    """desk, which has no model, and pi, which has one with prices."""
    folder = tmp_path_factory.mktemp("two")
    desk = Machine(folder / "desk", "desk")
    pi = Machine(folder / "pi", "pi", OPENAI_BASE_URL=model.url, OPENAI_MODEL="small")
    pi.drop("asks_agent.py", agent_source("Asks", ASKS.strip().replace("\n", "\n        ")))
    pi.drop("clock_agent.py", agent_source("Clock", 'return "noon"'))
    desk.start()
    pi.start()
    acquaint(desk, pi)
    yield desk, pi
    desk.stop()
    pi.stop()


def priced(pi: Machine, read: str = "small=1000", written: str = "small=10000") -> None:
    for name, value in (("in", read), ("out", written)):
        assert pi.cli("config", "set", f"provider.price_{name}_per_million", value).returncode == 0


def called(desk: Machine, *arguments: str) -> dict[str, Any]:
    done = desk.cli("call", *arguments, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)["call"]
    return found


def answer_in(machine: Machine, thread: str) -> dict[str, Any]:
    """The last DONE of a conversation, as it was written down."""
    lines = machine.cli("threads", "export", thread).stdout.splitlines()
    return [one for one in map(json.loads, lines) if one["verb"] == "DONE"][-1]


def test_a_call_tells_its_tokens_and_its_cost(both: tuple[Machine, Machine], model: FakeModel) -> None:
    desk, pi = both
    priced(pi)
    model.will(calls(("Clock", {})), says("it is noon"))
    row = called(desk, "pi", "what time is it?")
    assert row["result"] == "it is noon"
    assert row["tokens"] == 2 * (READ + WRITTEN)
    assert row["cost_usd"] == pytest.approx(2 * (READ * 0.001 + WRITTEN * 0.01))
    assert (row["data"]["input_tokens"], row["data"]["output_tokens"]) == (2 * READ, 2 * WRITTEN)
    for machine, thread in ((desk, row["thread"]), (pi, "")):
        thread = thread or pi.owner("GET", "/threads?limit=1")["threads"][0]["id"]
        answer = answer_in(machine, thread)
        assert answer["_x_usage_tokens"] == row["tokens"], machine.name
        assert answer["_x_cost_usd"] == row["cost_usd"], machine.name


def test_a_screen_tells_the_cost_beside_the_time(both: tuple[Machine, Machine], model: FakeModel) -> None:
    desk, pi = both
    priced(pi)
    model.will(says("noon"))
    detail = on_terminal(desk, "call", "pi", "time?").lines[-1]
    assert re.fullmatch(r"  done on pi in [\d.]+ m?s for 0\.037 USD, thread [0-9a-f]{4}", detail)


def test_what_an_agent_asked_the_model_counts_for_its_caller(
    both: tuple[Machine, Machine], model: FakeModel
) -> None:
    desk, pi = both
    priced(pi)
    one = READ * 0.001 + WRITTEN * 0.01
    model.will(says("pong"))
    alone = called(desk, "pi:Asks")
    assert (alone["result"], alone["tokens"]) == ("pong", READ + WRITTEN)
    assert alone["cost_usd"] == pytest.approx(one)
    model.will(calls(("Asks", {})), says("pong"), says("it said pong"))
    assert called(desk, "pi", "ask it")["cost_usd"] == pytest.approx(3 * one)
    assert {"tokens", "cost_usd"}.isdisjoint(called(desk, "pi:Clock")), "no model, no usage"


def test_without_prices_tokens_are_told_and_no_cost(both: tuple[Machine, Machine], model: FakeModel) -> None:
    desk, pi = both
    for read, written in (("", ""), ("small=1000", ""), ("other=1", "other=1")):
        priced(pi, read, written)
        model.will(says("noon"))
        row = called(desk, "pi", "time?")
        assert row["tokens"] == READ + WRITTEN
        assert "cost_usd" not in row and "cost_usd" not in row["data"]
        assert "_x_cost_usd" not in answer_in(desk, row["thread"])


def test_a_machine_without_a_model_states_nothing(both: tuple[Machine, Machine]) -> None:
    desk, pi = both
    priced(desk)
    done = pi.cli("call", "desk", "what can you do?", "--json")
    row = json.loads(done.stdout)["call"]
    assert row["state"] == "done"
    assert {"tokens", "cost_usd"}.isdisjoint(row | row["data"])


def test_a_price_that_is_none_is_refused_and_nothing_changes(both: tuple[Machine, Machine]) -> None:
    pi = both[1]
    priced(pi)
    done = pi.cli("config", "set", "provider.price_in_per_million", "cheap")
    assert done.returncode == 2
    assert '"cheap" is no price' in done.stderr
    assert "small=1000" in pi.cli("config", "show", "provider.price_in_per_million").stdout


def test_prices_are_read_as_number_or_table(both: tuple[Machine, Machine]) -> None:
    pi = both[1]
    name = "provider.price_in_per_million"
    file = pi.home / "rappd.toml"
    before = file.read_text()
    try:
        for text, shown in (("2.5", "2.5"), ('{ gpt-4o = 2.5, "qwen3:4b" = 0 }', "gpt-4o=2.5,qwen3:4b=0")):
            file.write_text(f"[provider]\nprice_in_per_million = {text}\n")
            assert shown in pi.cli("config", "show", name).stdout
    finally:
        file.write_text(before)
