"""``rappd egg hatch``: what it asks, keeps back and trusts, how it is taken back, and what cannot be hatched."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from fixtures.running_daemon import REPO, RunningDaemon
from fixtures.terminal import Terminal, on_terminal

from envelopes.errors import ReportableError
from rappd.cli.app import run
from rappd.control_client import ResponseError
from tests.rappd.cli.gardener import Gardener, fingerprint, lies, with_code
from tests.twins.eggs.crafted_zip import Crafted, built
from tests.twins.eggs.hostile_corpus import HONEST, HOSTILE, honest

# Hatching.


def test_hatching_quarantines_foreign_code_and_advises(idle: RunningDaemon, kitchen: Gardener) -> None:
    egg = with_code(kitchen)
    seen = on_terminal(idle, "egg", "hatch", str(egg))
    assert seen.code == 0
    assert seen.lines[:5] == [
        "✓ gardener hatched: 5 files.",
        "! 2 code files wait for your approval: kept, not run.",
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
    assert [one["file"] for one in done["approved"]] == ["kettle_agent.py", "services/pump_service.py"]
    assert idle.cli("agents", "approve").stdout == "Nothing waits for approval.\n"


def test_env_of_an_egg_is_approved_with_the_daemon_down(idle: RunningDaemon, kitchen: Gardener) -> None:
    kitchen.give(".env", "PUMP=on\nPATH=/evil\n")
    egg = kitchen.packed("with_env.egg", "--form", "organism")
    done = idle.cli("egg", "hatch", str(egg)).stdout
    assert "1 file waits for your approval: kept, not used." in done
    rows = json.loads(idle.cli("agents", "approve", "--json").stdout)["held"]
    assert [row["path"] for row in rows] == [".env"]
    told = json.loads(idle.cli("doctor", "--json").stdout)["doctor"]
    (waits, never) = [row for row in told if row["about"] == "Variables"]
    assert "waits for approval" in waits["what"] and "PATH" in never["what"]
    approved = idle.cli(*waits["do"].partition("rappd ")[2].split())
    assert approved.stdout.startswith("✓ .env is approved; ")
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
    question = f'Trust key {own[:16]} ("kitchen"), not paired, from now on? What it signs runs here at once.'
    assert question in terminal.seen.text.replace("\n", " ")
    terminal.type("n\n")
    assert "Nothing was written." in terminal.to_end().text
    assert not (idle.home / "twins").exists()
    assert json.loads(idle.cli("egg", "signers", "--json").stdout)["signers"] == []

    assert "approval" not in idle.cli("egg", "hatch", str(egg), "--trust-signer", own).stdout
    assert idle.cli("agents", "approve").stdout == "Nothing waits for approval.\n"
    assert idle.cli("egg", "signers", "--trust", own).stdout == f"✓ {own[:16]} is trusted.\n"
    assert f"✓ signed by {own[:16]}\n" in idle.cli("egg", "plan", str(egg)).stdout
    assert idle.cli("egg", "signers", "--trust", own, "--name", "cook").stdout == "✓ cook is trusted.\n"
    assert idle.cli("egg", "signers", "--trust", own).stdout == "✓ cook is trusted.\n", "it keeps its name"
    assert re.search(rf"cook  {own}", idle.cli("egg", "signers").stdout)
    assert idle.cli("egg", "signers", "--revoke", "cook").stdout == "✓ cook is not trusted any more.\n"
    assert "not paired" in idle.cli("egg", "plan", str(egg)).stdout
    assert idle.cli("egg", "signers", "--revoke", own).returncode == 4
    assert idle.cli("egg", "signers", "--trust", "xyz").returncode == 4


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


@pytest.mark.parametrize("running", [False, True])
def test_taking_back(idle: RunningDaemon, kitchen: Gardener, running: bool) -> None:
    egg = kitchen.packed()
    if running:
        idle.start()
    assert idle.cli("egg", "hatchings").stdout == "Nothing was hatched here yet.\n"
    receipt = json.loads(idle.cli("egg", "hatch", str(egg), "--json").stdout)["hatched"]["receipt"]
    assert re.search(rf"{receipt}  gardener  twin +4 ", idle.cli("egg", "hatchings").stdout)
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


def _lies(home: Path) -> dict[str, bytes]:
    """Everything that lies there but the record, which every command that works opens."""
    records = ("anchors.db", "rappd.db", "rappd.log", "rappd.pid")
    return {path: octets for path, octets in lies(home).items() if not path.startswith(records)}


def test_hostile_eggs_leave_the_home_as_it_is(
    at_rest: RunningDaemon, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = _lies(at_rest.home)
    path, out = tmp_path / "x.egg", tmp_path / "out"
    for number, one in enumerate(HOSTILE):
        path.write_bytes(one.octets)
        verb = ("hatch", "plan", "verify", "extract")[number % 4]
        more = [str(out)] if verb == "extract" else []
        assert run(["egg", verb, str(path), *more]) == 5, one
        told = capsys.readouterr()
        assert told.out == "", one
        assert told.err.startswith("✗ "), one
        assert one.says in told.err or "nothing was written" in told.err, one
        if one.late or number % 4 == 0:
            assert run(["egg", "hatch", str(path), "--json"]) == 5, one
            assert json.loads(capsys.readouterr().err)["code"] in ("bad_egg", "hostile_egg", "unknown_egg")
    assert _lies(at_rest.home) == before
    assert sorted(tmp_path.iterdir()) == sorted({path, at_rest.home, *tmp_path.glob("no-gh")})


def test_the_honest_egg_of_that_corpus_hatches(at_rest: RunningDaemon, tmp_path: Path) -> None:
    (tmp_path / "x.egg").write_bytes(honest())
    assert run(["egg", "hatch", str(tmp_path / "x.egg")]) == 0
    (there,) = (at_rest.home / "twins").glob("4f*")
    assert (there / "soul.md").read_bytes() == HONEST["soul.md"]


@pytest.mark.parametrize("running", [False, True])
def test_exit_codes_are_the_same_with_the_daemon_up_and_down(
    idle: RunningDaemon, kitchen: Gardener, tmp_path: Path, running: bool
) -> None:
    egg = kitchen.packed()
    hostile = tmp_path / "hostile.egg"
    hostile.write_bytes(HOSTILE[0].octets)
    (tmp_path / "not.egg").write_text("hello")
    if running:
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


def _refusals() -> Iterator[type[ReportableError]]:
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
def test_daemons_refusal_ends_like_a_local_one(kind: type[ReportableError]) -> None:
    assert ResponseError({"error": "x", "code": kind.code}, kind.status).exit_code == kind.exit_code
