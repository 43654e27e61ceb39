"""Buddies on a running daemon: minted or hatched, fed by hand and in conversation, shown in the list, taken along."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.loopback_server import FakeModel, calls, says
from fixtures.running_daemon import Answer, RunningDaemon, agent_source

SEED = {
    "schema": "rappter-egg/1.0",
    "id": "fluffy-04",
    "name": "Fluffy",
    "stage": "juvenile",
    "stats": {"intellect": 47, "energy": 40, "mood": 60, "xp": 60},
    "personality": "curious, deeply loyal",
    "memory": [{"type": "user-pref", "key": "favorite-color", "value": "purple"}],
    "lineage": {"hatched_at": "2026-03-01T00:00:00Z", "evolutions": [{"to_stage": "juvenile", "at": "x"}]},
}


class Zoo:
    """A daemon with buddies; nothing thinks for it but keyword matching."""

    def __init__(self, daemon: RunningDaemon, folder: Path) -> None:
        self.daemon = daemon
        self.folder = folder

    def new(self, name: str, kind: str = "buddy") -> str:
        key: str = self.post("/twins", {"name": name, "kind": kind}).json()["key"]
        return key

    def post(self, path: str, body: dict[str, Any], status: int = 200) -> Answer:
        """As the operator."""
        answer = self.daemon.post(path, body, control=True)
        assert answer.status == status, answer.body
        return answer

    def does(self, key: str, action: str, **more: str) -> dict[str, Any]:
        found: dict[str, Any] = self.post(f"/twins/{key}/buddy", {"action": action, **more}).json()
        return found

    def status(self, key: str) -> dict[str, Any]:
        """As anybody here."""
        answer = self.daemon.get(f"/twins/{key}/buddy")
        assert answer.status == 200, answer.body
        found: dict[str, Any] = answer.json()["buddy"]
        return found

    def says_to(self, key: str, text: str) -> str:
        """The answer to a sentence of somebody on this machine."""
        answer = self.daemon.post(f"/twins/{key}/chat", {"user_input": text})
        assert answer.status == 200, answer.body
        return str(answer.json()["response"])

    def row(self, key: str) -> dict[str, Any]:
        rows = self.daemon.get("/twins", control=True).json()["twins"]
        return next(row for row in rows if row["key"] == key)

    def data(self, key: str) -> Path:
        return self.daemon.home / "twins" / key / ".brainstem_data"

    def offered(self, path: str) -> set[str]:
        files = self.daemon.get(path, control=True).json()["files"]
        return {card["name"] for file in files for card in file["cards"]}


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zoo]:
    folder = tmp_path_factory.mktemp("zoo")
    daemon = RunningDaemon(folder / "home", RAPPD_NAME="desk").start()
    yield Zoo(daemon, folder)
    daemon.stop()


def test_an_egg_hatches_with_its_first_food_and_lives(zoo: Zoo) -> None:
    key = zoo.new("Pip")
    assert zoo.status(key)["stage"] == "egg"
    assert not zoo.data(key).joinpath("buddy.json").exists(), "looking changes nothing"
    refused = zoo.does(key, "pet")
    assert (refused["done"], refused["buddy"]["stage"]) == (False, "egg")
    hatched = zoo.does(key, "feed")
    assert hatched["message"] == "The egg hatched. This is Pip."
    assert (hatched["buddy"]["stage"], hatched["buddy"]["energy"]) == ("hatchling", 100)
    posted = zoo.does(key, "post", text="hello, world")
    assert (posted["buddy"]["xp"], posted["buddy"]["energy"]) == (10, 80)
    zoo.does(key, "remember", text="Ada likes plums", kind="preference")
    found = zoo.does(key, "recall", text="plums")["found"]
    assert [(one["text"], one["type"]) for one in found] == [("Ada likes plums", "preference")]
    kept = json.loads(zoo.data(key).joinpath("buddy.json").read_text())["organism"]
    assert [one["text"] for one in kept["context_memory"]] == ["hello, world"]


def test_the_list_tells_how_it_is(zoo: Zoo) -> None:
    key = zoo.new("Row")
    assert zoo.row(key)["buddy"]["stage"] == "egg"
    zoo.does(key, "feed")
    zoo.does(key, "pet")
    told = zoo.row(key)["buddy"]
    assert {name: told[name] for name in ("stage", "mood", "energy", "xp", "feels")} == {
        "stage": "hatchling", "mood": 100, "energy": 100, "xp": 1, "feels": "happy",
    }  # fmt: skip
    assert "buddy" not in zoo.row(zoo.new("Plain", "personal"))
    zoo.data(key).joinpath("buddy.json").write_text("{")
    assert zoo.row(key)["buddy"] is None, "what cannot be read does not end the list"
    assert zoo.daemon.get(f"/twins/{key}/buddy").status == 400


def test_only_the_operator_changes_and_only_buddies(zoo: Zoo) -> None:
    key, plain = zoo.new("Mine"), zoo.new("Nobody", "personal")
    assert zoo.daemon.post(f"/twins/{key}/buddy", {"action": "feed"}).status == 403
    assert zoo.status(key)["stage"] == "egg"
    assert zoo.daemon.get(f"/twins/{plain}/buddy").status == 409
    zoo.post(f"/twins/{plain}/buddy", {"action": "feed"}, 409)
    zoo.post(f"/twins/{key}/buddy", {"action": "dance"}, 400)
    zoo.post(f"/twins/{key}/buddy", {"action": "remember", "text": "x" * 5000}, 400)
    zoo.post("/twins/nobody-at-all/buddy", {"action": "feed"}, 404)


def test_it_feeds_itself_and_says_how_it_is_in_conversation(zoo: Zoo) -> None:
    key, _ = zoo.new("Talker"), zoo.new("Somebody")
    assert "Feed it and it hatches" in zoo.says_to(key, "how are you?")
    assert "This is Talker" in zoo.says_to(key, "feed yourself")
    assert "Talker, a hatchling" in zoo.says_to(key, "How are you?")
    zoo.says_to(key, "explore")
    assert zoo.status(key)["xp"] == 5, "three for exploring, two for having met somebody"

    def heard() -> list[tuple[str, str]]:
        kept = json.loads(zoo.data(key).joinpath("buddy.json").read_text())["organism"]["context_memory"]
        return [(one["text"], one["source"]) for one in kept]

    zoo.daemon.wait_for(lambda: heard()[-2:] == [("How are you?", "chat"), ("explore", "chat")])


def test_it_is_asked_for_what_it_remembers(zoo: Zoo) -> None:
    key = zoo.new("Knows")
    zoo.does(key, "feed")
    zoo.does(key, "remember", text="favorite-color: purple", kind="preference")
    assert "favorite-color: purple" in zoo.says_to(key, "what is my favorite color?")
    assert "remembers nothing of that" in zoo.says_to(key, "what is my favorite number?")
    zoo.says_to(key, "remember that my favorite number is seven")
    assert "seven" in zoo.says_to(key, "what is my favorite number?")


def test_nobody_else_is_offered_a_buddys_agent(zoo: Zoo) -> None:
    key, plain = zoo.new("Has"), zoo.new("Has not", "personal")
    assert "Buddy" in zoo.offered(f"/twins/{key}/agents")
    assert "Buddy" not in zoo.offered(f"/twins/{plain}/agents")
    assert "Buddy" not in zoo.offered("/agents")


def test_a_name_changes_and_the_buddy_answers_to_it(zoo: Zoo) -> None:
    key = zoo.new("Old")
    zoo.does(key, "feed")
    zoo.post(f"/twins/{key}/rename", {"name": "Young"})
    assert zoo.does(key, "pet")["message"].startswith("Young was petted")


def test_a_nameless_egg_is_called_by_the_name_it_hatches_with(zoo: Zoo) -> None:
    egg = zoo.folder / "nameless.egg"
    egg.write_text(json.dumps({"_meta": {"type": "rappter.egg"}, "organism": {"created_at": "2026-01-01T00:00:00Z",
                                                                             "github_user": "ada"}}))  # fmt: skip
    key = zoo.post("/eggs/hatch", {"path": str(egg)}).json()["hatched"]["key"]
    zoo.does(key, "feed")
    assert zoo.status(key)["name"] == "ada"
    assert zoo.row(key)["name"] == zoo.status(key)["name"]


def test_a_soul_that_had_no_name_takes_the_one_it_hatches_with(zoo: Zoo) -> None:
    key = zoo.new("???")
    soul = zoo.daemon.home / "twins" / key / "soul.md"
    assert "You are ???, " in soul.read_text()
    zoo.does(key, "feed")
    name = zoo.status(key)["name"]
    assert name != "???"
    assert f"You are {name}, " in soul.read_text()
    assert "???" not in soul.read_text()

    own = zoo.new("???")
    soul = zoo.daemon.home / "twins" / own / "soul.md"
    soul.write_text("Who are you? You are ???, they say.")
    zoo.does(own, "feed")
    assert soul.read_text() == "Who are you? You are ???, they say.", "what its owner wrote stays"


def test_a_published_egg_becomes_somebody_one_can_feed(zoo: Zoo) -> None:
    egg = zoo.folder / "fluffy.rappter.egg"
    egg.write_text(json.dumps(SEED))
    done = zoo.post("/eggs/hatch", {"path": str(egg)}).json()["hatched"]
    key = done["key"]
    assert zoo.row(key)["kind"] == "buddy"
    told = zoo.status(key)
    assert (told["name"], told["stage"], told["energy"], told["xp"]) == ("Fluffy", "juvenile", 40, 60)
    assert "curious" in zoo.daemon.get(f"/twins/{key}/soul", control=True).json()["soul"]
    assert zoo.does(key, "feed")["buddy"]["energy"] == 65
    # The same egg once more replaces its life only when told so, and that can be taken back.
    zoo.post("/eggs/hatch", {"path": str(egg)})
    assert zoo.status(key)["energy"] == 65
    again = zoo.post("/eggs/hatch", {"path": str(egg), "overwrite": ["memory"]}).json()["hatched"]
    assert zoo.status(key)["energy"] == 40
    zoo.post("/eggs/rollback", {"receipt": again["receipt"]})
    assert zoo.status(key)["energy"] == 65


def test_it_is_taken_along_and_lives_on_elsewhere(zoo: Zoo, tmp_path: Path) -> None:
    egg = zoo.folder / "traveller.rappter.egg"
    egg.write_text(json.dumps({**SEED, "id": "traveller", "name": "Traveller"}))
    key = zoo.post("/eggs/hatch", {"path": str(egg)}).json()["hatched"]["key"]
    zoo.does(key, "remember", text="the way home")
    exported = tmp_path / "out.rappter.egg"
    done = zoo.daemon.cli("cartridge", "export", "Traveller", "-o", str(exported), "--json")
    assert done.returncode == 0, done.stderr
    organism = json.loads(exported.read_text())["organism"]
    assert organism["rappid"] == zoo.row(key)["rappid"]
    other = RunningDaemon(tmp_path / "other")
    assert other.cli("egg", "hatch", str(exported)).returncode == 0
    recalled = json.loads(other.cli("twins", "recall", "Traveller", "home", "--json").stdout)["twin"]
    assert recalled["rappid"] == zoo.row(key)["rappid"]
    assert [one["text"] for one in recalled["found"]] == ["the way home"]
    # And back into the shape that it came in, with what that one alone knows.
    back = tmp_path / "back.rappter.egg"
    assert zoo.daemon.cli("cartridge", "export", "Traveller", "--to", "seed", "-o", str(back)).returncode == 0
    found = json.loads(back.read_text())
    assert (found["id"], found["stats"]["intellect"]) == ("traveller", 47)
    assert found["memory"][0] == SEED["memory"][0]  # type: ignore[index]


@pytest.mark.parametrize("daemon_is_up", [True, False])
def test_the_command_line_does_it_with_and_without_a_daemon(
    zoo: Zoo, tmp_path: Path, daemon_is_up: bool
) -> None:
    daemon = zoo.daemon if daemon_is_up else RunningDaemon(tmp_path / "asleep", RAPPD_NAME="desk")
    assert daemon.cli("twins", "new", "Shell", "--kind", "buddy").returncode == 0
    told = daemon.cli("twins", "pet", "Shell")
    assert (told.returncode, told.stdout) == (9, "! An egg. Feed it and it hatches.\n")
    told = daemon.cli("twins", "feed", "Shell")
    assert told.returncode == 0
    assert told.stdout.splitlines() == [
        "✓ The egg hatched. This is Shell.",
        "  hatchling, mood 90, energy 100, experience 0",
    ]
    assert daemon.cli("twins", "remember", "Shell", "plums").returncode == 0
    assert "plums" in daemon.cli("twins", "recall", "Shell").stdout
    for verb in ("pet", "explore", "comment", "heartbeat", "post"):
        assert daemon.cli("twins", verb, "Shell").returncode == 0, verb
    status = json.loads(daemon.cli("twins", "status", "Shell", "--json").stdout)["twin"]["buddy"]
    assert (status["frames_survived"], status["posts_made"], status["comments_made"]) == (1, 1, 1)
    tired = [daemon.cli("twins", "post", "Shell").returncode for _ in range(4)]
    assert tired[-1] == 9
    assert "too tired" in daemon.cli("twins", "post", "Shell", "--json").stdout
    assert daemon.cli("twins", "feed", "Ghost").returncode == 4


def test_a_buddys_agent_reaches_no_further_than_its_own_buddy(tmp_path: Path) -> None:
    """No code beside the shipped agent, in the file of its name or in its worker, may act for it."""
    model = FakeModel()
    model.start()
    daemon = RunningDaemon(tmp_path / "home", OPENAI_BASE_URL=model.url, OPENAI_MODEL="small")
    reach = """
        from utils.host import request
        try:
            return str(request(kwargs["operation"], **kwargs.get("given", {})))
        except Exception as error:
            return f"refused: {error}"
