"""Senses: slots that a workspace adds, read from files that are never run."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agents.brainstem import prompt
from agents.brainstem.answer_slots import (
    DELIMITER,
    MAX_BYTES,
    TWIN,
    VOICE,
    BadSenseError,
    SenseFault,
    SenseOutput,
    Senses,
    read_sense,
)
from agents.contract.may_run import Allowed, Quarantined, Verdict
from envelopes.codecs.chat import ANSWER_KEYS

MOOD = '''"""How it feels."""

import no_such_package

name = "mood"
delimiter: str = "|||MOOD|||"
response_key = "mood_response"
system_prompt = """
After your answer write |||MOOD||| and one word.
"""
wrapper_tag = "mood"

open("RUN", "w").close()
raise SystemExit
'''


def a_sense(delimiter: str = "|||MOOD|||", key: str = "mood_response", text: str = "Say it.") -> str:
    return f"delimiter = {delimiter!r}\nresponse_key = {key!r}\nsystem_prompt = {text!r}\n"


class Nose:
    """A folder of senses, and what is held in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.held: dict[str, str] = {}
        self.senses = Senses(folder, trust=self)

    def look(self) -> Sequence[object]:
        return (self.held,)

    def may_run(self, origin: str, path: Path, sha256: str, needs: object = ...) -> Verdict:
        return Quarantined(self.held[sha256]) if sha256 in self.held else Allowed()

    def put(self, name: str, text: str) -> str:
        """Saves a file as an editor does; returns its hash."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(".tmp")
        beside.write_text(text)
        beside.replace(path)
        return hashlib.sha256(text.encode()).hexdigest()

    def keys(self) -> list[str]:
        return [slot.response_key for slot in self.senses.look().slots]

    def faults(self) -> list[SenseFault]:
        return list(self.senses.look().faults)


@pytest.fixture
def nose(tmp_path: Path) -> Nose:
    return Nose(tmp_path / "senses")


def test_a_file_is_read_and_nothing_of_it_runs(
    nose: Nose, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    nose.put("mood_sense.py", MOOD)
    [slot] = nose.senses.look().slots
    assert (slot.name, slot.delimiter, slot.response_key, slot.tag) == (
        "mood", "|||MOOD|||", "mood_response", "mood",
    )  # fmt: skip
    assert slot.prompt == "After your answer write |||MOOD||| and one word."
    assert nose.faults() == []
    assert not (tmp_path / "RUN").exists()


def test_a_workspace_without_the_folder_has_none(nose: Nose) -> None:
    assert nose.senses.look() == SenseOutput()


def test_other_files_are_no_senses(nose: Nose) -> None:
    for name in ("mood.py", "sense.txt", ".hidden/mood_sense.py", "__pycache__/mood_sense.py"):
        nose.put(name, a_sense())
    assert (nose.keys(), nose.faults()) == ([], [])
    nose.put("inner/mood_sense.py", a_sense())
    assert nose.keys() == ["mood_response"]
    assert nose.senses.now.slots[0].name == "mood", "without a name it goes by its file's"


BAD: list[tuple[str, str, int | None]] = [
    (a_sense().replace("delimiter", "delimeter"), "it has no delimiter", None),
    (a_sense().replace("response_key = ", "key = "), "it has no response_key", None),
    (a_sense(text=" \n"), "its system_prompt is empty", 3),
    ("x = 1\n" + a_sense("MOOD"), "its delimiter must look like |||NAME|||", 2),
    (a_sense("|||A B|||"), "its delimiter must look like |||NAME|||", 1),
    (a_sense("|||A|||B|||"), "its delimiter must look like |||NAME|||", 1),
    (a_sense(key="response"), "response is a key of every answer, and not for a sense to fill", 2),
    (a_sense(key="voice_response"), "voice_response is a key of every answer, and not for a sense to fill", 2),
    (a_sense(key="_x_thread"), "its response_key must be letters, digits and _, a letter first", 2),
    (a_sense(VOICE), "|||VOICE||| is the daemon's own, and fills voice_response", 1),
    (a_sense(TWIN, "voice_response"), "|||TWIN||| is the daemon's own, and fills twin_response", 1),
    (a_sense() + "wrapper_tag = '<b>'\n", "its wrapper_tag must be the name of a tag, without < and >", 4),
    ("delimiter = '|' * 3\n" + a_sense(), "delimiter must be a text, written out: senses are read, not run", 1),
    (a_sense() + "name = 7\n", "name must be a text, written out: senses are read, not run", 4),
    (a_sense() + "name = f'{1}'\n", "name must be a text, written out: senses are read, not run", 4),
    (a_sense() + "name = '\\ud800'\n", "name holds half a character", 4),
    (a_sense() + "def broken(:\n", "invalid syntax", 4),
    ("#" * MAX_BYTES + "\n" + a_sense(), "it is larger than 64 kB", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "reason", "line"), BAD, ids=[reason for _, reason, _ in BAD])
def test_a_bad_file_gives_no_slot_and_is_told_with_its_line(
    nose: Nose, text: str, reason: str, line: int | None
) -> None:
    nose.put("good_sense.py", a_sense("|||GOOD|||", "good_response"))
    nose.put("mood_sense.py", text)
    assert nose.keys() == ["good_response"], "the others go on"
    assert nose.faults() == [SenseFault("mood_sense.py", reason, line)]


@pytest.mark.parametrize("key", sorted(ANSWER_KEYS))
def test_no_key_of_an_answer_can_be_taken(key: str) -> None:
    with pytest.raises(BadSenseError, match="a key of every answer"):
        read_sense(a_sense(key=key).encode(), "mood_sense")


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace")))
@example(b"\0")
@example(b"\xff\xfe")
@example(b"delimiter = " + b"(" * 5000)
@example(b"delimiter = " + b"-" * 50000 + b"1")
def test_whatever_a_file_holds_is_a_slot_or_a_fault(content: bytes) -> None:
    with pytest.raises(BadSenseError):
        read_sense(content, "x_sense")


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=30))
def test_a_slot_that_is_read_harms_no_answer(delimiter: str, key: str, text: str) -> None:
    try:
        slot = read_sense(a_sense(delimiter, key, text).encode("utf-8", "backslashreplace"), "x_sense")
    except BadSenseError:
        return
    assert DELIMITER.fullmatch(slot.delimiter)
    assert slot.response_key not in ANSWER_KEYS
    slot.prompt.encode()


def test_of_two_that_claim_the_same_the_first_has_it(nose: Nose) -> None:
    nose.put("a_sense.py", a_sense("|||A|||", "a"))
    nose.put("b_sense.py", a_sense("|||A|||", "b"))
    nose.put("c_sense.py", a_sense("|||C|||", "a"))
    assert nose.keys() == ["a"]
    assert nose.faults() == [
        SenseFault("b_sense.py", "|||A||| is taken by a_sense.py"),
        SenseFault("c_sense.py", "a is taken by a_sense.py"),
    ]
    (nose.folder / "a_sense.py").unlink()
    assert (nose.keys(), nose.faults()) == (["b", "a"], [])


def test_a_saved_file_is_read_again_and_an_unchanged_one_is_not(
    nose: Nose, monkeypatch: pytest.MonkeyPatch
) -> None:
    nose.put("mood_sense.py", a_sense(text="First."))
    first = nose.senses.look()
    nose.put("other_sense.py", a_sense("|||O|||", "other"))
    unread = (nose.folder / "mood_sense.py").stat()
    second = nose.senses.look()
    assert nose.senses.look() is second, "nothing changed, nothing is made anew"
    assert [slot.prompt for slot in (*first.slots, *second.slots)] == ["First.", "First.", "Say it."]
    os.utime(nose.folder / "mood_sense.py", ns=(unread.st_atime_ns, unread.st_mtime_ns))
    assert nose.senses.look() is second
    nose.put("mood_sense.py", a_sense(text="Second."))
    assert [slot.prompt for slot in nose.senses.look().slots] == ["Second.", "Say it."]
    (nose.folder / "mood_sense.py").unlink()
    assert nose.keys() == ["other"]


def test_former_version_serves_while_file_is_broken(nose: Nose) -> None:
    nose.put("mood_sense.py", a_sense())
    nose.keys()
    nose.put("mood_sense.py", "delimiter = (")
    assert nose.keys() == ["mood_response"]
    assert nose.faults() == [SenseFault("mood_sense.py", "'(' was never closed", 1, last_good=True)]
    nose.put("mood_sense.py", a_sense(key="other"))
    assert (nose.keys(), nose.faults()) == (["other"], [])


def test_a_held_file_is_told_and_not_used_until_it_is_approved(nose: Nose) -> None:
    nose.put("mood_sense.py", a_sense())
    assert nose.keys() == ["mood_response"]
    digest = nose.put("mood_sense.py", a_sense(key="sly"))
    nose.held[digest] = "It came in an egg."
    assert nose.keys() == [], "its earlier version is no longer anybody's choice"
    assert nose.faults() == [SenseFault("mood_sense.py", "It came in an egg.", quarantined=True)]
    broken = nose.put("mood_sense.py", "delimiter = (")
    nose.held[broken] = "It came in an egg."
    assert (nose.keys(), nose.faults()[0].reason) == ([], "It came in an egg.")
    nose.put("mood_sense.py", a_sense(key="sly"))
    assert nose.keys() == []
    nose.held.clear()
    assert (nose.keys(), nose.faults()) == (["sly"], []), "approved, without the file changing"


def test_a_file_that_cannot_be_read_is_told(nose: Nose) -> None:
    nose.folder.mkdir()
    os.mkfifo(nose.folder / "pipe_sense.py")
    (nose.folder / "mood_sense.py").symlink_to("/etc/hostname")
    assert (nose.keys(), nose.faults()) == ([], []), "a pipe and a link to elsewhere are no files of its own"


@pytest.fixture
def system(nose: Nose) -> Callable[..., str]:
    def build(*, voice: bool = False, twin: bool = False) -> str:
        return prompt.build(
            "Soul.", ["Context."], [], [], [], voice=voice, twin=twin, sensed=nose.senses.look()
        )

    return build


def test_the_system_text_has_a_paragraph_for_each_sense(nose: Nose, system: Callable[..., str]) -> None:
    assert system() == "Soul.\n\nContext."
    nose.put("b_sense.py", a_sense("|||B|||", "b", "Do b."))
    nose.put("a_sense.py", a_sense("|||A|||", "a", "\nDo a.\n"))
    assert system() == "Soul.\n\nContext.\n\nDo a.\n\nDo b."
    assert system(voice=True).split("\n\n")[2].startswith("## Spoken form")


def test_sense_may_word_the_prompt_of_a_builtin_slot(nose: Nose, system: Callable[..., str]) -> None:
    """Published brainstems have the daemon's two slots as files, too."""
    nose.put("voice_sense.py", a_sense(VOICE, "voice_response", "Sing it."))
    assert (nose.keys(), nose.faults()) == ([], [])
    assert system() == "Soul.\n\nContext."
    assert system(voice=True) == "Soul.\n\nContext.\n\nSing it."
    assert "## Twin" in system(twin=True)
    split = nose.senses.now.delimiters.split(f"a{VOICE}<voice>b</voice>")
    assert split == ("a", "b", "", {})
