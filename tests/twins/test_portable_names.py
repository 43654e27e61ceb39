"""Names that some system cannot hold are told with the reason; names that all can hold are let pass."""

from __future__ import annotations

import ntpath
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twins.fs.portable_names import folded, other_spelling, why_not_portable

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
