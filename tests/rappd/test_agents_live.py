"""Agent files while the daemon runs: dropped, broken, mended, imported, removed, approved."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fixtures.running_daemon import REPO, RunningDaemon, agent_source


@pytest.fixture
def daemon(make_daemon: Callable[..., RunningDaemon]) -> RunningDaemon:
    return make_daemon(LLM_FAKE="1").start()


def test_a_dropped_file_is_an_agent_and_gone_when_deleted(daemon: RunningDaemon) -> None:
    daemon.drop("aaa_agent.py", agent_source("Aaa", 'return "first"'))
    daemon.wait_for(lambda: "Aaa" in daemon.agent_names())
    assert daemon.chat("go")["agent_logs"] == "[Aaa] first"
    daemon.drop("aaa_agent.py", agent_source("Aaa", 'return "second, longer"'))
    daemon.wait_for(lambda: daemon.chat("go")["agent_logs"] == "[Aaa] second, longer")
    (daemon.agents / "aaa_agent.py").unlink()
    daemon.wait_for(lambda: "Aaa" not in daemon.agent_names())


def test_without_inotify_it_polls_every_second(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    apart = ["unshare", "--user", "--map-root-user", "sh", "-c"]
    none_left = "echo 0 > /proc/sys/user/max_inotify_instances"
    if subprocess.run([*apart, none_left], capture_output=True).returncode and not os.environ.get("CI"):
        pytest.skip("this system allows no user namespaces")
    daemon = make_daemon(LLM_FAKE="1")
    daemon.process = subprocess.Popen(
        [*apart, f'{none_left} && exec "$0" -m rappd start --quiet', sys.executable],
        env=daemon.environment,
        cwd=REPO,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    daemon.wait_for(daemon.is_ready, what="the daemon to be ready")
    daemon.wait_for_log("looking every 1 s")
    daemon.drop("aaa_agent.py", agent_source("Aaa", 'return "first"'))
    daemon.wait_for(lambda: "Aaa" in daemon.agent_names())
    daemon.drop("aaa_agent.py", agent_source("Aaa", 'return "second, longer"'))
    daemon.wait_for(lambda: daemon.chat("go")["agent_logs"] == "[Aaa] second, longer")
    (daemon.agents / "aaa_agent.py").unlink()
    daemon.wait_for(lambda: "Aaa" not in daemon.agent_names())


def test_fault_has_line_while_last_good_version_serves(daemon: RunningDaemon) -> None:
    daemon.drop("aaa_agent.py", agent_source("Aaa", 'return "good"'))
    daemon.wait_for(lambda: "Aaa" in daemon.agent_names())
    daemon.drop("aaa_agent.py", "x = 1\nclass A(:\n")
    fault = daemon.wait_for(lambda: daemon.get("/health").json()["quarantined"])[0]
    assert (fault["file"], fault["line"], fault["last_good"]) == ("aaa_agent.py", 2, True)
    assert daemon.chat("go")["agent_logs"] == "[Aaa] good"
    daemon.wait_for_log("works on")
    daemon.stop()
    daemon.start()
    assert daemon.get("/health").json()["quarantined"], "the fault is still there after a restart"
    assert daemon.chat("go")["agent_logs"] == "[Aaa] good", "and so is the last good version"
    daemon.drop("aaa_agent.py", agent_source("Aaa", 'return "mended"'))
    daemon.wait_for(lambda: not daemon.get("/health").json()["quarantined"])
    assert daemon.chat("go")["agent_logs"] == "[Aaa] mended"


def test_of_two_files_that_claim_a_name_the_later_serves(daemon: RunningDaemon) -> None:
    daemon.drop("a_agent.py", agent_source("Aaa", 'return "a"'))
    daemon.drop("b_agent.py", agent_source("Aaa", 'return "b"'))
    daemon.wait_for(lambda: daemon.chat("go")["agent_logs"] == "[Aaa] b")
    cards = [card for file in daemon.get("/agents").json()["files"] for card in file["cards"]]
    shadowed = {card["file"]: card["shadowed_by"] for card in cards if card["name"] == "Aaa"}
    assert {card["name"] for card in cards if card["structural"]} >= {"LearnNew", "Twin", "HatchEgg"}
    assert {card["name"]: card["try"] for card in cards}["AskPeer"] == "", "there is nobody to ask yet"
    assert not {card["name"] for card in cards if card["structural"]} & {"Aaa", "AskPeer"}
    assert shadowed == {"a_agent.py": "b_agent.py", "b_agent.py": ""}
    assert daemon.get("/health").json()["quarantined"] == []


def test_a_file_of_yours_wins_over_a_shipped_agent(daemon: RunningDaemon) -> None:
    daemon.drop("mine_agent.py", agent_source("ContextMemory", 'return "mine"'))
    daemon.wait_for(lambda: daemon.chat("go")["agent_logs"] == "[ContextMemory] mine")


def test_illegal_tool_names_are_offered_in_a_safe_form(daemon: RunningDaemon) -> None:
    daemon.drop(
        "a_agent.py",
        agent_source("AAA weather & wind!", 'return "blows"').replace(
            "class AAA weather & wind!Agent", "class WindAgent"
        ),
    )
    daemon.wait_for(lambda: "AAA weather & wind!" in daemon.agent_names())
    assert daemon.chat("go")["agent_logs"] == "[AAA weather & wind!] blows"
    assert daemon.get("/health").json()["quarantined"] == []


def test_skipped_folders_hold_no_agents(daemon: RunningDaemon) -> None:
    for folder in ("experimental_agents", "disabled_agents", ".hidden", "workspace_agents/swarm"):
        path = daemon.agents / folder
        path.mkdir(parents=True)
        (path / "x_agent.py").write_text(agent_source(f"X{folder.strip('.')[:4].title()}"))
    daemon.wait_for(lambda: "XWork" in daemon.agent_names())
    assert not {"XExpe", "XDisa", "XHidd"} & set(daemon.agent_names())


def test_import_checks_before_it_writes(daemon: RunningDaemon) -> None:
    refused = daemon.upload("bad_agent.py", b"x = 1\nclass A(:\n", control=True)
    assert refused.status == 400
    assert refused.json()["error"].startswith("bad_agent.py line 2: ")
    nothing = daemon.upload("empty_agent.py", b"x = 1\n", control=True)
    assert nothing.status == 400
    raising = daemon.upload("raise_agent.py", b"raise RuntimeError('at import')\n", control=True)
    assert raising.status == 400
    assert "at import" in raising.json()["error"]
    assert list(daemon.agents.iterdir()) == []
    taken = daemon.upload("Weather Now.py", agent_source("WeatherNow").encode(), control=True)
    assert taken.status == 200
    assert taken.json()["file"] == "Weather_Now_agent.py"
    assert taken.json()["agents"] == ["WeatherNow"]
    assert taken.json()["message"].startswith("WeatherNow is ready.")


def test_a_removed_agent_comes_back(daemon: RunningDaemon) -> None:
    daemon.upload("aaa_agent.py", agent_source("Aaa").encode(), control=True)
    removed = daemon.request("DELETE", "/agents/aaa_agent.py", control=True).json()
    assert "Aaa" not in daemon.agent_names()
    back = daemon.post("/agents/undo", {"undo": removed["undo"]}, control=True)
    assert back.json()["agents"] == ["Aaa"]
    assert "Aaa" in daemon.agent_names()


def test_export_gives_the_file_back_byte_for_byte(daemon: RunningDaemon) -> None:
    source = agent_source("Aaa").encode()
    daemon.upload("aaa_agent.py", source, control=True)
    answer = daemon.get("/agents/export/aaa_agent.py", control=True)
    assert answer.body == source
    assert 'filename="aaa_agent.py"' in answer.headers["content-disposition"]
    os.link(daemon.agents / "aaa_agent.py", daemon.home / "also_here")
    refused = daemon.get("/agents/export/aaa_agent.py", control=True)
    assert "is a hard link; it is not exported" in refused.json()["error"]
    (daemon.home / "also_here").unlink()
    assert daemon.get("/agents/export/aaa_agent.py", control=True).body == source


STRUCTURE_AGENT = """
from agents.basic_agent import BasicAgent
from utils.host import request


