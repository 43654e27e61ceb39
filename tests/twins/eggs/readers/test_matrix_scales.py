"""Rows of the format matrix that say their scale: from one agent to a neighborhood."""

from __future__ import annotations

from typing import Any

import pytest

from tests.twins.eggs.readers.placing import AGENT, placed
from twins.eggs.parsed_egg import Destination
from twins.eggs.readers.detect import open_egg
from twins.errors import BadEggError


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
    with pytest.raises(BadEggError, match="holds no agent"):
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
        assert "2 twins of its own (1 running, 1 archived)" in opened.answer
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


def test_snapshot_with_another_twin_is_refused(eggs: Any) -> None:
    members = snapshot(eggs)
    members[f"twins/{eggs.key}/rappid.json"] = {"rappid": eggs.other}
    with pytest.raises(BadEggError, match="not of the twin that it announces"):
        open_egg(eggs.zip(members))


def test_captured_twin_missing_from_peer_is_damage(eggs: Any) -> None:
    members = snapshot(eggs)
    del members[f"peers/pi/twins/{'d' * 64}.tar.gz"]
    with pytest.raises(BadEggError, match=r"tar\.gz is missing"):
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
