"""Files of a workspace: links in it, places that settings move, and links that are named at start."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.storage.safe_open import UnsafeFileError
from twins.errors import BadFileError
from twins.fs.refused_links import MAX_LINKS, refused_links, refused_links_of_home
from twins.workspace.listing import MemoryCounter
from twins.workspace.souls import edit_soul, read_soul, soul_history
from twins.workspace.sources import Sources
from twins.workspace.workspace import Workspace

SECRET = "the secret"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    made = Workspace.at(tmp_path / "home" / "brainstem")
    made.create()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file.md").write_text(SECRET)
    return made


def test_workspace_create_leaves_links_as_they_are(workspace: Workspace, tmp_path: Path) -> None:
    workspace.services.rmdir()
    workspace.services.symlink_to(tmp_path / "outside")
    workspace.soul.unlink()
    workspace.soul.symlink_to(tmp_path / "nothing")
    workspace.create()
    assert workspace.services.is_symlink()
    assert not (tmp_path / "nothing").exists()


def test_workspace_moved_by_settings_follows_the_operators_links(tmp_path: Path) -> None:
    (tmp_path / "mine" / "agents").mkdir(parents=True)
    (tmp_path / "mine" / "soul.md").write_text("You are moved.")
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    link = tmp_path / "link"
    workspace = Workspace.at(tmp_path / "root", soul=f"{link}/soul.md", agents=f"{link}/agents")
    workspace.create()
    assert workspace.soul == tmp_path / "mine" / "soul.md"
    assert read_soul(workspace) == "You are moved."
    edit_soul(workspace, "You moved on.")
    assert (tmp_path / "mine" / "soul.md").read_text() == "You moved on."
    workspace.files.write_durably(workspace.agents / "x_agent.py", b"x")
    (workspace.agents / "link_agent.py").symlink_to(tmp_path / "mine" / "soul.md")
    with pytest.raises(UnsafeFileError):
        workspace.files.read(workspace.agents / "link_agent.py")


@pytest.mark.parametrize("spelling", ["root", "other/../root", "./root/."])
def test_workspace_soul_inside_stays_beneath_the_root(tmp_path: Path, spelling: str) -> None:
    (tmp_path / "other").mkdir()
    root = Path(f"{tmp_path}/{spelling}")
    for soul in ("", "soul.md", "a/../soul.md", f"{tmp_path}/root/soul.md"):
        workspace = Workspace.at(root, soul=soul)
        assert workspace.soul == root / "soul.md"
        workspace.create()
        workspace.soul.unlink()
        (tmp_path / "secret").write_text(SECRET)
        workspace.soul.symlink_to(tmp_path / "secret")
        with pytest.raises(BadFileError, match="link"):
            read_soul(Workspace.at(root, soul=soul))
        workspace.soul.unlink()


@pytest.mark.parametrize("linked", [".brainstem_data", ".brainstem_data/soul_history"])
def test_soul_history_behind_a_link_is_refused(workspace: Workspace, tmp_path: Path, linked: str) -> None:
    outside = tmp_path / "outside"
    (outside / "2026-01-01T00-00-00Z-secret.md").write_text(SECRET)
    (outside / "soul_history").symlink_to(outside)
    place = workspace.root / linked
    if place.is_dir():
        place.rmdir()
    place.symlink_to(outside)
    before = sorted(path.name for path in outside.iterdir())
    assert soul_history(workspace) == []
    with pytest.raises(BadFileError, match="link"):
        edit_soul(workspace, "You are somebody else.")
    assert sorted(path.name for path in outside.iterdir()) == before


def test_memories_behind_a_link_are_not_counted(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "outside" / "memory.json").write_text('{"a": 1}')
    (workspace.data / "shared_memories").symlink_to(tmp_path / "outside")
    assert MemoryCounter().count(workspace) is None


def test_sources_behind_a_link_write_nothing(workspace: Workspace, tmp_path: Path) -> None:
    workspace.sources.symlink_to(tmp_path / "outside")
    sources = Sources(workspace)
    sources.connect("owner/repo", [])
    with pytest.raises(UnsafeFileError):
        sources.disconnect("owner/repo")
    assert [path.name for path in (tmp_path / "outside").iterdir()] == ["file.md"]


def test_refused_links_are_named_with_what_to_do(workspace: Workspace, tmp_path: Path) -> None:
    assert refused_links(workspace) == []
    workspace.soul.unlink()
    workspace.soul.symlink_to("../../outside/file.md")
    workspace.senses.mkdir()
    (workspace.senses / "deep").mkdir()
    (workspace.senses / "deep" / "x_sense.py").symlink_to("/nowhere")
    workspace.kept.mkdir(parents=True)
    (workspace.root / "voice.zip").symlink_to("/nowhere.zip")
    (workspace.root / "notes").symlink_to("/tmp")  # nothing that the daemon reads
    soul, voice, sense = refused_links(workspace, is_host=True)
    assert (soul.path, soul.target) == (workspace.soul, "../../outside/file.md")
    assert "rappd config set soul_path" in soul.do
    assert (voice.path.name, sense.path.name) == ("voice.zip", "x_sense.py")
    assert "remove the link" in voice.do
    for number in range(2 * MAX_LINKS):
        (workspace.agents / f"x{number}_agent.py").symlink_to("/nowhere")
    assert len(refused_links(workspace)) == MAX_LINKS


def test_refused_links_of_twins_are_named_too(workspace: Workspace, tmp_path: Path) -> None:
    twin = Workspace.at(tmp_path / "home" / "twins" / "rose")
    twin.create()
    twin.env_file.symlink_to("../../.env")
    (found,) = refused_links_of_home(tmp_path / "home", workspace)
    assert found.path == twin.env_file
