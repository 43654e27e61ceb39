from __future__ import annotations

import ast
import hashlib
import json
from typing import Any

import pytest

FILE = "swarm_factory_agent.py"
DESK = "workspace_agents/news_desk"

READER = '''
"""Reads the wire."""
# requirements: tabulate
from __future__ import annotations
import json
from dataclasses import dataclass
from datetime import datetime
try:
    from agents.basic_agent import BasicAgent
except ImportError:
    from basic_agent import BasicAgent

__manifest__ = {"schema": "rapp-agent/1.0", "name": "@x/reader_agent", "requires_env": ["WIRE_KEY"]}
SOUL = "You read."
LIMIT = 3
calls = 0


@dataclass
class Item:
    title: str
    year: int = datetime(2020, 1, 1).year


def helper(text, *, LIMIT=LIMIT):
    return f"read {text} {LIMIT}"


def count():
    global calls
    calls += 1
    return calls


class ReaderAgent(BasicAgent):
    SOUL = SOUL

    def __init__(self):
        self.name = "Reader"
        self.metadata = {
            "name": self.name,
            "description": "Reads the wire. Slowly.",
            "parameters": {
                "type": "object",
                "properties": {
                    "topic": {"type": "string", "description": "What about"},
                    "count": {"type": "integer", "description": "How many"},
                },
                "required": ["topic"],
            },
        }
        super().__init__(self.name, self.metadata)

    def perform(self, **kwargs):
        topic = kwargs.get("topic", "nothing")
        return json.dumps({
            "status": "error" if topic == "bad" else "success",
            "message": topic,
            "said": [SOUL, self.SOUL, helper(topic), Item(topic).year, count()],
            "data_slush": {"headline": f"On {topic}"},
        })


if __name__ == "__main__":
    print(ReaderAgent().perform())
'''
WRITER = '''
"""Writes it up."""
import datetime
import json
from agents.basic_agent import BasicAgent

SOUL = "You write."
LIMIT = 9


def helper(text):
    return f"write {text} {LIMIT} {datetime.date(2021, 1, 1)}"


class WriterAgent(BasicAgent):
    def __init__(self):
        self.name = "Writer"
        self.metadata = {
            "name": self.name,
            "description": "Writes it up.",
            "parameters": {
                "type": "object",
                "properties": {
                    "headline": {"type": "string", "description": "The headline"},
                    "count": {"type": "string", "description": "Words"},
                },
            },
        }
        super().__init__(self.name, self.metadata)

    def perform(self, headline=""):
        upstream = dict(self.context.slush)
        return json.dumps({"status": "success", "said": [SOUL, helper(headline)], "upstream": upstream})
'''
EDITOR = '''
"""Has both do their work."""
import json
from agents.basic_agent import BasicAgent
from agents.workspace_agents.news_desk.reader_agent import ReaderAgent, SOUL as READER_SOUL
try:
    from .writer_agent import WriterAgent
except ImportError:
    from writer_agent import WriterAgent

SOUL = "You edit."


class EditorAgent(BasicAgent):
    def __init__(self):
        self.name = "Editor"
        self.metadata = {"name": "Editor", "description": "Edits.", "parameters": {
            "type": "object", "properties": {"topic": {"type": "string", "description": "What about"}}}}
        super().__init__(self.name, self.metadata)

    def perform(self, **kwargs):
        from .words import shout
        read = json.loads(ReaderAgent().perform(topic=kwargs.get("topic", "all")))
        wrote = json.loads(WriterAgent().perform(**read["data_slush"]))
        return json.dumps({"status": "success", "said": [SOUL, READER_SOUL, shout(wrote["said"][1])]})
'''
WORDS = 'SIGN = "!"\n\n\ndef shout(text):\n    return text.upper() + SIGN\n'


def simple(
    name: str, body: str = "return 'ok'", top: str = "", parameters: str = "{}", base: str = "BasicAgent"
) -> str:
    return (
        f"from agents.basic_agent import BasicAgent\n{top}\n\n"
        f"class {name}Agent({base}):\n"
        f"    def __init__(self):\n"
        f"        super().__init__({name!r}, {{'name': {name!r}, 'description': 'Does {name}.', 'parameters':\n"
        f"            {{'type': 'object', 'properties': {parameters}}}}})\n\n"
        f"    def perform(self, **kwargs):\n        {body}\n"
    )


@pytest.fixture
def news(desk: Any) -> Any:
    for name, text in (
        ("reader_agent", READER),
        ("writer_agent", WRITER),
        ("editor_agent", EDITOR),
        ("words", WORDS),
    ):
        desk.write(f"{DESK}/{name}.py", text)
    return desk


