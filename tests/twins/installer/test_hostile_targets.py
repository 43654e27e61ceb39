"""Hostile names in eggs and workspaces: nothing is written outside, nor through a link."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.twins.installer.a_home import GARDENER, KEY, MEMORY, NOW, RAPPID, AHome, egg, leftovers, lies, part
from twins.eggs.parsed_egg import Destination, Part, Role
from twins.errors import HostileEggError, TwinError
from twins.installer.placement_rules import Category

EVERYTHING = list(Category)


@pytest.mark.parametrize(
    "target",
    [
        "/etc/passwd", "../x", "a/../../x", "..", ".", "", "a//b", "a/./b", "a\\..\\b", "C:/x", "C:x",
        "a\0b", "a/\nb", "x" * 300, "/".join("a" * 70), "\u202egpj.exe", "agents/../../../x_agent.py", ".../x", "a/.. /b",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "destination", [Destination.TWIN, Destination.HOST, Destination.BRAINSTEM, Destination.INERT]
)
def test_a_name_that_leads_elsewhere_refuses_the_whole_egg(
    home: AHome, target: str, destination: Destination
) -> None:
    with pytest.raises(HostileEggError):
        home.importer().hatch(
            egg(GARDENER, part(target, b"x"), destination=destination), overwrite=EVERYTHING
        )
    assert lies(home.root, without=lambda path: path in ("eggs", "eggs/receipts")) == {}


@pytest.mark.parametrize(
    "pair",
    [
        ("a", "a"), ("a", "A"), ("a", "a/b"), ("caf\u00e9", "cafe\u0301"), ("Agents/x", "agents/y"),
        ("stra\u00dfe", "STRASSE"), ("rappid.json", "Rappid.json"),
    ],
)  # fmt: skip
def test_names_that_are_one_file_somewhere_refuse_the_whole_egg(home: AHome, pair: tuple[str, str]) -> None:
    with pytest.raises(HostileEggError):
        home.importer().hatch(egg({}, *(part(target, b"x") for target in pair)))
    assert not home.twin.exists()


_WORDS = st.sampled_from(
    ["agents", "soul.md", ".brainstem_data", "services", "a", "b", "é", "rapps", "link", ".deps"]
)
_TARGETS = st.lists(_WORDS, min_size=1, max_size=4).map("/".join)
_NASTY = st.sampled_from(["../", "/", "./", "\\", "..", "\0", "//", "C:", " ", ""])
_HOSTILE = st.tuples(_TARGETS, _NASTY, _TARGETS).map("".join)
_ROLES = st.sampled_from(list(Role))
_FITTING = st.lists(
    st.tuples(_TARGETS, _ROLES, st.binary(max_size=8)), min_size=1, max_size=4, unique_by=lambda one: one[0]
)
_ANY = st.lists(
    st.tuples(_TARGETS | _HOSTILE | st.text(max_size=8), _ROLES, st.binary(max_size=8)), max_size=5
)
_PARTS = _FITTING | _ANY
_THINGS = st.dictionaries(_TARGETS, st.sampled_from(["file", "out", "in", "folder", "pipe"]), max_size=5)


def _furnish(twin: Path, things: dict[str, str], outside: Path) -> None:
    """A workspace with files, links that lead out or stay in, folders and pipes, wherever they fit."""
    twin.mkdir(parents=True)
    (twin / "rappid.json").write_bytes(GARDENER["rappid.json"])
    for path, kind in things.items():
        target = twin / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            match kind:
                case "file":
                    target.write_bytes(b"mine")
                case "out":
                    target.symlink_to(outside)
                case "in":
                    target.symlink_to(twin / "soul.md")
                case "pipe":
                    os.mkfifo(target)
                case _:
                    target.mkdir()
        except OSError:
            continue  # something else is there already


@settings(max_examples=60, deadline=None)
@given(_PARTS, _THINGS, st.sets(st.sampled_from(EVERYTHING)), st.booleans())
@example([("link/x", Role.MEMORY, b"x")], {"link": "out"}, set(EVERYTHING), False)
@example([("soul.md", Role.SOUL, b"x")], {"soul.md": "out"}, set(EVERYTHING), False)
def test_any_parts_into_any_workspace(
    parts: list[tuple[str, Role, bytes]], things: dict[str, str], overwrite: set[Category], rolls_back: bool
) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        home, outside = AHome(Path(folder) / "home"), Path(folder) / "outside"
        outside.mkdir()
        (outside / "precious").write_bytes(b"precious")
        _furnish(home.twin, things, outside)
        before, beyond = lies(home.twin), lies(outside)
        opened = egg({}, *(part(target, content, role) for target, role, content in parts))
        try:
            done = home.importer().hatch(opened, overwrite=overwrite, now=NOW)
        except TwinError as error:
            assert str(error)
            assert lies(home.twin) == before
        else:
            there = lies(home.twin)
            assert {row.target for row in done.plan.rows} == {target for target, _, _ in parts}
            for row in done.plan.placed:
                if row.role is not Role.CONVERSATIONS:
                    assert there[row.target] == next(
                        content for target, _, content in parts if target == row.target
                    )
            links = {
                path: what for path, what in before.items() if isinstance(what, str) and what.startswith("->")
            }
            assert {path: there[path] for path in links} == links
            if rolls_back and done.receipt is not None:
                home.importer().rollback(done.receipt.id)
                assert lies(home.twin) == before
        assert lies(outside) == beyond
        assert sorted(path.name for path in home.root.iterdir() if path.name != "held.json") == [
            "eggs",
            "twins",
        ]
        assert sorted(path.name for path in (home.root / "twins").iterdir()) == [KEY]
        assert not leftovers(home.root)


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(list(Destination)),
    st.text(max_size=12) | st.sampled_from(["..", "../x", "/etc", ".hidden", KEY, "a/b", "brainstem"]),
    st.sampled_from(["", RAPPID, "1b4e28ba-2fa1-11d2-883f-0016d3cca427", "rappid:x:aabbccdd"]),
    _PARTS,
)
def test_any_egg_at_all_stays_inside_the_home(
    destination: Destination, key: str, rappid: str, parts: list[tuple[str, Role, bytes]]
) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        home = AHome(Path(folder) / "home")
        opened = egg(
            {},
            *(part(target, content, role) for target, role, content in parts),
            destination=destination,
            key=key,
            rappid=rappid,
        )
        try:
            home.importer().hatch(opened, overwrite=EVERYTHING)
        except TwinError as error:
            assert str(error)
        assert [path.name for path in Path(folder).iterdir()] == ["home"]
        allowed = {"eggs", "twins", "brainstem", "swarms", "held.json"}
        assert {path.name for path in home.root.iterdir()} <= allowed
        assert not leftovers(home.root)


def _swapping(home: AHome, swap: Path, outside: Path, *, when: str) -> Part:
    """A part that, while it is staged, turns a folder of the workspace into a link that leads out."""
    streamed = part(when, b"0123")
    times = 0

    def chunks():  # type: ignore[no-untyped-def]
        nonlocal times
        times += 1
        if times == 2 and not swap.is_symlink():  # made, staged
            shutil.rmtree(swap)
            swap.symlink_to(outside)
        yield b"0123"

    return Part(streamed.name, Role.MEMORY, streamed.target, 4, chunks)


@pytest.mark.parametrize("path", ["agents", ".brainstem_data", ""])
def test_a_folder_that_becomes_a_link_meanwhile_is_not_followed(
    home: AHome, tmp_path: Path, path: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "rappid.json").write_bytes(GARDENER["rappid.json"])
    home.live_in(
        home.twin,
        {"rappid.json": GARDENER["rappid.json"], "agents/mine_agent.py": b"x", ".brainstem_data/x": b"x"},
    )
    before = lies(outside)
    swapping = _swapping(home, home.twin / path, outside, when=".brainstem_data/a.json")
    files = {"agents/a_agent.py": b"x = 1\n", ".brainstem_data/z.json": b"{}"}
    with pytest.raises(TwinError):
        home.importer().hatch(egg(files, swapping), overwrite=EVERYTHING)
    assert lies(outside) == before
    assert not leftovers(home.root)


def test_twins_on_another_disk_by_link_are_accepted(home: AHome, tmp_path: Path) -> None:
    big = tmp_path / "big"
    big.mkdir()
    (home.root / "twins").symlink_to(big)
    done = home.importer().hatch(egg(GARDENER), now=NOW)
    assert (big / KEY / "soul.md").read_bytes() == GARDENER["soul.md"]
    assert not leftovers(big)
    assert done.receipt is not None
    home.importer().rollback(done.receipt.id)
    assert list(big.iterdir()) == []


def test_a_twins_folder_that_is_a_link_is_refused(home: AHome, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    home.live_in(elsewhere, {"rappid.json": GARDENER["rappid.json"]})
    home.twin.parent.mkdir()
    home.twin.symlink_to(elsewhere)
    with pytest.raises(TwinError, match="in the way"):
        home.importer().hatch(egg(GARDENER))
    assert list(lies(elsewhere)) == ["rappid.json"]
