"""Approvals of code that may change structure: of exact bytes, remembered, read by every process."""

from __future__ import annotations

from pathlib import Path

import pytest

from twins.errors import BadFileError
from twins.trust.trust import Approvals


def test_an_approval_is_for_exact_bytes_and_outlives_the_process(tmp_path: Path) -> None:
    first, other = Approvals(tmp_path / "approved.json"), Approvals(tmp_path / "approved.json")
    assert not other.covers("aa" * 32)
    first.add("dice_agent.py", "aa" * 32)
    assert first.covers("aa" * 32) and other.covers("aa" * 32)
    assert not other.covers("ab" * 32)
    other.add("tea_agent.py", "bb" * 32)
    assert first.covers("aa" * 32) and first.covers("bb" * 32), "neither forgets what the other wrote"


@pytest.mark.parametrize("content", ["", "{", "[]", "null"])
def test_a_damaged_file_approves_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / "approved.json").write_text(content)
    with pytest.raises(BadFileError):
        Approvals(tmp_path / "approved.json").covers("aa" * 32)