async def build(desk: Any, swarm: str = "news_desk", **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = await desk.json(FILE, "SwarmFactory", action="build", swarm=swarm, **more)
    return found


async def test_a_workshop_becomes_one_file_that_is_a_whole_agent(news: Any) -> None:
    found = await build(news)
    assert found["status"] == "success", found
    assert found["message"] == "NewsDesk is ready, in news_desk_agent.py, with 3 agents inside."
    assert [row["name"] for row in found["agents"]] == ["Reader", "Writer", "Editor"]
    raw = (news.agents / "news_desk_agent.py").read_bytes()
    assert found["sha256"] == hashlib.sha256(raw).hexdigest()
    assert found["bytes"] == len(raw)
    reader = (news.agents / DESK / "reader_agent.py").read_bytes()
    assert found["files"]["reader_agent.py"] == hashlib.sha256(reader).hexdigest()
    assert found["files"]["reader_agent.py"] in raw.decode()
    (agent,) = (await news.describe("news_desk_agent.py"))["agents"]
    assert agent["name"] == "NewsDesk"
    assert agent["parameters"]["properties"].keys() == {"agent", "chain", "topic", "count", "headline"}
    assert agent["parameters"]["properties"]["topic"] == {"type": "string", "description": "What about"}
    assert agent["parameters"]["properties"]["count"] == {"description": "Reader: How many Writer: Words"}
    assert await news.test("news_desk_agent.py") == {}
    assert raw.decode().count("\nimport json\n") == 1
    assert "# requirements: tabulate" in raw.decode()
    assert "'requires_env': ['WIRE_KEY']" in raw.decode()


async def test_each_inner_agent_answers_as_it_did_in_the_workshop(news: Any) -> None:
    await build(news)
    for topic in ("x", "y"):
        for name in ("Reader", "Editor"):
            alone = await news.json(f"{DESK}/{name.lower()}_agent.py", name, topic=topic)
            inside = await news.json("news_desk_agent.py", "NewsDesk", agent=name, topic=topic)
            assert alone["said"][:4] == inside["said"][:4]
    said = await news.json(
        "news_desk_agent.py", "NewsDesk", agent="Writer", headline="h", topic="not its own"
    )
    assert said["said"] == ["You write.", "write h 9 2021-01-01"]


async def test_without_a_choice_the_composite_answers(news: Any) -> None:
    await build(news)
    said = await news.json("news_desk_agent.py", "NewsDesk", topic="x")
    assert said["said"] == ["You edit.", "You read.", "WRITE ON X 9 2021-01-01!"]
    said = await news.json("news_desk_agent.py", "NewsDesk", agent="Nobody")
    assert said["message"] == "Which agent? There is no 'Nobody'; there are Reader, Writer, Editor."


async def test_a_chain_hands_its_signals_on(news: Any) -> None:
    await build(news)
    said = await news.json("news_desk_agent.py", "NewsDesk", chain=["Reader", "Writer"], topic="x")
    assert [step["agent"] for step in said["steps"]] == ["Reader", "Writer"]
    assert said["result"]["said"][1] == "write On x 9 2021-01-01"
    assert said["result"]["upstream"] == {"headline": "On x"}
    said = await news.json("news_desk_agent.py", "NewsDesk", chain="Reader, Writer", topic="bad")
    assert said["status"] == "error"
    assert said["message"] == "Reader failed: bad"
    assert len(said["steps"]) == 1


async def test_a_single_agent_keeps_its_own_arguments(news: Any) -> None:
    found = await build(news, name="wire reader", exclude=["editor_agent.py", "writer_agent.py"])
    assert (found["agent"], found["file"]) == ("WireReader", "wire_reader_agent.py")
    (agent,) = (await news.describe(found["file"]))["agents"]
    (own,) = (await news.describe(f"{DESK}/reader_agent.py"))["agents"]
    assert agent["parameters"] == own["parameters"]
    assert agent["description"] == own["description"]
    assert (await news.json(found["file"], "WireReader", topic="x"))["said"][2] == "read x 3"


async def test_a_preview_writes_nothing(news: Any) -> None:
    found = await news.json(FILE, "SwarmFactory", action="preview", swarm="news_desk")
    assert found["status"] == "success"
    assert found["message"] == "news_desk_agent.py would hold 3 agents. Nothing was written."
    assert not (news.agents / "news_desk_agent.py").exists()


async def test_a_workshop_is_found_in_what_people_say(news: Any) -> None:
    found = await news.json(FILE, "SwarmFactory", action="preview", swarm="the swarm news_desk, please")
    assert found["agent"] == "NewsDesk"


async def test_workshops_are_listed(news: Any) -> None:
    found = await news.json(FILE, "SwarmFactory")
    assert found["message"] == "Workshops: news_desk (3 files)."


async def test_building_again_replaces_only_its_own_file(news: Any) -> None:
    first = await build(news)
    again = await build(news)
    assert again["sha256"] == first["sha256"]
    news.write("wire_agent.py", simple("Wire"))
    refused = await build(news, name="wire")
    assert refused["status"] == "error"
    assert "There is an agent file wire_agent.py already" in refused["message"]
    assert (news.agents / "wire_agent.py").read_text() == simple("Wire")


async def test_the_result_runs_where_there_is_no_brainstem(news: Any, elsewhere: Any) -> None:
    await build(news, exclude=["editor_agent.py", "writer_agent.py"])
    text = (news.agents / "news_desk_agent.py").read_text()
    (elsewhere.agents / "news_desk_agent.py").write_text(text)
    said = elsewhere.json("news_desk_agent.py", "NewsDeskAgent", topic="x")
    assert said["said"][2] == "read x 3"
    assert elsewhere.python(str(elsewhere.agents / "news_desk_agent.py"))


def test_on_another_brainstem_it_builds_beside_itself(elsewhere: Any) -> None:
    folder = elsewhere.agents / "workspace_agents" / "pair"
    folder.mkdir(parents=True)
    for name in ("One", "Two"):
        text = simple(name, f"return '{name} ' + str(kwargs)").replace(
            "from agents.basic_agent import BasicAgent",
            "class BasicAgent:\n    def __init__(self, name, metadata):\n        self.name, self.metadata = name, metadata",
        )
        (folder / f"{name.lower()}_agent.py").write_text(text)
    assert elsewhere.json(FILE, "SwarmFactoryAgent", swarm="pair")["status"] == "success"
    assert elsewhere.perform("pair_agent.py", "PairAgent", agent="Two", x=1) == "Two {'x': 1}"
    assert [path.name for path in elsewhere.agents.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"a_agent.py": "def ("}, "a_agent.py line 1: "),
        ({"a_agent.py": "from os import *\n" + simple("A")}, "a_agent.py line 1: name what you import"),
        (
            {"a_agent.py": "import b_agent\n" + simple("A"), "b_agent.py": simple("B")},
            "import the names from b_agent.py",
        ),
        (
            {"a_agent.py": "from . import b_agent\n" + simple("A"), "b_agent.py": simple("B")},
            "import the names from",
        ),
        ({"a_agent.py": "from .gone import x\n" + simple("A")}, "there is no gone.py"),
        (
            {"a_agent.py": "from b_agent import Nothing\n" + simple("A"), "b_agent.py": simple("B")},
            "has no Nothing",
        ),
        (
            {
                "a_agent.py": simple("A", top="from b_agent import X"),
                "b_agent.py": simple("B", top="from a_agent import Y"),
            },
            "in a circle",
        ),
        ({"a_agent.py": "X = 1\n"}, "no class with perform"),
        ({"words.py": "X = 1\n"}, "holds no agent file"),
        (
            {"a_agent.py": simple("A", top="raise ValueError('at home')")},
            "does not load: ValueError: at home",
        ),
        (
            {"a_agent.py": simple("A").replace("__init__(self)", "__init__(self, x)")},
            "cannot be made without arguments",
        ),
        ({"a_agent.py": simple("A"), "b_agent.py": simple("A")}, "Two agents are called A"),
        ({"a_agent.py": simple("A", parameters="{'x': {1}}")}, "cannot be written as JSON"),
    ],
)
async def test_what_cannot_be_built_is_refused_in_words(desk: Any, files: dict[str, str], told: str) -> None:
    for name, text in files.items():
        desk.write(f"workspace_agents/odd/{name}", text)
    found = await build(desk, "odd")
    assert found["status"] == "error"
    assert told in found["message"]
    assert not (desk.agents / "odd_agent.py").exists()


