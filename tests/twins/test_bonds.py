from __future__ import annotations

import json
import multiprocessing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from twins.errors import BadFileError, NoSuchTwinError
from twins.workspace.bonds import KINDS, events, record_bond, record_event
from twins.workspace.twin import Twin, mint
from twins.workspace.workspace import TwinLayout

NOW = datetime(2026, 11, 21, 9, 40, tzinfo=UTC)


@pytest.fixture
def twin(tmp_path: Path) -> Twin:
    return mint(TwinLayout(tmp_path), "Iris", owner="rose", now=NOW)


def _file(twin: Twin) -> Path:
    return twin.workspace.root / "bonds.json"


def _count_up(root: Path) -> None:
    for _ in range(10):
        record_bond(Twin.read(root).workspace)
        record_event(Twin.read(root).workspace, "rhythm")


def test_an_upgrade_is_written_in_the_published_shape(twin: Twin) -> None:
    count = record_bond(
        twin.workspace,
        at=NOW,
        from_version="0.1",
        to_version="0.2",
        from_commit="aa",
        to_commit="bb",
        note="by hand",
    )
    assert count == 1
    assert json.loads(_file(twin).read_bytes()) == {
        "events": [
            {
                "at": "2026-11-21T09:40:00Z",
                "kind": "birth",
                "from_version": None,
                "to_version": None,
                "from_commit": None,
                "to_commit": None,
                "note": "",
            },
            {
                "at": "2026-11-21T09:40:00Z",
                "kind": "bond",
                "from_version": "0.1",
                "to_version": "0.2",
                "from_commit": "aa",
                "to_commit": "bb",
                "note": "by hand",
            },
        ]
    }
    identity = Twin.read(twin.workspace.root).identity
    assert identity.fields == {**twin.identity.fields, "incarnations": 1}
    assert list(identity.fields) == list(twin.identity.fields)


def test_every_published_kind_of_event_is_appended_in_order(twin: Twin) -> None:
    for kind in KINDS:
        record_event(twin.workspace, kind, note=kind)
    assert [event["kind"] for event in events(twin.workspace)] == ["birth", *KINDS]
    assert Twin.read(twin.workspace.root).identity.incarnations == 0


def test_what_others_wrote_there_stays(twin: Twin) -> None:
    others: dict[str, Any] = {"schema": "x", "events": [{"kind": "rhythm", "mood": "ä"}, "odd"], "z": [1]}
    _file(twin).write_text(json.dumps(others))
    record_event(twin.workspace, "dock")
    found = json.loads(_file(twin).read_bytes())
    assert list(found) == ["schema", "events", "z"]
    assert found["events"][:2] == others["events"]
    assert found["events"][2]["kind"] == "dock"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"events": 3}', b"{}", b"\xff", b"[" * 100_000])
def test_a_damaged_file_is_left_alone_and_nothing_is_counted(twin: Twin, content: bytes) -> None:
    _file(twin).write_bytes(content)
    with pytest.raises(BadFileError, match=r"bonds\.json"):
        events(twin.workspace)
    with pytest.raises(BadFileError, match="left as it is"):
        record_bond(twin.workspace)
    assert _file(twin).read_bytes() == content
    assert Twin.read(twin.workspace.root).identity.incarnations == 0


@pytest.mark.parametrize("count", [None, -3, "four", True, 2.5])
def test_a_count_that_is_none_begins_anew(twin: Twin, count: object) -> None:
    twin.identity.changed(incarnations=count).write(twin.workspace.root)
    assert record_bond(twin.workspace) == 1


def test_without_an_identity_there_is_nothing_to_count(twin: Twin) -> None:
    (twin.workspace.root / "rappid.json").unlink()
    with pytest.raises(NoSuchTwinError):
        record_bond(twin.workspace)
    assert len(events(twin.workspace)) == 1


def test_processes_that_count_at_once_lose_nothing(twin: Twin) -> None:
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_count_up, args=(twin.workspace.root,)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert Twin.read(twin.workspace.root).identity.incarnations == 30
    kinds = [event["kind"] for event in events(twin.workspace)]
    assert sorted(kinds) == ["birth", *["bond"] * 30, *["rhythm"] * 30]
