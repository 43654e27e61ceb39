"""Files held below some folders, as workers are told them."""

from __future__ import annotations

from pathlib import Path

import pytest

from twins.errors import BadFileError
from twins.trust.quarantine import QuarantineList


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
