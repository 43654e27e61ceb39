from __future__ import annotations

import hashlib
import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from twins.errors import BadFileError
from twins.trust.quarantine import QuarantineList
from twins.workspace.bonds import events
from twins.workspace.fork import fork
from twins.workspace.identity_file import BadNameError
from twins.workspace.lineage import Families
from twins.workspace.listing import find, scan
from twins.workspace.souls import edit_soul, read_soul, soul_history
from twins.workspace.twin import Twin, mint
from twins.workspace.workspace import TwinLayout

NOW = datetime(2026, 11, 21, 9, 40, tzinfo=UTC)

TAKEN = {
    "soul.md": b"You are the gardener.",
    "agents/dice_agent.py": b"x = 1\n",
    "agents/deep/er/dice_agent.py": b"x = 2\n",
    "services/bell_service.py": b"y = 1\n",
    "senses/smell.py": b"z = 1\n",
    "rapps/webhook/manifest.json": b"{}",
    ".brainstem_data/shared_memories/memory.json": b'{"a": {"message": "dry"}}',
    ".brainstem_data/buddy.json": b"{}",
    ".brainstem_data/.hidden": b"mine",
    ".repos.json": b"{}",
    ".remote_agents/o__r/extra_agent.py": b"w = 1\n",
    "notes/ideas.md": b"plant",
}
LEFT = [
    ".env",
    ".env.local",
    ".deps/left_pad/__init__.py",
    ".brainstem_data/kept/good/dice_agent.py",
    ".brainstem_data/soul_history/2026-01-01T00-00-00Z.md",
    ".brainstem_data/private/diary.md",
    ".brainstem_data/mail.token",
    ".brainstem_data/deep/My.SECRET",
    "agents/server.key",
    ".copilot_token",
    ".copilot_session",
    "agents/.env",
    "agents/__pycache__/dice_agent.cpython-311.pyc",
    ".git/config",
    "venv/bin/python",
    "archived.json",
    "HATCH_RECEIPT.json",
    ".lock",
    ".soul.md.12.abcd0123.tmp",
]


@pytest.fixture
def places(tmp_path: Path) -> TwinLayout:
    return TwinLayout(tmp_path / "home")


@pytest.fixture
def held(places: TwinLayout) -> QuarantineList:
    places.home.mkdir()
    return QuarantineList(places.home / "held.json", places.home)


@pytest.fixture
def gardener(places: TwinLayout) -> Twin:
    twin = mint(places, "gardener", owner="rose", kind="project", now=NOW)
    for name, content in {**TAKEN, **dict.fromkeys(LEFT, b"not yours")}.items():
        path = twin.workspace.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return twin


