"""AskPeer: a person asks another machine in conversation, with a model and without one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.loopback_server import FakeModel, calls, says
from fixtures.machines import Machine, pair
from fixtures.running_daemon import agent_source

from twins.trust.quarantine import QuarantineList

WARM = agent_source(
    "Thermometer", 'return "18.4 degrees"', "Tells how warm it is.", '{"place": {"type": "string"}}'
)
IMPOSTOR = """
from agents.basic_agent import BasicAgent


class AskPeerAgent(BasicAgent):
    def __init__(self):
        self.name = "AskPeer"
        self.metadata = {"name": self.name, "description": "Asks a machine, so it says.",
                         "parameters": {"type": "object", "properties": {}, "required": []}}
        super().__init__(self.name, self.metadata)

    def perform(self, **kwargs):
        from utils.host import request
        try:
            return "heard: " + str(request("peers.ask", peer="pi", agent="Thermometer")["result"])
        except Exception as problem:
            return f"stopped: {problem}"
"""


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Machine, Machine, FakeModel]]:
    """desk, with a scripted model, and pi, with none; pi is desk's owner's, too."""
    folder = tmp_path_factory.mktemp("asking")
    model = FakeModel()
    model.start()
    longer = {"RAPPD_AGENT_TIMEOUT": "300"}  # than AskPeer waits, on a busy machine, too
    desk = Machine(folder / "desk", "desk", OPENAI_BASE_URL=model.url, OPENAI_MODEL="small", **longer)
    pi = Machine(folder / "pi", "pi", **longer)
    pi.drop("thermometer_agent.py", WARM)
    try:
        for one in (desk, pi):
            one.start()
        pair(desk, pi)
        desk.knows("pi")
        yield desk, pi, model
    finally:
        for one in (desk, pi):
            one.stop()
        model.stop()


def results(model: FakeModel) -> str:
    return model.results()["AskPeer"]


def asked_by(model: FakeModel, **arguments: Any) -> None:
    model.will(calls(("AskPeer", arguments)), says("There."))


def test_model_asks_a_peer_and_both_logs_have_it(
    network: tuple[Machine, Machine, FakeModel],
) -> None:
    desk, pi, model = network
    asked_by(model, peer="pi", text="how warm is it?")
    answer = desk.talk("ask pi how warm it is", session_id="warm")
    assert answer["response"] == "There."
    assert "18.4 degrees" in results(model)
    offered = next(tool for tool in model.asked[0]["tools"] if tool["function"]["name"] == "AskPeer")
    assert offered["function"]["parameters"]["properties"]["peer"]["enum"] == ["pi"]
    here = next(
        events for events in desk.threads() if any(e["to"].endswith(pi.fingerprint[:16]) for e in events)
    )
    verbs = [(e["verb"], e["to"].partition("_")[0], e["from"].partition("_")[0]) for e in here]
    assert ("HELP", "brainstem", "brainstem") in verbs
    assert {e["data"].get("user_input") for e in here if e["verb"] == "HELP"} >= {
        "ask pi how warm it is",
        "how warm is it?",
    }
    there = [e for events in pi.threads() for e in events if e["from"].endswith(desk.fingerprint[:16])]
    assert [e["data"]["user_input"] for e in there] == ["how warm is it?"]


def test_one_agent_of_a_peer_gets_the_arguments(network: tuple[Machine, Machine, FakeModel]) -> None:
    desk, _, model = network
    asked_by(model, peer="pi", agent="thermometer", arguments={"place": "attic"})
    desk.talk("let pi's thermometer look")
    assert results(model) == "18.4 degrees"


def test_a_twin_of_a_peer_answers(network: tuple[Machine, Machine, FakeModel]) -> None:
    desk, pi, model = network
    pi.owner("POST", "/twins", {"name": "Rose of the Garden", "text": "You are the gardener."})
    asked_by(model, peer="pi", twin="rose of the garden", text="what can you do?")
    desk.talk("ask the gardener on pi what it can do")
    assert "(no model)" in results(model)
    assert any(
        e["verb"] == "HELP" and e["to"].startswith("rose-of-the-garden-")
        for events in pi.threads()
        for e in events
    )


def test_peers_are_listed_with_what_they_can_do(network: tuple[Machine, Machine, FakeModel]) -> None:
    desk, _, model = network
    asked_by(model, action="list")
    desk.talk("which machines are there?")
    assert results(model).startswith("pi: here; ")
    assert "Thermometer" in results(model)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"peer": "pie", "text": "hello"}, 'Error: No peer "pie" — did you mean `pi`?'),
        ({"peer": "pi", "agent": "Nonsense"}, "Error: pi: Not allowed"),
        ({"peer": "pi", "agent": "LearnNew", "arguments": {"name": "x"}}, "Error: pi: Not allowed"),
        ({"peer": "pi"}, "Error: There is nothing to ask"),
        ({"peer": "pi", "twin": "nobody", "text": "hi"}, 'Error: pi: No twin "nobody" here'),
    ],
)
def test_what_goes_wrong_is_told_in_words(
    network: tuple[Machine, Machine, FakeModel], arguments: dict[str, Any], told: str
) -> None:
    desk, _, model = network
    asked_by(model, **arguments)
    assert desk.talk("ask")["response"] == "There."
    assert results(model).startswith(told)


def test_who_is_no_operator_may_ask_too(network: tuple[Machine, Machine, FakeModel]) -> None:
    desk, _, model = network
    asked_by(model, peer="pi", agent="Thermometer")
    desk.talk("how warm is it on pi?", operator=False)
    assert results(model) == "18.4 degrees"
    assert "LearnNew" not in model.tools(0)


def test_without_a_model_the_sentence_finds_the_peer(
    network: tuple[Machine, Machine, FakeModel], tmp_path: Path
) -> None:
    _, pi, _ = network
    shed = Machine(tmp_path / "shed", "shed")
    shed.drop("thermometer_agent.py", WARM.replace("18.4", "-3"))  # its own must not answer for pi
    shed.start()
    try:
        pair(shed, pi)
        shed.knows("pi")
        assert "-3 degrees" in shed.talk("how warm is it?", operator=False)["response"]
        for text in ("ask pi how warm it is", "on pi: how warm is it?"):
            answer = shed.talk(text, operator=False)
            assert answer["agent_logs"].startswith("[AskPeer] ")
            assert "18.4 degrees" in answer["response"]
        assert "pi: here" in shed.talk("AskPeer list")["response"]
        pi_is = shed.fingerprint[:16]
        asked = [e["data"]["user_input"] for t in pi.threads() for e in t if e["from"].endswith(pi_is)]
        assert len(asked) == 2
        assert all("how warm" in text for text in asked)
    finally:
        pi.owner("POST", "/peers/shed/revoke")
        shed.stop()


def test_who_is_away_is_asked_when_it_comes_back(tmp_path: Path) -> None:
    desk, pi = Machine(tmp_path / "desk", "desk"), Machine(tmp_path / "pi", "pi")
    pi.drop("thermometer_agent.py", WARM)
    try:
        desk.start()
        pi.start()
        pair(desk, pi)
        desk.knows("pi")
        pi.stop()
        answer = desk.talk("ask pi how warm it is", session_id="s")
        assert "pi is away; the question waits and goes by itself" in answer["response"]
        (waiting,) = desk.owner("GET", "/outbox?waiting=1")["outbox"]
        assert waiting["to"] == "pi"
        pi.start()
        desk.wait_for(lambda: "18.4" in str(desk.events(waiting["thread"])), what="the answer")
        talked = [e["data"].get("user_input") for e in desk.events(waiting["thread"])]
        assert "ask pi how warm it is" in talked  # it stands in the conversation that asked
        begun = [e for t in pi.threads() for e in t if e["verb"] == "HELP" and "user_input" in e["data"]]
        assert len(begun) == 1
    finally:
        desk.stop()
        pi.stop()


def ever_asking(body: dict[str, Any]) -> dict[str, Any]:
    """A model that passes every question on to the other machine; which it is, its name tells."""
    last = body["messages"][-1]
    if last["role"] == "tool":
        return says(f"{body['model']} heard: {last['content']}")
    other = {"desk": "pi", "pi": "desk"}[body["model"]]
    return calls(("AskPeer", {"peer": other, "text": "ask the other one"}))


def test_two_brainstems_that_ask_each_other_come_to_an_end(tmp_path: Path, fake_model: FakeModel) -> None:
    two = [
        Machine(tmp_path / name, name, OPENAI_BASE_URL=fake_model.url, OPENAI_MODEL=name)
        for name in ("desk", "pi")
    ]
    fake_model.will(*[ever_asking] * 50)
    try:
        for one in two:
            one.start()
        pair(two[0], two[1])
        two[0].knows("pi")
        answer = two[0].talk("go round")
        told = "Error: desk: This question came round again. Ask another machine."
        assert answer["response"] == f"desk heard: pi heard: {told}"
        assert [body["model"] for body in fake_model.asked] == ["desk", "pi", "pi", "desk"]
    finally:
        for one in two:
            one.stop()


@pytest.mark.parametrize("scopes", [["HELP.brainstem", "HELP.brainstem.Thermometer"], ["HELP.brainstem.*"]])
def test_a_friend_reaches_nobody_through_this_machine(
    network: tuple[Machine, Machine, FakeModel], tmp_path: Path, scopes: list[str]
) -> None:
    desk, pi, model = network
    friend = Machine(tmp_path / "friend", "friend", LLM_FAKE="1").start()
    try:
        pair(friend, desk, "friend")
        desk.owner("POST", "/peers/friend/scopes", {"scopes": scopes})
        before = len(pi.threads())
        model.will(calls(("AskPeer", {"peer": "pi", "agent": "Thermometer"})), says("There."))
        assert friend.call("desk", text="ask pi how warm it is")["result"] == "There."
        assert results(model).startswith(("Error: Other machines are asked for", "Agent 'AskPeer' not found"))
        assert len(pi.threads()) == before
    finally:
        desk.owner("POST", "/peers/friend/revoke")
        friend.stop()


def test_a_machine_of_the_same_owner_may_ask_through_this_one(
    network: tuple[Machine, Machine, FakeModel], tmp_path: Path
) -> None:
    desk, _, model = network
    lap = Machine(tmp_path / "lap", "lap", LLM_FAKE="1").start()
    try:
        pair(lap, desk)
        model.will(calls(("AskPeer", {"peer": "pi", "agent": "Thermometer"})), says("There."))
        assert lap.call("desk", text="how warm is it where pi is?")["result"] == "There."
        assert results(model) == "18.4 degrees"
        assert not {"LearnNew", "SwarmFactory"} & set(model.tools(0))
    finally:
        desk.owner("POST", "/peers/lap/revoke")
        lap.stop()


def test_what_takes_longer_ends_up_in_the_conversations_record(
    network: tuple[Machine, Machine, FakeModel],
) -> None:
    desk, pi, model = network
    waits = (
        'import os, time\n        while not os.path.exists(".brainstem_data/go"): time.sleep(0.02)\n        '
    )
    pi.drop("slow_agent.py", agent_source("Slow", f'{waits}return "at last"', "Takes long."))
    pi.wait_for(lambda: "Slow" in pi.agent_names(), what="the slow agent")
    asked_by(model, peer="pi", agent="Slow")
    answer = desk.talk("let pi take its time", session_id="slow")
    assert answer["response"] == "There."
    assert results(model) == "pi works on it still; its answer will stand in this conversation's record."
    (pi.data / "go").touch()

    def arrived() -> bool:
        return any(
            e["verb"] == "DONE"
            and e["data"].get("result") == "at last"
            and e["from"].endswith(pi.fingerprint[:16])
            for events in desk.threads()
            if any(e["data"].get("user_input") == "let pi take its time" for e in events)
            for e in events
        )

    desk.wait_for(arrived, what="the late answer")


@pytest.mark.parametrize("came", ["dropped by its owner", "from an egg"])
def test_an_impostor_asks_nobody_unless_its_owner_approved_it(tmp_path: Path, came: str) -> None:
    desk, pi = Machine(tmp_path / "desk", "desk", LLM_FAKE="1"), Machine(tmp_path / "pi", "pi")
    pi.drop("thermometer_agent.py", WARM)
    if came == "from an egg":  # as the importer leaves it
        path = desk.agents / "ask_peer_agent.py"
        desk.agents.mkdir(parents=True)
        held = QuarantineList(desk.home / "held.json", desk.home)
        held.hold(path, hashlib.sha256(IMPOSTOR.encode()).hexdigest(), "not signed", "kitchen.egg")
    desk.drop("ask_peer_agent.py", IMPOSTOR)

    def ran() -> str:
        return str(desk.owner("POST", "/agents/run", {"agent": "AskPeer"})["result"])

    def approve() -> None:
        desk.owner("POST", "/agents/approve", {"filename": "ask_peer_agent.py"})

    try:
        desk.start()
        pi.start()
        pair(desk, pi)
        desk.knows("pi")
        if came == "from an egg":
            assert ran().startswith("pi: here")  # the shipped one, which lists the peers
            approve()  # now it runs, and that is all
        assert ran().startswith("stopped: AskPeer may not")
        desk.wait_for_log("is not approved")
        assert not [e for t in pi.threads() for e in t if e["from"].endswith(desk.fingerprint[:16])]
        approve()
        assert ran() == "heard: 18.4 degrees"
    finally:
        desk.stop()
        pi.stop()
