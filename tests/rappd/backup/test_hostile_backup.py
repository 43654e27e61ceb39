"""Files that agents lay into their folders stop no backup, and none is made that cannot be restored."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from io import FileIO
from pathlib import Path
from typing import Any

import pytest

from agents.storage.safe_fs import SafeTree
from rappd.backup import restore as restoring
from rappd.backup import selection
from rappd.backup.create import Backup, back_up
from rappd.backup.restore import restore
from rappd.daemon.home import Home
from twins.zip.archive_bounds import Limits

PASSPHRASE = "four quiet brown owls"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = Home(tmp_path / "home")
    found.create()
    found.identity()
    (found.brainstem / ".brainstem_data").mkdir(parents=True)
    (found.brainstem / "soul.md").write_text("the soul")
    (found.brainstem / "agents").mkdir()
    (found.brainstem / "agents" / "my_agent.py").write_text("mine")
    return found


def there_and_back(home: Home, tmp_path: Path) -> tuple[Backup, Path]:
    """The backup, and the home that came back from it, with all that is the owner's."""
    made = back_up(home.root, tmp_path / "a.backup", key=home.identity(), machine="m", passphrase=PASSPHRASE)
    restore(tmp_path / "a.backup", tmp_path / "new", passphrase=PASSPHRASE)
    back = tmp_path / "new"
    assert Home(back).identity().fingerprint == home.identity().fingerprint
    assert (back / "brainstem" / "soul.md").read_text() == "the soul"
    assert (back / "brainstem" / "agents" / "my_agent.py").read_text() == "mine"
    return made, back


def _write(*names: str) -> Callable[[Path], None]:
    def lay(folder: Path) -> None:
        for name in names:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)

    return lay


def _sparse(name: str, size: int) -> Callable[[Path], None]:
    def lay(folder: Path) -> None:
        with (folder / name).open("wb") as file:
            file.truncate(size)

    return lay


def _random(name: str, size: int) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(os.urandom(size)) and None


@pytest.mark.parametrize(
    ("lay", "left"),
    [
        (_write("A", "a"), "A"),
        (_write("\u00e9", "e\u0301"), "\u00e9"),
        (_write("x", "X/inside"), "X/inside"),
        (_write("a.", "a"), "a."),
        (_write(".env.A", ".env.a"), ".env.A"),
        (_write("../AGENTS/other"), "../AGENTS/other"),
        (_write("../SOUL.md"), "../SOUL.md"),
        (_random(".env.large", 2 << 20), ".env.large"),
        (_sparse("sparse", Limits().member_size + 1), "sparse"),
    ],
    ids=["case", "accent", "file and folder", "dot", "sealed", "agents", "soul", "large .env", "sparse"],
)
def test_what_no_archive_takes_is_left_out_and_named(
    home: Home, tmp_path: Path, lay: Callable[[Path], None], left: str
) -> None:
    data = home.brainstem / ".brainstem_data"
    lay(data)
    made, _ = there_and_back(home, tmp_path)
    wanted = os.path.normpath(f"brainstem/.brainstem_data/{left}")
    assert [os.path.normpath(path) for path, _ in made.left_out] == [wanted]


def test_flood_of_files_costs_its_own_workspace(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "Limits", lambda: Limits(members=selection._SPARE + 60))
    for number in range(200):
        (home.brainstem / ".brainstem_data" / f"{number}").touch()
    other = home.root / "twins" / ("ab" * 8)
    other.mkdir(parents=True)
    for number in range(9):
        (other / f"{number}").touch()
    made, back = there_and_back(home, tmp_path)
    assert len(list((back / "twins").rglob("[0-9]"))) == 9
    assert {why for _, why in made.left_out} == {"is one file too many"}
    assert all("brainstem/.brainstem_data/" in path for path, _ in made.left_out)


def test_executable_files_do_not_swell_what_a_restore_reads(home: Home, tmp_path: Path) -> None:
    folder = home.brainstem / ".brainstem_data" / ("x" * 200) / ("y" * 200)
    folder.mkdir(parents=True)
    for number in range(9000):  # their names together are more than 4 MB
        os.close(os.open(folder / f"{number:0100}", os.O_CREAT | os.O_WRONLY, 0o700))
    there_and_back(home, tmp_path)


def test_file_that_grows_is_taken_as_it_was_opened(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent that appends faster than it is read would keep the backup from ever ending."""
    growing = home.brainstem / ".brainstem_data" / "growing"
    growing.write_text("first,")
    opened = SafeTree.open

    class Growing(FileIO):
        def read(self, size: int | None = -1) -> bytes | None:
            if growing.stat().st_size < 1000:
                with growing.open("a") as more:
                    more.write("later")
            return super().read(size)

    def open_growing(self: SafeTree, where: Any) -> Any:
        return Growing(growing) if str(where).endswith("growing") else opened(self, where)

    monkeypatch.setattr(SafeTree, "open", open_growing)
    _, back = there_and_back(home, tmp_path)
    assert (back / "brainstem" / ".brainstem_data" / "growing").read_text() == "first,"


def test_file_that_takes_the_place_of_a_verified_one_is_not_restored(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    back_up(home.root, tmp_path / "a.backup", key=home.identity(), machine="m", passphrase=PASSPHRASE)
    forged = Home(tmp_path / "forged")
    forged.create()
    forged.identity()
    (forged.brainstem / "agents").mkdir(parents=True)
    (forged.brainstem / "agents" / "my_agent.py").write_text("theirs")
    back_up(forged.root, tmp_path / "b.backup", key=forged.identity(), machine="m", passphrase=PASSPHRASE)

    def swap(size: int) -> str:
        shutil.move(tmp_path / "b.backup", tmp_path / "a.backup")
        return "0" * size

    monkeypatch.setattr(restoring.random, "token_hex", swap)
    restore(tmp_path / "a.backup", tmp_path / "new", passphrase=PASSPHRASE)
    assert (tmp_path / "new" / "brainstem" / "agents" / "my_agent.py").read_text() == "mine"
