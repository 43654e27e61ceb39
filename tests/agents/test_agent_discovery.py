"""Finding the agent files of a folder, in order, reading them on many threads, and code that is made ahead."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import agents
from agents.contract.file_discovery import find_agent_files, find_service_files, find_shipped_files
from agents.contract.loading import code_of, compile_library
from agents.contract.syntax import syntax_tree
from agents.runtimes.python.worker.zygote import load_modules
from agents.storage.safe_fs import SafeTree


def touch(root: Path, *rels: str) -> None:
    for rel in rels:
        path = root / rel
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rel)


def names(root: Path) -> list[str]:
    return [file.rel for file in find_agent_files(root)]


def test_files_count_by_suffix_at_any_depth(tmp_path: Path) -> None:
    touch(tmp_path, "a_agent.py", "workspace_agents/kitchen/b_agent.py", "@me/c_agent.py")
    touch(tmp_path, "notes.py", "agent.py", "a_agent.pyc", "a_agent.py.stub", "a_agent.PY")
    assert names(tmp_path) == ["@me/c_agent.py", "a_agent.py", "workspace_agents/kitchen/b_agent.py"]


def test_what_is_set_aside_is_not_found(tmp_path: Path) -> None:
    touch(tmp_path, "basic_agent.py", "deep/basic_agent.py", ".draft_agent.py", ".git/x_agent.py")
    touch(
        tmp_path, "experimental_agents/x_agent.py", "a/disabled_agents/b/x_agent.py", "__pycache__/x_agent.py"
    )
    (tmp_path / "folder_agent.py").mkdir()
    assert names(tmp_path) == []


def test_order_is_bytewise(tmp_path: Path) -> None:
    touch(tmp_path, "b_agent.py", "B_agent.py", "ä_agent.py", "a/z_agent.py", "a_agent.py", "a-b_agent.py")
    assert names(tmp_path) == sorted(names(tmp_path), key=os.fsencode)
    assert names(tmp_path)[0] == "B_agent.py"
    assert names(tmp_path)[-1] == "ä_agent.py"


def test_links_are_not_agent_files(tmp_path: Path) -> None:
    agents, outside = tmp_path / "agents", tmp_path / "agents-of-others"
    touch(agents, "real_agent.py")
    touch(outside, "secret_agent.py")
    (agents / "inside_agent.py").symlink_to(agents / "real_agent.py")
    (agents / "outside_agent.py").symlink_to(outside / "secret_agent.py")
    (agents / "broken_agent.py").symlink_to(agents / "nothing")
    (agents / "folder").symlink_to(outside)
    (agents / "circle").symlink_to(agents)
    os.mkfifo(agents / "pipe_agent.py")
    assert names(agents) == ["real_agent.py"]


def test_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    touch(tmp_path / "real", "a_agent.py")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert names(tmp_path / "link") == ["a_agent.py"]
    assert find_agent_files(tmp_path / "link", SafeTree(tmp_path)) == [], "not beneath a workspace"


def test_shipped_files_may_be_links(tmp_path: Path) -> None:
    touch(tmp_path / "cache", "real.py")
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "a_agent.py").symlink_to(tmp_path / "cache" / "real.py")
    assert [file.rel for file in find_shipped_files(tmp_path / "library")] == ["a_agent.py"]


def test_a_stamp_tells_versions_apart(tmp_path: Path) -> None:
    touch(tmp_path, "a_agent.py")
    (first,) = find_agent_files(tmp_path)
    assert find_agent_files(tmp_path) == [first]
    other = tmp_path / "other"
    other.write_text("a_agent.py")
    times = (tmp_path / "a_agent.py").stat()
    os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))
    other.replace(tmp_path / "a_agent.py")
    (second,) = find_agent_files(tmp_path)
    assert second.stamp[:2] == first.stamp[:2]
    assert second.stamp != first.stamp, "same time and size, but another file"


def test_a_missing_folder_holds_nothing(tmp_path: Path) -> None:
    assert names(tmp_path / "nowhere") == []


def test_services_and_organs(tmp_path: Path) -> None:
    touch(tmp_path, "kanban_service.py", "heart_organ.py", "x_agent.py", "disabled_agents/off_service.py")
    assert [file.rel for file in find_service_files(tmp_path)] == ["heart_organ.py", "kanban_service.py"]


LIBRARY = Path(next(iter(agents.__path__))) / "library"


def test_the_code_of_a_shipped_file_is_made_once() -> None:
    assert load_modules(["agents.contract.loading:compile_library"]) == {}
    path = LIBRARY / "twin_agent.py"
    assert code_of(path, path.read_bytes()) is code_of(path, path.read_bytes())


def test_other_content_or_another_file_gets_its_own_code() -> None:
    compile_library()
    path = LIBRARY / "twin_agent.py"
    changed = code_of(path, b"HERE = 'changed'\n")
    elsewhere = code_of(Path("/x/twin_agent.py"), path.read_bytes())
    assert "HERE" in changed.co_names
    assert elsewhere.co_filename == "/x/twin_agent.py"
    assert elsewhere.co_names == code_of(path, path.read_bytes()).co_names


def test_what_cannot_be_called_is_told() -> None:
    assert load_modules(["agents.contract.loading:no_such_thing"]).keys() == {
        "agents.contract.loading:no_such_thing"
    }


SOURCE = "x = [[[[[[1]]]]]]\n" * 300


class LaysDown:
    """Garbage whose end, which may come while a tree is built, lets other threads go on."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        time.sleep(0.0001)


def read(_: int) -> int:
    for _ in range(20):
        LaysDown()
    return len(syntax_tree(SOURCE).body)


def test_threads_that_read_at_once_all_get_their_tree() -> None:
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(read, range(60))) == {300}
