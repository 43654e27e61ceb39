"""Names that agent files import from the daemon, in a process of their own each time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agents.compat.finder import ABSENT, SAME_AS, UnavailableModuleError, placeholder

SETUP = """
import sys
from pathlib import Path
from agents.compat import install_shims
root = Path(sys.argv[1])
install_shims(workspace=root, agents_dir=root / "agents", data_dir=root / "data")
"""


def run(root: Path, code: str, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", SETUP + code, str(root)],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", **env},
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_every_name_can_be_imported_and_is_one_module(tmp_path: Path) -> None:
    names = [*SAME_AS, *ABSENT, "openrappter", "skills", "utils", "agents.basic_agent"]
    code = f"""
import importlib
for name in {names!r}:
    assert importlib.import_module(name) is sys.modules[name]
for name, real in {SAME_AS!r}.items():
    assert sys.modules[name] is sys.modules[real], name
    assert sys.modules[real].__spec__.name == real, "the real module keeps its identity"
from agents import BasicAgent
from openrappter.agents import BasicAgent as Same
import basic_agent
print(BasicAgent is Same is basic_agent.BasicAgent)
"""
    assert run(tmp_path, code) == "True"


def test_nothing_is_made_before_it_is_imported(tmp_path: Path) -> None:
    code = "print(sorted(name for name in sys.modules if name.split('.')[0] in ('utils', 'openrappter')))"
    assert run(tmp_path, code) == "[]"


def test_daemons_modules_win_over_siblings(tmp_path: Path) -> None:
    for name in ("basic_agent.py", "errors.py", "mine_agent.py"):
        (tmp_path / "agents").mkdir(exist_ok=True)
        (tmp_path / "agents" / name).write_text("WORD = 'mine'\n")
    code = """
import agents.basic_agent, agents.errors, basic_agent, agents.mine_agent, mine_agent
print([hasattr(m, "WORD") for m in (agents.basic_agent, agents.errors, basic_agent, agents.mine_agent, mine_agent)])
"""
    assert run(tmp_path, code) == "[False, False, False, True, True]"


def test_moving_to_another_workspace(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name / "agents").mkdir(parents=True)
        (tmp_path / name / "agents" / f"{name}_agent.py").write_text("")
    code = """
for name in ("first", "second"):
    install_shims(workspace=root / name, agents_dir=root / name / "agents", data_dir=root / name / "data")
import agents, agents.second_agent
from utils.storage_factory import get_storage_manager
get_storage_manager().write_file("a.txt", "here")
print(len(agents.__path__), sum("agents" in path for path in sys.path), (root / "second/data/a.txt").read_text())
"""
    assert run(tmp_path, code) == "2 1 here"


def test_a_fake_model_answers_where_it_is_asked_for(tmp_path: Path) -> None:
    code = """
from utils.llm import call_llm, chat, provider_status
tools = [{"type": "function", "function": {"name": "Clock"}}]
print(call_llm("time?"), chat([{"role": "user", "content": "x"}], tools=tools)["tool_calls"][0]["function"])
print(provider_status()["provider"])
"""
    expected = "fake-llm: time? {'name': 'Clock', 'arguments': '{}'}\nfake"
    assert run(tmp_path, code, LLM_FAKE="1") == expected


def test_without_a_daemon_the_model_says_why(tmp_path: Path) -> None:
    code = """
from utils.llm import call_llm, provider_status
print(provider_status()["available"])
try:
    call_llm("time?")
except Exception as error:
    print(error)
"""
    assert run(tmp_path, code) == "None\nthere is no daemon to call back: this code does not run in a worker"


def test_storage_is_in_the_workspace_and_has_all_names(tmp_path: Path) -> None:
    code = """
from utils.azure_file_storage import AzureFileStorageManager, safe_json_loads
from utils.dynamics_storage import DynamicsStorageManager
assert isinstance(DynamicsStorageManager(), AzureFileStorageManager)
class Mine(AzureFileStorageManager):
    pass
Mine("share", connection="x").write_json({"a": {"message": "hi"}})
print(safe_json_loads("nonsense"), safe_json_loads('{"a": 1}'), safe_json_loads(None, []))
"""
    assert run(tmp_path, code) == "{} {'a': 1} []"
    assert "hi" in (tmp_path / "data" / "shared_memories" / "memory.json").read_text()


def test_what_is_not_here_imports_and_refuses() -> None:
    bond = placeholder("utils.bond", "BondManager")
    with pytest.raises(
        UnavailableModuleError, match=r"utils\.bond\.BondManager is not available: eggs are packed"
    ):
        bond("home")
    with pytest.raises(UnavailableModuleError, match=r"utils\.bond\.BondManager\.load is not available"):
        bond.load()

    class Derived(bond):  # type: ignore[misc,valid-type]  # derived from what the import gave
        pass

    with pytest.raises(UnavailableModuleError, match="eggs are packed"):
        Derived()
    error = placeholder("utils.bond", "BondError")
    with pytest.raises(error):
        raise error("no bond")
    with pytest.raises(AttributeError):
        placeholder("utils.bond", "__path__")


def test_chain_and_graph_are_importable_by_their_public_names(tmp_path: Path) -> None:
    code = """
from agents.chain import AgentChain
from agents.graph import AgentGraph
import agents.chains.chain
print(AgentChain is agents.chains.chain.AgentChain, AgentGraph.__name__)
"""
    assert run(tmp_path, code) == "True AgentGraph"