@pytest.mark.parametrize("swarm", ["", "nowhere", "..", ".", "../..", "/etc", "../../../etc"])
async def test_only_folders_of_the_workspace_are_workshops(desk: Any, swarm: str) -> None:
    assert "There is no workshop" in (await build(desk, swarm))["message"]


async def test_a_link_out_of_the_workshop_is_refused(news: Any, tmp_path: Any) -> None:
    (tmp_path / "secret_agent.py").write_text(simple("Secret"))
    (news.agents / DESK / "secret_agent.py").symlink_to(tmp_path / "secret_agent.py")
    assert "secret_agent.py is a link" in (await build(news))["message"]


async def test_the_dispatching_argument_gives_way_to_the_agents_own(desk: Any) -> None:
    desk.write(
        "workspace_agents/w/a_agent.py",
        simple("A", "return str(kwargs)", parameters="{'agent': {'type': 'string'}}"),
    )
    desk.write(
        "workspace_agents/w/b_agent.py",
        simple("B", "return str(kwargs)", parameters="{'chain': {'type': 'string'}}"),
    )
    await build(desk, "w")
    (agent,) = (await desk.describe("w_agent.py"))["agents"]
    assert agent["parameters"]["properties"].keys() == {"action", "chain_agents", "agent", "chain"}
    assert await desk.text("w_agent.py", "W", action="A", agent="x") == "{'agent': 'x'}"
    assert "Which agent?" in await desk.text("w_agent.py", "W")


