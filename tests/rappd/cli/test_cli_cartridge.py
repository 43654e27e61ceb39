"""Cartridges through the real command: run, frozen in mid-expression, carried on in other processes, signed."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from fixtures.running_daemon import RunningDaemon

COUNTER = """
(define total (if (= echo-frame 1) 0 total))
(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(display "frame ") (display echo-frame) (newline)
(set! total (+ total (fib 6) (begin (display "adding") (newline) (fib 5))))
total
"""
LISTENER = """
(define heard (if (= echo-frame 1) (list) heard))
(define (run input) (set! heard (append heard (list input))) (length heard))
"""
AT = "2026-11-21T09:40:00Z"
FLUFFY = {
    "schema": "rappter-egg/1.0",
    "id": "fluffy-04",
    "name": "Fluffy",
    "stage": "juvenile",
    "stats": {"intellect": 47, "energy": 40, "mood": 60, "xp": 60},
    "skills": ["chat"],
    "code": {"lang": "lispy", "entry": "(define run (lambda (input) ...))", "agents_loaded": []},
    "strange": {"kept": [1, 2.5, None]},
}


class Shelf:
    """A folder of cartridges and the command that is run over them."""

    def __init__(self, daemon: RunningDaemon, folder: Path) -> None:
        self.daemon = daemon
        self.folder = folder

    def __call__(self, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        """``rappd cartridge …``."""
        done = self.daemon.cli("cartridge", *words)
        assert done.returncode == code, (words, done)
        return done

    def json(self, *words: str, code: int = 0) -> Any:
        found = json.loads(self(*words, "--json", code=code).stdout)
        return found.get("cartridge", found.get("diff"))

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def made(self, name: str, source: str) -> str:
        """A cartridge of one program."""
        program = self.folder / f"{name}.lispy"
        program.write_text(source)
        path = self.path(f"{name}.lispy.json")
        self("new", name, "--program", str(program), "-o", path, "--at", AT)
        return path

    def written(self, name: str, document: Any) -> str:
        Path(self.path(name)).write_text(document if isinstance(document, str) else json.dumps(document))
        return self.path(name)

    def read(self, path: str) -> Any:
        return json.loads(Path(path).read_text())


@pytest.fixture
def shelf(idle: RunningDaemon, tmp_path: Path) -> Shelf:
    folder = tmp_path / "shelf"
    folder.mkdir()
    return Shelf(idle, folder)


def test_load_run_save_load_run_save(shelf: Shelf) -> None:
    """In four processes what one process does, byte for byte."""
    path = shelf.made("counter", COUNTER)
    whole = shelf.path("whole.lispy.json")
    at_once = shelf.json("run", path, "--frames", "4", "-o", whole, "--at", AT)
    output = ""
    for number in range(1, 5):
        ran = shelf.json("run", path, "--save", "--at", AT)
        assert ran["frames"] == [{"frame": number, "result": str(13 * number)}]
        assert Path(path).with_name("counter.lispy.json.sig").exists()
        output += ran["output"]
    assert output == at_once["output"]
    assert Path(path).read_bytes() == Path(whole).read_bytes()


@pytest.mark.parametrize("steps", [1, 58, 164])
def test_frozen_in_mid_expression_and_resumed_elsewhere(shelf: Shelf, steps: int, tmp_path: Path) -> None:
    path = shelf.made("counter", COUNTER)
    plain = shelf.path("plain.lispy.json")
    expected = shelf.json("run", path, "-o", plain, "--at", AT)
    frozen = shelf.json("freeze", path, "--after", str(steps), "--at", AT)
    assert (frozen["status"], frozen["steps"], frozen["output"]) == ("frozen", steps, "")
    assert shelf.json("inspect", path)["frozen"]
    # Carried to another home, one more step there, then to the end.
    other = RunningDaemon(tmp_path / "elsewhere")
    carried = shutil.copy(path, tmp_path / "carried.lispy.json")
    assert other.cli("cartridge", "step", carried, "--at", AT).returncode == 0
    done = other.cli("cartridge", "resume", carried, "--save", "--at", AT, "--json")
    resumed = json.loads(done.stdout)["cartridge"]
    assert resumed["output"] == expected["output"]
    assert resumed["frames"] == expected["frames"]
    assert Path(carried).read_bytes() == Path(plain).read_bytes()


def test_what_is_printed_is_what_the_program_wrote(shelf: Shelf) -> None:
    path = shelf.made("counter", COUNTER)
    told = shelf("run", path)
    assert told.stdout.splitlines()[:3] == ["frame 1", "adding", "frame 1  13"]
    assert "Nothing was saved." in told.stdout
    stepped = shelf("step", path, "100")
    assert "Frozen after 100 steps." in stepped.stdout
    assert "Next " in stepped.stdout
    assert "Calls" in shelf("inspect", path).stdout


def test_inputs_wait_until_they_are_taken(shelf: Shelf) -> None:
    path = shelf.made("listener", LISTENER)
    ran = shelf.json("run", path, "--input", '"a"', "--input", '{"b": [1, 2.5, null]}', "--save")
    assert (ran["status"], ran["frames"][0]["result"]) == ("done", "1")
    assert shelf.json("inspect", path)["pending_inputs"] == [{"b": [1, 2.5, None]}]
    assert shelf.json("run", path, "--save")["frames"][0]["result"] == "2"
    assert shelf.read(path)["env"]["heard"] == ["a", {"b": [1, 2.5, None]}]
    asking = shelf.made("asking", "(define answer (next-input)) (list answer answer)")
    waits = shelf.json("run", asking, "--save", code=8)
    assert waits["status"] == "waiting"
    assert shelf.json("resume", asking, "--input", '"x"', "--save")["frames"][0]["result"] == '("x" "x")'
    shelf("run", path, "--input", "not json", code=2)
    shelf("run", path, "--input", "NaN", code=2)


def test_a_program_that_fails_leaves_its_cartridge_as_it_was(shelf: Shelf) -> None:
    path = shelf.made("broken", '(display "before") (car 1)')
    before = Path(path).read_bytes()
    told = shelf("run", path, code=1)
    assert told.stdout.startswith("before")
    assert "Frame 1: " in told.stderr
    ran = shelf.json("run", path, "--save", "--at", AT, code=1)
    assert ran["frames"][0]["error"]["category"] == "evaluation"
    assert Path(path).read_bytes() == before
    endless = shelf.made("endless", "(define (go) (go)) (go)")
    assert (
        shelf.json("run", endless, "--fuel", "500", code=1)["frames"][0]["error"]["category"]
        == "resource-limit"
    )


def test_a_program_reaches_nothing(shelf: Shelf) -> None:
    for number, reach in enumerate(
        ('(read-file "/etc/passwd")', '(rb-run "1")', '(curl "http://x")', "(env-get)")
    ):
        path = shelf.made(f"reach{number}", reach)
        assert shelf.json("run", path, code=1)["frames"][0]["error"]["category"] in (
            "evaluation",
            "capability",
        )


def test_signed_edited_and_signed_again(shelf: Shelf) -> None:
    path = shelf.made("counter", COUNTER)
    shelf("run", path, "--save")
    assert shelf.json("inspect", path)["signer"]["standing"] == "self"
    edited = shelf.read(path)
    edited["env"]["total"] = 100
    edited["mine"] = "kept"
    Path(path).write_text(json.dumps(edited, indent=2))
    found = shelf.json("inspect", path)
    unsigned = {"fingerprint": "", "standing": "unsigned", "name": "", "whose": "", "signed": "not signed"}
    assert found["signer"] == unsigned
    assert "changed after it was signed" in found["notes"][0]
    told = shelf("run", path, "--save")
    assert "changed after it was signed" in told.stderr
    assert "total was changed by hand" in told.stderr
    assert shelf.json("inspect", path)["env"]["total"] == "113", "what was edited counts"
    assert shelf.json("inspect", path)["signer"]["standing"] == "self"
    assert shelf.read(path)["mine"] == "kept"
    other = RunningDaemon(shelf.folder / "stranger")
    seen = json.loads(other.cli("cartridge", "inspect", path, "--json").stdout)["cartridge"]
    assert seen["signer"]["standing"] == "unknown"
    assert not other.home.exists(), "looking makes no home"


def test_edit_while_frozen_is_reported_as_void(shelf: Shelf) -> None:
    path = shelf.made("counter", COUNTER)
    shelf("run", path, "--save")
    shelf("freeze", path, "--after", "30")
    edited = shelf.read(path)
    edited["env"]["total"] = 100
    Path(path).write_text(json.dumps(edited))
    ran = shelf.json("resume", path)
    assert "total was changed by hand; the frozen machine goes on with its own." in ran["notes"]
    assert ran["frames"][0]["result"] == "26"


def test_a_buddy_runs_saves_and_keeps_its_shape(shelf: Shelf) -> None:
    path = shelf.written("fluffy.rappter.egg", FLUFFY)
    actions = ["--input", '"feed"', "--input", '{"action": "remember", "text": "plums"}']
    ran = shelf.json("run", path, *actions, "--save", "--at", AT)
    assert [frame["action"] for frame in ran["frames"]] == ["feed", "remember"]
    assert (ran["buddy"]["energy"], ran["buddy"]["xp"]) == (65, 64)
    for number in range(3):
        assert shelf.json("run", path, "--save", "--at", AT)["buddy"]["xp"] == 66 + 2 * number
    kept = shelf.read(path)
    assert kept["schema"] == "rappter-egg/1.0"
    assert kept["continuation"]["frame"] == 3
    for key in ("id", "skills", "code", "strange"):
        assert kept[key] == FLUFFY[key]
    assert kept["stats"]["intellect"] == 47
    assert shelf("run", path, "--input", '"dance"', code=2).stdout == ""
    shelf("run", path, "--input", '{"action": "feed", "energy": 100}', code=2)
    shelf("step", path, code=2)
    shelf("resume", path, code=9)


def test_from_shape_to_shape_and_back(shelf: Shelf) -> None:
    path = shelf.written("fluffy.rappter.egg", FLUFFY)
    known = {"seed": "rappter-egg/1.0", "legacy": "rappter.egg", "spec": "egg/1"}
    last = path
    for number, to in enumerate(("legacy", "spec", "legacy", "seed")):
        target = shelf.path(f"{number}.egg")
        shelf("convert", last, "--to", to, "-o", target)
        assert shelf.json("inspect", target)["shape"] == known[to]
        assert shelf.json("diff", path, target)["same"]
        last = target
    assert shelf.read(last) == FLUFFY


def test_a_body_that_was_edited_loads_only_when_told_to(shelf: Shelf) -> None:
    path, spec = shelf.written("fluffy.rappter.egg", FLUFFY), shelf.path("spec.egg")
    shelf("convert", path, "--to", "spec", "-o", spec)
    edited = shelf.read(spec)
    edited["body"]["content"]["energy"] = 99
    Path(spec).write_text(json.dumps(edited))
    assert "changed by hand" in shelf("inspect", spec, code=5).stderr
    assert shelf.json("inspect", spec, "--force")["buddy"]["energy"] == 99
    ran = shelf.json("run", spec, "--force", "--save")
    assert "does not match its own hash" in "".join(ran["notes"])
    shelf("inspect", spec)  # and what is saved matches again


def test_an_organism_that_is_no_buddy_is_looked_at_and_not_run(shelf: Shelf) -> None:
    path = shelf.written("fluffy.rappter.egg", FLUFFY)
    spec = shelf.path("planet.egg")
    shelf("convert", path, "--to", "spec", "-o", spec)
    planet = shelf.read(spec)
    planet["organism"]["scale"] = "planet"
    Path(spec).write_text(json.dumps(planet))
    assert shelf.json("inspect", spec)["shape"] == "egg/1"
    assert "of scale planet" in shelf("run", spec, code=5).stderr


def test_nothing_is_written_over_unless_told(shelf: Shelf) -> None:
    path = shelf.made("counter", COUNTER)
    other = shelf.written("other.lispy.json", "something of mine")
    for words in (("run", path), ("freeze", path, "--after", "3"), ("resume", path)):
        if words[0] == "resume":
            shelf("freeze", path, "--after", "3")
        shelf(*words, "-o", other, code=9)
        assert Path(other).read_text() == "something of mine"
    shelf("new", "counter", "--program", shelf.path("counter.lispy"), "-o", other, code=9)
    shelf("resume", path, "-o", other, "--replace")
    assert shelf.read(other)["echoes"][0]["result"] == "13"
    shelf("run", path, "--save", "-o", other, code=2)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("", "damaged"),
        ("{", "line 1"),
        ("[1]", "no object"),
        ("{}", "is no"),
        ('{"a": 1, "a": 2}', "twice"),
        ('{"_meta": {"type": "lispy-cartridge"}, "programs": {"main": 3}}', "programs"),
        ('{"_meta": {"type": "lispy-cartridge"}, "continuation": {"image": {"schema": "x"}}}', "image"),
        ('{"schema": "rappter-egg/1.0", "name": "x", "stage": "king"}', "stage"),
        ("PK\x03\x04rest", "packed egg"),
    ],
    ids=str,
)
def test_what_is_no_cartridge_ends_with_5_and_says_why(shelf: Shelf, content: str, word: str) -> None:
    path = shelf.written("bad.json", content)
    told = shelf("run", path, "--json", code=5)
    error = json.loads(told.stderr)
    assert error["code"] == "bad_cartridge"
    assert word in error["error"]
    assert error["do"]
    assert told.stdout == ""
    if word != "image":  # a machine is looked into only where it would run
        shelf("diff", path, path, code=5)


def test_a_file_that_is_not_there_ends_with_4(shelf: Shelf) -> None:
    for verb in ("run", "inspect", "step", "resume"):
        shelf(verb, shelf.path("nowhere.json"), code=4)


def test_a_program_is_told_from_a_damaged_cartridge(shelf: Shelf) -> None:
    Path(shelf.path("tea.lispy")).write_text("(+ 1 2)")
    for verb in ("run", "inspect", "step"):
        told = shelf(verb, shelf.path("tea.lispy"), code=5).stderr
        assert "tea.lispy is a program, and no cartridge yet" in told
        assert "rappd cartridge new NAME --program tea.lispy" in told
    Path(shelf.path("cut.json")).write_text('{"_meta":')
    assert "is damaged" in shelf("run", shelf.path("cut.json"), code=5).stderr


def test_a_program_that_cannot_be_read_names_its_line(shelf: Shelf) -> None:
    Path(shelf.path("bad.lispy")).write_text('(define x 1)\n(display "never ends)')
    told = shelf("new", "bad", "--program", shelf.path("bad.lispy"), "-o", shelf.path("bad.json"), code=5)
    assert "bad.lispy:2:" in told.stderr
    assert not Path(shelf.path("bad.json")).exists()
    shelf("new", "gone", "--program", shelf.path("gone.lispy"), code=4)


def test_several_programs_and_the_one_a_frame_runs(shelf: Shelf) -> None:
    for name, source in (("main", "1"), ("second", "2")):
        Path(shelf.path(f"{name}.lispy")).write_text(source)
    programs = [word for name in ("main", "second") for word in ("--program", shelf.path(f"{name}.lispy"))]
    first, second = shelf.path("a.json"), shelf.path("b.json")
    shelf("new", "two", *programs, "-o", first, "--at", AT)
    shelf("new", "two", *programs, "--entry", "second", "-o", second, "--at", AT)
    assert shelf.json("run", first)["frames"][0]["result"] == "1"
    assert shelf.json("run", second)["frames"][0]["result"] == "2"
    assert shelf.json("diff", first, second)["lines"] == ['entry added: "second"']
    shelf("new", "two", *programs, "--entry", "third", "-o", shelf.path("c.json"), code=2)
