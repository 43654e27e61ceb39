"""The one question about code, as a table: the daemon and its workers answer it alike; approvals, and where code is from."""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path

import orjson
import pytest

from agents.contract.may_run import SHIPPED, YOURS, Allowed, Quarantined, Refused, Verdict, origin_of
from agents.runtimes.python.worker.quarantined_imports import QuarantineImportHook
from twins.errors import BadFileError
from twins.trust.quarantine import QuarantineEntry
from twins.trust.trust import Approvals, CodeOrigins, Trust, WorkspaceTrust, verdict
from twins.workspace.workspace import Workspace

HELD = QuarantineEntry("a.py", "aa" * 32, "It came in an egg.", "rose.egg", "2026-01-01T00:00:00Z")
SOURCE = origin_of("owner/repo")
WAITS = Quarantined("It came in an egg.", "rose.egg")
NO = Refused

TABLE: list[tuple[str, QuarantineEntry | None, str, bool, Verdict | type[Refused]]] = [
    # origin, how it is held, its egg, approved for structure: the answer
    (SHIPPED, None, "", False, Allowed(structural=True)),
    (SHIPPED, HELD, "egg:1", True, Allowed(structural=True)),
    (YOURS, None, "", False, Allowed()),
    (YOURS, None, "", True, Allowed(structural=True)),
    (YOURS, None, "egg:1", False, Allowed(apart="egg:1")),
    (YOURS, None, "egg:1", True, Allowed(apart="egg:1", structural=True)),
    (YOURS, HELD, "", False, WAITS),
    (YOURS, HELD, "egg:1", True, WAITS),
    (SOURCE, None, "", False, Allowed()),
    (SOURCE, HELD, "", True, WAITS),
    ("", None, "", True, NO),
    ("peer", None, "", True, NO),
    ("Shipped", None, "", True, NO),
    ("source ", None, "", True, NO),
    ("source", HELD, "", True, NO),
]


@pytest.mark.parametrize(("origin", "entry", "egg", "approved", "answer"), TABLE)
def test_the_rule(
    origin: str, entry: QuarantineEntry | None, egg: str, approved: bool, answer: Verdict | type[Refused]
) -> None:
    found = verdict(origin, entry, egg=egg, is_approved=approved)
    assert isinstance(found, Refused) if answer is Refused else found == answer


def test_nothing_but_the_program_runs_while_a_list_cannot_be_read(tmp_path: Path) -> None:
    for damaged in ("held.json", "approved.json"):
        home = tmp_path / damaged
        home.mkdir()
        (home / damaged).write_text("{")
        trust = Trust(home)
        for origin in (YOURS, SOURCE):
            found = trust.may_run(origin, home / "a_agent.py", "aa" * 32)
            assert isinstance(found, Refused) and damaged in found.why
        assert trust.may_run(SHIPPED, home / "a_agent.py", "aa" * 32) == Allowed(structural=True)
        with pytest.raises(BadFileError, match=damaged):
            trust.is_held(home / "a_agent.py", "aa" * 32)


def test_each_part_of_the_rules_is_another_object_once_it_changed(tmp_path: Path) -> None:
    workspace = Workspace.at(tmp_path / "twins" / "rose")
    workspace.create()
    trust = Trust(tmp_path)
    rules = WorkspaceTrust(trust, workspace)
    held, origins = rules.look()
    assert all(one is other for one, other in zip(rules.look(), (held, origins), strict=True))
    trust.quarantine.hold(workspace.agents / "a_agent.py", "aa" * 32, "Why.", "rose.egg")
    again = rules.look()
    assert again[0] is not held and again[1] is origins
    assert rules.standing["held"]


CONTENTS = (b"one", b"two", b"three")


@pytest.mark.parametrize("brought", [*itertools.product((None, False, True), repeat=2)])
def test_a_worker_answers_as_the_daemon_does(tmp_path: Path, brought: tuple[bool | None, ...]) -> None:
    """For each content that came to a path, held for the path or exactly, or not at all."""
    workspace = Workspace.at(tmp_path / "twin")
    workspace.create()
    file = workspace.agents / "oven.py"
    trust = Trust(tmp_path)
    holds = [
        QuarantineEntry(
            trust.quarantine.key_of(file), hashlib.sha256(content).hexdigest(), "Why.", "egg", at, exact
        )
        for content, exact, at in zip(CONTENTS, brought, "12", strict=False)
        if exact is not None
    ]
    trust.quarantine.hold_all(holds)
    worker = QuarantineImportHook(workspace.root)
    worker._quarantined = trust.quarantine.below(workspace.root)  # without the audit hook, which never ends
    for content in CONTENTS:
        file.write_bytes(content)
        found = trust.may_run(YOURS, file, hashlib.sha256(content).hexdigest())
        assert bool(worker.why(str(file))) == isinstance(found, Quarantined), content


def _hash(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


def test_code_origins_with_receipts_names_the_egg(tmp_path: Path) -> None:
    home = tmp_path / "home"
    receipts = home / "eggs" / "receipts"
    receipts.mkdir(parents=True)
    origins = CodeOrigins(home)
    nothing = origins.look()
    assert origins.look() is nothing
    path = home / "brainstem" / "agents" / "a_agent.py"
    assert origins.egg_of(path, _hash("one")) == ""
    row = {"path": "agents/a_agent.py", "sha256": _hash("one"), "moved_to": ""}
    receipt = {"sha256": "ab" * 32, "workspace": "brainstem", "files": [row]}
    (receipts / "20260101T000000Z-aaaaaa.json").write_bytes(orjson.dumps(receipt))
    assert origins.look() is not nothing
    assert origins.egg_of(path, _hash("one")) == "egg:abababababab"
    assert origins.egg_of(path.with_name("copy_agent.py"), _hash("one")) == "egg:abababababab"
    changed = origins.egg_of(path, _hash("two"))
    assert changed.startswith("egg:abababababab:")
    assert origins.egg_of(path.with_name("own_agent.py"), _hash("two")) == ""


def test_code_origins_with_damaged_receipt_reads_the_others(tmp_path: Path) -> None:
    receipts = tmp_path / "eggs" / "receipts"
    receipts.mkdir(parents=True)
    (receipts / "bad.json").write_text("{")
    origins = CodeOrigins(tmp_path)
    origins.look()
    assert origins.egg_of(tmp_path / "x.py", _hash("x")) == ""


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
