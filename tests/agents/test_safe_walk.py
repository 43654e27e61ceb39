"""The walker for folders that agents write to: links, folders that change meanwhile, depth, refusals."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from agents.storage import safe_open
from agents.storage.safe_walk import FileKind, LinkFreeFolder, LinkFreeFolders


@pytest.fixture(params=["openat2", "step by step"])
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``a/b/file`` and a link to ``outside``, which holds ``secret``."""
    if request.param == "step by step":
        monkeypatch.setattr(safe_open, "_is_probed", True)
        monkeypatch.setattr(safe_open, "_openat2", None)
    (tmp_path / "root" / "a" / "b").mkdir(parents=True)
    (tmp_path / "root" / "a" / "b" / "file").write_bytes(b"mine")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(b"secret")
    (tmp_path / "root" / "link").symlink_to(tmp_path / "outside")
    return tmp_path / "root"


def test_walk_link_is_named_and_not_followed(root: Path) -> None:
    with LinkFreeFolder(root) as folder:
        found = dict(folder.walk())
        assert folder.files() == ["a/b/file", "link"]
        assert folder.find("link/secret").kind is FileKind.BLOCKED
    assert sorted(found) == ["a", "a/b", "a/b/file", "link"]
    assert stat.S_ISLNK(found["link"].st_mode)


def test_walk_folder_that_becomes_a_link_is_empty(root: Path) -> None:
    found = []
    with LinkFreeFolder(root) as folder:
        for path, _ in folder.walk():
            found.append(path)
            if path == "a/b":
                (root / "a").rename(root.parent / "moved")
                (root / "a").symlink_to(root.parent / "outside")
    assert sorted(found) == ["a", "a/b", "link"]


def test_walk_folder_behind_a_swapped_parent_is_empty(root: Path) -> None:
    (root.parent / "outside" / "b").mkdir()
    (root.parent / "outside" / "b" / "secret").touch()
    found = []
    with LinkFreeFolder(root) as folder:
        for path, _ in folder.walk("a"):
            found.append(path)
            (root / "a").rename(root.parent / "moved")
            (root / "a").symlink_to(root.parent / "outside")
    assert found == ["a/b"]


def test_walk_refused_folder_is_asked_once_and_left_out(root: Path) -> None:
    asked = []

    def enters(path: str) -> bool:
        asked.append(path)
        return path != "a/b"

    with LinkFreeFolder(root) as folder:
        assert sorted(path for path, _ in folder.walk(enters=enters)) == ["a", "link"]
    assert asked == ["a", "a/b"]


def test_walk_deep_tree_is_found_whole(root: Path) -> None:
    above = os.open(root, os.O_RDONLY)
    for _ in range(30):  # a path of more than 4096 bytes
        os.mkdir("d" * 200, dir_fd=above)
        inner = os.open("d" * 200, os.O_RDONLY, dir_fd=above)
        os.close(above)
        above = inner
    os.close(os.open("deepest", os.O_WRONLY | os.O_CREAT, dir_fd=above))
    os.close(above)
    with LinkFreeFolder(root) as folder:
        assert any(path.endswith("/deepest") for path in folder.files())


def test_walk_missing_start_holds_nothing(root: Path) -> None:
    with LinkFreeFolder(root) as folder:
        assert list(folder.walk("nothing")) == list(folder.walk("link")) == []


def test_link_free_folder_as_link_is_refused(root: Path) -> None:
    with LinkFreeFolder(root / "link") as folder, pytest.raises(OSError, match="link"):
        folder.folder("")
    with LinkFreeFolder(root / "link", follow=True) as folder:
        assert folder.files() == ["secret"]


def test_link_free_folders_close_what_they_opened(root: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with LinkFreeFolders(root.parent) as folders:
        assert folders["root"].content("a/b/file") == b"mine"
        assert folders["outside"].content("secret") == b"secret"
        assert len(list(Path("/proc/self/fd").iterdir())) > before
    assert len(list(Path("/proc/self/fd").iterdir())) == before
