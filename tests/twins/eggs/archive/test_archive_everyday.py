"""A list that is judged in one go is judged as record by record."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.twins.eggs.crafted_zip import Crafted, built
from twins.eggs.archive import directory
from twins.eggs.archive.limits import Limits
from twins.eggs.archive.reading import Archive
from twins.eggs.archive.window import Window
from twins.errors import BadEgg

_PIECE = st.text(st.sampled_from(list("abAB.-+=_@ ~:\\é\x01")), min_size=0, max_size=4)
NAMES = st.lists(
    st.one_of(
        st.lists(st.sampled_from(["a", "A", "b", "a.py", ".a", "..", ".", "", "a."]), min_size=1, max_size=3),
        st.lists(_PIECE, min_size=1, max_size=3),
    ).map("/".join),
    min_size=1,
    max_size=6,
)


def outcome(path: Path, octets: bytes) -> object:
    """What an archive holds, or why it is refused."""
    path.write_bytes(octets)
    try:
        with Archive.open(path) as archive:
            return archive.members, archive.folders, archive.total, archive.deviations
    except BadEgg as refused:
        return str(refused)


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(NAMES)
@example(["a/b", "A/c"])
@example(["a", "a/b"])
@example(["a/b", "a"])
@example(["a", "A"])
@example(["/".join("a" * 70)])
@example(["a" * 256])
@example(["a/.-b"])
@example(["PK\x01\x02"])
def test_names_are_taken_or_refused_alike(tmp_path: Path, names: list[str]) -> None:
    octets = built([Crafted(name.encode(), b"x") for name in names])
    at_once = outcome(tmp_path / "x.egg", octets)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(directory, "columns", lambda *_: None)
        assert outcome(tmp_path / "x.egg", octets) == at_once


def test_a_plain_list_is_read_in_one_go(tmp_path: Path) -> None:
    path = tmp_path / "x.egg"
    path.write_bytes(built([Crafted(f"agents/{number}_agent.py".encode(), b"x") for number in range(300)]))
    window = Window.of(path)
    found = directory.read_directory(window, Limits(), {})
    window.close()
    assert found.plain is not None
    assert len(found.files) == 300
