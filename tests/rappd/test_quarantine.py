"""Code that came from elsewhere is kept and not run until the operator approves exactly those bytes."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable

import pytest
from fixtures.running_daemon import RunningDaemon, agent_source

from agents.contract.agent import Change
from rappd.tenants.tenant import Tenant
from twins.trust.quarantine import QuarantineList

SERVICE = 'name = "oven"\n\n\ndef handle(method, path, body):\n    return {"warm": True}, 200\n'


def hold(daemon: RunningDaemon, name: str, source: str) -> None:
    """As the importer leaves it: the file in place, and its hash held."""
    path = daemon.home / "brainstem" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    held = QuarantineList(daemon.home / "held.json", daemon.home)
    held.hold(
        path, hashlib.sha256(source.encode()).hexdigest(), "It came in an egg of kitchen.", "kitchen.egg"
    )
    path.write_text(source)


def row(daemon: RunningDaemon, file: str) -> dict[str, object]:
    files = daemon.get("/agents").json()["files"]
    found: dict[str, object] = next(card for one in files for card in one["cards"] if card["file"] == file)
    return found


def test_quarantined_agent_is_listed_and_not_loaded(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    trace = daemon.home / "brainstem" / ".brainstem_data" / "loaded"
    source = f'open({str(trace)!r}, "w").close()\n' + agent_source("Oven")
    daemon.home.mkdir(parents=True, exist_ok=True)
    hold(daemon, "agents/oven_agent.py", source)
    daemon.start()
    card = row(daemon, "oven_agent.py")
    assert (card["quarantined"], card["held"], card["reason"]) == (
        True,
        True,
        "It came in an egg of kitchen.",
    )
    assert daemon.get("/agents/source/oven_agent.py", control=True).json()["source"] == source
    assert daemon.post("/agents/run", {"agent": "Oven"}, control=True).status == 404
    assert not trace.exists()

    read = {"filename": "oven_agent.py", "sha256": hashlib.sha256(b"another text").hexdigest()}
    refused = daemon.post("/agents/approve", read, control=True)
    assert (refused.status, refused.json()["do"]) == (409, "Read it again, then approve.")
    assert row(daemon, "oven_agent.py")["held"]

    read["sha256"] = hashlib.sha256(source.encode()).hexdigest()
    done = daemon.post("/agents/approve", read, control=True).json()
    assert done["message"] == "oven_agent.py is approved, and runs."
    assert daemon.post("/agents/run", {"agent": "Oven"}, control=True).json()["result"] == "done"
    assert trace.exists()


def test_hold_counts_although_the_first_look_at_it_failed(
    make_daemon: Callable[..., RunningDaemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    source = agent_source("Oven")
    daemon.drop("oven_agent.py", source)
    daemon.start()
    assert "Oven" in daemon.agent_names()
    refresh, failures = Tenant.refresh, [OSError("too many open files")]

    async def failing(tenant: Tenant) -> list[Change]:
        if failures:
            raise failures.pop()
        return await refresh(tenant)

    monkeypatch.setattr(Tenant, "refresh", failing)
    digest = hashlib.sha256(source.encode()).hexdigest()
    path = daemon.home / "brainstem" / "agents" / "oven_agent.py"
    QuarantineList(daemon.home / "held.json", daemon.home).hold(path, digest, "Why.", "kitchen.egg")
    assert daemon.post("/chat", {"user_input": "hello"}).status == 500
    time.sleep(0.1)  # a turn that follows at once does not look again
    daemon.chat("hello")
    assert row(daemon, "oven_agent.py")["held"]


def test_egg_file_changed_on_disk_is_held_until_the_owners_yes(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    daemon.home.mkdir(parents=True, exist_ok=True)
    hold(daemon, "agents/oven_agent.py", agent_source("Oven"))
    hold(daemon, "agents/pan_agent.py", agent_source("Pan"))
    daemon.start()
    changed = agent_source("Oven", 'return "mine"')
    daemon.drop("oven_agent.py", changed)
    digest = hashlib.sha256(changed.encode()).hexdigest()
    daemon.wait_for(lambda: _waiting(daemon).get("agents/oven_agent.py") == digest)
    assert row(daemon, "oven_agent.py")["held"] is True
    assert daemon.post("/agents/run", {"agent": "Oven"}, control=True).status == 404
    daemon.post("/agents/approve", {"filename": "oven_agent.py", "sha256": digest}, control=True)
    assert daemon.post("/agents/run", {"agent": "Oven"}, control=True).json()["result"] == "mine"
    daemon.drop("oven_agent.py", agent_source("Oven", 'return "mine again"'))
    assert row(daemon, "oven_agent.py")["held"] is False, "after the yes it is the owner's file"
    own = daemon.home / "pan_agent.py"
    own.write_text(agent_source("Pan", 'return "my own"'))
    assert daemon.cli("agents", "add", own).returncode == 0
    assert daemon.post("/agents/run", {"agent": "Pan"}, control=True).json()["result"] == "my own"


def _waiting(daemon: RunningDaemon) -> dict[str, str]:
    held = daemon.get("/agents/held", control=True).json()["held"]
    return {one["path"]: one["sha256"] for one in held}


def test_a_quarantined_service_answers_nobody(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    daemon.home.mkdir(parents=True, exist_ok=True)
    hold(daemon, "services/oven_service.py", SERVICE)
    daemon.start()
    refused = daemon.get("/api/oven")
    assert refused.status == 403
    assert refused.json()["error"] == "oven_service.py is quarantined: It came in an egg of kitchen."
    service = daemon.home / "brainstem" / "services" / "oven_service.py"
    service.write_text(service.read_text() + "\n")
    assert daemon.get("/api/oven").status == 403, "one letter more makes it nobody else's"
    daemon.post("/agents/approve", {"filename": "oven_service.py"}, control=True)
    assert daemon.get("/api/oven").json() == {"warm": True}
