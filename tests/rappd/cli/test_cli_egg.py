"""``rappd egg``: what its screens say, what its exit codes mean, and that it works with the daemon down."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from daemon_under_test import REPO, RunningDaemon, agent_source
from terminal_under_test import Terminal, on_terminal

from envelopes.problem import Problem
from rappd.cli.app import run
from rappd.cli.daemon import Answered
from tests.twins.eggs.crafted_zip import Crafted, built
from tests.twins.eggs.hostile_corpus import HONEST, HOSTILE, honest
from twins.eggs.opened import Destination, Family, Opened, Part, Role, Seal

KETTLE = agent_source("Kettle", 'return "It boils."', description="Boils water in the kettle.")
PUMP = 'name = "pump"\n\n\ndef handle(method, path, body):\n    return {"water": "runs"}, 200\n'


def lies(home: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(home)): path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file()
    }


class Gardener:
    """A twin on a home at rest, and the eggs of it."""

    def __init__(self, home: RunningDaemon, folder: Path) -> None:
        self.home = home
        self._folder = folder
        made = json.loads(home.cli("twins", "new", "gardener", "--kind", "place", "--json").stdout)
        self.key: str = made["twin"]["key"]
        self.root = home.home / "twins" / self.key

    def give(self, path: str, content: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(content)

    def packed(self, name: str = "gardener.egg", *more: str) -> Path:
        egg = self._folder / name
        done = self.home.cli("egg", "pack", "gardener", "-o", str(egg), *more)
        assert done.returncode == 0, done
        return egg


@pytest.fixture
def kitchen(make_daemon: Callable[..., RunningDaemon], tmp_path: Path) -> Gardener:
    """Where the eggs come from."""
    return Gardener(make_daemon("kitchen", LLM_FAKE="1", RAPPD_NAME="kitchen"), tmp_path)


def with_code(kitchen: Gardener) -> Path:
    """An egg with an agent and a service in it."""
    kitchen.give("agents/kettle_agent.py", KETTLE)
    kitchen.give("services/pump_service.py", PUMP)
    return kitchen.packed()


def fingerprint(home: RunningDaemon) -> str:
    own: str = json.loads(home.cli("egg", "signers", "--json").stdout)["own"]
    return own


# The plan.


def test_the_screen_of_a_plan(idle: RunningDaemon, kitchen: Gardener) -> None:
    for number in range(3):
        kitchen.give(f"agents/a{number}_agent.py", agent_source(f"A{number}"))
    for number in range(9):
        kitchen.give(f".brainstem_data/{number}.json", "{}")
    assert idle.cli("egg", "hatch", str(kitchen.packed("first.egg"))).returncode == 0
    here = idle.home / "twins" / kitchen.key
    for path in ("soul.md", ".brainstem_data/3.json", "agents/a1_agent.py"):
        (here / path).write_text("# mine\n")
    kitchen.give("services/pump_service.py", PUMP)
    for number in range(131):
        kitchen.give(f".brainstem_data/notes/{number}.json", "{}")
    egg = kitchen.packed()
    seen = on_terminal(idle, "egg", "plan", str(egg))
    assert seen.code == 0
    head, whole, *rows, last = seen.lines
    assert re.fullmatch(r"gardener, a twin, \d+(\.\d)? kB, packed \d{1,2} [A-Z][a-z]{2}", head)
    assert whole == "✓ whole: 148 of 148 files    ! signed by kitchen, not paired"
    assert rows == [
        "  create      132  131 memories, 1 code file",
        "  keep         15  3 of yours differ and stay (--overwrite soul,memory,agents)",
        "  quarantine    1  read them, then: rappd agents approve",
        "  refuse        0",
    ]
    assert last == f"Nothing was written. → rappd egg hatch {egg}"
    narrow = on_terminal(idle, "egg", "plan", str(egg), columns=40).lines[2:6]
    assert narrow == [
        "  create      132  131 memories, 1…",
        "  keep         15  3 of yours differ…",
        "  quarantine    1",
        "  refuse        0",
    ]
    replaced = idle.cli("egg", "plan", str(egg), "--overwrite", "soul,agents").stdout.splitlines()
    assert "  replace       2  soul, 1 code file" in replaced
    assert "  keep         13  1 of yours differs and stays (--overwrite memory)" in replaced
    assert "  quarantine    2  read them, then: " in "\n".join(replaced)


def test_the_plan_of_a_first_hatching_and_of_one_that_changes_nothing(
    idle: RunningDaemon, kitchen: Gardener
) -> None:
    egg = kitchen.packed()
    own = kitchen.home.cli("egg", "plan", str(egg)).stdout
    assert "✓ whole: 4 of 4 files    ✓ signed by this machine" in own
    assert "  create        0\n  keep          3  the same is there\n" in own
    assert (
        "  create        3  rappid, soul, 1 other\n  keep          0\n"
        in idle.cli("egg", "plan", str(egg)).stdout
    )
    assert "is here already; nothing had to be written." in kitchen.home.cli("egg", "hatch", str(egg)).stdout


def test_a_plan_as_json_is_one_object(idle: RunningDaemon, kitchen: Gardener) -> None:
    plan = json.loads(idle.cli("egg", "plan", str(with_code(kitchen)), "--json").stdout)["plan"]
    assert plan["seal"]["standing"] == "unknown"
    assert plan["seal"]["signer"] == fingerprint(kitchen.home)
    assert plan["egg"]["packed_on"] == "kitchen"
    assert {row: plan[row]["count"] for row in ("create", "replace", "keep", "quarantine", "refuse")} == {
        "create": 5, "replace": 0, "keep": 0, "quarantine": 2, "refuse": 0,
    }  # fmt: skip
    assert len(plan["digest"]) == 64


def test_an_egg_that_only_has_an_answer_says_so_and_offers_no_hatching(
    idle: RunningDaemon, tmp_path: Path
) -> None:
    session = {
        "schema": "brainstem-egg/2.3-session",
        "type": "session",
        "rappid": f"rappid:@a/b:{'4' * 64}",
        "name": "s",
    }
    egg = tmp_path / "s.egg"
    egg.write_text(json.dumps(session))
    told = idle.cli("egg", "plan", str(egg)).stdout
    assert "Nothing was written.\n" in told
    assert "rappd egg hatch" not in told
    assert "  create" not in told


# Packing and looking.


def test_packing_names_the_file_and_what_stayed_behind(kitchen: Gardener, tmp_path: Path) -> None:
    kitchen.give(".env", "PUMP_TOKEN=abc\n")
    done = kitchen.home.cli("egg", "pack", "gardener", "-o", str(tmp_path / "g.egg"))
    assert re.match(
        r"✓ gardener: 3 files, [\d.]+ kB, signed\n  \S*g\.egg\n  left out: \.env may hold secrets\n",
        done.stdout,
    )
    assert kitchen.home.cli("egg", "pack", "gardener", "-o", str(tmp_path / "g.egg")).returncode == 9
    packed = json.loads(kitchen.home.cli("egg", "pack", "gardener", "--json").stdout)["packed"]
    assert Path(packed["path"]).parent == kitchen.home.home / "eggs" / kitchen.key
    assert packed["left_out"] == [{"path": ".env", "why": "may hold secrets"}]


def test_the_brainstem_is_packed_before_it_ever_ran(idle: RunningDaemon, tmp_path: Path) -> None:
    done = idle.cli("egg", "pack", "-o", str(tmp_path / "desk.egg"))
    assert done.stdout.startswith("✓ desk: "), done
    assert "desk, a brainstem" in idle.cli("egg", "inspect", str(tmp_path / "desk.egg")).stdout
    idle.start()
    assert idle.chat("hello")["response"]


def test_an_egg_of_a_whole_brainstem_hatches_into_an_empty_home_alone(
    idle: RunningDaemon, make_daemon: Callable[..., RunningDaemon], tmp_path: Path
) -> None:
    egg = tmp_path / "desk.egg"
    idle.start()
    idle.drop("kettle_agent.py", KETTLE)
    assert idle.cli("egg", "pack", "-o", str(egg)).returncode == 0
    assert idle.cli("egg", "hatch", str(egg)).returncode == 9
    fresh = make_daemon("fresh", LLM_FAKE="1")
    done = fresh.cli("egg", "hatch", str(egg))
    assert "rappd agents approve\n" in done.stdout, done
    assert fresh.cli("agents", "approve", "kettle").stdout == (
        "✓ agents/kettle_agent.py is approved; it runs from the next start on.\n"
    )
    fresh.start()
    assert fresh.cli("agents", "run", "Kettle").stdout == "It boils.\n"


def test_a_folder_is_told_from_an_egg(idle: RunningDaemon, tmp_path: Path) -> None:
    for folder in ("", str(tmp_path)):
        refused = idle.cli("egg", "hatch", folder)
        assert refused.returncode == 4
        assert f'"{folder or "."}" is a folder, not an egg' in refused.stderr


def test_looking_verifying_and_comparing(kitchen: Gardener, tmp_path: Path) -> None:
    first = kitchen.packed("1.egg")
    kitchen.give("soul.md", "# Another\n")
    second = kitchen.packed("2.egg")
    home = kitchen.home
    assert "gardener, a twin, " in home.cli("egg", "inspect", str(first)).stdout
    assert home.cli("egg", "verify", str(first)).stdout.splitlines()[0] == "✓ whole: 4 of 4 files"
    assert f"  key {fingerprint(home)}" in home.cli("egg", "verify", str(first)).stdout.splitlines()
    for verb in ("verify", "inspect"):
        assert "✓ signed by this machine\n" in home.cli("egg", verb, str(first)).stdout
    assert "soul.md" in home.cli("egg", "diff", str(first), str(second)).stdout
    assert json.loads(home.cli("egg", "inspect", str(first), "--json").stdout)["egg"]["kind"] == "twin"
    octets = bytearray(second.read_bytes())
    octets[len(octets) // 3] ^= 1
    second.write_bytes(octets)
    broken = home.cli("egg", "verify", str(second), "--json")
    assert broken.returncode == 5
    assert json.loads(broken.stderr)["code"] in ("bad_egg", "hostile_egg")


def test_looking_tells_what_whoever_signed_it_is_here(idle: RunningDaemon, kitchen: Gardener) -> None:
    egg, own = kitchen.packed(), fingerprint(kitchen.home)

    def looked(home: RunningDaemon) -> tuple[str, str, str]:
        """The line on the screen; and the two words of the object."""
        as_text = home.cli("egg", "inspect", str(egg)).stdout
        line = next(line for line in as_text.splitlines() if " signed" in line)
        as_object = json.loads(home.cli("egg", "inspect", str(egg), "--json").stdout)["egg"]
        assert as_object["signer"] == ("" if "not signed" in line else own)
        return line, as_object["standing"], as_object["signer_name"]

    assert looked(kitchen.home) == ("✓ signed by this machine", "self", "this machine")
    assert looked(idle) == (f"✓ signed by {own[:16]}", "unknown", "")
    assert idle.cli("egg", "signers", "--trust", own, "--name", "Grandma's").returncode == 0
    assert looked(idle) == ("✓ signed by Grandma's", "trusted", "Grandma's")
    assert idle.cli("egg", "signers", "--revoke", own).returncode == 0
    assert looked(idle) == (f"✓ signed by {own[:16]}", "unknown", "")
    with zipfile.ZipFile(egg) as old:
        members = {name: old.read(name) for name in old.namelist() if name != "integrity.json"}
    with zipfile.ZipFile(egg, "w") as new:
        for name, content in members.items():
            new.writestr(name, content)
    assert looked(idle) == ("! not signed", "unsigned", "")


@pytest.mark.parametrize(
    ("form", "kind", "spoken"),
    [
        ("twin", "twin", "gardener, a twin, "),
        ("organism", "organism", "gardener, an organism, "),
        ("agent", "agent", "kettle_agent, an agent, "),
        ("rapp1-organism", "organism", "gardener, an organism, "),
    ],
)
def test_looking_names_the_kind_as_people_say_it(
    kitchen: Gardener, form: str, kind: str, spoken: str
) -> None:
    kitchen.give("agents/kettle_agent.py", KETTLE)
    item = ("--item", "kettle_agent.py") if form == "agent" else ()
    egg = str(kitchen.packed("one.egg", "--form", form, *item))
    said = kitchen.home.cli("egg", "inspect", egg).stdout
    assert said.startswith(spoken), said
    assert json.loads(kitchen.home.cli("egg", "inspect", egg, "--json").stdout)["egg"]["kind"] == kind


def test_a_file_that_is_there_stays_until_force_is_given_as_advised(kitchen: Gardener) -> None:
    egg = kitchen.packed()
    before = egg.read_bytes()
    kitchen.give("soul.md", "# Another\n")
    refused = kitchen.home.cli("egg", "pack", "gardener", "-o", str(egg))
    assert refused.returncode == 9
    assert "gardener.egg exists already; nothing was packed" in refused.stderr
    assert "→ Name another file, or --force" in refused.stderr
    assert egg.read_bytes() == before
    assert kitchen.home.cli("egg", "pack", "gardener", "-o", str(egg), "--force").returncode == 0
    assert egg.read_bytes() != before

    folder = egg.parent / "folder"
    folder.mkdir()
    refused = kitchen.home.cli("egg", "pack", "gardener", "-o", str(folder), "--force")
    assert refused.returncode == 9
    assert "folder is a folder; nothing was packed" in refused.stderr
    assert "--force" not in refused.stderr, "it does not help here"


def test_a_likely_secret_is_named_with_its_line_and_the_way_to_let_it_pass(
    kitchen: Gardener, tmp_path: Path
) -> None:
    kitchen.give("agents/mail_agent.py", f'{KETTLE}\nPASSWORD = "hunter2-but-longer-9X"\n')
    line = KETTLE.count("\n") + 2
    done = kitchen.home.cli("egg", "pack", "gardener", "-o", str(tmp_path / "g.egg"))
    assert done.returncode == 5
    found = re.search(
        rf"✗ mail_agent.py line {line} holds a likely [\w ]+  --allow (\w{{16}})\n", done.stderr
    )
    assert found, done.stderr
    assert "not packed\n  → Move it to .env" in done.stderr
    told = json.loads(kitchen.home.cli("egg", "pack", "gardener", "--json").stderr)
    assert told["findings"] == [
        {"path": "mail_agent.py", "line": line, "what": told["findings"][0]["what"], "id": found[1]}
    ]
    assert told["code"] == "secret_found"
    assert (
        kitchen.home.cli(
            "egg", "pack", "gardener", "-o", str(tmp_path / "g.egg"), "--allow", found[1]
        ).returncode
        == 0
    )


def test_extracting_lays_files_out_and_nothing_hatches(
    idle: RunningDaemon, kitchen: Gardener, tmp_path: Path
) -> None:
    egg = with_code(kitchen)
    assert idle.cli("egg", "extract", str(egg), str(tmp_path / "out")).returncode == 0
    out = lies(tmp_path / "out")
    with zipfile.ZipFile(egg) as archive:
        assert {name: out[name] for name in out if name != "manifest.json"} == {
            name: archive.read(name)
            for name in archive.namelist()
            if name not in ("manifest.json", "integrity.json")
        }
    assert json.loads(out["manifest.json"])["scale"] == "twin"
    assert not (idle.home / "twins").exists()
    again = idle.cli("egg", "extract", str(egg), str(tmp_path / "out"))
    assert (again.returncode, lies(tmp_path / "out")) == (9, out)
    assert not list(tmp_path.glob(".out*"))


def test_files_that_would_be_one_are_not_laid_out(tmp_path: Path) -> None:
    from twins.eggs.extracting import lay_out

    def egg(*names: str) -> Opened:
        parts = tuple(Part(name, Role.OTHER, name, 1, lambda: iter([b"x"])) for name in names)
        family = Family("rapp-egg/2.0", "twin", "ZIP", "")
        return Opened(family, {}, "x", None, Destination.TWIN, "", parts, Seal(None), "", 1)

    for names in (("a", "A"), ("a", "a/b"), ("../a",), ("/a",), ("a", "a")):
        with pytest.raises(Problem):
            lay_out(egg(*names), tmp_path / "out")
        assert list(tmp_path.iterdir()) == []


# Hatching.


def test_hatching_asks_nothing_keeps_foreign_code_back_and_says_how_to_go_on(
    idle: RunningDaemon, kitchen: Gardener
) -> None:
    egg = with_code(kitchen)
    seen = on_terminal(idle, "egg", "hatch", str(egg))
    assert seen.code == 0
    assert seen.lines[:5] == [
        "✓ gardener hatched: 5 files.",
        "! 2 code files quarantined: kept, not run.",
        "    agents/kettle_agent.py",
        "    services/pump_service.py",
        "  → read them, then: rappd agents approve --twin gardener",
    ]
    assert re.fullmatch(r"  Undo: rappd egg rollback \d{8}T\d{6}Z-[0-9a-f]{6}", seen.lines[5])

    listed = idle.cli("agents", "approve", "--twin", "gardener").stdout
    assert re.search(r"gardener  agents/kettle_agent\.py +gardener", listed)
    assert "rappd agents approve --twin gardener agents/kettle_agent.py" in listed
    rows = json.loads(idle.cli("agents", "approve", "--json").stdout)["held"]
    assert [(row["twin"], row["path"]) for row in rows] == [
        (kitchen.key, "agents/kettle_agent.py"),
        (kitchen.key, "services/pump_service.py"),
    ]
    nobody = idle.cli("agents", "approve", "kettle", "nobody", "--twin", "gardener")
    assert nobody.returncode == 4
    assert len(json.loads(idle.cli("agents", "approve", "--json").stdout)["held"]) == 2, (
        "none, or all of them"
    )
    done = json.loads(idle.cli("agents", "approve", "kettle", "pump", "--twin", "gardener", "--json").stdout)
    assert [one["file"] for one in done["approved"]] == ["agents/kettle_agent.py", "services/pump_service.py"]
    assert idle.cli("agents", "approve").stdout == "Nothing waits for approval.\n"


def test_approving_while_the_daemon_runs_counts_at_once(idle: RunningDaemon, kitchen: Gardener) -> None:
    egg = with_code(kitchen)
    idle.start()
    assert idle.cli("egg", "hatch", str(egg)).returncode == 0
    path = f"/twins/{kitchen.key}"
    refused = idle.post(f"{path}/agents/run", {"agent": "Kettle"}, control=True)
    assert refused.status == 404
    done = idle.cli("agents", "approve", "kettle_agent.py", "services/pump_service.py", "--twin", "gardener")
    assert done.stdout == (
        "✓ kettle_agent.py is approved, and runs.\n✓ services/pump_service.py is approved, and runs.\n"
    )
    assert idle.post(f"{path}/agents/run", {"agent": "Kettle"}, control=True).json()["result"] == "It boils."


def test_a_signer_is_trusted_by_fingerprint_until_revoked(idle: RunningDaemon, kitchen: Gardener) -> None:
    egg, own = with_code(kitchen), fingerprint(kitchen.home)
    wrong = idle.cli("egg", "hatch", str(egg), "--trust-signer", "0" * 64)
    assert wrong.returncode == 5
    assert f"is signed by {own}; nothing was written" in wrong.stderr
    assert json.loads(idle.cli("egg", "signers", "--json").stdout)["signers"] == []

    terminal = Terminal(idle, "egg", "hatch", str(egg), "--trust-signer", own)
    terminal.read_until(lambda seen: "[y/N]" in seen.text)
    assert "Trust kitchen from now on? What it signs runs here at once." in terminal.seen.text
    terminal.type("n\n")
    assert "Nothing was written." in terminal.to_end().text
    assert not (idle.home / "twins").exists()
    assert json.loads(idle.cli("egg", "signers", "--json").stdout)["signers"] == []

    assert "quarantined" not in idle.cli("egg", "hatch", str(egg), "--trust-signer", own).stdout
    assert idle.cli("agents", "approve").stdout == "Nothing waits for approval.\n"
    assert idle.cli("egg", "signers", "--trust", own).stdout == "✓ kitchen is trusted.\n", "it keeps its name"
    assert "signed by kitchen\n" in idle.cli("egg", "plan", str(egg)).stdout
    assert re.search(rf"kitchen  {own}", idle.cli("egg", "signers").stdout)
    assert idle.cli("egg", "signers", "--revoke", own).stdout == "✓ kitchen is not trusted any more.\n"
    assert "not paired" in idle.cli("egg", "plan", str(egg)).stdout
    assert idle.cli("egg", "signers", "--revoke", own).returncode == 4
    assert idle.cli("egg", "signers", "--trust", "xyz").returncode == 2


def test_a_hatching_that_fails_leaves_no_trust_behind(
    idle: RunningDaemon, kitchen: Gardener, tmp_path: Path
) -> None:
    egg, own = kitchen.packed(), fingerprint(kitchen.home)
    with zipfile.ZipFile(egg) as old, zipfile.ZipFile(tmp_path / "changed.egg", "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name) + (b"\n" if name == "soul.md" else b""))
    done = idle.cli("egg", "hatch", str(tmp_path / "changed.egg"), "--trust-signer", own)
    assert done.returncode == 5
    assert json.loads(idle.cli("egg", "signers", "--json").stdout)["signers"] == []


@pytest.mark.parametrize("awake", [False, True])
def test_taking_back(idle: RunningDaemon, kitchen: Gardener, awake: bool) -> None:
    egg = kitchen.packed()
    if awake:
        idle.start()
    assert idle.cli("egg", "hatchings").stdout == "Nothing was hatched here yet.\n"
    receipt = json.loads(idle.cli("egg", "hatch", str(egg), "--json").stdout)["hatched"]["receipt"]
    assert re.search(rf"{receipt}  gardener  twin +3 ", idle.cli("egg", "hatchings").stdout)
    (idle.home / "twins" / kitchen.key / "soul.md").write_text("# mine\n")
    refused = idle.cli("egg", "rollback", receipt)
    assert refused.returncode == 9
    assert f"rappd egg rollback {receipt} --even-if-changed keeps them aside\n" in refused.stderr
    done = idle.cli("egg", "rollback", receipt, "--even-if-changed")
    assert "gardener is taken back" in done.stdout, done
    (aside,) = re.findall(r"lies in (\S+)", done.stdout)
    assert (Path(aside.replace("~", str(idle.home.parent))) / "soul.md").read_text() == "# mine\n"
    assert not (idle.home / "twins" / kitchen.key).exists()
    assert "was taken back before" in idle.cli("egg", "rollback", receipt).stdout
    assert "taken back" in idle.cli("egg", "hatchings").stdout
    missing = idle.cli("egg", "rollback", "20000101")
    assert (missing.returncode, "rappd egg hatchings" in missing.stderr) == (4, True)


# What cannot be hatched.


@pytest.fixture
def at_rest(idle: RunningDaemon, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningDaemon]:
    """A home at rest, and this very process as its command line: hundreds of commands in a moment."""
    assert idle.cli("twins", "new", "Rose").returncode == 0
    assert idle.cli("egg", "pack", "Rose", "--json").returncode == 0
    for name in ("RAPP_HOME", "HOME"):
        monkeypatch.setenv(name, idle.environment[name])
    yield idle


def test_hostile_eggs_leave_the_home_as_it_is(
    at_rest: RunningDaemon, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = lies(at_rest.home)
    path, out = tmp_path / "x.egg", tmp_path / "out"
    for number, one in enumerate(HOSTILE):
        path.write_bytes(one.octets)
        verb = ("hatch", "plan", "verify", "extract")[number % 4]
        more = [str(out)] if verb == "extract" else []
        assert run(["egg", verb, str(path), *more]) == 5, one
        told = capsys.readouterr()
        assert told.out == "", one
        assert told.err.startswith("✗ "), one
        assert one.says in told.err or "I don't know how to hatch this" in told.err, one
        if one.late or number % 4 == 0:
            assert run(["egg", "hatch", str(path), "--json"]) == 5, one
            assert json.loads(capsys.readouterr().err)["code"] in ("bad_egg", "hostile_egg", "unknown_egg")
    assert lies(at_rest.home) == before
    assert sorted(tmp_path.iterdir()) == sorted({path, at_rest.home, *tmp_path.glob("no-gh")})


def test_the_honest_egg_of_that_corpus_hatches(at_rest: RunningDaemon, tmp_path: Path) -> None:
    (tmp_path / "x.egg").write_bytes(honest())
    assert run(["egg", "hatch", str(tmp_path / "x.egg")]) == 0
    (there,) = (at_rest.home / "twins").glob("4f*")
    assert (there / "soul.md").read_bytes() == HONEST["soul.md"]


@pytest.mark.parametrize("awake", [False, True])
def test_exit_codes_are_the_same_with_the_daemon_up_and_down(
    idle: RunningDaemon, kitchen: Gardener, tmp_path: Path, awake: bool
) -> None:
    egg = kitchen.packed()
    hostile = tmp_path / "hostile.egg"
    hostile.write_bytes(HOSTILE[0].octets)
    (tmp_path / "not.egg").write_text("hello")
    if awake:
        idle.start()
    assert idle.cli("egg", "hatch", str(hostile)).returncode == 5
    assert idle.cli("egg", "hatch", str(tmp_path / "not.egg")).returncode == 5
    assert idle.cli("egg", "hatch", str(tmp_path / "none.egg")).returncode == 4
    assert idle.cli("egg", "hatch", str(egg), "--overwrite", "everything").returncode == 2
    assert idle.cli("egg", "pack", "nobody").returncode == 4
    assert idle.cli("egg", "pack", "--form", "cake").returncode == 2
    assert idle.cli("egg", "pack", "--form", "agent").returncode == 2
    assert idle.cli("egg", "hatch", str(egg)).returncode == 0
    assert idle.cli("twins", "archive", "gardener", "--yes").returncode == 0
    archived = idle.cli("egg", "hatch", str(egg))
    assert (archived.returncode, "rappd twins unarchive" in archived.stderr) == (9, True)


def test_what_is_unfit_ends_with_5_while_the_daemon_runs(
    idle: RunningDaemon, kitchen: Gardener, tmp_path: Path
) -> None:
    idle.start()
    whole = kitchen.packed().read_bytes()
    kitchen.give("soul.md", 'PASSWORD = "hunter2-but-longer-9X"\n')
    other = kitchen.home.home.rename(tmp_path / "moved")
    shutil.copytree(other / "twins" / kitchen.key, idle.home / "twins" / kitchen.key)
    buddy = {"_meta": {"type": "rappter.egg"}, "organism": {"created_at": 5, "stage": "cake"}}
    lispy = {"_meta": {"type": "lispy-cartridge"}, "programs": 5}
    nobody = {**HONEST, "rappid.json": b'{"rappid": "rappid:nonsense"}'}
    files: dict[str, tuple[str, bytes]] = {
        "bad.egg": ("bad_egg", whole[: len(whole) // 2]),
        "hostile.egg": ("hostile_egg", HOSTILE[0].octets),
        "unknown.egg": ("unknown_egg", b'{"a": 1}'),
        "buddy.rappter.egg": ("bad_egg", json.dumps(buddy).encode()),
        "program.lispy.json": ("bad_egg", json.dumps(lispy).encode()),
        "nobody.egg": ("bad_egg", built([Crafted(name.encode(), octets) for name, octets in nobody.items()])),
    }
    for name, (code, octets) in files.items():
        (tmp_path / name).write_bytes(octets)
        done = idle.cli("egg", "hatch", str(tmp_path / name), "--json")
        assert (done.returncode, json.loads(done.stderr)["code"]) == (5, code), name
    for arguments, code in (
        (("egg", "pack", "gardener"), "secret_found"),
        (("cartridge", "run", str(tmp_path / "program.lispy.json")), "bad_cartridge"),
        (("agents", "add", str(tmp_path / "unknown.egg")), "bad_file"),
    ):
        done = idle.cli(*arguments, "--json")
        assert (done.returncode, json.loads(done.stderr)["code"]) == (5, code), arguments


def _refusals() -> Iterator[type[Problem]]:
    spec = importlib.util.spec_from_file_location("make_reference", REPO / "docs" / "make_reference.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules.setdefault("make_reference", made)
    spec.loader.exec_module(made)
    for one in made._problems():
        if one.__module__.startswith("twins.") or one.code in ("needs_yes", "secret_found", "bad_image"):
            yield one


@pytest.mark.parametrize("kind", sorted(set(_refusals()), key=lambda one: one.__qualname__))
def test_what_the_daemon_refuses_ends_as_what_the_command_refuses_itself(kind: type[Problem]) -> None:
    assert Answered({"error": "x", "code": kind.code}, kind.status).exit_code == kind.exit_code


# Agents of a registry, as a word.


def test_agents_of_a_registry_travel_as_a_short_text(idle: RunningDaemon, tmp_path: Path) -> None:
    from tests.twins.eggs.test_strings import clone, entry

    (tmp_path / "registry").mkdir()
    clone(tmp_path / "registry", entry("@kody/weather", 5), entry("@kody/tides", 1 << 65))
    registry = ("--registry", str(tmp_path / "registry"))
    text = idle.cli("egg", "forge", "@kody/weather", "@kody/tides", *registry).stdout.strip()
    assert text.startswith("v2.")
    told = json.loads(idle.cli("egg", "forge", "@kody/weather", *registry, "--json").stdout)["egg"]
    assert told == {"schema": "rapp-egg/1.0", "seeds": ["5"], "count": 1, "text": "AAAAAAAAAAU"}
    done = idle.cli("egg", "hatch-text", text, *registry)
    assert "! 2 code files quarantined: kept, not run." in done.stdout, done
    assert len(list(idle.agents.glob("*_agent.py"))) == 2
    assert idle.cli("egg", "hatch-text", "AAAA", *registry).returncode == 5


def test_what_one_mistypes_with_such_a_text_is_answered_with_what_was_meant(
    idle: RunningDaemon, tmp_path: Path
) -> None:
    from tests.twins.eggs.test_strings import clone, entry

    (tmp_path / "registry").mkdir()
    clone(tmp_path / "registry", entry("@kody/weather", 5), entry("@kody/tides", 0xF9 << 56))
    registry = ("--registry", str(tmp_path / "registry"))
    for wrong in ("weather", "@kody/wether", "@cody/weather"):
        refused = idle.cli("egg", "forge", wrong, *registry)
        assert refused.returncode == 4
        assert "→ Did you mean @kody/weather?" in refused.stderr
    assert "→ Names look like @owner/agent" in idle.cli("egg", "forge", "xyz", *registry).stderr
    for verb in ("hatch", "inspect", "plan"):
        refused = idle.cli("egg", verb, "AAAAAAAAAAU")
        assert refused.returncode == 4
        assert "rappd egg hatch-text AAAAAAAAAAU --registry FOLDER" in refused.stderr
        assert "egg pack makes one" in idle.cli("egg", verb, "rose.egg").stderr
    assert "egg string is empty" in idle.cli("egg", "hatch-text", "", *registry).stderr
    dashed = idle.cli("egg", "forge", "@kody/tides", *registry).stdout.strip()
    assert dashed.startswith("-")
    assert "hatched: 1 file." in idle.cli("egg", "hatch-text", dashed, *registry).stdout


# What hints name.


def test_every_command_that_a_hint_names_exists() -> None:
    import click

    from rappd.cli.app import rappd

    named: dict[tuple[str, str], str] = {}
    for package in ("envelopes", "agents", "twins", "neighborhoods", "rappd"):
        for file in (REPO / package).rglob("*.py"):
            for found in re.finditer(r'do=f?"[^"\n]*?\brappd ([a-z]+)(?: ([a-z][a-z-]*))?', file.read_text()):
                named.setdefault((found[1], found[2] or ""), str(file))
    assert ("egg", "hatchings") in named
    context = click.Context(rappd)
    for (first, second), file in named.items():
        if first in ("is", "on", "running", "tries"):  # "once rappd is awake"
            continue
        verb = rappd.get_command(context, first)
        assert verb is not None, (first, file)
        if isinstance(verb, click.Group) and second:
            assert second in verb.list_commands(click.Context(verb)), (first, second, file)