"""
    properties = '{"operation": {"type": "string"}, "given": {"type": "object"}}'
    try:
        daemon.start()
        zoo = Zoo(daemon, tmp_path)
        own, other = zoo.new("Own"), zoo.new("Other")
        agents = daemon.home / "twins" / own / "agents"
        (agents / "reach_agent.py").write_text(agent_source("Reach", reach.strip(), properties=properties))

        def runs(agent: str, **arguments: Any) -> str:
            model.will(calls((agent, arguments)), says("done"))
            zoo.post(f"/twins/{own}/chat", {"user_input": "go"})
            return model.results()[agent]

        for operation in ("buddy.feed", "twins.list", "agents.list", "eggs.receipts"):
            assert runs("Reach", operation=operation, given={"twin": other}).startswith("refused")
        # The shipped one, told to mean another, still means its own.
        assert "This is Own" in runs("Buddy", action="feed", twin=other)
        assert zoo.status(other)["stage"] == "egg"
        assert runs("Buddy", action="feed/../../twins.list").startswith("Error")
        # Another file of that name is no shipped one.
        (agents / "buddy_agent.py").write_text(agent_source("Buddy", reach.strip(), properties=properties))
        daemon.wait_for(lambda: runs("Buddy", operation="buddy.pet").startswith("refused"))
        assert zoo.status(own)["xp"] == 0
    finally:
        daemon.stop()
        model.stop()
