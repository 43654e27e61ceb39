"""Twin, HatchEgg and LayEgg: what they ask of the daemon, what they answer, and what is understood without a model."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import agents.library
from agents.contract.readable_results import present
from agents.errors import AgentError
from agents.providers.offline.route import Decision, route

TWIN, HATCH, LAY = "twin_agent.py", "hatch_egg_agent.py", "lay_egg_agent.py"
ROSE = {"name": "Rose", "kind": "personal", "state": "asleep", "port": None, "memories": 3, "key": "4f" * 32}
ADA = {
    "name": "Ada Lovelace",
    "kind": "place",
    "state": "awake",
    "port": 7081,
    "memories": 0,
    "key": "5e" * 32,
}
PACKED = {"packed": {"path": "/eggs/rose.egg", "left_out": []}, "message": "Rose is packed: /eggs/rose.egg."}
HATCHED = {"hatched": {"receipt": "20261122T000000Z-abcdef"}, "message": "Rose hatched: 3 files."}


class FakeDaemon:
    """Answers as a daemon does in which Rose and Ada live; ``asked`` is what it was asked for."""

    def __init__(self, desk: Any) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.refusal = ""
        desk.keeper.answer = self._answer

    def _answer(self, operation: str, given: dict[str, Any]) -> Any:
        if self.refusal:
            raise AgentError(self.refusal)
        if operation == "twins.list":
            return {"twins": [ROSE, ADA], "unreadable": []}
        self.asked.append(
            (operation, {key: one for key, one in given.items() if one not in ("", None, False)})
        )
        match operation:
            case "twins.show":
                return {"twin": {**ROSE, "born_at": "2026-11-20T00:00:00Z"}}
            case "twins.soul":
                return {"soul": "# Rose", "history": [{"number": 1, "reason": "edited"}]}
            case "twins.archived" | "twins.purged":
                return {operation.partition(".")[2]: [{"name": "Old", "kind": "memorial"}]}
            case "twins.lineage":
                return {"lineage": [{**ROSE, "depth": 0}, {**ADA, "depth": 1}]}
            case "eggs.inspect":
                egg = {"name": "Rose", "kind": "twin", "schema": "rapp-egg/2.0", "size": 3100, "whole": True}
                return {"egg": {**egg, "signer": "4f" * 32, "roles": {"soul": 1, "agent": 5}}}
            case "eggs.receipts":
                return {"hatchings": []}
            case "eggs.pack":
                return PACKED
            case "eggs.hatch":
                return HATCHED
            case "eggs.plan":
                rows = {row: {"count": 1} for row in ("create", "replace", "keep", "quarantine", "refuse")}
                return {"plan": {"egg": {"name": "Rose", "kind": "twin", "schema": "rapp-egg/2.0"}, **rows}}
        return {"message": "It is done.", "key": "4f" * 32, "rappid": "rappid:@a/rose:4f"}


@pytest.fixture
def daemon(desk: Any) -> FakeDaemon:
    return FakeDaemon(desk)


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ({"action": "summon", "name": "Iris", "kind": "place", "text": "# Iris"}, ("twins.new", {"name": "Iris", "kind": "place", "text": "# Iris"})),
        ({"action": "new", "text": "Iris"}, ("twins.new", {"name": "Iris"})),
        ({"action": "create", "name": "Old Garden", "text": "a new twin named"}, ("twins.new", {"name": "Old Garden"})),
        ({"action": "overview", "rappid_uuid": "4f2a"}, ("twins.show", {"twin": "4f2a"})),
        ({"action": "show", "name": "Rose"}, ("twins.show", {"twin": "Rose"})),
        ({"action": "chat", "rappid_uuid": "Rose", "text": "dry?"}, ("twins.chat", {"twin": "Rose", "text": "dry?"})),
        ({"action": "ask", "text": "the twin Rose: are you dry?"}, ("twins.chat", {"twin": "Rose", "text": "are you dry?"})),
        ({"action": "ask", "text": "ada lovelace how are you"}, ("twins.chat", {"twin": "Ada Lovelace", "text": "how are you"})),
        ({"action": "boot", "name": "Rose"}, ("twins.boot", {"twin": "Rose"})),
        ({"action": "wake", "text": "rose"}, ("twins.boot", {"twin": "Rose"})),
        ({"action": "stop", "text": "somebody"}, ("twins.stop", {"twin": "somebody"})),
        ({"action": "rename", "rappid_uuid": "Rose", "name": "Iris"}, ("twins.rename", {"twin": "Rose", "name": "Iris"})),
        ({"action": "update_soul", "name": "Rose", "text": "# Be"}, ("twins.edit_soul", {"twin": "Rose", "text": "# Be"})),
        ({"action": "soul", "name": "Rose"}, ("twins.soul", {"twin": "Rose"})),
        ({"action": "history", "name": "Rose"}, ("twins.soul", {"twin": "Rose"})),
        ({"action": "lineage"}, ("twins.lineage", {})),
        ({"action": "fork", "rappid_uuid": "Rose", "name": "Iris"}, ("twins.fork", {"twin": "Rose", "name": "Iris"})),
        ({"action": "pack", "text": "my rose twin", "egg_path": "/tmp/r.egg"}, ("eggs.pack", {"twin": "Rose", "into": "/tmp/r.egg"})),
        ({"action": "hatch", "egg_path": "/r.egg", "expect_sha256": "ab"}, ("eggs.hatch", {"path": "/r.egg", "expect_sha256": "ab"})),
        ({"action": "hatch", "egg_url": "https://x/r.egg"}, ("eggs.hatch", {"url": "https://x/r.egg"})),
        ({"action": "inspect", "egg_path": "/r.egg"}, ("eggs.inspect", {"path": "/r.egg"})),
        ({"action": "eggs"}, ("eggs.receipts", {})),
        ({"action": "checkpoint", "name": "Rose", "reason": "spring"}, ("twins.checkpoint", {"twin": "Rose", "note": "spring"})),
        ({"action": "checkpoint", "text": "of Rose before the frost"}, ("twins.checkpoint", {"twin": "Rose", "note": "before the frost"})),
        ({"action": "rollback", "text": "Rose back to how she was"}, ("twins.rollback", {"twin": "Rose"})),
        ({"action": "rollback", "name": "Rose", "text": "2026-11"}, ("twins.rollback", {"twin": "Rose", "checkpoint": "2026-11"})),
        ({"action": "archive", "name": "Rose", "reason": "rest"}, ("twins.archive", {"twin": "Rose", "reason": "rest"})),
        ({"action": "archive", "filter": {"kind": "place"}, "confirm": True}, ("twins.archive", {"filter": {"kind": "place"}, "confirm": True})),
        ({"action": "archive", "filter": {"kind": "place"}, "confirm": "yes"}, ("twins.archive", {"filter": {"kind": "place"}})),
        ({"action": "unarchive", "name": "Rose"}, ("twins.unarchive", {"twin": "Rose"})),
        ({"action": "purge", "name": "Rose"}, ("twins.purge", {"twin": "Rose"})),
        ({"action": "purge", "name": "Rose", "confirm": True}, ("twins.purge", {"twin": "Rose", "confirm": True})),
        ({"action": "LIST-ARCHIVED"}, ("twins.archived", {})),
        ({"action": "list_purged"}, ("twins.purged", {})),
    ],
)  # fmt: skip
async def test_twin_agent_makes_one_daemon_request(
    desk: Any, daemon: FakeDaemon, given: dict[str, Any], asked: Any
) -> None:
    answer = await desk.json(TWIN, "Twin", **given)
    assert answer["status"] == "ok"
    assert daemon.asked == [asked]


@pytest.mark.parametrize(
    "given",
    [
        {"action": "dance"},
        {"action": "x" * 400},
        {"action": "boot"},
        {"action": "chat", "rappid_uuid": "Rose"},
        {"action": "chat", "text": "nobody in particular"},
        {"action": "summon"},
        {"action": "rename", "name": "Iris"},
        {"action": "hatch"},
        {"action": "purge", "name": 7},
    ],
)
async def test_twin_says_what_is_missing(desk: Any, daemon: FakeDaemon, given: dict[str, Any]) -> None:
    answer = await desk.text(TWIN, "Twin", **given)
    assert answer.startswith("Error: ")
    assert len(answer) < 400
    assert daemon.asked == []


async def test_the_list_reads_well_without_a_model(desk: Any, daemon: FakeDaemon) -> None:
    told = await desk.text(TWIN, "Twin", action="list")
    assert [one["name"] for one in json.loads(told)["twins"]] == ["Rose", "Ada Lovelace"], (
        "programs get all of it"
    )
    assert present([("Twin", told)]) == (
        "2 twins live here: Rose (personal, stopped), Ada Lovelace (place, running on port 7081)."
    )
    archived = present([("Twin", await desk.text(TWIN, "Twin", action="list_archived"))])
    assert archived.startswith("Set aside: Old (memorial).")
    assert present([("Twin", await desk.text(TWIN, "Twin", action="eggs"))]) == "Hatched here: none."
    born = present([("Twin", await desk.text(TWIN, "Twin", action="new", text="Iris"))])
    assert born.startswith("It is done.")
    assert "4f4f" not in born


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ({"twin": "Rose"}, {"twin": "Rose"}),
        ({"name": "Rose"}, {"twin": "Rose"}),
        ({"item": "rose"}, {"twin": "rose"}),
        ({"item": "Ada Lovelace", "form": "organism"}, {"twin": "Ada Lovelace", "form": "organism"}),
        ({"item": "weather_agent.py"}, {"item": "weather_agent.py"}),
        ({"item": "Rose", "form": "agent"}, {"item": "Rose", "form": "agent"}),
        ({"twin": "Rose", "item": "weather_agent.py", "form": "agent"}, {"twin": "Rose", "item": "weather_agent.py", "form": "agent"}),
        ({}, {}),
        ({"egg_path": "/tmp/x.egg", "exclude_memory": True}, {"into": "/tmp/x.egg", "exclude_memory": True}),
    ],
)  # fmt: skip
async def test_lay_egg_takes_a_twins_name_for_a_twin(
    desk: Any, daemon: FakeDaemon, given: Any, asked: Any
) -> None:
    assert await desk.text(LAY, "LayEgg", **given) == PACKED["message"]
    assert daemon.asked == [("eggs.pack", asked)]


async def test_what_is_long_is_told_in_a_sentence_first(desk: Any, daemon: FakeDaemon) -> None:
    looked = json.loads(await desk.text(TWIN, "Twin", action="inspect", egg_path="/r.egg"))
    assert looked["message"] == (
        "Rose, twin (rapp-egg/2.0), 3100 bytes, whole, signed by 4f4f4f4f4f4f4f4f: 1 soul, 5 agent."
    )
    family = json.loads(await desk.text(TWIN, "Twin", action="lineage"))
    assert family["message"] == "Rose (asleep)\n  Ada Lovelace (awake)"
    asked = json.loads(await desk.text(TWIN, "Twin", action="purge", rappid_uuid="Rose"))
    assert asked["message"].endswith('"yes, purge Rose" does it.')


async def test_lay_egg_does_not_pack_the_brainstem_for_a_twin(desk: Any, daemon: FakeDaemon) -> None:
    assert (await desk.text(LAY, "LayEgg", form="twin")).startswith("Error: which twin")
    assert daemon.asked == []


async def test_hatch_egg_takes_a_path_or_an_address(desk: Any, daemon: FakeDaemon) -> None:
    assert await desk.text(HATCH, "HatchEgg") == "egg_path is required (local file or URL)"
    assert await desk.text(HATCH, "HatchEgg", egg_path="/r.egg") == HATCHED["message"]
    await desk.text(HATCH, "HatchEgg", egg_path="https://x/r.egg")
    await desk.text(HATCH, "HatchEgg", egg_url="http://x/r.egg", expect_sha256="ab")
    planned = await desk.text(HATCH, "HatchEgg", egg_path="/r.egg", dry_run=True)
    assert planned.endswith("quarantine: 1, refuse: 1. Nothing was written.")
    assert daemon.asked == [
        ("eggs.hatch", {"path": "/r.egg"}),
        ("eggs.hatch", {"url": "https://x/r.egg"}),
        ("eggs.hatch", {"url": "http://x/r.egg", "expect_sha256": "ab"}),
        ("eggs.plan", {"path": "/r.egg"}),
    ]


@pytest.mark.parametrize(
    ("file", "agent", "given"),
    [
        (TWIN, "Twin", {"action": "list"}),
        (TWIN, "Twin", {"action": "purge", "name": "Rose", "confirm": True}),
        (HATCH, "HatchEgg", {"egg_path": "/r.egg"}),
        (LAY, "LayEgg", {"twin": "Rose"}),
    ],
)
async def test_refusal_has_the_daemons_text(
    desk: Any, daemon: FakeDaemon, file: str, agent: str, given: dict[str, Any]
) -> None:
    daemon.refusal = "Only this machine's operator can do that."
    assert await desk.text(file, agent, **given) == "Error: Only this machine's operator can do that."


@pytest.mark.parametrize(
    ("file", "cls", "given"),
    [
        (TWIN, "TwinAgent", {"action": "list"}),
        (HATCH, "HatchEggAgent", {"egg_path": "/r.egg"}),
        (LAY, "LayEggAgent", {}),
    ],
)
def test_elsewhere_they_say_where_they_work(
    elsewhere: Any, file: str, cls: str, given: dict[str, Any]
) -> None:
    assert elsewhere.perform(file, cls, **given) == "Error: this works inside a brainstem only."


# What is understood without a model.


@pytest.fixture(scope="module")
def understood() -> Callable[[str], Decision]:
    """Keyword matching with every shipped agent that anybody is offered."""
    tools = []
    for path in sorted(Path(agents.library.__path__[0]).glob("*_agent.py")):
        module = importlib.import_module(f"agents.library.{path.stem}")
        for name, cls in [*vars(module).items()]:  # names that are looked up late come meanwhile
            if name.endswith("Agent") and name not in ("BasicAgent", "BuddyAgent") and isinstance(cls, type):
                tools.append({"type": "function", "function": cls().metadata})
    return lambda text: route(text, tools)


@pytest.mark.parametrize(
    ("text", "agent", "given"),
    [
        ("pack Rose into an egg", "LayEgg", {"twin": "Rose"}),
        ("lay an egg of Rose", "LayEgg", {"twin": "Rose"}),
        ("export Rose as an egg", "LayEgg", {"twin": "Rose"}),
        ("pack Rose to /tmp/rose.egg", "LayEgg", {"twin": "Rose", "egg_path": "/tmp/rose.egg"}),
        ("pack the brainstem into an egg", "LayEgg", {"form": "brainstem"}),
        ("hatch /home/ada/rose.egg", "HatchEgg", {"egg_path": "/home/ada/rose.egg"}),
        (
            "hatch https://example.org/eggs/rose.egg",
            "HatchEgg",
            {"egg_url": "https://example.org/eggs/rose.egg"},
        ),
        ("list twins", "Twin", {"action": "list"}),
        ("make a twin called Rose", "Twin", {"action": "new", "name": "Rose"}),
        ("pack the twin Rose", "Twin", {"action": "lay_egg", "rappid_uuid": "Rose"}),
        ("who lives here?", "Twin", {"action": "list"}),
        (
            "ask Rose how the garden is",
            "Twin",
            {"action": "chat", "rappid_uuid": "Rose", "text": "how the garden is"},
        ),
        (
            "tell Rose: the gate is green",
            "Twin",
            {"action": "chat", "rappid_uuid": "Rose", "text": "the gate is green"},
        ),
        (
            "please rename Rose to Iris",
            "Twin",
            {"action": "update_identity", "rappid_uuid": "Rose", "name": "Iris"},
        ),
        ("fork the twin rose as Iris", "Twin", {"action": "fork", "rappid_uuid": "rose", "name": "Iris"}),
        ('fork "old rose"', "Twin", {"action": "fork", "rappid_uuid": "old rose"}),
        ("pack Rose", "Twin", {"action": "lay_egg", "rappid_uuid": "Rose"}),
        ("wake up Zoë & Søn", "Twin", {"action": "boot", "rappid_uuid": "Zoë & Søn"}),
        ("let Rose sleep", "Twin", {"action": "stop", "rappid_uuid": "Rose"}),
        ("set Rose aside", "Twin", {"action": "archive", "rappid_uuid": "Rose"}),
        ("bring Rose back", "Twin", {"action": "unarchive", "rappid_uuid": "Rose"}),
        ("keep a checkpoint of Rose", "Twin", {"action": "checkpoint", "rappid_uuid": "Rose"}),
        ("bring Rose back to her checkpoint", "Twin", {"action": "rollback", "rappid_uuid": "Rose"}),
        ("yes, roll back Rose", "Twin", {"action": "rollback", "rappid_uuid": "Rose", "confirm": True}),
        ("purge Rose", "Twin", {"action": "purge", "rappid_uuid": "Rose"}),
        (
            "archive all twins whose name starts with Sl",
            "Twin",
            {"action": "archive", "filter": {"name_prefix": "Sl"}},
        ),
        (
            "please set aside every twin of kind project",
            "Twin",
            {"action": "archive", "filter": {"kind": "project"}},
        ),
        (
            "archive my twins that have been idle for 30 days",
            "Twin",
            {"action": "archive", "filter": {"stopped_for_days": 30}},
        ),
        ("yes, purge Rose.", "Twin", {"action": "purge", "rappid_uuid": "Rose", "confirm": True}),
        ("what is the soul of Rose?", "Twin", {"action": "update_soul", "rappid_uuid": "Rose"}),
        ("who is the twin Rose?", "Twin", {"action": "overview", "rappid_uuid": "Rose"}),
        ("show me Rose", "Twin", {"action": "overview", "rappid_uuid": "Rose"}),
        ("who descends from whom?", "Twin", {"action": "lineage"}),
        ("what was hatched here?", "Twin", {"action": "eggs"}),
        ("list archived twins", "Twin", {"action": "list_archived"}),
    ],
)
def test_what_people_say_about_twins_and_eggs(
    understood: Callable[[str], Decision], text: str, agent: str, given: dict[str, str]
) -> None:
    decision = understood(text)
    assert (decision.name, decision.arguments, decision.missing) == (agent, given, [])


@pytest.mark.parametrize(
    "text",
    [
        "hacker news?",
        "remember that I like tea",
        "what do you remember?",
        "write me a poem",
        "tell me a joke",
        "who is Angela Merkel?",
        "how is Paris?",
        "archive my emails",
        "wake me up at six",
        "don't purge Rose",
        "pack my bags",
    ],
)
def test_other_agents_keep_their_sentences(understood: Callable[[str], Decision], text: str) -> None:
    assert understood(text).name not in ("Twin", "HatchEgg", "LayEgg")
