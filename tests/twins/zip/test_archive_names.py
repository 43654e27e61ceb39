"""Names: which an egg may carry, and which two would be one file on some disk."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twins.errors import HostileEggError
from twins.zip.names import NameSet, folded, safe_component, safe_path, shown

ORDINARY = [
    "soul.md",
    ".brainstem_data/kept/x",
    "agents/@someone/weather_agent.py",
    "a/.hidden/..two_dots_first",
    "notes 2026.txt",
    "2026-11-21T10:00:00Z.json",
    "données/naïve ✓.txt",
    "con.txt",
    "ends in a dot.",
    "a~1",
    "-",
    "家族/👩‍👩‍👧.md",
    "a" * 255,
    "/".join(["a" * 100] * 10),
    "/".join(["a"] * 64),
]


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_names_stay_as_they_are(name: str) -> None:
    assert safe_path(name, windows=False) == name


@pytest.mark.parametrize(
    "name",
    [
        "con", "CON.txt", "aux .md", "agents/nul", "com1.log", "LPT9", "COM¹", "conout$", "ab:c", "soul.md::$DATA",
        'say"what', "a|b", "what?", "a*b", "<a>", "ends in a dot.", "ends in a space ", "folder./file",
    ],
)  # fmt: skip
def test_windows_only_names_are_refused_there_only(name: str) -> None:
    assert safe_path(name, windows=False) == name
    with pytest.raises(HostileEggError, match="Windows cannot hold"):
        safe_path(name, windows=True)


@pytest.mark.parametrize("name", ["console.txt", "nullify", "com", "com10.txt", "a.con", "lpt.md"])
def test_names_that_look_reserved_but_are_not(name: str) -> None:
    assert safe_path(name, windows=True) == name


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", "a\\b", "C:x", "c:", "...", ". .", "\0", "\ud800"])
def test_components_that_are_no_component(name: str) -> None:
    with pytest.raises(HostileEggError, match="refused whole"):
        safe_component(name)
    with pytest.raises(HostileEggError, match="refused whole"):
        safe_path(f"agents/{name}" if "/" not in name else f"{name}/../..")


@given(st.text(max_size=40))
def test_no_text_leads_out_of_its_folder(text: str) -> None:
    """Every name that passes is below its folder by the rules of POSIX and of Windows."""
    import ntpath
    import posixpath

    try:
        safe_path(text)
    except HostileEggError as refused:
        assert str(refused).isprintable()
        return
    for path, root in ((posixpath, "/home/egg"), (ntpath, "D:\\home\\egg")):
        joined = path.normpath(path.join(root, text))
        assert joined.startswith(root + path.sep)
        assert joined.count(path.sep) == root.count(path.sep) + text.count("/") + 1


@given(
    st.lists(st.sampled_from(["a", "A", "b", "é", "e\u0301", "b.", "K", "\u212a"]), min_size=1, max_size=3)
)
def test_folding_twice_changes_nothing(parts: list[str]) -> None:
    once = folded("/".join(parts))
    assert folded(once) == once


_PART = st.sampled_from(["a", "A", "b", "c.", "c", "é", "e\u0301"])


@given(st.lists(st.lists(_PART, min_size=1, max_size=3).map("/".join), max_size=6))
def test_a_set_takes_exactly_what_can_lie_in_one_folder(paths: list[str]) -> None:
    """Against a plain model: every folder and file by its folded path, one spelling and one kind each."""
    seen: dict[str, tuple[str, bool]] = {}
    fits = True
    for path in paths:
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            part, is_file = "/".join(parts[:depth]), depth == len(parts)
            known = seen.setdefault(folded(part), (part, is_file))
            if known != (part, is_file) or (is_file and paths.count(path) > 1):
                fits = False
    names = NameSet()
    try:
        for path in paths:
            names.add(path)
    except HostileEggError:
        assert not fits
    else:
        assert fits
        assert all(path in names for path in paths)
        assert "never added" not in names


def test_a_folder_may_come_again_and_hold_files() -> None:
    names = NameSet()
    names.add("agents", folder=True)
    names.add("agents/one.py")
    names.add("agents", folder=True)
    with pytest.raises(HostileEggError, match=r"agents is a file and a folder"):
        names.add("agents")
    with pytest.raises(HostileEggError, match=r"agents and Agents are one file"):
        names.add("Agents", folder=True)


def test_names_are_shown_so_that_they_can_be_read() -> None:
    assert shown("soul.md") == "soul.md"
    assert shown("\x1b[2J\u202egpj.\u200cexe") == "\\x1b[2J\\u202egpj.\\u200cexe"
    long = shown("a" * 500 + "z")
    assert len(long) == 60
    assert long.startswith("aaa")
    assert long.endswith("z")