async def test_who_asks_reaches_an_inner_agent_that_wants_to_know(desk: Any) -> None:
    desk.write("workspace_agents/w/a_agent.py", simple("A", "return kwargs.get('user_guid', 'nobody')"))
    await build(desk, "w")
    guid = "6a1f0c2e-1111-4222-8333-444455556666"
    assert await desk.text("w_agent.py", "W", user_guid=guid) == guid


async def test_what_inner_agents_add_to_the_prompt_is_added(desk: Any) -> None:
    text = simple("A") + "\n    def system_context(self):\n        return 'the sky is grey'\n"
    desk.write("workspace_agents/w/a_agent.py", text)
    await build(desk, "w")
    body = {"agents": [{"file": desk.file("w_agent.py"), "name": "W"}], "user_guid": ""}
    assert (await desk.ask("system_context", body))["W"] == "the sky is grey"


async def test_agents_may_inherit_from_those_of_other_files(desk: Any) -> None:
    desk.write(
        "workspace_agents/w/z_agent.py",
        simple("Z", "return self.word()") + "\n    def word(self):\n        return 'z'\n",
    )
    desk.write(
        "workspace_agents/w/a_agent.py",
        "from z_agent import ZAgent as Parent\n\n\nclass AAgent(Parent):\n"
        "    def __init__(self):\n        super().__init__()\n        self.name = self.metadata['name'] = 'A'\n\n"
        "    def word(self):\n        return 'a' + super(AAgent, self).word()\n",
    )
    found = await build(desk, "w")
    assert found["status"] == "success", found
    assert await desk.text("w_agent.py", "W", agent="A") == "az"
    assert await desk.text("w_agent.py", "W", agent="Z") == "z"


async def test_names_that_hide_a_builtin_stay_with_their_file(desk: Any) -> None:
    desk.write(
        "workspace_agents/w/a_agent.py",
        simple("A", "return open('x')", top="from posixpath import basename as open"),
    )
    desk.write(
        "workspace_agents/w/b_agent.py",
        simple("B", "return open.__name__ + list('ab')[1]", top="import os.path as p"),
    )
    desk.write(
        "workspace_agents/w/c_agent.py", simple("C", "return xml.dom.XML_NAMESPACE[:4]", top="import xml.dom")
    )
    found = await build(desk, "w")
    assert found["status"] == "success", found
    assert [await desk.text("w_agent.py", "W", agent=name) for name in "ABC"] == ["x", "openb", "http"]


async def test_doubtful_code_is_pointed_out(desk: Any) -> None:
    desk.write("workspace_agents/w/a_agent.py", simple("A", "return __file__"))
    assert (await build(desk, "w"))["notes"] == [
        "a_agent.py line 10 uses __file__: look whether that still fits one file."
    ]


async def test_daemons_refusal_is_passed_on(news: Any) -> None:
    news.keeper.refusal = "Only this machine's operator can do that."
    found = await build(news)
    assert (found["status"], found["message"]) == ("error", "Only this machine's operator can do that.")


async def test_nothing_public_but_one_class_is_in_the_file(news: Any) -> None:
    await build(news)
    tree = ast.parse((news.agents / "news_desk_agent.py").read_text())
    classes = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    assert [name for name in classes if not name.startswith("_")] == ["NewsDeskAgent"]
    assert json.dumps(classes).count("_Internal") == 3


async def test_a_manifest_that_code_reads_stays_with_its_file(desk: Any) -> None:
    top = "__manifest__ = {'version': '7.0.0', 'one_worker': True}"
    desk.write("workspace_agents/w/_a_agent.py", simple("A", "return __manifest__['version']", top=top))
    found = await build(desk, "w")
    assert found["status"] == "success", found
    assert await desk.text("w_agent.py", "W") == "7.0.0"
    (agent,) = (await desk.describe("w_agent.py"))["agents"]
    assert agent["manifest"]["version"] == "1.0.0"
    assert agent["one_worker"]


async def test_a_guard_that_says_more_is_kept(desk: Any) -> None:
    guard = "try:\n    from agents.basic_agent import BasicAgent\n    HOME = 'here'\nexcept ImportError:\n    HOME = 'away'"
    text = simple("A", "return HOME", top=guard).replace("from agents.basic_agent import BasicAgent\n", "", 1)
    desk.write("workspace_agents/w/a_agent.py", text)
    await build(desk, "w")
    assert await desk.text("w_agent.py", "W") == "here"
