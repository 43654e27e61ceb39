"""Rows of the format matrix that hold an organism, a rapplication, a cubby, an estate or a gate."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.twins.eggs.readers.placing import AGENT, placed, sha256
from twins.eggs.parsed_egg import Destination, Role
from twins.eggs.readers.detect import open_egg
from twins.errors import BadEggError


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
def test_organism_provenance_fits_both_definitions(eggs: Any, how: str) -> None:
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
    with pytest.raises(BadEggError, match=rf"some\.egg is damaged \(.*{named}.*\); nothing was written"):
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
    with pytest.raises(BadEggError, match=r"another than rappid\.json"):
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
    with pytest.raises(BadEggError, match="holds no agent"):
        open_egg(eggs.zip({"manifest.json": manifest, "rapp_ui/desk/index.html": "<p>"}))


@pytest.mark.parametrize(("publisher", "whom"), [("@rapp-store", "rapp-store"), ("", "its publisher")])
def test_a_published_egg_without_its_agent_is_not_damaged(eggs: Any, publisher: str, whom: str) -> None:
    manifest = {
        "schema": "brainstem-egg/2.2-rapplication",
        "type": "rapplication",
        "rapp_id": "desk",
        "publisher": publisher,
    }
    with pytest.raises(BadEggError) as raised:
        open_egg(eggs.zip({"rappid.json": {"rappid": eggs.rappid}, "manifest.json": manifest}))
    assert str(raised.value) == ("some.egg holds no agent: its publisher left it out; nothing was written.")
    assert raised.value.do == f"Ask {whom} for an egg with its agent."


@pytest.mark.parametrize("file", ["agents/desk_agent.py", "rappid.json"])
def test_an_egg_whose_hashes_tell_of_something_else_is_damaged(eggs: Any, file: str) -> None:
    manifest = {
        "schema": "brainstem-egg/2.2-rapplication",
        "rapp_id": "desk",
        "provenance": {"file_hashes": {file: sha256("x")}},
    }
    with pytest.raises(BadEggError, match="is damaged"):
        open_egg(eggs.zip({"rappid.json": {"rappid": eggs.rappid}, "manifest.json": manifest}))


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
    with pytest.raises(BadEggError, match=r"cubby/notes/a\.md\)"):
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
    with pytest.raises(BadEggError, match=r"some\.egg is damaged \(estate\.json\)"):
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


def test_neighborhood_gate_zip_is_kept_as_mirror(eggs: Any) -> None:
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


def test_an_extension_says_nothing(eggs: Any, tmp_path: Path) -> None:
    path = eggs.zip(organism(eggs), "holiday.jpg")
    with open_egg(path) as opened:
        assert opened.family.kind == "organism"
