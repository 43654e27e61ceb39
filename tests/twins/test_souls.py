from __future__ import annotations

import os
import threading
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from twins.errors import BadFileError, NoSuchFileError
from twins.workspace.souls import default_soul, edit_soul, read_soul, restore_soul, soul_history
from twins.workspace.twin import KINDS
from twins.workspace.workspace import Workspace

NOW = datetime(2026, 11, 21, 9, 40, 5, tzinfo=UTC)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    workspace = Workspace.at(tmp_path / "twin")
    workspace.create()
    workspace.soul.write_text("first")
    return workspace


def _history_names(workspace: Workspace) -> list[str]:
    return [version.path.name for version in soul_history(workspace)]


def test_an_edit_keeps_the_text_before_it(workspace: Workspace) -> None:
    kept = edit_soul(workspace, "second", reason="Kinder, please!", now=NOW)
    assert read_soul(workspace) == "second"
    assert kept is not None
    assert kept.path.name == "2026-11-21T09-40-05Z-kinder-please.md"
    assert kept.path.read_text() == "first"
    assert (kept.number, kept.at, kept.reason) == (1, NOW, "kinder-please")
    assert soul_history(workspace) == [kept]


def _earlier(workspace: Workspace) -> list[str]:
    return [one.path.read_text() for one in sorted(soul_history(workspace), key=lambda one: one.number)]


def test_without_a_reason_the_name_is_the_moment_in_utc(workspace: Workspace) -> None:
    edit_soul(workspace, "second", now=NOW.astimezone(timezone(timedelta(hours=5))))
    assert _history_names(workspace) == ["2026-11-21T09-40-05Z.md"]


def test_many_edits_in_one_second_are_all_kept_in_their_order(workspace: Workspace) -> None:
    texts = ["first", *(f"text {number}" for number in range(12))]
    for text in texts[1:]:
        edit_soul(workspace, text, now=NOW)
    assert _earlier(workspace) == texts[:-1]
    edit_soul(workspace, "last", reason="later", now=NOW + timedelta(seconds=1))
    assert _history_names(workspace)[-1] == "2026-11-21T09-40-06Z-later.md"


def test_the_same_text_again_is_no_edit(workspace: Workspace) -> None:
    assert edit_soul(workspace, "first", now=NOW) is None
    assert soul_history(workspace) == []


def test_a_first_soul_has_nothing_to_keep(workspace: Workspace) -> None:
    workspace.soul.unlink()
    assert read_soul(workspace) == ""
    assert edit_soul(workspace, "born") is None
    assert read_soul(workspace) == "born"


def test_going_back_keeps_the_present_text_too(workspace: Workspace) -> None:
    edit_soul(workspace, "second", now=NOW)
    restored = restore_soul(workspace, 1, now=NOW + timedelta(seconds=3))
    assert restored.number == 1
    assert read_soul(workspace) == "first"
    assert _earlier(workspace) == ["first", "second"]
    with pytest.raises(NoSuchFileError, match="no earlier soul 7"):
        restore_soul(workspace, 7)


@pytest.mark.parametrize("text", ["", " \n", "nul\0", "half\ud83d", "x" * ((256 << 10) + 1)])
def test_what_is_no_soul_changes_nothing(workspace: Workspace, text: str) -> None:
    with pytest.raises(BadFileError):
        edit_soul(workspace, text)
    assert read_soul(workspace) == "first"
    assert soul_history(workspace) == []


def test_unreadable_soul_is_replaced_and_kept(workspace: Workspace) -> None:
    content = b"\xff\xfe" + b"x" * (300 << 10)
    workspace.soul.write_bytes(content)
    with pytest.raises(BadFileError, match="UTF-8"):
        read_soul(workspace)
    kept = edit_soul(workspace, "second")
    assert kept is not None
    assert kept.path.read_bytes() == content
    with pytest.raises(BadFileError):
        restore_soul(workspace, 1)
    assert read_soul(workspace) == "second"


def test_foreign_files_in_the_history_are_left_out(workspace: Workspace) -> None:
    edit_soul(workspace, "second", now=NOW)
    folder = workspace.data / "soul_history"
    for name in ("notes.md", "2026-13-45T99-00-00Z.md", ".2026-11-21T09-40-05Z.md.1.ab.tmp"):
        (folder / name).write_text("not a soul")
    assert len(soul_history(workspace)) == 1


def test_a_history_that_leads_elsewhere_is_refused(workspace: Workspace, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (workspace.data / "soul_history").symlink_to(elsewhere)
    with pytest.raises(BadFileError, match="link"):
        edit_soul(workspace, "second")
    assert list(elsewhere.iterdir()) == []
    assert read_soul(workspace) == "first"


def test_a_pipe_in_the_souls_place_does_not_hang(workspace: Workspace) -> None:
    workspace.soul.unlink()
    os.mkfifo(workspace.soul)
    with pytest.raises(BadFileError):
        read_soul(workspace)
    with pytest.raises(BadFileError):
        edit_soul(workspace, "second")


def test_of_edits_at_once_every_text_survives(workspace: Workspace) -> None:
    texts = [f"text {number}" for number in range(8)]
    threads = [threading.Thread(target=edit_soul, args=(workspace, text)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = [version.path.read_text() for version in soul_history(workspace)]
    assert sorted([*kept, read_soul(workspace)]) == sorted(["first", *texts])


def test_a_name_is_put_in_as_it_is() -> None:
    for kind in (*KINDS, "unheard-of"):
        assert "You are {0} {name} %s," in default_soul(kind, "{0} {name} %s").replace(".", ",")


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="tells folders by their descriptors")
def test_new_soul_is_staged_where_workers_cannot_write(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved: list[tuple[Path, str]] = []
    replace = os.replace

    def note(source: str, target: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        moved.append((Path(f"/proc/self/fd/{src_dir_fd}").readlink(), target))
        replace(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "replace", note)
    edit_soul(workspace, "You are another.\n")
    assert (workspace.kept, "soul.md") in moved
    assert workspace.root not in [folder for folder, _ in moved]
