from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

FILE = "learn_new_agent.py"

COUNTER = '''
Here it is:
```python
"""Counts words."""
import collections
from agents.basic_agent import BasicAgent

LONGEST = 3  # a comment that stays


def words(text):
    return text.split()[:LONGEST]


class WordCounterAgent(BasicAgent):
    def __init__(self):
        self.name = "WordCounter"
        self.metadata = {
            "name": self.name,
            "description": "Counts words in a text.",
            "parameters": {
                "type": "object",
                "properties": {"text": {"type": "string", "description": "The text"}},
                "required": ["text"],
            },
        }
        super().__init__(name=self.name, metadata=self.metadata)

    def perform(self, **kwargs):
        return str(len(words(kwargs.get("text", ""))))
```
'''


async def learn(desk: Any, **arguments: Any) -> dict[str, Any]:
    found: dict[str, Any] = await desk.json(FILE, "LearnNew", **arguments)
    return found


async def test_without_a_model_it_writes_an_honest_scaffold(desk: Any) -> None:
    found = await learn(desk, description="Learn a new agent that fetches a web page and counts words")
    assert found["status"] == "success"
    assert (found["agent"], found["file"]) == ("FetchesPage", "fetches_page_agent.py")
    assert found["implementation"] == "scaffold"
    assert "scaffold" in found["message"]
    assert "no model" in found["message"]
    assert found["try"] == "fetches page https://example.com"
    (agent,) = (await desk.describe(found["file"]))["agents"]
    assert {"query", "url"} <= agent["parameters"]["properties"].keys()
    assert agent["description"].startswith("fetches a web page")
    said = await desk.json(found["file"], "FetchesPage", url="https://x", stray=1)
    assert said["implementation"] == "scaffold"
    assert said["data_slush"] == {"url": "https://x"}
    assert await desk.test(found["file"]) == {}


async def test_a_taken_name_is_refused_or_given_a_number(desk: Any) -> None:
    assert (await learn(desk, description="counts sheep", name="Sheep"))["file"] == "sheep_agent.py"
    again = await learn(desk, description="counts sheep", name="sheep agent")
    assert again["status"] == "error"
    assert "There is an agent Sheep already" in again["message"]
    assert (await learn(desk, description="hacker news"))["agent"] == "HackerNews2"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "Say what the new agent should do"),
        ({"action": "fly"}, "knows no action 'fly'"),
        ({"action": "molt", "feedback": "x"}, "No agent"),
        ({"action": "molt", "name": "HackerNews"}, "Say what should be different"),
        ({"action": "delete", "name": "HackerNew"}, "Did you mean HackerNews?"),
        ({"action": "restore", "name": "HackerNews"}, "Say which generation"),
        ({"description": "x" * 30_000}, "30000 characters"),
    ],
)
async def test_what_is_missing_is_said(desk: Any, arguments: dict[str, Any], told: str) -> None:
    found = await learn(desk, **arguments)
    assert found["status"] == "error"
    assert told in found["message"]
    assert not any(operation == "agents.write" for operation, _ in desk.keeper.asked)


