"""Places of files: nothing lands where only the daemon may write, and nothing is lost."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twins.eggs.parsed_egg import Role
from twins.eggs.readers.detect import open_egg
from twins.eggs.readers.workspace_paths import in_host, in_memory, in_workspace, in_workspace_of
from twins.fs.untrusted_names import folded

BARRED = [
    ".deps/requests/__init__.py",
    "repo/.deps/x.py",
    ".Deps/x.py",
    ".remote_agents/a_agent.py",
    "archived.json",
    "HATCH_RECEIPT.json",
    "Agents/a_agent.py",
    "repo/AGENTS/a_agent.py",
    "Soul.md",
    "soul.md/x",
    "RAPPID.json",
    ".ENV",
    "agents",
    "data",
    "data/kept/generations/a/000001.py",
    "data/Kept/x",
    "repo/.brainstem_data/kept/x",
    "data/unplaced/x",
    "agents/__pycache__/helper.cpython-311.pyc",
    "agents/helper.pyc",
    "utils/helper.PYO",
    "agents/x.pth",
    "rapps/kanban/placed.json",
    "rapp_ui/x",
]


@pytest.mark.parametrize("name", BARRED)
def test_these_have_no_place_in_a_workspace(name: str) -> None:
    assert in_workspace(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "agents/helper.py",
        "utils/x.py",
        "soul.md",
        "rappid.json",
        ".env",
        "README.md",
        "data/kept/x",
        "services/x.py",
    ],
)
def test_these_have_no_place_in_the_brainstem_that_is_there(name: str) -> None:
    assert in_host(name) is None


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("agents/a_agent.py", Role.AGENT),
        ("agents/helper.py", Role.AGENT),
        ("agents/native.so", Role.AGENT),
        ("agents/x.lispy.json", Role.AGENT),
        ("agents/A_AGENT.PY", Role.AGENT),
        ("utils/deep/er.py", Role.AGENT),
        ("repo/utils/x.py", Role.AGENT),
        ("organs/x_organ.py", Role.SERVICE),
        ("services/helper.py", Role.SERVICE),
        ("senses/x.py", Role.SLOT),
    ],
)
def test_everything_that_agents_could_import_counts_as_code(name: str, role: Role) -> None:
    place = in_workspace(name)
    assert place is not None
    assert place[0] is role
    assert role.is_code


_component = st.text(st.sampled_from("abA.é_-"), min_size=1, max_size=6).filter(lambda text: text.strip("."))
_first = st.sampled_from(
    [
        "agents",
        "data",
        "repo",
        "organs",
        ".brainstem_data",
        ".deps",
        "rapps",
        "rapp_ui",
        "utils",
        "Data",
        "soul.md",
    ]
)
_names = st.lists(st.one_of(_first, _component), min_size=1, max_size=5).map("/".join)
_RESERVED = (".deps", ".remote_agents", ".git", ".brainstem_data/kept", ".brainstem_data/unplaced")


@given(_names)
def test_no_target_is_a_daemons_file(name: str) -> None:
    for place in (in_workspace(name), in_host(name)):
        if place is None:
            continue
        target = folded(place[1])
        assert ".." not in target.split("/")
        assert not target.startswith("/")
        assert not any(target == one or target.startswith(f"{one}/") for one in _RESERVED)
        if target.startswith(("agents/", "services/", "senses/", "utils/")) and name.endswith(".py"):
            assert place[0].is_code


@given(st.lists(_names, max_size=6))
def test_many_names_have_the_places_that_each_has(names: list[str]) -> None:
    place = in_workspace_of(names)
    assert [place(name) for name in names] == [in_workspace(name) for name in names]


def test_shown_rows_are_not_skipped_for_repository_name() -> None:
    letters = set(".git~1")
    odd = [sign for sign in map(chr, range(0x80, 0x110000)) if sign.isprintable()]
    assert not [sign for sign in odd if letters.issuperset(folded(sign))]


@given(_names)
def test_memory_stays_in_memory(name: str) -> None:
    place = in_memory(name)
    assert place is None or place[1] == f".brainstem_data/{name}"


def test_two_files_with_one_place_are_both_kept(eggs: Any) -> None:
    members = {
        "manifest.json": {"schema": "brainstem-egg/2.2-organism"},
        "rappid.json": {"rappid": eggs.rappid},
        "organs/x_service.py": "first",
        "services/x_service.py": "second",
        "data/a": "first",
        ".brainstem_data/a": "second",
        ".brainstem_data/a.d/b": "third",
    }
    with open_egg(eggs.zip(members)) as opened:
        found = {part.name: part for part in opened.parts}
        assert found["organs/x_service.py"].target == "services/x_service.py"
        assert found["services/x_service.py"].target == ".brainstem_data/unplaced/services/x_service.py"
        assert found["services/x_service.py"].role is Role.OTHER
        assert found[".brainstem_data/a"].target == ".brainstem_data/unplaced/.brainstem_data/a"
        assert any("2 files have no place here" in note for note in opened.notes)


@pytest.mark.parametrize("schema", ["rapp-egg/2.0", "brainstem-egg/2.3-neighborhood"])
@pytest.mark.parametrize(
    "name", [".git/config", "sub/.Git/hooks/x", "repo/.git", "git~1/x", ".GI\u200cT/config"]
)
def test_no_folder_becomes_a_repository(eggs: Any, schema: str, name: str) -> None:
    members = {"manifest.json": {"schema": schema}, "rappid.json": {"rappid": eggs.rappid}, name: "[core]"}
    with open_egg(eggs.zip(members)) as opened:
        (part,) = (part for part in opened.parts if part.name == name)
        assert "unplaced/" in part.target
        assert not any(folded(one) in (".git", "git~1") for one in part.target.split("/"))
        assert part.read() == b"[core]"


@pytest.mark.parametrize("name", [name for name in BARRED if name != "RAPPID.json"])
def test_no_file_of_an_egg_is_lost(eggs: Any, name: str) -> None:
    manifest = {"schema": "rapp-egg/2.0"}
    members = {"manifest.json": manifest, "rappid.json": {"rappid": eggs.rappid}, name: "kept"}
    with open_egg(eggs.zip(members)) as opened:
        (part,) = (part for part in opened.parts if part.name == name)
        assert part.role is Role.OTHER
        assert part.target == f".brainstem_data/unplaced/{name}"
        assert part.read() == b"kept"
        assert opened.notes == [f"{name} has no place here and is kept in .brainstem_data/unplaced."]
