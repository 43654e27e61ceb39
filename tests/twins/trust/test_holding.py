"""Held code: by place, on disk at once, for every process, and over by an explicit yes alone."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.twins.installer.a_home import MEMORY, NOW, AHome
from twins.errors import BadFileError
from twins.trust.quarantine import QuarantineList

CODE = b"x = 1\n"
SHA = hashlib.sha256(CODE).hexdigest()
OTHER = hashlib.sha256(b"y = 2\n").hexdigest()


def _put(home: AHome, path: str = "twins/ab/agents/x_agent.py", content: bytes = CODE) -> Path:
    home.live_in(home.root, {path: content})
    return home.root / path


def test_a_hold_is_for_one_place_whatever_lies_there(home: AHome) -> None:
    path = _put(home)
    home.held.hold(path, SHA, "It came in an egg.", "gardener", now=NOW)
    assert home.held.is_held(path, SHA)
    assert home.held.is_held(path, OTHER)
    entry = home.held.entry(path, OTHER)
    assert entry is not None and entry.why == "It came in an egg. It was changed since."
    assert not home.held.is_held(path.with_name("y_agent.py"), SHA)
    [hold] = home.held.listing()
    assert (hold.path, hold.why, hold.origin) == (
        "twins/ab/agents/x_agent.py",
        "It came in an egg.",
        "gardener",
    )
    assert hold.at == "2026-11-21T09:40:00Z"


def test_one_letter_changed_on_disk_is_listed_and_held_until_a_yes(home: AHome) -> None:
    path = _put(home)
    home.held.hold(path, SHA, "", "gardener")
    path.write_bytes(b"y = 2\n")
    [hold] = home.held.listing()
    assert (hold.sha256, hold.origin) == (OTHER, "gardener")
    assert [one.sha256 for one in home.held.release(path, OTHER)] == [OTHER]
    assert home.held.listing() == []
    assert not home.held.is_held(path, "ab" * 32), "after the yes the path is its owner's"
    assert home.held.is_held(path, SHA), "what came, and was never said yes to, stays held"
    home.held.hold(path, SHA, "", "again")
    assert home.held.is_held(path, "ab" * 32)


def test_an_archived_twins_files_keep_their_names(home: AHome) -> None:
    path = _put(home, f"twins/.archive/{'ab' * 32}/agents/x_agent.py")
    home.held.hold(f"twins/{'ab' * 32}/agents/x_agent.py", SHA, "", "gardener")
    assert home.held.is_held(path, SHA)
    assert home.held.key_of(path) == f"twins/{'ab' * 32}/agents/x_agent.py"


def test_several_contents_of_one_place_are_held_side_by_side(home: AHome) -> None:
    path = _put(home)
    home.held.hold(path, SHA, "", "first")
    home.held.hold(path, OTHER, "", "second")
    assert home.held.is_held(path, SHA)
    assert home.held.is_held(path, OTHER)
    assert [hold.origin for hold in home.held.listing()] == ["first"]


def test_release_by_place_by_content_or_by_both(home: AHome) -> None:
    first, second = _put(home), _put(home, "brainstem/agents/x_agent.py")
    for path in (first, second):
        home.held.hold(path, SHA, "", "")
        home.held.hold(path, OTHER, "", "")
    assert [hold.path for hold in home.held.release(first, SHA)] == ["twins/ab/agents/x_agent.py"]
    assert home.held.is_held(first, OTHER)
    assert len(home.held.release(sha256=OTHER)) == 2
    assert len(home.held.release("brainstem/agents/x_agent.py")) == 1
    assert not home.held.is_held(second, SHA)
    home.held.hold(first, SHA, "", "")
    assert home.held.release() == []
    assert home.held.is_held(first, SHA)


def test_another_process_is_seen_at_once(home: AHome) -> None:
    path = _put(home)
    mine = QuarantineList(home.root / "held.json", home.root)
    assert not mine.is_held(path, SHA)
    child = os.fork()
    if child == 0:
        home.held.hold(path, SHA, "", "")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert mine.is_held(path, SHA)
    home.held.release(path)
    assert not mine.is_held(path, SHA)


def test_two_writers_lose_nothing(home: AHome) -> None:
    children = []
    for number in range(4):
        child = os.fork()
        if child == 0:
            for step in range(10):
                home.held.hold(f"twins/ab/agents/a{number}_{step}_agent.py", SHA, "", "")
            os._exit(0)
        children.append(child)
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
    assert len(orjson.loads((home.root / "held.json").read_bytes())["held"]) == 40


def test_a_file_has_one_name_however_it_is_reached(home: AHome, tmp_path: Path) -> None:
    path = _put(home)
    (tmp_path / "link").symlink_to(home.root)
    home.held.hold(path, SHA, "", "")
    assert home.held.is_held(tmp_path / "link/twins/ab/agents/x_agent.py", SHA)
    assert home.held.is_held("twins/ab/agents/../agents/x_agent.py", SHA)
    through = home.root / "twins/ab/agents/y_agent.py"
    through.symlink_to("x_agent.py")
    assert home.held.is_held(through, SHA)


def test_a_fork_is_held_where_the_original_is(home: AHome) -> None:
    _put(home)
    _put(home, "twins/cd/agents/x_agent.py")
    _put(home, "twins/abc/agents/x_agent.py")
    home.held.hold("twins/ab/agents/x_agent.py", SHA, "why", "gardener")
    home.held.hold("twins/abc/agents/z_agent.py", SHA, "", "")
    assert home.held.copy(home.root / "twins/ab", home.root / "twins/cd") == 1
    assert [hold.path for hold in home.held.listing("twins/cd")] == ["twins/cd/agents/x_agent.py"]
    assert [hold.origin for hold in home.held.listing(home.root / "twins/cd")] == ["gardener"]
    assert len(home.held.listing()) == 2


def test_a_damaged_file_lets_nothing_run(home: AHome) -> None:
    home.held.hold("twins/ab/agents/x_agent.py", SHA, "", "")
    for content in (b"", b"[]", b'{"held": {"x": []}}', b'{"held": {"x": {"y": {}}}}'):
        (home.root / "held.json").write_bytes(content)
        with pytest.raises(BadFileError, match=r"held\.json is damaged"):
            home.held.is_held("twins/ab/agents/x_agent.py", SHA)
        with pytest.raises(BadFileError):
            home.held.hold("twins/ab/agents/y_agent.py", SHA, "", "")
        assert (home.root / "held.json").read_bytes() == content


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/nowhere")])
def test_what_lies_in_a_held_files_place_never_hangs_the_list(home: AHome, make: object) -> None:
    path = _put(home)
    home.held.hold(path, SHA, "", "")
    path.unlink()
    make(path)  # type: ignore[operator]
    assert home.held.listing() == []


@given(
    st.dictionaries(st.text("abc./é ", min_size=1, max_size=12), st.sampled_from([SHA, OTHER]), max_size=6)
)
def test_what_is_held_is_exactly_what_was_put_in(wanted: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        home = AHome(Path(folder))
        for path, sha256 in wanted.items():
            home.held.hold(path, sha256, "", "")
        fresh = QuarantineList(home.root / "held.json", home.root)
        expected = {(fresh.key_of(path), sha256) for path, sha256 in wanted.items()}
        for path in wanted:
            for sha256 in (SHA, OTHER):
                assert fresh.is_recorded(fresh.key_of(path), sha256) == (
                    (fresh.key_of(path), sha256) in expected
                )
                assert fresh.is_held(path, sha256)


def test_everything_below_has_its_real_path(tmp_path: Path) -> None:
    (tmp_path / "home" / "twins").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "home")
    elsewhere = tmp_path / "elsewhere"
    held = QuarantineList(tmp_path / "link" / "held.json", tmp_path / "link")
    held.hold("twins/rose/agents/a.py", "aa" * 32, "One.", "rose.egg")
    held.hold("twins/rose/agents/a.py", "bb" * 32, "Two.", "rose.egg")
    held.hold("twins/rosemary/agents/a.py", "aa" * 32, "Other.", "rosemary.egg")
    held.hold(elsewhere / "b.py", "cc" * 32, "Three.", "rose.egg")
    home = str((tmp_path / "home").resolve())
    assert held.below(tmp_path / "link" / "twins" / "rose", elsewhere) == {
        f"{home}/twins/rose/agents/a.py": {"aa" * 32: "One.", "bb" * 32: "Two."},
        str(elsewhere.resolve() / "b.py"): {"cc" * 32: "Three."},
    }
    assert held.below(tmp_path / "home" / "brainstem") == {}


def test_it_is_the_same_object_until_something_changes(tmp_path: Path) -> None:
    ours, theirs = (QuarantineList(tmp_path / "held.json", tmp_path) for _ in range(2))
    ours.hold("rose/a.py", "aa" * 32, "One.", "rose.egg")
    first = ours.below(tmp_path / "rose")
    assert ours.below(tmp_path / "rose") is first
    assert ours.below(tmp_path / "lily") is not first
    theirs.hold("lily/a.py", "aa" * 32, "Two.", "lily.egg")
    second = ours.below(tmp_path / "rose")
    assert second is not first, "somebody else wrote, so it was read again"
    assert second == first
    theirs.release(sha256="aa" * 32)
    assert ours.below(tmp_path / "rose") == {}


def test_a_damaged_list_is_no_empty_one(tmp_path: Path) -> None:
    (tmp_path / "held.json").write_text("{")
    with pytest.raises(BadFileError):
        QuarantineList(tmp_path / "held.json", tmp_path).below(tmp_path)