def _files(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def test_a_fork_takes_along_what_it_is_and_leaves_the_rest(
    places: TwinLayout, held: QuarantineList, gardener: Twin
) -> None:
    before = _files(gardener.workspace.root)
    done = fork(places, gardener, quarantine=held, owner="rose", name="gärtner", now=NOW)
    found = _files(done.twin.workspace.root)
    assert found.pop("rappid.json")
    assert found.pop("bonds.json")
    assert found == TAKEN
    assert done.files == len(TAKEN)
    for name in LEFT:
        assert any(name == path or name.startswith(f"{path}/") for path, _ in done.left), name
    assert _files(gardener.workspace.root) == before


def test_a_fork_is_someone_else_with_a_parent(
    places: TwinLayout, held: QuarantineList, gardener: Twin
) -> None:
    twin = fork(places, gardener, quarantine=held, owner="Iris", name="Gärtner", now=NOW).twin
    assert twin == find(places, "Gärtner")
    assert twin.rappid.identity != gardener.rappid.identity
    assert (twin.rappid.owner, twin.rappid.slug) == ("iris", "gaertner")
    assert (twin.kind, twin.born_at) == ("project", "2026-11-21T09:40:00Z")
    assert twin.identity.parent_text == gardener.rappid.text
    (birth,) = events(twin.workspace)
    assert (birth["kind"], birth["note"]) == ("birth", f"forked from {gardener.rappid.text}")
    assert twin.identity.incarnations == 0
    assert [kin.name for kin in Families(places).tree(twin.rappid)] == ["gardener", "Gärtner"]


def test_they_go_their_own_ways(places: TwinLayout, held: QuarantineList, gardener: Twin) -> None:
    twin = fork(places, gardener, quarantine=held, owner="rose").twin
    edit_soul(twin.workspace, "You like roses.")
    (twin.workspace.agents / "dice_agent.py").write_text("x = 6\n")
    assert read_soul(gardener.workspace) == "You are the gardener."
    assert (gardener.workspace.agents / "dice_agent.py").read_bytes() == b"x = 1\n"
    assert len(soul_history(twin.workspace)) == 1


def test_forks_of_forks_get_names_of_their_own(
    places: TwinLayout, held: QuarantineList, gardener: Twin
) -> None:
    names = [fork(places, gardener, quarantine=held, owner="rose").twin.name for _ in range(3)]
    assert names == ["gardener (fork)", "gardener (fork 2)", "gardener (fork 3)"]
    second = fork(places, find(places, names[0]), quarantine=held, owner="rose", name="grandchild").twin
    assert [kin.name for kin in Families(places).ancestors(second.rappid)] == [names[0], "gardener"]
    long = mint(places, "x" * 120, owner="rose")
    assert len(fork(places, long, quarantine=held, owner="rose").twin.name) <= 120


def test_quarantined_code_stays_quarantined(places: TwinLayout, held: QuarantineList, gardener: Twin) -> None:
    digest = hashlib.sha256(TAKEN["agents/dice_agent.py"]).hexdigest()
    held.hold(gardener.workspace.agents / "dice_agent.py", digest, "from an egg", "x.egg")
    twin = fork(places, gardener, quarantine=held, owner="rose").twin
    assert held.is_held(twin.workspace.agents / "dice_agent.py", digest)
    other = hashlib.sha256(TAKEN["services/bell_service.py"]).hexdigest()
    assert not held.is_held(twin.workspace.services / "bell_service.py", other)
    # Another process, asking later, sees the same.
    assert QuarantineList(places.home / "held.json", places.home).is_held(
        twin.workspace.agents / "dice_agent.py", digest
    )


def test_links_and_what_is_no_file_are_left_and_told(
    places: TwinLayout, held: QuarantineList, gardener: Twin, tmp_path: Path
) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "identity.pem").write_text("PRIVATE")
    root = gardener.workspace.root
    (root / "agents" / "a_link.py").symlink_to(tmp_path / "keys" / "identity.pem")
    (root / ".brainstem_data" / "keys").symlink_to(tmp_path / "keys")
    os.mkfifo(root / ".brainstem_data" / "pipe")
    os.link(tmp_path / "keys" / "identity.pem", root / ".brainstem_data" / "notes.txt")
    done = fork(places, gardener, quarantine=held, owner="rose")
    assert b"PRIVATE" not in _files(done.twin.workspace.root).values()
    assert ("agents/a_link.py", "a link") in done.left
    assert (".brainstem_data/keys", "a link") in done.left
    assert (".brainstem_data/pipe", "not a file") in done.left
    assert (".brainstem_data/notes.txt", "a hard link") in done.left


def test_a_tree_without_a_bottom_is_cut_off(places: TwinLayout, held: QuarantineList, gardener: Twin) -> None:
    handle = os.open(gardener.workspace.data, os.O_RDONLY)
    for _ in range(150):
        os.mkdir("d", dir_fd=handle)
        inner = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = inner
    os.close(handle)
    done = fork(places, gardener, quarantine=held, owner="rose")
    assert [why for path, why in done.left if path.endswith("/d")] == ["too deep"]
    assert list(places.staging.iterdir()) == []


def test_twin_without_soul_or_odd_kind_can_be_forked(places: TwinLayout, held: QuarantineList) -> None:
    root = places.twins / "0d51"
    root.mkdir(parents=True)
    (root / "rappid.json").write_text(json.dumps({"rappid": "0d51" * 8, "name": "Rose", "kind": "Ant Farm!"}))
    twin = fork(places, Twin.read(root), quarantine=held, owner="rose", name="Iris").twin
    assert twin.kind == "Ant Farm!"
    assert "You are Iris" in read_soul(twin.workspace)
    assert twin.identity.parent is not None
    assert twin.identity.parent.text == "0d51" * 8


def test_a_fork_that_cannot_be_leaves_nothing(
    places: TwinLayout, held: QuarantineList, gardener: Twin
) -> None:
    with pytest.raises(BadNameError):
        fork(places, gardener, quarantine=held, owner="rose", name="\0")
    (places.home / "held.json").write_text("{")
    with pytest.raises(BadFileError):
        fork(places, gardener, quarantine=held, owner="rose")
    assert [twin.key for twin in scan(places).twins] == [gardener.key]
    assert list(places.staging.iterdir()) == []


def test_executable_files_and_times_stay(places: TwinLayout, held: QuarantineList, gardener: Twin) -> None:
    script = gardener.workspace.root / "notes" / "run.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    os.utime(script, (1_700_000_000, 1_700_000_000))
    copied = fork(places, gardener, quarantine=held, owner="rose").twin.workspace.root / "notes" / "run.sh"
    assert copied.stat().st_mode & 0o777 == 0o700
    assert copied.stat().st_mtime == 1_700_000_000