async def test_a_models_code_is_used_under_a_free_name(desk: Any) -> None:
    desk.model = [COUNTER]
    found = await learn(desk, description="count the words of a text")
    assert (found["agent"], found["implementation"]) == ("WordCounter", "generated"), found
    assert await desk.text(found["file"], "WordCounter", text="a b c d") == "3"
    source = (desk.agents / found["file"]).read_text()
    assert "# a comment that stays" in source
    assert source.count("import BasicAgent") == 2  # the guarded one only
    assert await desk.test(found["file"]) == {}
    desk.model = [COUNTER]
    again = await learn(desk, description="count the words of a text")
    assert (again["agent"], again["file"]) == ("WordCounter2", "word_counter2_agent.py")
    assert [agent["name"] for agent in (await desk.describe(again["file"]))["agents"]] == ["WordCounter2"]
    desk.model = [COUNTER]
    named = await learn(desk, description="count", name="Tally")
    assert [agent["name"] for agent in (await desk.describe(named["file"]))["agents"]] == ["Tally"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("return str", "return str("), "invalid syntax|never closed"),
        (("import collections", "import requests"), "imports requests"),
        (("import collections", "from . import secrets"), r"imports \."),
        (("    def perform", "    def execute"), r"no perform\(self, \*\*kwargs\)"),
        (
            ("**kwargs):\n        return str", "text=''):\n        return str"),
            r"no perform\(self, \*\*kwargs\)",
        ),
        (('        return str(len(words(kwargs.get("text", ""))))', "        pass"), "returns nothing"),
        (
            ('        return str(len(words(kwargs.get("text", ""))))', "        def f(): return 1"),
            "returns nothing",
        ),
        (("LONGEST = 3", "print('loaded')"), "runs code when the file is loaded"),
        (("(BasicAgent)", "(object)"), "0 agent classes"),
        (("LONGEST = 3", "class Other(BasicAgent): pass"), "2 agent classes"),
        (('self.name = "WordCounter"', "self.name = input()"), "name or its parameters"),
    ],
)
async def test_a_models_code_that_breaks_a_rule_is_sent_back_once(
    desk: Any, change: tuple[str, str], told: str
) -> None:
    broken = COUNTER.replace(*change)
    assert broken != COUNTER
    desk.model = [broken, COUNTER]
    found = await learn(desk, description="count the words of a text")
    assert found["implementation"] == "generated"
    assert found["agent"] == "WordCounter"
    assert re.search(told, desk.prompts[1][-1]["content"])
    desk.model = [broken, broken]
    found = await learn(desk, description="count the words of a text", name="Second")
    assert found["implementation"] == "scaffold"
    assert re.search(told, found["message"])


async def test_a_declared_package_may_be_imported(desk: Any) -> None:
    desk.model = [COUNTER.replace("import collections", "import requests")]
    found = await learn(desk, description="count words", packages=["requests"])
    assert found["implementation"] == "generated"


async def test_daemons_refusal_returns_to_the_model(desk: Any) -> None:
    desk.keeper.refusal = "word_counter_agent.py line 9: no"
    desk.model = [COUNTER, COUNTER]
    found = await learn(desk, description="count words", name="Tally")
    assert found["status"] == "error"
    assert "line 9: no" in found["message"]


async def test_molt_without_model_reports_what_it_left(desk: Any) -> None:
    await learn(desk, description="rolls dice", name="Dice")
    found = await learn(desk, action="molt", name="dice", feedback='let me say how many, """ always')
    assert found["implementation"] == "recorded"
    assert "New argument: count" in found["message"]
    assert "Not done: what its code does is unchanged" in found["message"]
    (agent,) = (await desk.describe("dice_agent.py"))["agents"]
    assert {"query", "count"} == agent["parameters"]["properties"].keys()
    assert 'how many, """ always' in agent["description"]
    assert (await desk.json("dice_agent.py", "Dice", count=3))["given"] == {"count": 3}
    assert '"version": ' not in (desk.agents / "dice_agent.py").read_text()
    assert "'version': '1.1.0'" in (desk.agents / "dice_agent.py").read_text()


async def test_recording_leaves_foreign_code_as_it_was(desk: Any) -> None:
    text = (
        "# a heading\n"
        "from basic_agent import BasicAgent   # odd   spacing\n\n\n"
        "class Odd(BasicAgent):\n"
        "    def __init__(self):\n"
        "        super().__init__('Odd', {'name': 'Odd', 'description': 'Is\\u00e9 ödd', 'parameters':\n"
        "            {'type': 'object', 'properties': {}}})\n\n"
        "    def perform(self): return 'ö'  # closed\n"
    )
    desk.write("odd_agent.py", text)
    found = await learn(desk, action="molt", name="odd_agent.py", feedback="do more, 5 items")
    assert found["implementation"] == "recorded"
    after = (desk.agents / "odd_agent.py").read_text()
    assert after.startswith("# a heading\n")
    assert "from basic_agent import BasicAgent   # odd   spacing\n\n\nclass Odd" in after
    assert after.endswith("    def perform(self): return 'ö'  # closed\n")
    (agent,) = (await desk.describe("odd_agent.py"))["agents"]
    assert agent["description"].startswith("Isé ödd (Wanted since")
    assert agent["parameters"]["properties"] == {}
    assert await desk.text("odd_agent.py", "Odd") == "ö"


