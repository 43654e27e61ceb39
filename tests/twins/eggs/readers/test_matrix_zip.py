"""Rows of the format matrix that are ZIPs of binders, swarms, applications and brainstems: what each is taken for, and where each file would go."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.twins.eggs.readers.placing import AGENT, placed, sha256
from twins.eggs.parsed_egg import Destination, Role
from twins.eggs.readers.detect import open_egg
from twins.errors import BadEggError


def test_a_binder_with_published_names(eggs: Any) -> None:
    path = eggs.zip(
        {
            "manifest.json": {
                "schema": "rapp-egg/1.0",
                "type": "rapplication",
                "id": "kanban",
                "version": "1.2.0",
                "exported_at": "2026-05-01T10:00:00Z",
                "agent_filename": "kanban_agent.py",
                "service_filename": "kanban_service.py",
                "ui_filename": "index.html",
            },
            "agent.py": AGENT,
            "service.py": "name = 'kanban'\n",
            "ui/index.html": "<p>",
            "ui/js/app.js": "1",
            "state/board.json": {},
        }
    )
    with open_egg(path) as opened:
        assert (opened.family.kind, opened.destination) == ("rapplication", Destination.HOST)
        assert opened.folder == "brainstem"
        assert opened.packed_at == "2026-05-01T10:00:00Z"
        found = placed(opened)
    listing = found.pop("rapps/kanban/manifest.json")
    assert listing == ("page", "rapps/kanban/manifest.json")
    assert found == {
        "agent.py": ("agent", "agents/kanban_agent.py"),
        "service.py": ("service", "services/kanban_service.py"),
        "ui/index.html": ("page", "rapps/kanban/ui/index.html"),
        "ui/js/app.js": ("page", "rapps/kanban/ui/js/app.js"),
        "state/board.json": ("memory", ".brainstem_data/kanban/board.json"),
    }


def test_a_binder_as_the_real_sample_names_its_agent(eggs: Any) -> None:
    path = eggs.zip(
        {"manifest.json": {"schema": "rapp-egg/1.0", "id": "Learn New"}, "learn_new_agent.py": AGENT}
    )
    with open_egg(path) as opened:
        assert placed(opened)["learn_new_agent.py"] == ("agent", "agents/learn_new_agent.py")
        listing = next(part for part in opened.parts if part.role is Role.PAGE)
        assert listing.target == "rapps/learn_new/manifest.json"
        assert json.loads(listing.read())["id"] == "learn_new"


def test_an_old_swarm_is_kept_as_data(eggs: Any) -> None:
    soul = "# Rose\n"
    row = {"arc": "twins/rose/soul.md", "bytes": len(soul), "sha256": sha256(soul)}
    manifest = {
        "schema": "rapp-egg/1.0",
        "egg_version": 1,
        "created_at": "2026-04-01T00:00:00Z",
        "host": "kitchen",
        "twins": [{"handle": "rose", "name": "Rose", "port": 7081}],
        "files": [row],
    }
    members = {"egg-manifest.json": manifest, "twins/rose/soul.md": soul}
    with open_egg(eggs.zip(members)) as opened:
        assert opened.family.kind == "swarm"
        assert opened.destination is Destination.INERT
        assert opened.folder == f"swarms/{opened.key}"
        assert not any(part.role.is_code for part in opened.parts)
        assert opened.seal.whole
        assert opened.made_by == "kitchen"
        assert "nothing of it runs" in opened.notes[-1]
    row["sha256"] = sha256("other")
    with pytest.raises(
        BadEggError, match=r"some\.egg is damaged \(twins/rose/soul\.md\); nothing was written"
    ):
        open_egg(eggs.zip(members))


def test_an_application_becomes_a_twin_of_its_own(eggs: Any) -> None:
    path = eggs.zip(
        {
            "manifest.json": {"schema": "rapp-application/1.0", "id": "rose", "name": "Rose's desk"},
            "EGG.json": {"schema": "rapp-egg/1.0", "id": "rose", "runtime": "twin", "publisher": "Kody W"},
            "twin/soul.md": "# Rose\n",
            "twin/agents/desk_agent.py": AGENT,
            "state/notes.json": {},
            "ui/index.html": "<p>",
        }
    )
    with open_egg(path) as opened, open_egg(path) as again:
        assert opened.family.kind == "application"
        assert opened.destination is Destination.TWIN
        assert opened.rappid is not None
        assert opened.rappid.owner == "kody-w"
        assert again.rappid == opened.rappid
        assert opened.folder == f"twins/{opened.rappid.key}"
        found = placed(opened)
        assert found["twin/soul.md"] == ("soul", "soul.md")
        assert found["twin/agents/desk_agent.py"] == ("agent", "agents/desk_agent.py")
        assert found["state/notes.json"] == ("memory", ".brainstem_data/notes.json")
        assert found["ui/index.html"] == ("other", "ui/index.html")
        identity = next(part for part in opened.parts if part.role is Role.IDENTITY)
        assert json.loads(identity.read())["rappid"] == opened.rappid.text
        assert any("carries no rappid" in note for note in opened.notes)


@pytest.mark.parametrize("kind", ["rapplication", "twin", "snapshot", "swarm"])
def test_brainstem_egg_2_0_of_each_type_comes_into_the_brainstem(eggs: Any, kind: str) -> None:
    path = eggs.zip(
        {
            "manifest.json": {
                "schema": "brainstem-egg/2.0",
                "type": kind,
                "rappid": eggs.rappid,
                "id": "desk",
                "name": "Desk",
                "lineage": {"publisher": "@kody-w", "hatched_on": "x"},
            },
            "agents/desk_agent.py": AGENT,
            "agents/helper.py": "x = 1\n",
            "services/desk_service.py": "name='d'\n",
            "rapp_ui/desk/index.html": "<p>",
            "data/desk.json": {},
            "soul.md": "# other\n",
            "rappid.json": {"rappid": eggs.rappid},
        }
    )
    with open_egg(path) as opened:
        assert (opened.family.tag, opened.family.kind) == ("brainstem-egg/2.0", kind)
        assert opened.destination is Destination.HOST
        assert opened.rappid is not None
        assert opened.rappid.text == eggs.rappid
        found = placed(opened)
        assert found["agents/desk_agent.py"] == ("agent", "agents/desk_agent.py")
        assert found["services/desk_service.py"] == ("service", "services/desk_service.py")
        assert found["rapp_ui/desk/index.html"] == ("page", "rapps/desk/ui/index.html")
        assert found["data/desk.json"] == ("memory", ".brainstem_data/desk.json")
        # The host's identity is its own, and a loose module would be imported by agents already here.
        aside = ".brainstem_data/unplaced/desk"
        assert found["rappid.json"] == ("other", f"{aside}/rappid.json")
        assert found["agents/helper.py"] == ("other", f"{aside}/agents/helper.py")
        soul = ("soul", "soul.md") if kind in ("twin", "snapshot") else ("other", f"{aside}/soul.md")
        assert found["soul.md"] == soul
        assert any("no place here" in note and "rappid.json" in note for note in opened.notes)


def test_brainstem_egg_2_1_trusts_rappid_json_over_the_manifest(eggs: Any) -> None:
    path = eggs.zip(
        {
            "manifest.json": {
                "schema": "brainstem-egg/2.1",
                "type": "twin",
                "rappid": "rappid:twin:@source/grandma-rose:0d51aaaabbbbcccc",
                "source": {"rappid": eggs.other, "name": "Rose", "repo": "kody-w/rose"},
            },
            "repo/rappid.json": {"rappid": eggs.rappid, "name": "Grandma Rose", "kind": "memorial"},
            "repo/soul.md": "# Rose\n",
            "repo/agents/rose_agent.py": AGENT,
            "repo/README.md": "hello",
            "repo/data/table.csv": "1,2",
            "repo/utils/organs/rose_organ.py": "name='r'\n",
            "data/memory.json": {},
            "data/frames.json": [],
        }
    )
    with open_egg(path) as opened:
        assert opened.destination is Destination.TWIN
        assert opened.rappid is not None
        assert opened.rappid.text == eggs.rappid
        assert opened.name == "Grandma Rose"
        assert opened.folder == f"twins/{eggs.key}"
        assert placed(opened) == {
            "repo/rappid.json": ("identity", "rappid.json"),
            "repo/soul.md": ("soul", "soul.md"),
            "repo/agents/rose_agent.py": ("agent", "agents/rose_agent.py"),
            "repo/README.md": ("other", "README.md"),
            "repo/data/table.csv": ("other", "data/table.csv"),
            "repo/utils/organs/rose_organ.py": ("agent", "utils/organs/rose_organ.py"),
            "data/memory.json": ("memory", ".brainstem_data/memory.json"),
            "data/frames.json": ("conversations", ".brainstem_data/frames.json"),
        }
        assert any("rappid.json holds" in note for note in opened.notes)


def test_egg_2_1_without_rappid_gets_one_from_manifest(eggs: Any) -> None:
    manifest = {
        "schema": "brainstem-egg/2.1",
        "rappid": "rappid:twin:@source/x:0d51aaaabbbbcccc",
        "source": {"rappid_uuid": eggs.rappid, "parent_rappid_uuid": eggs.other, "name": "Rose"},
    }
    with open_egg(eggs.zip({"manifest.json": manifest, "repo/soul.md": "# Rose\n"})) as opened:
        assert opened.rappid is not None
        assert opened.rappid.text == eggs.rappid
        identity = next(part for part in opened.parts if part.role is Role.IDENTITY)
        assert identity.target == "rappid.json"
        fields = json.loads(identity.read())
        assert (fields["rappid"], fields["parent_rappid"], fields["name"]) == (
            eggs.rappid,
            eggs.other,
            "Rose",
        )
        assert any("made from what the manifest says" in note for note in opened.notes)
