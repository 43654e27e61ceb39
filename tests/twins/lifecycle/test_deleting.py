"""Deleting what a twin left, whatever it did to its folder; verbs that come at once."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from agents.storage.atomic_write import lock
from tests.fixtures.twin_states import State, state_of
from twins.errors import NoSuchTwinError, TwinConflictError
from twins.fs.remove_tree import remove_tree
from twins.lifecycle.lifecycle import Lifecycle


def test_a_purge_deletes_links_but_not_what_they_point_at(home: Any, tmp_path: Path) -> None:
    twin = home.mint("Gardener")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("precious")
    (twin.workspace.data / "folder").symlink_to(outside)
    (twin.workspace.data / "file").symlink_to(outside / "precious")
    home.do("archive", twin.key)
    home.do("purge", twin.key, confirm=True)
    assert (outside / "precious").read_text() == "precious"
    assert list(home.places.archive.iterdir()) == []


def test_a_tree_too_deep_to_name_is_archived_and_purged(home: Any) -> None:
    twin = home.mint("Gardener")
    handle = os.open(twin.workspace.data, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("deep", dir_fd=handle)
        inner = os.open("deep", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = inner
    os.close(handle)
    home.do("archive", twin.key)
    home.do("purge", twin.key, confirm=True)
    assert list(home.places.archive.iterdir()) == []


def test_folders_that_a_twin_locked_are_deleted_all_the_same() -> None:
    room = Path(tempfile.mkdtemp(dir="/tmp"))  # the test's own folder is closed to other accounts
    top = room / "body"
    inner = top / "a" / "b" / "c"
    inner.mkdir(parents=True)
    (inner / "file").write_text("x")
    room.chmod(0o777)
    for path in (inner / "file", inner, inner.parent, inner.parent.parent, top):
        path.chmod(0o000)
        if os.geteuid() == 0:
            os.chown(path, 65534, 65534)
    child = os.fork()
    if child == 0:
        if os.geteuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        os._exit(0 if remove_tree(top) == [] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert not top.exists()
    room.rmdir()


def test_two_verbs_at_once_wait_for_each_other(home: Any, runner: Any) -> None:
    twins = [home.mint(f"Test {number}") for number in range(6)]

    async def both() -> None:
        one, other = Lifecycle(home.places, runner), Lifecycle(home.places, runner)
        await asyncio.gather(
            *(one.archive(twin.key) for twin in twins[:3]), *(other.archive(twin.key) for twin in twins[3:])
        )
        results = await asyncio.gather(
            *(life.purge(twins[0].key, confirm=True) for life in (one, other)), return_exceptions=True
        )
        assert sorted(isinstance(result, TwinConflictError | NoSuchTwinError) for result in results) == [
            False,
            True,
        ]

    asyncio.run(both())
    assert len(home.do("list_archived")) == 5
    assert home.leftovers() == []


def test_operation_waits_for_another_process(home: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    twin = home.mint("Gardener")
    home.do("recover")
    monkeypatch.setattr("agents.storage.atomic_write.PATIENCE", 0.05)
    handle = os.open(home.places.archive, os.O_RDONLY)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with lock(handle):
            os.write(writing, b"held")
            time.sleep(600)
        os._exit(0)
    try:
        os.read(reading, 4)
        with pytest.raises(TwinConflictError, match="nothing was changed"):
            home.do("archive", twin.key)
        assert [one["hash"] for one in home.do("list_archived")] == []  # lists wait for nobody
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
        for one in (handle, reading, writing):
            os.close(one)
    assert state_of(home.places, twin.key) is State.ACTIVE
    home.do("archive", twin.key)


def test_times_need_their_offset(home: Any) -> None:
    twin = home.mint("Gardener")
    with pytest.raises(ValueError, match="offset"):
        home.do("archive", twin.key, now=datetime(2026, 1, 1))
    assert state_of(home.places, twin.key) is State.ACTIVE