async def test_a_molt_by_a_model_keeps_the_contract(desk: Any) -> None:
    desk.model = [COUNTER]
    await learn(desk, description="count words")
    grown = (desk.agents / "word_counter_agent.py").read_text()
    grown = grown.replace('"required": ["text"]', '"required": []').replace(
        '"properties": {', '"properties": {"limit": {"type": "integer"}, '
    )
    lost = grown.replace('"text": {"type": "string", "description": "The text"}', "")
    renamed = grown.replace("self.name = 'WordCounter'", "self.name = 'Other'")
    demanding = grown.replace('"required": []', '"required": ["limit"]')
    for broken, told in (
        (lost, "the argument text is gone"),
        (renamed, "it is called Other"),
        (demanding, "newly requires limit"),
    ):
        assert broken != grown
        desk.model = [f"```python\n{broken}```", f"```python\n{broken}```"]
        found = await learn(desk, action="molt", name="WordCounter", feedback="a limit")
        assert found["implementation"] == "recorded"
        assert told in found["message"]
        await learn(
            desk,
            action="restore",
            name="WordCounter",
            generation=len(desk.keeper.kept["word_counter_agent.py"]),
        )
    desk.model = [f"```python\n{grown}```"]
    found = await learn(desk, action="molt", name="WordCounter", feedback="a limit")
    assert found["implementation"] == "molted"
    (agent,) = (await desk.describe("word_counter_agent.py"))["agents"]
    assert agent["parameters"]["properties"].keys() == {"limit", "text"}
    assert "'1.1.0'" in (desk.agents / "word_counter_agent.py").read_text()


async def test_generations_are_listed_restored_and_an_agent_deleted(desk: Any) -> None:
    await learn(desk, description="rolls dice", name="Dice")
    first = (desk.agents / "dice_agent.py").read_text()
    await learn(desk, action="molt", name="Dice", feedback="how many")
    assert (await learn(desk, action="generations", name="Dice"))["generations"] == [{"generation": 1}]
    assert (await learn(desk, action="restore", name="Dice", generation="1"))["status"] == "success"
    assert (desk.agents / "dice_agent.py").read_text() == first
    assert "Dice" in (await learn(desk, action="list"))["message"]
    assert (await learn(desk, action="delete", name="Dice"))["status"] == "success"
    assert not (desk.agents / "dice_agent.py").exists()


def test_on_another_brainstem_it_writes_beside_itself(elsewhere: Any) -> None:
    found = elsewhere.json(FILE, "LearnNewAgent", description="rolls dice", name="Dice")
    assert (found["status"], found["file"]) == ("success", "dice_agent.py")
    said = json.loads(elsewhere.perform("dice_agent.py", "DiceAgent", query="now"))
    assert said["given"] == {"query": "now"}
    again = elsewhere.json(FILE, "LearnNewAgent", description="rolls dice", name="Dice")
    assert again["status"] == "error"
    assert (
        elsewhere.json(FILE, "LearnNewAgent", action="molt", name="Dice", feedback="how many")["status"]
        == "success"
    )
    assert "'count'" in (elsewhere.agents / "dice_agent.py").read_text()
    assert "Dice" in elsewhere.json(FILE, "LearnNewAgent", action="list")["message"]
    assert elsewhere.json(FILE, "LearnNewAgent", action="generations", name="Dice")["status"] == "error"
    assert elsewhere.json(FILE, "LearnNewAgent", action="delete", name="Dice")["status"] == "success"
    assert not (elsewhere.agents / "dice_agent.py").exists()
    assert not [path for path in Path(elsewhere.agents).iterdir() if path.name.startswith(".")]
