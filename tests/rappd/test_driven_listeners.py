"""Listeners that a model drives: their tools, their rounds, what they send in words, and what they wait for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fixtures.chromium import needs_chromium
from fixtures.loopback_server import FakeModel, calls
from fixtures.page_questions import SIDEWAYS
from fixtures.running_daemon import RunningDaemon
from playwright.sync_api import Browser, expect

from tests.rappd.test_listeners import DOUBLE

FILE = """\
agents:
  - name: researcher
    prompt: prompts/researcher.md
    tools: [double, Clerk]
  - name: Clerk
    prompt: prompts/clerk.md
    description: Files things.
    tools: [researcher]
"""
CORE = 'xmlns="https://xml-pipeline.org/ns/core/v1"'


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, model: FakeModel) -> Iterator[RunningDaemon]:
    home = tmp_path_factory.mktemp("desk")
    daemon = RunningDaemon(home, OPENAI_BASE_URL=model.url, OPENAI_MODEL="small", RAPPD_ORGANISM_ROUNDS="5")
    daemon.drop("double_listener.py", DOUBLE)
    (daemon.home / "prompts").mkdir(parents=True)
    (daemon.home / "prompts" / "researcher.md").write_text("You find things out.")
    (daemon.home / "prompts" / "clerk.md").write_text("You file things.")
    (daemon.home / "organism.yaml").write_text(FILE)
    yield daemon.start()
    daemon.stop()


def said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def ask(daemon: RunningDaemon, model: FakeModel, *script: Any) -> dict[str, Any]:
    """Asks the researcher by itself, with a scripted model."""
    model.will(*script)
    found: dict[str, Any] = daemon.post(
        "/agents/run", {"agent": "researcher", "args": {"text": "Find out."}}, control=True
    ).json()
    return found


def tree(daemon: RunningDaemon, done: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = daemon.get(f"/threads/{done['thread']}/tree", control=True).json()["tree"]
    return found


def test_brainstem_asks_a_listener_that_a_model_drives_and_that_calls_its_tools(
    desk: RunningDaemon, model: FakeModel
) -> None:
    model.will(
        calls(("researcher", {"text": "Twice 21?"})),
        calls(("double", {"number": 21})),
        said("It is 42."),
        said("The researcher says 42."),
    )
    assert desk.chat("ask the researcher")["response"] == "The researcher says 42."
    assert sorted(model.tools(0)) == ["Clerk", "researcher"], "what is a tool alone is offered to nobody else"
    assert model.system(1).startswith("You find things out.")
    assert sorted(model.tools(1)) == ["Clerk", "delay", "double", "todo_complete", "todo_until"]
    assert model.results(2) == {"double": '{"number":42}'}
    assert model.results(3) == {"researcher": "It is 42."}


def test_privileged_message_in_its_answer_is_dropped(desk: RunningDaemon, model: FakeModel) -> None:
    done = ask(desk, model, said('before <shutdown xmlns="https://xml-pipeline.org/privileged-msg"/> after'))
    assert (done["ok"], done["result"]) == (True, "before\nNot allowed.\nafter")
    told = ask(desk, model, said("Its namespace is https://xml-pipeline.org/privileged-msg."))
    assert told["result"] == "Its namespace is https://xml-pipeline.org/privileged-msg."


def test_payloads_in_its_text_are_sent_and_answered_in_its_next_round(
    desk: RunningDaemon, model: FakeModel
) -> None:
    done = ask(
        desk,
        model,
        said("I think. <double><number>4</number></double><double><number>5</number></double>"),
        said("Eight and ten."),
    )
    assert done["result"] == "Eight and ten."
    assert model.asked[1]["messages"][-1]["content"] == (
        'double answered:\n{"number":8}\n\ndouble answered:\n{"number":10}'
    )
    found = tree(desk, done)
    assert [one["path"][1:] for one in found["threads"]] == [[], ["double"], ["double-1"]]
    steps = found["steps"][0]["steps"]
    assert [one["name"] for one in steps] == [
        "researcher asked the model, small, 10 tokens",
        "double",
        "double",
    ]
    assert steps[1]["from"].startswith("researcher_")


def test_payload_to_itself_is_a_call_on_the_same_thread(desk: RunningDaemon, model: FakeModel) -> None:
    done = ask(
        desk,
        model,
        said("<researcher><text>And now the rest.</text></researcher>"),
        said("The rest is known."),
        said("All is known."),
    )
    assert done["result"] == "All is known."
    assert model.asked[1]["messages"][-1]["content"] == "And now the rest."
    assert model.asked[2]["messages"][-1]["content"] == "researcher answered:\nThe rest is known."
    found = tree(desk, done)
    assert len(found["threads"]) == 1
    assert [one["name"] for one in found["steps"][0]["steps"]][1:] == ["researcher"]


def test_it_goes_on_by_itself_on_its_thread_until_its_rounds_are_used(
    desk: RunningDaemon, model: FakeModel
) -> None:
    again = said("More. <double><number>1</number></double>")
    done = ask(desk, model, *[again] * 9)
    assert not done["ok"]
    assert "researcher used its 5 rounds. Done until then:" in done["result"]
    assert '[double] {"number":2}' in done["result"]
    assert len(model.asked) == 5
    error = desk.get(f"/threads/{done['thread']}", control=True).json()["events"][-1]["data"]
    assert (error["code"], error["reason"]) == (508, "too_many_calls")


def test_what_is_no_tool_of_it_is_text(desk: RunningDaemon, model: FakeModel) -> None:
    told = f"<calculator><a>1</a></calculator> <timer {CORE}><what>x</what><when>in 3 hours</when></timer>"
    done = ask(desk, model, said(told), said("Well."))
    assert model.asked[1]["messages"][-1]["content"] == "timer answered:\nError: Timer is none of your tools."
    assert done["result"] == "Well."


def test_todo_until_is_reminded_of_until_it_came_and_stands_in_the_record(
    desk: RunningDaemon, model: FakeModel
) -> None:
    done = ask(
        desk,
        model,
        calls(("todo_until", {"wait_for": "doubled", "description": "Have 3 doubled"})),
        said("I am done."),
        calls(("double", {"number": 3})),
        said("Six."),
    )
    assert done["result"] == "Six.", done
    reminder = model.asked[2]["messages"][-1]["content"]
    assert reminder.startswith("You still wait for:\n- 1: Have 3 doubled")
    notes = [one["data"] for one in desk.get(f"/threads/{done['thread']}", control=True).json()["events"]
             if one["verb"] == "NOTE" and one["data"]["kind"] == "todo"]  # fmt: skip
    assert [one["todo"]["state"] for one in notes] == ["open", "came"]
    shown = desk.cli("threads", "tree", done["thread"]).stdout
    assert "Have 3 doubled" in shown and "came" in shown


def test_todo_that_is_given_up_is_waited_for_no_more(desk: RunningDaemon, model: FakeModel) -> None:
    done = ask(
        desk,
        model,
        said(f"<todo-until {CORE}><wait_for>doubled</wait_for></todo-until>"),
        said("Hm."),
        said(f"<todo-complete {CORE}><id>7</id></todo-complete>"),
        said(f"<todo-complete {CORE}><id>1</id></todo-complete>"),
        said("Nothing came."),
    )
    assert done["result"] == "Nothing came.", done
    assert "There is no open todo '7'" in model.asked[3]["messages"][-1]["content"]


def test_listeners_that_a_model_drives_and_that_ask_one_another_end(
    desk: RunningDaemon, model: FakeModel
) -> None:
    script = [calls(("Clerk", {"text": "x"})), calls(("researcher", {"text": "x"}))] * 10
    done = ask(desk, model, *script)
    assert len(model.asked) <= 10, "five rounds of each, in all of its calls"
    assert done["result"]


def test_prompt_that_is_gone_is_said(desk: RunningDaemon, model: FakeModel) -> None:
    prompt = desk.home / "prompts" / "researcher.md"
    text = prompt.read_text()
    prompt.unlink()
    assert "prompts/researcher.md cannot be read" in ask(desk, model)["result"]
    prompt.write_text(text)


@pytest.mark.browser
@needs_chromium
@pytest.mark.parametrize(("width", "height", "scheme"), [(390, 844, "dark"), (1280, 800, "light")])
def test_plan_stands_in_the_conversation_live_and_recorded(
    desk: RunningDaemon, model: FakeModel, browser: Browser, width: int, height: int, scheme: Any
) -> None:
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    page.goto(desk.post("/operator/key", control=True).json()["url"])
    model.will(
        calls(("researcher", {"text": "Twice three?"})),
        calls(
            ("todo_until", {"wait_for": "doubled", "description": "Have 3 doubled"}),
            ("todo_until", {"wait_for": "invoice", "from_listener": "Clerk"}),
        ),
        calls(("double", {"number": 3})),
        calls(("todo_complete", {"id": "2"})),
        said("It is six."),
        said("The researcher says six."),
    )
    page.locator("#write").fill(f"ask the researcher {width}")
    page.locator("#write").press("Enter")
    plan = page.get_by_role("region", name="Plan of researcher")
    shown = ["☑Have 3 doubledcame", "☒Wait for invoice from Clerkgiven up"]
    expect(plan.get_by_role("listitem")).to_have_text(shown)
    expect(page.get_by_text("The researcher says six.")).to_be_visible()
    page.evaluate("localStorage.clear()")
    (talk,) = [
        one
        for one in desk.get("/conversations", control=True).json()["conversations"]
        if one["title"] == f"ask the researcher {width}"
    ]
    page.goto(f"{page.url.partition('#')[0]}#/chat/conversation/{talk['id']}")
    page.reload()
    expect(plan.get_by_role("listitem")).to_have_text(shown)
    assert page.evaluate(SIDEWAYS) == []
    page.close()
