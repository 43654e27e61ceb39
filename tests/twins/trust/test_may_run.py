"""The one question about code, as a table; and that the daemon and its workers answer it alike."""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path

import pytest

from agents.contract.may_run import SHIPPED, YOURS, Allowed, Quarantined, Refused, Verdict, origin_of
from agents.runtimes.python.worker.import_hooks import QuarantineImportHook
from twins.errors import BadFileError
from twins.trust.quarantine import QuarantineEntry
from twins.trust.trust import Trust, WorkspaceTrust, verdict
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
