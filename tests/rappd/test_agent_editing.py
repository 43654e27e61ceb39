"""Agent files as an editor sees them: saved, refused, in conflict, tested before saving, and their earlier versions."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from fixtures.running_daemon import REPO, RunningDaemon, agent_source

BROKEN = "x = 1\nclass A(:\n"


@pytest.fixture
def daemon(make_daemon: Callable[..., RunningDaemon]) -> RunningDaemon:
    daemon = make_daemon()
    daemon.drop("aaa_agent.py", agent_source("Aaa", 'return "first"'))
    return daemon.start()


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def save(daemon: RunningDaemon, text: str, base: str, name: str = "aaa_agent.py", **more: Any) -> Any:
    body = {"source": text, "base": base, **more}
    return daemon.request("PUT", f"/agents/source/{name}", body, control=True)


def run(daemon: RunningDaemon, agent: str = "Aaa") -> str:
    return str(daemon.post("/agents/run", {"agent": agent}, control=True).json()["result"])


def present(daemon: RunningDaemon, name: str = "aaa_agent.py") -> str:
    return (daemon.agents / name).read_text()


def test_saved_text_runs_and_what_it_replaced_is_a_generation(daemon: RunningDaemon) -> None:
    before, after = present(daemon), agent_source("Aaa", 'return "second"')
    answer = save(daemon, after, sha256(before))
    assert answer.status == 200, answer.body
    assert answer.json()["sha256"] == sha256(after)
    assert run(daemon) == "second"
    kept = daemon.get("/agents/generations/aaa_agent.py", control=True).json()["generations"]
    assert [(one["generation"], one["sha256"], one["reason"]) for one in kept] == [
        (1, sha256(before), "edited")
    ]
    path = "/agents/generations/aaa_agent.py?generation=1"
    assert daemon.get(path, control=True).json()["source"] == before


def test_save_after_a_change_on_disk_writes_nothing_and_gives_the_present_text(daemon: RunningDaemon) -> None:
    base = sha256(present(daemon))
    daemon.drop("aaa_agent.py", agent_source("Aaa", 'return "by another program"'))
    answer = save(daemon, agent_source("Aaa", 'return "mine"'), base)
    assert answer.status == 409
    found = answer.json()
    assert found["code"] == "changed_on_disk"
    assert found["source"] == present(daemon) and "another program" in found["source"]
    assert found["sha256"] == sha256(present(daemon))
    (daemon.agents / "aaa_agent.py").unlink()
    gone = save(daemon, "x = 1", base).json()
    assert (gone["code"], gone["sha256"]) == ("changed_on_disk", "")


def test_faulty_text_is_refused_with_its_line_or_kept_and_not_run(daemon: RunningDaemon) -> None:
    before = present(daemon)
    refused = save(daemon, BROKEN, sha256(before))
    assert refused.status == 400
    assert {key: refused.json()[key] for key in ("file", "line")} == {"file": "aaa_agent.py", "line": 2}
    missing = save(daemon, "import no_such_thing.at_all\n" + before, sha256(before), name="bbb_agent.py")
    assert missing.status == 409  # it is not there, and so has no base
    assert present(daemon) == before
    kept = save(daemon, BROKEN, sha256(before), keep=True).json()
    assert kept["status"] == "quarantined" and "line 2" in kept["message"]
    assert present(daemon) == BROKEN
    assert run(daemon) == "first", "the version before works on"
    assert save(daemon, before, sha256(BROKEN)).json()["status"] == "ok"


def test_faulty_drop_is_kept_and_listed_with_its_line(daemon: RunningDaemon) -> None:
    edge = "edge-of-the-test"
    parts = [("keep", "", "1"), ("file", '; filename="bad_agent.py"', BROKEN)]
    body = "".join(
        f'--{edge}\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n{text}\r\n'
        for name, more, text in parts
    )
    kind = {"Content-Type": f"multipart/form-data; boundary={edge}"}
    answer = daemon.post("/agents/import", f"{body}--{edge}--\r\n".encode(), headers=kind, control=True)
    assert answer.json()["status"] == "quarantined", answer.body
    assert present(daemon, "bad_agent.py") == BROKEN
    files = daemon.get("/agents").json()["files"]
    card = next(file["cards"][0] for file in files if file["filename"] == "bad_agent.py")
    assert (card["line"], card["quarantined"], card["waits"]) == (2, True, False)
    assert daemon.upload("worse_agent.py", BROKEN.encode(), control=True).status == 400
    assert not (daemon.agents / "worse_agent.py").exists(), "without the field a faulty file is refused"


def test_quarantined_file_is_not_edited_before_it_is_approved(
    daemon: RunningDaemon, make_daemon: Callable[..., RunningDaemon]
) -> None:
    kitchen = make_daemon("kitchen")
    text = agent_source("Weather", 'return "rain"')
    kitchen.drop("weather_agent.py", text)
    egg = daemon.home.parent / "weather.egg"
    packed = kitchen.cli("egg", "pack", "--form", "agent", "--item", "weather_agent.py", "-o", egg)
    assert packed.returncode == 0, packed.stderr
    assert daemon.cli("egg", "hatch", egg).returncode == 0
    source = daemon.wait_for(lambda: daemon.get("/agents/source/weather_agent.py", control=True)).json()
    assert "approval" in source["read_only"]
    answer = save(daemon, text + "# harmless\n", sha256(text), name="weather_agent.py")
    assert answer.status == 403 and "approval" in answer.json()["error"]
    assert present(daemon, "weather_agent.py") == text
    assert daemon.post("/agents/approve", {"filename": "weather_agent.py"}, control=True).status == 200
    assert save(daemon, text + "# harmless\n", sha256(text), name="weather_agent.py").status == 200


def test_draft_is_tested_without_being_saved(daemon: RunningDaemon) -> None:
    before = present(daemon)
    draft = agent_source("Aaa", "return 7")
    found = daemon.post("/agents/test", {"filename": "aaa_agent.py", "source": draft}, control=True).json()
    failed = {test["test"]: test["message"] for test in found["tests"] if not test["passed"]}
    assert not found["passed"] and failed["perform_returns_str"] == "perform() returned int"
    broken = daemon.post("/agents/test", {"filename": "aaa_agent.py", "source": BROKEN}, control=True).json()
    assert any("aaa_agent.py line 2" in test["message"] for test in broken["tests"])
    assert not any("_aaa_agent.py" in test["message"] for test in broken["tests"])
    assert present(daemon) == before and run(daemon) == "first"


def test_new_agent_from_a_name_runs_at_once(daemon: RunningDaemon) -> None:
    made = daemon.post("/agents/new", {"name": "Rain gauge"}, control=True).json()
    assert (made["file"], made["agents"]) == ("rain_gauge_agent.py", ["RainGauge"])
    assert run(daemon, "RainGauge").startswith("RainGauge was asked")
    again = daemon.post("/agents/new", {"name": "Rain gauge"}, control=True)
    assert again.status == 400 and "exists already" in again.json()["error"]


def test_editing_is_the_operators_and_only_of_own_files(daemon: RunningDaemon) -> None:
    base = sha256(present(daemon))
    for method, path, body in (
        ("PUT", "/agents/source/aaa_agent.py", {"source": "x", "base": base}),
        ("GET", "/agents/generations/aaa_agent.py", None),
        ("POST", "/agents/test", {"filename": "aaa_agent.py", "source": "x"}),
    ):
        assert daemon.request(method, path, body).json()["code"] == "not_operator"
    shipped = daemon.get("/agents/source/manage_memory_agent.py", control=True).json()
    assert "built in" in shipped["read_only"]
    for name in ("..%2Fsoul.md", "..%2Fx_agent.py", "basic.py"):
        assert save(daemon, "x = 1", "", name=name).status in (400, 404), name


def test_read_only_agents_folder_is_said_so(make_daemon: Callable[..., RunningDaemon]) -> None:
    apart = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    mounted = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1"'
    daemon = make_daemon()
    before = agent_source("Aaa", 'return "first"')
    daemon.drop("aaa_agent.py", before)
    folder = str(daemon.agents)
    if subprocess.run([*apart, mounted, "sh", folder], capture_output=True).returncode and not os.environ.get(
        "CI"
    ):
        pytest.skip("this system allows no user namespaces")
    daemon.process = subprocess.Popen(
        [*apart, f'{mounted} && exec "$0" -m rappd start --quiet', sys.executable, folder],
        env=daemon.environment,
        cwd=REPO,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    daemon.wait_for(daemon.is_ready, what="the daemon to be ready")
    answer = save(daemon, agent_source("Aaa", 'return "second"'), sha256(before))
    assert answer.status == 403 and "read-only" in answer.json()["error"], answer.body
    made = daemon.post("/agents/new", {"name": "Rain"}, control=True)
    assert made.status == 403 and "read-only" in made.json()["error"], made.body
    assert present(daemon) == before
