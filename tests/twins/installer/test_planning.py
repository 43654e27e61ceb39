"""The plan says what would happen, exactly and without writing, and its digest changes when that does."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.twins.installer.a_home import (
    BY_KITCHEN,
    GARDENER,
    KITCHEN,
    AHome,
    egg,
    gardener,
    lies,
    part,
)
from twins.eggs.parsed_egg import Role
from twins.installer.planning import Action, reach_of, reaches_for


def test_a_plan_writes_nothing(home: AHome) -> None:
    home.importer().plan(gardener())
    assert lies(home.root) == {}


def test_the_screen_has_all_it_needs(home: AHome) -> None:
    home.live_in(home.twin, {"rappid.json": GARDENER["rappid.json"], "soul.md": b"mine\n"})
    (home.twin / ".env").symlink_to("/etc/hostname")
    shown = (
        home.importer()
        .plan(gardener(seal=BY_KITCHEN, packed_at="2026-11-20T00:00:00Z", made_by="kitchen"))
        .as_json()
    )
    assert shown["egg"]["packed_at"] == "2026-11-20T00:00:00Z"
    assert shown["egg"]["packed_by"] == "kitchen"
    assert shown["seal"] == {"whole": True, "signer": KITCHEN, "signer_name": "", "standing": "unknown"}
    assert shown["create"]["count"] == 4
    assert shown["create"]["roles"] == {"memory": 2, "page": 1, "roster": 1}
    assert shown["keep"]["files"] == [
        {
            "path": "rappid.json",
            "role": "identity",
            "size": len(GARDENER["rappid.json"]),
            "why": "the same is there",
        },
        {
            "path": "soul.md",
            "role": "soul",
            "size": len(GARDENER["soul.md"]),
            "why": "yours differs and stays",
        },
    ]
    assert [row["path"] for row in shown["quarantine"]["files"]] == [
        "agents/water_agent.py",
        "services/pump_service.py",
    ]
    assert [(row["path"], row["why"]) for row in shown["refuse"]["files"]] == [
        (".env", "a link is there, and links are never written through")
    ]
    may = ["may read your files and the network"]
    assert shown["permissions"] == [
        {"path": "agents/water_agent.py", "wants": ["the network"], "may": may},
        {"path": "services/pump_service.py", "wants": [], "may": may},
    ]
    assert shown["exists"] is True


CHANGES: list[tuple[str, Callable[[AHome], object]]] = [
    ("a file that would be replaced", lambda home: (home.twin / "soul.md").write_bytes(b"other\n")),
    ("a file that would be created", lambda home: home.live_in(home.twin, {"members.json": b"x"})),
    ("a file that would stay is gone", lambda home: (home.twin / "agents/water_agent.py").unlink()),
    ("a link in the way", lambda home: (home.twin / "rapps").symlink_to("/tmp")),
    ("the signer is trusted", lambda home: home.signers.trust(KITCHEN, "kitchen")),
]


@pytest.mark.parametrize(("what", "change"), CHANGES, ids=[what for what, _ in CHANGES])
def test_the_digest_changes_with_what_would_happen(
    home: AHome, what: str, change: Callable[[AHome], object]
) -> None:
    mine = {"rappid.json": GARDENER["rappid.json"], "soul.md": b"mine\n", "agents/water_agent.py": b"mine\n"}
    home.live_in(home.twin, mine)
    opened = gardener(seal=BY_KITCHEN)
    first = home.importer().plan(opened, overwrite=["soul"]).digest
    assert home.importer().plan(gardener(seal=BY_KITCHEN), overwrite=["soul"]).digest == first
    (home.twin / "unrelated").write_bytes(b"x")
    assert home.importer().plan(opened, overwrite=["soul"]).digest == first
    change(home)
    assert home.importer().plan(opened, overwrite=["soul"]).digest != first


def test_the_digest_changes_with_the_egg_and_the_options(home: AHome) -> None:
    digests = {
        home.importer().plan(opened, overwrite=overwrite).digest
        for opened in (
            gardener(),
            egg({**GARDENER, "soul.md": b"You keep the gardem.\n"}),
            gardener(seal=BY_KITCHEN),
        )
        for overwrite in ([], ["soul"], ["soul", "memory"])
    }
    assert len(digests) == 9


def test_what_is_no_file_is_never_touched(home: AHome) -> None:
    home.live_in(home.twin, {"rappid.json": GARDENER["rappid.json"], "agents": b"a file\n"})
    (home.twin / "soul.md").mkdir()
    os.mkfifo(home.twin / ".env")
    (home.twin / ".brainstem_data").symlink_to(home.root)
    plan = home.importer().plan(gardener(), overwrite=["soul", "env", "agents", "memory"])
    assert {row.target: row.why for row in plan.of(Action.REFUSE)} == {
        "soul.md": "a folder of that name is there",
        ".env": "something that is no file is there",
        "agents/water_agent.py": "the way there leads through a link or a file",
        ".brainstem_data/memory.json": "the way there leads through a link or a file",
        ".brainstem_data/2026/nov/21.json": "the way there leads through a link or a file",
    }


def test_an_unknown_option_is_an_error(home: AHome) -> None:
    with pytest.raises(ValueError, match="everything"):
        home.importer().plan(gardener(), overwrite=["everything"])


def test_a_history_of_bonds_is_never_overwritten(home: AHome) -> None:
    home.live_in(home.twin, {"rappid.json": GARDENER["rappid.json"], "bonds.json": b'{"events": []}'})
    opened = egg({**GARDENER, "bonds.json": b'{"events": [{}]}'})
    plan = home.importer().plan(opened, overwrite=["memory"])
    assert "bonds.json" in {row.target for row in plan.of(Action.KEEP)}


def test_code_too_large_to_read_stays_in_the_egg(home: AHome) -> None:
    large = part("agents/large_agent.py", b"", Role.AGENT, size=6 << 20)
    plan = home.importer().plan(egg(GARDENER, large))
    assert [row.target for row in plan.of(Action.REFUSE)] == ["agents/large_agent.py"]


@pytest.mark.parametrize(
    ("source", "wants"),
    [
        (b"x = 1\n", []),
        (b"import os, json\nos.getcwd()\n", []),
        (b"import socket\n", ["the network"]),
        (b"from urllib.request import urlopen\n", ["the network"]),
        (b"def f():\n    import subprocess\n", ["other programs"]),
        (b"import os\nos.system('ls')\n", ["other programs"]),
        (b"from os import popen\n", ["other programs"]),
        (b"import ctypes\n", ["native code"]),
        (b"exec('1')\n", ["code it makes itself"]),
        (b"import requests, numpy\n", ["the network", "the package numpy", "the package requests"]),
        (b"# requirements: feedparser\n", ["the package feedparser"]),
        (b"def (\n", ["unknown: it does not parse"]),
        (b"\0", ["unknown: it does not parse"]),
    ],
)
def test_what_code_would_reach_for(source: bytes, wants: list[str]) -> None:
    assert reaches_for(source) == wants


@pytest.mark.parametrize(
    ("target", "source", "may"),
    [
        ("agents/a_agent.py", b"x = 1", ["may read your files and the network"]),
        ("agents/a_agent.py", b"__manifest__ = {'needs': {'hosts': ['a.org']}}", ["talks to a.org"]),
        ("agents/a_listener.py", b"x = 1", ["uses its own storage alone"]),
        (
            "agents/a_agent.py",
            b"__manifest__ = {'needs': X}",
            ["nothing, since it does not run: needs is not"],
        ),
        ("services/a_service.py", b"x = 1", ["may read your files and the network"]),
        ("services/a_service.py", b"__manifest__ = {'needs': {}}", ["uses its own storage alone"]),
        ("senses/a_sense.py", b"x = 1", ["is read, and never run"]),
        ("utils/a.py", b"__manifest__ = {'needs': {}}", ["may read your files and the network"]),
    ],
)
def test_plan_says_what_code_may_reach(target: str, source: bytes, may: list[str]) -> None:
    found = reach_of(target, source)
    assert [one[: len(may[0])] for one in found] == may


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace")))
def test_reading_code_never_fails(source: bytes) -> None:
    assert isinstance(reaches_for(source), list)
