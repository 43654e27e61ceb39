"""Names from elsewhere: which an egg may carry, which some system cannot hold, and which two are one file on some disk."""

from __future__ import annotations

import ntpath
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twins.errors import HostileEggError
from twins.fs.untrusted_names import (
    NameSet,
    folded,
    other_spelling,
    safe_component,
    safe_path,
    shown,
    why_not_portable,
)

REFUSED = [
    ("CON.py", "CON.py is the name of a device on Windows"),
    *((f"agents/{name}", f"{name} is the name of a device on Windows") for name in (
        "con", "prn.txt", "AUX", "nul.tar.gz", "com0", "COM9.py", "lpt1", "LPT0.x", "com¹", "LPT³.py", "conin$", "CONOUT$.py",
        "con .py", "aux..py", "nul ", "con.", "com1:evil",
    )),
    ("con/x.py", "con is the name of a device on Windows"),
    ("x.py.", "x.py. ends in a dot, which Windows leaves away"),
    ("x.py ", "x.py  ends in a blank, which Windows leaves away"),
    ("agents./x.py", "agents. ends in a dot, which Windows leaves away"),
    ("agents /x.py", "agents  ends in a blank, which Windows leaves away"),
    ("x.py:evil", "x.py:evil holds :, which Windows allows in no name"),
    ("x.py::$DATA", "x.py::$DATA holds :, which Windows allows in no name"),
    *((f"a{sign}b.py", f"a{sign}b.py holds {sign}, which Windows allows in no name") for sign in '<>:"|?*\\'),
    *((f"a{sign}b.py", "holds a sign that cannot be shown") for sign in "\0\x01\n\x1f\x7f\x9f\u202e\u2066"),
    ("\u200c", "without a name"),
    ("a" * 256, "is longer than 255 bytes"),
    ("é" * 128, "is longer than 255 bytes"),
    ("/".join(["a" * 250] * 5), "is longer than 1024 bytes"),
    ("/".join("a" * 65), "lies more than 64 folders deep"),
    *((name, f"{name} may be the short name of another file on Windows") for name in ("PROGRA~1", "agents~1", "SOUL~1.MD", "x~12.py")),
    ("AGENTS~1/x.py", "AGENTS~1 may be the short name"),
    ("", "without a name"), ("a//b", "without a name"), ("..", "without a name"), ("a/../b", "without a name"), (". .", "without a name"),
]  # fmt: skip
TAKEN = [
    "soul.md", "agents/weather_agent.py", ".env", ".brainstem_data/2026/nov/21.json", "console.py", "nullify.txt", "com10.py", "a.con",
    "lpt.md", "com.py", "données/naïve ✓.txt", "家族/👩\u200d👧.md", "two words.txt", "a" * 255, "a.b.c", "-x", "notes~", "x~y.md", "long_name~1.txt",
    "rapps/kanban/ui/index.html", "@owner/x_agent.py", "100% sure, really (1) [2] {3} #4 $5 'six' & =7;.md",
]  # fmt: skip


@pytest.mark.parametrize(("path", "why"), REFUSED)
def test_name_that_some_system_rejects_is_told(path: str, why: str) -> None:
    found = why_not_portable(path)
    assert why in found
    assert found.isprintable()


@pytest.mark.parametrize("path", TAKEN)
def test_name_that_every_system_holds_is_taken(path: str) -> None:
    assert why_not_portable(path) == ""


@given(st.text(max_size=30) | st.text(st.sampled_from("conaux1~.:/\\ ¹COM"), max_size=14))
def test_what_is_taken_stays_one_plain_file_on_windows(path: str) -> None:
    if why_not_portable(path):
        return
    for part in path.split("/"):
        assert part == part.rstrip(". ") and part and not set(part) & set('<>:"/\\|?*')
        assert part.split(".")[0].rstrip(" ").lower() not in {"con", "prn", "aux", "nul", "conin$", "conout$"}
        assert ntpath.splitdrive(part)[0] == "" and part.encode()


@given(st.text(min_size=1, max_size=12))
def test_spellings_that_some_disk_joins_are_one(name: str) -> None:
    for other in (
        name.upper(),
        name.lower(),
        unicodedata.normalize("NFC", name),
        unicodedata.normalize("NFD", name),
        name + ".",
    ):
        if folded(other) != folded(name):
            assert (
                name.casefold() != other.casefold()
            )  # upper and lower are no inverses of each other everywhere
        elif other != name:
            assert other_spelling(name, ["x-y-z", other]) == other
    assert other_spelling(name, [name]) == ""


@given(st.text(max_size=40))
def test_any_text_is_judged_without_a_crash(path: str) -> None:
    assert why_not_portable(path).isprintable()


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
