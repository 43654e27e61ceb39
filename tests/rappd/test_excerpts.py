"""Excerpts show every word that was searched for, however long the text and however far apart they are."""

from __future__ import annotations

import pytest

from rappd.transcript.excerpts import excerpt

LONG = "road " * 100


@pytest.mark.parametrize(
    ("text", "words", "shown"),
    [
        ("Where do tomatoes grow?", ["tomatoes"], "Where do tomatoes grow?"),
        ("Late.\n\nThen the\tpumpkins.", ["pumpkins"], "Late. Then the pumpkins."),
        (f"mill {LONG}church", ["mill", "church"], None),
        (f"İİİİ {LONG}mill {LONG}", ["mill"], None),
        (f"{LONG}MILL", ["mill"], None),
        ("x" * 400, ["x" * 300], None),
        ("nothing of it", ["mill"], ""),
        ("mill alone", ["mill", "church"], ""),
    ],
)
def test_excerpt_holds_each_word(text: str, words: list[str], shown: str | None) -> None:
    found = excerpt(text, words)
    if shown is not None:
        assert found == shown
        return
    assert all(word in found.lower() for word in words)
    assert len(found) < 330
    assert "…" in found


def test_excerpt_cuts_no_word() -> None:
    found = excerpt(f"{'wander ' * 40}pumpkins {'orange ' * 40}", ["pumpkins"], 60)
    assert set(found.split()) == {"…", "wander", "pumpkins", "orange"}
    assert found.startswith("… wander") and found.endswith("orange …")
