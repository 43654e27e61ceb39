from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.storage.paths import UnsafePathError, file_parts, parts_of
from agents.storage.storage_manager import StorageManager, storage_for

SECRET = "the neighbour's secret"


@pytest.mark.parametrize(
    ("names", "parts"),
    [
        (("a/b", "c.txt"), ("a", "b", "c.txt")),
        (("a\\b", "c.txt"), ("a", "b", "c.txt")),
        (("./a//b/", "c"), ("a", "b", "c")),
        ((None, "c"), ("c",)),
        (("", "c"), ("c",)),
        ((PurePosixPath("a/b"), "c"), ("a", "b", "c")),
        (("...", "..a", "a..b"), ("...", "..a", "a..b")),
        ((), ()),
    ],
)
def test_names_become_parts(names: tuple[Any, ...], parts: tuple[str, ...]) -> None:
    assert parts_of(*names) == parts


@pytest.mark.parametrize(
    "name",
    [
        *("..", "../a", "a/../b", "a/..", "..\\a", "a\\..\\..", "/etc", "\\\\host\\share", "C:\\a", "c:a"),
        *("a\0b", "\ud800", "x" * 256, "ü" * 128, 5, b"a", object()),
    ],
)
def test_names_that_lead_out_are_refused(name: Any) -> None:
    with pytest.raises(UnsafePathError):
        parts_of(name)


@pytest.mark.parametrize("name", ["", ".", "/", "./", None])
def test_a_file_needs_a_name(name: Any) -> None:
    with pytest.raises(UnsafePathError):
        file_parts(name)


pieces = st.one_of(
    st.sampled_from(
        ["..", ".", "", "a", "b.txt", "link", "door", "pipe", "/", "\\", "~", "secret.txt", "C:"]
    ),
    st.sampled_from(["outside", "data", "%2e%2e", "..%2f", "．．", "\0", "\n", "memory", "shared_memories"]),
    st.text(max_size=12),
)
names = st.one_of(
    st.lists(pieces, max_size=6).map("/".join),
    st.lists(pieces, max_size=6).map("\\".join),
    st.text(max_size=300),
    st.none(),
    st.integers(),
    st.binary(max_size=4),
)

CALLS: list[Callable[[StorageManager, Any, Any], Any]] = [
    lambda s, a, b: s.write_file(a, "overwritten"),
    lambda s, a, b: s.write_file(a, b, "overwritten"),
    lambda s, a, b: s.write_json({"overwritten": 1}, a if a is not None else ""),
    lambda s, a, b: s.update_json(lambda value: {"overwritten": 1}, a if a is not None else ""),
    lambda s, a, b: s.delete_file(a),
    lambda s, a, b: s.delete_file(a, b),
    lambda s, a, b: s.ensure_directory_exists(a),
    lambda s, a, b: s.list_files(a, auto_create=True),
    lambda s, a, b: (s.set_memory_context(a), s.write_json({"overwritten": 1})),
    lambda s, a, b: s.read_file(a),
    lambda s, a, b: s.read_file(a, b),
    lambda s, a, b: s.read_file_binary(a, b),
    lambda s, a, b: s.read_json(a if a is not None else ""),
    lambda s, a, b: s.generate_download_url(a, b),
    lambda s, a, b: s.get_file_properties(a, b),
    lambda s, a, b: s.list_files(a),
    lambda s, a, b: (s.set_memory_context(a), s.read_json()),
]


def make_world(home: Path) -> StorageManager:
    """A data directory with every kind of trap in it, and a neighbour's files beside it."""
    outside = home / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text(SECRET)
    (outside / "user_memory.json").write_text(f'{{"1": {{"message": "{SECRET}"}}}}')
    data = home / "data"
    data.mkdir()
    (data / "link").symlink_to(outside / "secret.txt")
    (data / "door").symlink_to(outside, target_is_directory=True)
    (data / "dangling").symlink_to(outside / "not-yet.txt")
    (data / "memory").mkdir()
    (data / "memory" / "11111111-2222-3333-4444-555555555555").symlink_to(outside, target_is_directory=True)
    os.mkfifo(data / "pipe")
    return storage_for(data)


def what_is_in(outside: Path) -> list[tuple[str, bytes]]:
    return sorted((path.name, path.read_bytes()) for path in outside.iterdir())


@pytest.fixture
def world(tmp_path: Path) -> Iterator[StorageManager]:
    storage = make_world(tmp_path)
    before = what_is_in(tmp_path / "outside")
    yield storage
    assert what_is_in(tmp_path / "outside") == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "outside"]


@settings(max_examples=60, deadline=None)
@given(given_names=st.lists(st.tuples(st.sampled_from(CALLS), names, names), min_size=10, max_size=40))
def test_nothing_outside_is_made_changed_or_read(
    given_names: list[tuple[Callable[[StorageManager, Any, Any], Any], Any, Any]],
) -> None:
    with TemporaryDirectory() as folder:
        home = Path(folder)
        storage = make_world(home)
        before = what_is_in(home / "outside")
        for call, first, second in given_names:
            answer = call(storage, first, second)
            assert SECRET not in str(answer)
        assert what_is_in(home / "outside") == before
        assert sorted(path.name for path in home.iterdir()) == ["data", "outside"]


def test_links_are_not_followed_whatever_they_point_at(world: StorageManager) -> None:
    assert world.read_file("link") is None
    assert world.read_file("door", "secret.txt") is None
    assert world.read_file_binary("door/secret.txt") is None
    assert world.list_files("door") == []
    assert world.file_exists("link") is False
    assert world.file_exists("door", "secret.txt") is False
    assert world.get_file_properties("link") is None
    assert world.generate_download_url("door", "secret.txt") is None
    assert world.write_file("door", "new.txt", "x") is False
    assert world.delete_file("door", "secret.txt") is False
    assert world.ensure_directory_exists("door/new") is False
    assert world.read_json("door/user_memory.json") == {}
    names = [str(entry) for entry in world.list_files("")]
    assert names == ["memory", "pipe"]


def test_writing_over_a_link_replaces_the_link(world: StorageManager) -> None:
    assert world.write_file("link", "mine") is True
    assert world.write_file("dangling", "mine") is True
    assert world.read_file("link") == world.read_file("dangling") == "mine"


def test_memory_folder_outside_is_neither_read_nor_written(world: StorageManager) -> None:
    assert world.set_memory_context("11111111-2222-3333-4444-555555555555") is True
    assert world.read_json() == {}
    assert world.write_json({"1": {"message": "x"}}) is False
    assert world.update_json(lambda memories: {"1": 1}) is False


def test_a_pipe_or_a_folder_in_place_of_a_file_does_not_hang(world: StorageManager) -> None:
    assert world.read_file("pipe") is None
    assert world.read_file("memory") is None
    assert world.get_file_properties("pipe") is None
    assert world.write_file("memory", "x") is False
    assert world.delete_file("memory") is False
    assert world.write_file("pipe/below", "x") is False


def test_refusals_are_logged_with_the_reason(world: StorageManager, caplog: pytest.LogCaptureFixture) -> None:
    assert world.read_file("../outside/secret.txt") is None
    assert "leads out of the data directory" in caplog.text
    caplog.clear()
    assert world.read_file("not-there.txt") is None
    assert caplog.text == ""
