"""Every row of the format matrix that is a ZIP: what it is taken for, and where each file would go."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from twins.eggs.opened import Destination, Opened, Role
from twins.eggs.opening.sniffing import open_egg
from twins.errors import BadEgg

AGENT = "class A:\n    pass\n"


def placed(opened: Opened) -> dict[str, tuple[str, str]]:
    """name → (role, target)"""
    return {part.name: (part.role.value, part.target) for part in opened.parts}


def sha256(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


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
    with pytest.raises(BadEgg, match=r"some\.egg is damaged \(twins/rose/soul\.md\); nothing was written"):
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


def test_brainstem_egg_2_1_without_rappid_json_gets_one_from_its_manifest(eggs: Any) -> None:
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


def organism(eggs: Any, **more: Any) -> dict[str, Any]:
    return {
        "rappid.json": {"rappid": eggs.rappid, "name": "Desk", "kind": "brainstem-instance"},
        "soul.md": "# Desk\n",
        ".env": "X_TOKEN=\n",
        "agents/desk_agent.py": AGENT,
        "agents/README.txt": "about",
        "organs/desk_organ.py": "name='d'\n",
        "senses/voice.py": "name='v'\n",
        "services/web_service.py": "name='w'\n",
        "data/memory.json": {},
        "data/frames.json": [],
        "tools/lan.sh": "#!/bin/sh\n",
        "manifest.json": {
            "schema": "brainstem-egg/2.2-organism",
            "type": "organism",
            "exported_at": "2026-05-09T00:00:00Z",
            "host": "kitchen",
            "rappid": eggs.rappid,
            "counts": {},
            **more,
        },
    }


def test_an_organism(eggs: Any) -> None:
    with open_egg(eggs.zip(organism(eggs))) as opened:
        assert opened.destination is Destination.TWIN
        assert opened.folder == f"twins/{eggs.key}"
        assert opened.made_by == "kitchen"
        assert opened.seal.whole is None
        assert placed(opened) == {
            "rappid.json": ("identity", "rappid.json"),
            "soul.md": ("soul", "soul.md"),
            ".env": ("env", ".env"),
            "agents/desk_agent.py": ("agent", "agents/desk_agent.py"),
            "agents/README.txt": ("other", "agents/README.txt"),
            "organs/desk_organ.py": ("service", "services/desk_organ.py"),
            "senses/voice.py": ("slot", "senses/voice.py"),
            "services/web_service.py": ("service", "services/web_service.py"),
            "data/memory.json": ("memory", ".brainstem_data/memory.json"),
            "data/frames.json": ("conversations", ".brainstem_data/frames.json"),
            "tools/lan.sh": ("other", "tools/lan.sh"),
        }
        soul = next(part for part in opened.parts if part.role is Role.SOUL)
        assert soul.read() == soul.read() == b"# Desk\n"


@pytest.mark.parametrize("how", ["lines", "object"])
def test_an_organisms_provenance_holds_under_both_published_definitions(eggs: Any, how: str) -> None:
    members = organism(eggs)
    hashes = _hashes(eggs, members)
    members["manifest.json"]["provenance"] = {
        "schema": "rapp-egg-provenance/1.0",
        "scheme": "sha256",
        "file_hashes": hashes,
        "manifest_hash": sha256(
            "\n".join(sorted(f"{path}\t{digest}" for path, digest in hashes.items()))
            if how == "lines"
            else json.dumps(hashes, sort_keys=True)
        ),
    }
    with open_egg(eggs.zip(members)) as opened:
        assert opened.seal.whole is True
        assert opened.seal.listed == len(hashes)


def _hashes(eggs: Any, members: dict[str, Any]) -> dict[str, str]:
    """SHA-256 of every member as it is written."""
    with zipfile.ZipFile(eggs.zip(members, "for-hashing.zip")) as archive:
        return {
            name: hashlib.sha256(archive.read(name)).hexdigest()
            for name in archive.namelist()
            if name != "manifest.json"
        }


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda p, members: p["file_hashes"].update({"soul.md": "0" * 64}), "hash of its list"),
        (lambda p, members: members.update({"soul.md": "# changed\n"}), "soul.md"),
        (lambda p, members: members.pop("tools/lan.sh"), "tools/lan.sh is missing"),
        (lambda p, members: p.update({"manifest_hash": "0" * 64}), "hash of its list"),
        (lambda p, members: p.update({"file_hashes": ["soul.md"]}), "lists no files"),
    ],
)
def test_a_provenance_that_does_not_hold_is_a_damaged_egg(eggs: Any, change: Any, named: str) -> None:
    members = organism(eggs)
    hashes = _hashes(eggs, members)
    said = {
        "scheme": "sha256",
        "file_hashes": dict(hashes),
        "manifest_hash": sha256(json.dumps(hashes, sort_keys=True)),
    }
    members["manifest.json"]["provenance"] = said
    change(said, members)
    with pytest.raises(BadEgg, match=rf"some\.egg is damaged \(.*{named}.*\); nothing was written"):
        open_egg(eggs.zip(members))


def test_files_that_a_provenance_does_not_name_are_told(eggs: Any) -> None:
    members = organism(eggs)
    hashes = _hashes(eggs, members)
    del hashes["soul.md"]
    members["manifest.json"]["provenance"] = {"file_hashes": hashes}
    with open_egg(eggs.zip(members)) as opened:
        assert opened.seal.whole is None
        assert any("no hash" in note and "soul.md" in note for note in opened.notes)


def test_an_organism_that_is_about_two_identities_is_refused(eggs: Any) -> None:
    with pytest.raises(BadEgg, match=r"another than rappid\.json"):
        open_egg(eggs.zip(organism(eggs, rappid=eggs.other)))


def test_a_rapplication_never_touches_the_hosts_identity(eggs: Any) -> None:
    path = eggs.zip(
        {
            "rappid.json": {"rappid": "rappid:v2:rapplication:kody/desk:" + "a" * 32},
            "soul.md": "# desk\n",
            "agents/desk_agent.py": AGENT,
            "organs/desk_organ.py": "name='d'\n",
            "rapp_ui/desk/index.html": "<p>",
            "data/desk/board.json": {},
            "data/memory.json": {"stolen": True},
            "manifest.json": {
                "schema": "brainstem-egg/2.2-rapplication",
                "type": "rapplication",
                "rapp_id": "desk",
                "name": "Desk",
                "publisher": "kody",
                "rappid": "rappid:v2:rapplication:kody/desk:" + "a" * 32,
            },
        }
    )
    with open_egg(path) as opened:
        assert opened.destination is Destination.HOST
        assert opened.key == ""
        found = placed(opened)
        assert found["rappid.json"] == ("memory", ".brainstem_data/desk/rappid.json")
        assert found["soul.md"] == ("memory", ".brainstem_data/desk/soul.md")
        assert found["organs/desk_organ.py"] == ("service", "services/desk_organ.py")
        assert found["rapp_ui/desk/index.html"] == ("page", "rapps/desk/ui/index.html")
        assert found["data/desk/board.json"] == ("memory", ".brainstem_data/desk/board.json")
        assert found["data/memory.json"] == ("other", ".brainstem_data/unplaced/desk/data/memory.json")


def test_a_rapplication_without_an_agent_is_none(eggs: Any) -> None:
    manifest = {"schema": "brainstem-egg/2.2-rapplication", "rapp_id": "desk"}
    with pytest.raises(BadEgg, match="holds no agent"):
        open_egg(eggs.zip({"manifest.json": manifest, "rapp_ui/desk/index.html": "<p>"}))


def test_a_cubby_is_kept_as_data_by_its_owner(eggs: Any) -> None:
    files = [{"path": "notes/a.md", "sha256": sha256("hi")}]
    manifest = {
        "schema": "brainstem-egg/2.3-cubby",
        "type": "cubby",
        "slug": "notes",
        "owner": "@kody-w",
        "cubby_schema": "rapp-cubby/1.0",
        "packed_at": "2026-06-01T00:00:00Z",
        "files": files,
    }
    with open_egg(eggs.zip({"manifest.json": manifest, "cubby/notes/a.md": "hi"})) as opened:
        assert opened.folder == "cubbies/kody-w"
        assert opened.destination is Destination.INERT
        assert opened.seal.whole is True
        assert placed(opened)["cubby/notes/a.md"] == ("other", "notes/a.md")
        assert placed(opened)["manifest.json"] == ("other", "manifest.json")
    with pytest.raises(BadEgg, match=r"cubby/notes/a\.md\)"):
        open_egg(eggs.zip({"manifest.json": manifest, "cubby/notes/a.md": "ho"}))


def test_an_estate_as_it_is_published(eggs: Any) -> None:
    estate = json.dumps({"schema": "rapp-estate/1.1", "owner": {"rappid": eggs.rappid, "github": "kody-w"}})
    manifest = {
        "schema": "brainstem-egg/2.3-estate",
        "type": "estate",
        "name": "home",
        "members": 12,
        "observed_at": "2026-06-02T00:00:00Z",
        "sha256": sha256(estate),
    }
    members = {"manifest.json": manifest, "estate.json": estate, "HATCH.md": "how to"}
    with open_egg(eggs.zip(members)) as opened:
        assert opened.folder == f"estates/{eggs.key}"
        assert opened.destination is Destination.INERT
        assert "HATCH.md" in opened.answer
        assert placed(opened)["estate.json"] == ("roster", "estate.json")
    members["estate.json"] = estate + " "
    with pytest.raises(BadEgg, match=r"some\.egg is damaged \(estate\.json\)"):
        open_egg(eggs.zip(members))


def test_an_estate_as_it_is_specified(eggs: Any) -> None:
    manifest = {
        "schema": "brainstem-egg/2.3-estate",
        "scale": "estate",
        "rapp_egg_version": "2.0",
        "owner_rappid": eggs.rappid,
        "estate_snapshot_at": "2026-06-03T00:00:00Z",
        "members": [{"hash": "b" * 64, "kind": "twin"}],
        "owner_signature": "x",
    }
    members = {
        "manifest.json": manifest,
        "estate.json": {"schema": "rapp-estate/1.1"},
        "owner_rappid.json": {"rappid": eggs.rappid},
        f"members/{'b' * 64}/manifest.json": {"schema": "rapp-egg/2.0"},
        "README.md": "x",
    }
    with open_egg(eggs.zip(members)) as opened:
        assert opened.folder == f"estates/{eggs.key}"
        assert opened.packed_at == "2026-06-03T00:00:00Z"
        assert len(opened.parts) == 5
        assert any("signature" in note for note in opened.notes)


def test_a_gate_as_a_zip_is_kept_as_a_local_mirror(eggs: Any) -> None:
    members = {
        "manifest.json": {"schema": "brainstem-egg/2.3-neighborhood", "type": "neighborhood"},
        "rappid.json": {"rappid": eggs.rappid},
        "neighborhood.json": {},
        "members.json": {},
        "agents/a_agent.py": AGENT,
    }
    with open_egg(eggs.zip(members)) as opened:
        assert opened.folder == f"neighborhoods/{eggs.key}"
        assert opened.destination is Destination.INERT
        assert placed(opened)["agents/a_agent.py"] == ("other", "agents/a_agent.py")
        assert placed(opened)["members.json"] == ("roster", "members.json")


def test_scale_agent(eggs: Any) -> None:
    members = {
        "manifest.json": {
            "schema": "rapp-egg/2.0",
            "scale": "agent",
            "name": "Weather",
            "rappid": eggs.rappid,
        },
        "weather_agent.py": AGENT,
        "repo/agents/rain_agent.py": AGENT,
        "data/weather.json": {},
        "data/odd_agent.py": "x",
        "README.md": "x",
    }
    with open_egg(eggs.zip(members, "weather.egg")) as opened:
        assert (opened.family.kind, opened.destination) == ("agent", Destination.HOST)
        assert placed(opened) == {
            "weather_agent.py": ("agent", "agents/weather_agent.py"),
            "repo/agents/rain_agent.py": ("agent", "agents/rain_agent.py"),
            "data/weather.json": ("memory", ".brainstem_data/weather.json"),
            "data/odd_agent.py": ("memory", ".brainstem_data/odd_agent.py"),
            "README.md": ("other", ".brainstem_data/unplaced/weather/README.md"),
        }
    with pytest.raises(BadEgg, match="holds no agent"):
        open_egg(eggs.zip({"manifest.json": {"schema": "rapp-egg/2.0", "scale": "agent"}}))


@pytest.mark.parametrize("where", ["", "repo/"])
@pytest.mark.parametrize("scale", ["twin", None])
def test_scale_twin_which_is_also_meant_where_no_scale_is_given(eggs: Any, where: str, scale: Any) -> None:
    manifest = {"schema": "rapp-egg/2.0", "name": "Rose", **({"scale": scale} if scale else {})}
    members = {
        "manifest.json": manifest,
        f"{where}rappid.json": {"rappid": eggs.rappid, "name": "Rose"},
        f"{where}soul.md": "# Rose\n",
        f"{where}agents/rose_agent.py": AGENT,
        f"{where}organs/rose_organ.py": "name='r'\n",
        f"{where}senses/voice.py": "name='v'\n",
        f"{where}members.json": {},
        f"{where}neighbors.json": {},
        "data/memory.json": {},
        "data/frames.json": [],
    }
    with open_egg(eggs.zip(members)) as opened:
        assert (opened.family.kind, opened.destination) == ("twin", Destination.TWIN)
        found = placed(opened)
        assert found[f"{where}rappid.json"] == ("identity", "rappid.json")
        assert found[f"{where}organs/rose_organ.py"] == ("service", "services/rose_organ.py")
        assert found[f"{where}senses/voice.py"] == ("slot", "senses/voice.py")
        assert found[f"{where}neighbors.json"] == ("roster", "neighbors.json")
        assert found["data/memory.json"] == ("memory", ".brainstem_data/memory.json")
        assert found["data/frames.json"] == ("conversations", ".brainstem_data/frames.json")


def test_of_two_identities_and_souls_the_repositorys_are_meant(eggs: Any) -> None:
    members = {
        "manifest.json": {"schema": "brainstem-egg/2.1"},
        "rappid.json": {"rappid": eggs.other},
        "soul.md": "# other\n",
        "repo/rappid.json": {"rappid": eggs.rappid},
        "repo/soul.md": "# Rose\n",
    }
    with open_egg(eggs.zip(members)) as opened:
        found = placed(opened)
        assert found["repo/rappid.json"] == ("identity", "rappid.json")
        assert found["repo/soul.md"] == ("soul", "soul.md")
        assert found["rappid.json"] == ("other", ".brainstem_data/unplaced/rappid.json")
        assert found["soul.md"] == ("other", ".brainstem_data/unplaced/soul.md")


@pytest.mark.parametrize("name", ["egg.json", "repo/manifest.json"])
def test_the_manifest_may_lie_where_the_published_hatcher_looks(eggs: Any, name: str) -> None:
    members = {name: {"schema": "rapp-egg/2.0"}, "repo/rappid.json": {"rappid": eggs.rappid}}
    with open_egg(eggs.zip(members)) as opened:
        assert opened.folder == f"twins/{eggs.key}"


def test_scale_brainstem(eggs: Any) -> None:
    members = {
        "manifest.json": {"schema": "rapp-egg/2.0", "scale": "brainstem", "rappid": eggs.rappid},
        "rappid.json": {"rappid": eggs.rappid},
        "soul.md": "# Desk\n",
        "agents/a_agent.py": AGENT,
    }
    with open_egg(eggs.zip(members)) as opened:
        assert opened.destination is Destination.BRAINSTEM
        assert opened.folder == "brainstem"
        assert opened.key == ""
        assert placed(opened)["soul.md"] == ("soul", "soul.md")


@pytest.mark.parametrize(
    ("scale", "folder"),
    [("swarm", "swarms"), ("factory", "factories"), ("industry", "industries"), ("estate", "estates")],
)
def test_containers_unpack_as_inert_data_and_say_so(eggs: Any, scale: str, folder: str) -> None:
    members = {
        "manifest.json": {"schema": "rapp-egg/2.0", "scale": scale, "rappid": eggs.rappid},
        "children/twin/abc/agents/x_agent.py": AGENT,
    }
    with open_egg(eggs.zip(members)) as opened:
        assert opened.destination is Destination.INERT
        assert opened.folder == f"{folder}/{eggs.key}"
        assert not any(part.role.is_code for part in opened.parts)
        assert len(opened.parts) == 2
        assert any("nothing of it runs" in note for note in opened.notes)


def snapshot(eggs: Any) -> dict[str, Any]:
    members = {
        "local": {
            "host": "desk",
            "twins": [
                {"hash": eggs.key, "rappid": eggs.rappid, "name": "Gardener", "alive_at_snapshot": True},
                {"hash": "c" * 64, "name": "Atlas", "alive_at_snapshot": False, "lifecycle": "archived"},
            ],
        },
        "peers": [
            {
                "name": "pi",
                "twins": [
                    {
                        "hash": "d" * 64,
                        "captured": True,
                        "captured_path_in_egg": f"peers/pi/twins/{'d' * 64}.tar.gz",
                    },
                    {"hash": "e" * 64, "captured": False, "reason": "oversize"},
                ],
            }
        ],
    }
    manifest = {
        "schema": "rapp-egg/2.0",
        "scale": "neighborhood",
        "name": "neighborhood-20261121-090000",
        "snapshotted_at": "2026-11-21T09:00:00+01:00",
        "snapshotted_from": "desk",
        "created_by": "NeighborhoodSnapshot",
        "members": members,
    }
    return {
        "manifest.json": manifest,
        "members.json": members,
        "brainstem/soul.md": "# Desk\n",
        "brainstem/agents/a_agent.py": AGENT,
        "brainstem/core/brainstem.py": "x",
        "brainstem/data/memory.json": {},
        "brainstem/global_state/estate.json": {},
        f"twins/{eggs.key}/rappid.json": {"rappid": eggs.rappid},
        f"twins/{eggs.key}/agents/g_agent.py": AGENT,
        f"twins/{eggs.key}/.brainstem_data/memory.json": {},
        f"twins/.archive/{'c' * 64}/soul.md": "# Atlas\n",
        f"peers/pi/twins/{'d' * 64}.tar.gz": b"\x1f\x8b",
    }


def test_a_neighborhood_snapshot_is_read_and_planned_and_waits(eggs: Any) -> None:
    with open_egg(eggs.zip(snapshot(eggs))) as opened:
        assert opened.family.kind == "neighborhood"
        assert opened.destination is Destination.ANSWER
        assert opened.packed_at == "2026-11-21T09:00:00+01:00"
        assert "2 machines" in opened.answer
        assert "2 twins of its own (1 awake, 1 archived)" in opened.answer
        assert "1 of 2 twins of pi" in opened.answer
        found = placed(opened)
        own = next(target for _, target in found.values() if target.startswith("neighborhoods/")).rsplit("/")[
            1
        ]
        assert found["brainstem/agents/a_agent.py"] == ("agent", "brainstem/agents/a_agent.py")
        assert found["brainstem/data/memory.json"] == ("memory", "brainstem/.brainstem_data/memory.json")
        assert found["brainstem/core/brainstem.py"][1] == f"neighborhoods/{own}/brainstem/core/brainstem.py"
        assert found[f"twins/{eggs.key}/agents/g_agent.py"] == (
            "agent",
            f"twins/{eggs.key}/agents/g_agent.py",
        )
        archived = f"twins/.archive/{'c' * 64}/soul.md"
        assert found[archived] == ("soul", archived)
        assert found[f"peers/pi/twins/{'d' * 64}.tar.gz"][1].startswith(f"neighborhoods/{own}/peers/pi/")


def test_a_twin_in_a_snapshot_that_is_not_the_announced_one_is_refused(eggs: Any) -> None:
    members = snapshot(eggs)
    members[f"twins/{eggs.key}/rappid.json"] = {"rappid": eggs.other}
    with pytest.raises(BadEgg, match="not of the twin that it announces"):
        open_egg(eggs.zip(members))


def test_a_peers_twin_that_was_captured_but_is_not_there_is_damage(eggs: Any) -> None:
    members = snapshot(eggs)
    del members[f"peers/pi/twins/{'d' * 64}.tar.gz"]
    with pytest.raises(BadEgg, match=r"tar\.gz is missing"):
        open_egg(eggs.zip(members))


def test_a_neighborhood_whose_members_are_a_list(eggs: Any) -> None:
    members = {
        "manifest.json": {
            "schema": "rapp-egg/2.0",
            "scale": "neighborhood",
            "rappid": eggs.rappid,
            "hash": eggs.key,
            "name": "Federation",
            "members": [{"name": "Heimdall", "hash": "c" * 64, "rappid": eggs.other, "port_hint": 7081}],
        },
        "rappid.json": {"rappid": eggs.rappid},
        f"twins/{'c' * 64}/rappid.json": {"rappid": eggs.other},
        f"twins/{'c' * 64}/agents/.keep": "",
        "members.json": [],
    }
    with open_egg(eggs.zip(members)) as opened:
        assert opened.name == "Federation"
        found = placed(opened)
        # Its folder is that of its rappid, whatever the egg called it.
        assert found[f"twins/{'c' * 64}/rappid.json"] == ("identity", f"twins/{'b' * 64}/rappid.json")
        assert found["members.json"] == ("roster", f"neighborhoods/{eggs.key}/members.json")
        assert "1 twin." in opened.answer


def test_an_extension_says_nothing(eggs: Any, tmp_path: Path) -> None:
    path = eggs.zip(organism(eggs), "holiday.jpg")
    with open_egg(path) as opened:
        assert opened.family.kind == "organism"