class TwinAgent(BasicAgent):
    def __init__(self):
        self.name = "Twin"
        self.metadata = {"name": "Twin", "description": "Tries.", "parameters": {"type": "object", "properties": {}}}
        super().__init__(self.name, self.metadata)

    def perform(self, **kwargs):
        try:
            return "allowed " + str(len(request("agents.list")["agents"]))
        except Exception as error:
            return f"refused: {error}"
"""


def test_only_approved_files_change_structure(daemon: RunningDaemon) -> None:
    daemon.drop("twin_agent.py", STRUCTURE_AGENT)
    shadowed = {"name": "Twin", "shadowed_by": "twin_agent.py"}  # the shipped one
    daemon.wait_for(
        lambda: any(
            shadowed.items() <= card.items()
            for file in daemon.get("/agents").json()["files"]
            for card in file["cards"]
        )
    )
    refused = daemon.cli("agents", "run", "Twin")
    assert "rappd agents approve" in refused.stdout or "may not change" in refused.stdout
    assert daemon.cli("agents", "approve", "Twin").returncode == 0
    assert daemon.cli("agents", "run", "Twin").stdout.startswith("allowed ")
    daemon.wait_for_log("security: twin_agent.py asked for agents.list")
    daemon.drop("twin_agent.py", STRUCTURE_AGENT + "\n# changed\n")
    daemon.wait_for(lambda: daemon.cli("agents", "run", "Twin").stdout.startswith("refused"))


def test_an_everyday_turn_is_offered_no_structural_agent(daemon: RunningDaemon) -> None:
    answer = daemon.post("/tether/agent", {"name": "LearnNew"})
    assert answer.status == 404
    for name in ("LearnNew", "SwarmFactory"):
        assert name in daemon.agent_names()
    for leave in ("ContextMemory", "HackerNews", "ManageMemory"):
        daemon.drop(f"z{leave.lower()}_agent.py", agent_source(leave, "return 'z'"))
    daemon.drop("lll_agent.py", agent_source("LLL", "return 'z'"))
    daemon.wait_for(lambda: "LLL" in daemon.agent_names())
    assert "[ContextMemory]" in daemon.chat("go")["agent_logs"]


@pytest.mark.parametrize("switch", ["off", "on"])
def test_packages_are_installed_only_where_allowed(
    make_daemon: Callable[..., RunningDaemon], switch: str, tmp_path: Path
) -> None:
    daemon = make_daemon(LLM_FAKE="1", RAPPD_INSTALL_PACKAGES=switch)
    for name in ("PIP_INDEX_URL", "PIP_CONFIG_FILE", "PIP_EXTRA_INDEX_URL", "UV_INDEX_URL", "PIP_FIND_LINKS"):
        if name in os.environ:
            daemon.environment[name] = os.environ[name]
    daemon.environment["HOME"] = os.environ.get("HOME", str(tmp_path))
    daemon.drop("aaa_agent.py", "import yaml\n" + agent_source("Aaa", "return yaml.safe_dump({'a': 1})"))
    daemon.drop("odd_agent.py", "import surely_no_such_module\n" + agent_source("Odd"))
    daemon.start()
    faults = {fault["file"]: fault["reason"] for fault in daemon.get("/health").json()["quarantined"]}
    assert "surely_no_such_module" in faults["odd_agent.py"]
    assert "pip install" in faults["odd_agent.py"]
    if switch == "on":
        assert daemon.chat("go")["agent_logs"] == "[Aaa] a: 1\n"
        assert (daemon.home / "brainstem" / ".deps" / "yaml").is_dir()
    else:
        assert "pip install --target" in faults["aaa_agent.py"]
        assert not (daemon.home / "brainstem" / ".deps").exists()


def test_sources_record_the_hash_of_what_was_fetched(daemon: RunningDaemon, tmp_path: Path) -> None:
    clone = tmp_path / "clone" / "agents"
    clone.mkdir(parents=True)
    source = agent_source("Aaa", 'return "from the source"')
    (clone / "aaa_agent.py").write_text(source)
    connected = daemon.post("/repos/connect", {"url": str(clone.parent)}, control=True)
    assert [agent["id"] for agent in connected.json()["agents"]] == ["aaa_agent"]
    assert "Aaa" not in daemon.agent_names()
    enabled = daemon.post(
        "/repos/toggle", {"url": str(clone.parent), "agent_id": "aaa_agent", "enable": True}, control=True
    ).json()
    assert enabled["loaded"] == ["Aaa"]
    assert enabled["sha256"] == hashlib.sha256(source.encode()).hexdigest()
    assert daemon.chat("go")["agent_logs"] == "[Aaa] from the source"
    repo = daemon.get("/repos").json()["repos"][0]
    assert (repo["enabled_count"], repo["agents"][0]["sha256"]) == (1, enabled["sha256"])
    daemon.post(
        "/repos/toggle", {"url": str(clone.parent), "agent_id": "aaa_agent", "enable": False}, control=True
    )
    assert "Aaa" not in daemon.agent_names()
    assert daemon.post("/repos/disconnect", {"url": str(clone.parent)}, control=True).json() == {
        "status": "ok"
    }
    assert daemon.get("/repos").json() == {"repos": []}
