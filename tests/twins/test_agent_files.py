from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twins.errors import BadFileError, NoSuchFileError
from twins.workspace.agent_files import AgentFiles, proper_name, sha256
from twins.workspace.workspace import Workspace

SOURCE = b"x = 1\n"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    workspace = Workspace.at(tmp_path / "brainstem")
    workspace.create()
    return workspace


@pytest.fixture
def files(workspace: Workspace) -> AgentFiles:
    return AgentFiles(workspace)


def _place(files: AgentFiles, name: str, content: bytes) -> str:
    final, staged = files.stage(name, content)
    files.place(final, staged)
    return final


def test_a_file_is_staged_out_of_sight_and_then_in_place(files: AgentFiles, workspace: Workspace) -> None:
    name, staged = files.stage("Weather Report.py", SOURCE)
    assert name == "Weather_Report_agent.py"
    assert list(workspace.agents.iterdir()) == []
    files.place(name, staged)
    assert (workspace.agents / name).read_bytes() == SOURCE
    assert not staged.exists()


def test_non_python_is_refused_with_line_unwritten(files: AgentFiles, workspace: Workspace) -> None:
    with pytest.raises(BadFileError, match=r"bad_agent\.py line 2: "):
        files.stage("bad_agent.py", b"x = 1\ndef f(:\n")
    with pytest.raises(BadFileError, match="not Python"):
        files.stage("bad_agent.py", b"\0")
    with pytest.raises(BadFileError, match="is not an agent file"):
        files.stage("notes.txt", SOURCE)
    assert not workspace.kept.exists()


def test_removed_file_is_restored_without_overwriting(files: AgentFiles, workspace: Workspace) -> None:
    name = _place(files, "dice_agent.py", SOURCE)
    token = files.remove(name)
    assert not (workspace.agents / name).exists()
    _place(files, "dice_agent.py", b"y = 2\n")
    with pytest.raises(BadFileError, match="exists again"):
        files.undo(token)
    files.remove(name)
    assert files.undo(token) == name
    assert files.read(name) == SOURCE
    with pytest.raises(NoSuchFileError):
        files.undo(token)


@pytest.mark.parametrize("token", ["", "../x", "1-000000000000", "a/b"])
def test_an_undo_token_is_never_a_path(files: AgentFiles, token: str) -> None:
    with pytest.raises(NoSuchFileError):
        files.undo(token)


def test_every_replacement_keeps_a_generation(files: AgentFiles) -> None:
    for number in range(3):
        _place(files, "dice_agent.py", f"x = {number}\n".encode())
    assert [kept.number for kept in files.generations("dice_agent.py")] == [1, 2]
    files.restore("dice_agent.py", 1)
    assert files.read("dice_agent.py") == b"x = 0\n"
    assert files.generations("dice_agent.py")[-1].sha256 == sha256(b"x = 2\n")
    with pytest.raises(NoSuchFileError):
        files.restore("dice_agent.py", 99)


@given(st.text(max_size=40))
def test_no_name_leads_outside_the_agents_folder(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    workspace = Workspace.at(tmp_path_factory.mktemp("w"))
    workspace.create()
    for attempt in (name, f"../{name}", f"{name}.py", f"/{name}_agent.py", f"a/../../{name}.py"):
        try:
            path = AgentFiles(workspace).path(attempt)
        except (BadFileError, NoSuchFileError):
            continue
        assert path.resolve().is_relative_to(workspace.agents.resolve())


def test_a_link_out_of_the_folder_is_not_followed(
    files: AgentFiles, workspace: Workspace, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x_agent.py").write_bytes(SOURCE)
    (workspace.agents / "link").symlink_to(tmp_path / "outside")
    with pytest.raises(NoSuchFileError):
        files.read("link/x_agent.py")


@given(st.text(min_size=1, max_size=60))
def test_a_proper_name_is_always_one_file_name(name: str) -> None:
    try:
        found = proper_name(name + ".py")
    except BadFileError:
        return
    assert re.fullmatch(r"[A-Za-z0-9_]+_(agent|listener)\.py", found)


@pytest.mark.parametrize("name", ["con.lispy", "NUL.lispy.json", "aux.lispy"])
def test_stage_name_of_a_device_is_refused(files: AgentFiles, workspace: Workspace, name: str) -> None:
    with pytest.raises(
        BadFileError, match="is the name of a device on Windows; nothing was written"
    ) as caught:
        files.stage(name, SOURCE)
    assert (
        name.partition(".")[0].lower() in str(caught.value).lower()
        and caught.value.do == "Choose another name."
    )
    assert not workspace.kept.exists()


def test_stage_other_spelling_of_a_present_file_is_refused(files: AgentFiles, workspace: Workspace) -> None:
    _place(files, "weather_agent.py", SOURCE)
    with pytest.raises(
        BadFileError, match=r"weather_agent\.py is there, and some disks take Weather_agent\.py"
    ):
        files.stage("Weather_agent.py", SOURCE)
    assert _place(files, "weather_agent.py", b"x = 2\n") == "weather_agent.py", (
        "the same spelling replaces it"
    )
    assert [path.name for path in workspace.agents.iterdir()] == ["weather_agent.py"]


def test_undo_beside_another_spelling_is_refused(files: AgentFiles, workspace: Workspace) -> None:
    token = files.remove(_place(files, "dice_agent.py", SOURCE))
    (workspace.agents / "Dice_agent.py").write_bytes(SOURCE)
    with pytest.raises(BadFileError, match=r"Dice_agent\.py is there"):
        files.undo(token)
